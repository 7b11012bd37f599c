package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceType;
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
        SendResult sent;
        try {
            sent = producer.send(new Message(topic, "tag", "key", new byte[] {1}));
            if (!consumed.await(60, TimeUnit.SECONDS)) {
                throw new AssertionError("the message did not come");
            }
        } finally {
            producer.shutdown(); // sends what is left of the trace
            consumer.shutdown();
        }
        return "traced as " + new TreeSet<>(read(target, topic, group, sent).keySet());
    }

    /** The records of the message, as Apache's own parser reads them, by their kind. */
    private static Map<TraceType, TraceContext> read(Target target, String topic, String group, SendResult sent) throws Exception {
        String id = sent.getMsgId();
        DefaultLitePullConsumer reader = new DefaultLitePullConsumer(Target.fresh("trace-reader"));
        reader.setNamesrvAddr(target.namesrv);
        reader.setInstanceName(Target.fresh("reader"));
        reader.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        reader.subscribe("RMQ_SYS_TRACE_TOPIC", "*");
        reader.start();
        Map<TraceType, TraceContext> records = new EnumMap<>(TraceType.class);
        try {
            long end = System.nanoTime() + 60_000_000_000L;
            while (records.size() < 3 && System.nanoTime() < end) {
                for (MessageExt m : reader.poll(1000)) {
                    if (!List.of(String.valueOf(m.getKeys()).split(" ")).contains(id)) {
                        continue;
                    }
                    for (TraceContext c : TraceDataEncoder.decoderFromTraceDataString(new String(m.getBody(), StandardCharsets.UTF_8))) {
                        if (c.getTraceBeans().stream().anyMatch(b -> id.equals(b.getMsgId()))) {
                            records.put(c.getTraceType(), c);
                        }
                    }
                }
            }
        } finally {
            reader.shutdown();
        }
        TraceContext published = records.get(TraceType.Pub);
        TraceContext before = records.get(TraceType.SubBefore);
        TraceContext after = records.get(TraceType.SubAfter);
        if (records.size() != 3 || published == null || before == null || after == null) {
            throw new AssertionError("the trace of the message holds " + records.keySet());
        }
        TraceBean b = published.getTraceBeans().get(0);
        if (!b.getTopic().equals(topic) || !b.getTags().equals("tag") || !b.getKeys().equals("key") || b.getBodyLength() != 1
            || !b.getOffsetMsgId().equals(sent.getOffsetMsgId()) || !published.isSuccess()
            || !before.getGroupName().equals(group) || !before.getTraceBeans().get(0).getKeys().equals("key")
            || !after.getRequestId().equals(before.getRequestId()) || !after.isSuccess()) {
            throw new AssertionError("the trace says " + records);
        }
        return records;
    }
}
