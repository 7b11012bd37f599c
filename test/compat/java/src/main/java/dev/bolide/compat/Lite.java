package dev.bolide.compat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.producer.Producer;

/** A lite push consumer gets the messages of the lite topics that it has subscribed to, in order. */
final class Lite {
    static String push(Target target) throws Exception {
        String topic = target.createTopic("LITE");
        Set<String> lites = Set.of("l0", "l1", "l2");
        int each = 10;
        Map<String, List<Integer>> got = new ConcurrentHashMap<>();
        CountDownLatch left = new CountDownLatch(lites.size() * each);
        try (LitePushConsumer consumer = Grpc.PROVIDER.newLitePushConsumerBuilder()
                .setClientConfiguration(Grpc.configuration(target))
                .setConsumerGroup(target.createLiteGroup(topic))
                .bindTopic(topic)
                .setMessageListener(m -> {
                    got.computeIfAbsent(m.getLiteTopic().orElse(""), k -> Collections.synchronizedList(new ArrayList<>()))
                        .add((int) Grpc.bytes(m.getBody())[0]);
                    left.countDown();
                    return ConsumeResult.SUCCESS;
                })
                .build();
             Producer producer = Grpc.producer(target, topic)) {
            for (String lite : lites) {
                consumer.subscribeLite(lite);
            }
            for (int i = 0; i < each; i++) {
                for (String lite : List.of("l0", "l1", "l2", "other")) {
                    producer.send(Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setLiteTopic(lite).setBody(new byte[] {(byte) i}).build());
                }
            }
            left.await(60, TimeUnit.SECONDS);
        }
        List<Integer> want = IntStream.range(0, each).boxed().toList();
        if (!got.keySet().equals(lites) || got.values().stream().anyMatch(numbers -> !numbers.equals(want))) {
            throw new AssertionError("received " + got);
        }
        return each + " messages of each of " + lites.size() + " lite topics, in order";
    }
}
