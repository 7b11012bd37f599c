package dev.bolide.compat;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/** Bodies that a client has compressed pass through, and filters on properties find them. */
final class Compressed {
    static String run(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        byte[] body = "a body that can be made much smaller ".repeat(400).getBytes();
        Set<String> got = ConcurrentHashMap.newKeySet();
        Set<String> faults = ConcurrentHashMap.newKeySet();
        CountDownLatch left = new CountDownLatch(CompressionType.values().length);
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topic);
        consumer.subscribe(topic, MessageSelector.bySql("wanted = 'yes' AND TAGS = 'tag'"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                String type = m.getUserProperty("type");
                CompressionType sent = MessageSysFlag.getCompressionType(m.getSysFlag());
                if (!java.util.Arrays.equals(body, m.getBody()) || sent != CompressionType.of(type)
                    || m.getStoreSize() > body.length / 2 || !"yes".equals(m.getUserProperty("wanted"))) {
                    faults.add(type + ": " + m);
                }
                if (got.add(type)) {
                    left.countDown();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (CompressionType type : CompressionType.values()) {
                producer.setCompressType(type);
                for (String wanted : new String[] {"no", "yes"}) {
                    Message m = new Message(topic, "tag", body);
                    m.putUserProperty("type", type.name());
                    m.putUserProperty("wanted", wanted);
                    new Ledger(1).sendUntilStored(1, () -> producer.send(m));
                }
            }
            if (!left.await(60, TimeUnit.SECONDS) || !faults.isEmpty()) {
                throw new AssertionError("came: " + got + ", faults: " + faults);
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        return "came whole by a filter: " + new TreeSet<>(got);
    }
}
