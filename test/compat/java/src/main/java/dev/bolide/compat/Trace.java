package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Producer and consumer of the classic client write down what they do in the trace topic. */
final class Trace {
    static String run(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        DefaultMQProducer producer = new DefaultMQProducer(Target.fresh("java-producers"));
        producer.setEnableTrace(true);
        producer.setNamesrvAddr(target.namesrv);
        producer.setInstanceName(Target.fresh("producer"));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setEnableTrace(true);
        consumer.setNamesrvAddr(target.namesrv);
        consumer.setInstanceName(Target.fresh("consumer"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        CountDownLatch consumed = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            consumed.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        producer.start();
        consumer.start();
        String id;
        try {
            SendResult r = producer.send(new Message(topic, "tag", "key", new byte[] {1}));
            id = r.getMsgId();
            if (!consumed.await(60, TimeUnit.SECONDS)) {
                throw new AssertionError("the message did not come");
            }
        } finally {
            producer.shutdown(); // sends what is left of the trace
            consumer.shutdown();
        }
        DefaultLitePullConsumer reader = new DefaultLitePullConsumer(Target.fresh("trace-reader"));
        reader.setNamesrvAddr(target.namesrv);
        reader.setInstanceName(Target.fresh("reader"));
        reader.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        reader.subscribe("RMQ_SYS_TRACE_TOPIC", "*");
        reader.start();
        Set<String> kinds = new HashSet<>();
        try {
            long end = System.nanoTime() + 60_000_000_000L;
            while (kinds.size() < 3 && System.nanoTime() < end) {
                for (MessageExt m : reader.poll(1000)) {
                    for (String record : new String(m.getBody(), StandardCharsets.UTF_8).split("\u0002")) {
                        if (record.contains(id)) {
                            kinds.add(record.substring(0, record.indexOf('\u0001')));
                        }
                    }
                }
            }
        } finally {
            reader.shutdown();
        }
        if (!kinds.equals(Set.of("Pub", "SubBefore", "SubAfter"))) {
            throw new AssertionError("the trace of the message holds " + kinds);
        }
        return "traced as " + kinds;
    }
}
