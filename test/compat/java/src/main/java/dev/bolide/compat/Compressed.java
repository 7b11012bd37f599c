package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/**
 * Bodies that the classic client has packed pass through, and each kind of filter finds their
 * properties. The gRPC client reads those in zlib.
 */
final class Compressed {
    private static final byte[] BODY = "a body that can be made much smaller ".repeat(400).getBytes(StandardCharsets.UTF_8);
    private static final String SQL = "wanted = 'yes' AND type <> 'none'";

    private final String topic;
    private final Set<String> faults = ConcurrentHashMap.newKeySet();
    private final Map<String, Integer> times = new ConcurrentHashMap<>(); // by consumer and type

    private Compressed(String topic) {
        this.topic = topic;
    }

    private void received(String consumer, String type, String wanted, byte[] body) {
        if (!Arrays.equals(body, BODY) || !"yes".equals(wanted)) {
            faults.add(consumer + ": " + type + ", " + body.length + " bytes, wanted: " + wanted);
        }
        times.merge(consumer + " " + type, 1, Integer::sum);
    }

    private DefaultMQPushConsumer classic(Target target, String name, MessageSelector filter) throws Exception {
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topic);
        consumer.subscribe(topic, filter);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                String type = m.getUserProperty("type");
                if (MessageSysFlag.getCompressionType(m.getSysFlag()) != CompressionType.of(type) || m.getStoreSize() > BODY.length / 2) {
                    faults.add(type + " is not what was sent: " + m);
                }
                received(name, type, m.getUserProperty("wanted"), m.getBody());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    /** Its filters leave out what this client can't unpack. */
    private PushConsumer grpc(Target target, String name, FilterExpression filter) throws Exception {
        return Grpc.PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(Grpc.configuration(target))
            .setConsumerGroup(target.createGroup(16, false))
            .setSubscriptionExpressions(Collections.singletonMap(topic, filter))
            .setConsumptionThreadCount(2)
            .setMessageListener(m -> {
                received(name, m.getProperties().get("type"), m.getProperties().get("wanted"), Grpc.bytes(m.getBody()));
                return ConsumeResult.SUCCESS;
            })
            .build();
    }

    static String run(Target target) throws Exception {
        Compressed c = new Compressed(target.createTopic("NORMAL"));
        DefaultMQProducer producer = Classic.producer(target);
        DefaultMQPushConsumer byTag = c.classic(target, "by tag", MessageSelector.byTag("yes-LZ4 || yes-ZSTD || yes-ZLIB"));
        DefaultMQPushConsumer bySql = c.classic(target, "by SQL92", MessageSelector.bySql(SQL));
        try (PushConsumer grpcByTag = c.grpc(target, "gRPC by tag", new FilterExpression("yes-ZLIB", FilterExpressionType.TAG));
             PushConsumer grpcBySql = c.grpc(target, "gRPC by SQL92", new FilterExpression(SQL + " AND type = 'ZLIB'", FilterExpressionType.SQL92))) {
            for (CompressionType type : CompressionType.values()) {
                producer.setCompressType(type);
                for (String wanted : List.of("no", "yes")) {
                    Message m = new Message(c.topic, wanted + "-" + type, BODY);
                    m.putUserProperty("type", type.name());
                    m.putUserProperty("wanted", wanted);
                    producer.send(m);
                }
            }
            Map<String, Integer> want = new ConcurrentHashMap<>(Map.of("gRPC by tag ZLIB", 1, "gRPC by SQL92 ZLIB", 1));
            for (CompressionType type : CompressionType.values()) {
                want.put("by tag " + type, 1);
                want.put("by SQL92 " + type, 1);
            }
            long end = System.nanoTime() + 60_000_000_000L;
            while (!c.times.keySet().containsAll(want.keySet()) && System.nanoTime() < end) {
                Thread.sleep(20);
            }
            if (!c.times.equals(want) || !c.faults.isEmpty()) {
                throw new AssertionError("came: " + c.times + ", faults: " + c.faults);
            }
        } finally {
            producer.shutdown();
            byTag.shutdown();
            bySql.shutdown();
        }
        return "came whole by tag and by SQL92: " + Arrays.toString(CompressionType.values());
    }
}
