package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.MessageListener;
import org.apache.rocketmq.client.apis.consumer.OffsetOption;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** Lite topics with the client of gRPC: those that were subscribed to, each in order where its group is ordered. */
final class Lite {
    private static final int EACH = 10;

    /** What the listener of a group got, by lite topic. */
    private static final class Received implements MessageListener {
        final Map<String, List<String>> got = new ConcurrentHashMap<>();
        private final Set<String> failed = ConcurrentHashMap.newKeySet();
        private final boolean ordered;
        private final String failing;

        Received(boolean ordered, String failing) {
            this.ordered = ordered;
            this.failing = failing;
        }

        @Override
        public ConsumeResult consume(MessageView m) {
            String lite = m.getLiteTopic().orElseThrow();
            String body = new String(Grpc.bytes(m.getBody()), StandardCharsets.UTF_8);
            if (body.equals(failing) && failed.add(lite)) {
                return ConsumeResult.FAILURE;
            }
            List<String> list = got.computeIfAbsent(lite, l -> Collections.synchronizedList(new ArrayList<>()));
            synchronized (this) {
                list.add(body);
                notifyAll();
            }
            return ConsumeResult.SUCCESS;
        }

        /** Returns when lite has given n messages, which have to be from first on. */
        synchronized void await(String lite, int first, int n) throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
            List<String> list = List.of();
            while (System.nanoTime() < end) {
                list = got.getOrDefault(lite, List.of());
                if (list.size() >= n) {
                    break;
                }
                wait(1000);
            }
            List<String> want = new ArrayList<>();
            for (int i = first; i < first + n; i++) {
                want.add(String.valueOf(i));
            }
            List<String> in = new ArrayList<>(list);
            if (!ordered) {
                in.sort(Comparator.comparingInt(Integer::parseInt));
            }
            if (!in.equals(want)) {
                throw new AssertionError(lite + " gave " + list + ", not " + want);
            }
        }
    }

    private static LitePushConsumer consumer(Target target, String topic, String group, MessageListener listener) throws Exception {
        return Grpc.PROVIDER.newLitePushConsumerBuilder()
            .setClientConfiguration(Grpc.configuration(target))
            .bindTopic(topic)
            .setConsumerGroup(group)
            .setConsumptionThreadCount(8)
            .setMessageListener(listener)
            .build();
    }

    private static void send(Producer producer, String topic, String lite, int from, int to) throws ClientException {
        for (int i = from; i < to; i++) {
            producer.send(Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setLiteTopic(lite)
                .setBody(String.valueOf(i).getBytes(StandardCharsets.UTF_8)).build());
        }
    }

    static String push(Target target) throws Exception {
        String topic = target.createTopic("LITE");
        String group = target.createLiteGroup(topic, true, Map.of("+lite.sub.client.quota", "3"));
        Received all = new Received(true, null);
        // One fails and comes again. With Apache's server it does not: this client does not name the lite
        // topic when it gives a message back.
        Received late = new Received(false, System.getenv("COMPAT_APACHE") == null ? "7" : null);
        try (Producer producer = Grpc.producer(target, topic);
             LitePushConsumer consumer = consumer(target, topic, group, all)) {
            for (String lite : List.of("a", "b", "c")) {
                consumer.subscribeLite(lite);
            }
            try {
                consumer.subscribeLite("d");
                throw new AssertionError("one more than the quota of 3");
            } catch (ClientException e) {
                // as it must
            }
            for (String lite : List.of("a", "b", "c", "other")) {
                send(producer, topic, lite, 0, EACH);
            }
            for (String lite : List.of("a", "b", "c")) {
                all.await(lite, 0, EACH);
            }
            consumer.unsubscribeLite("a");
            send(producer, topic, "a", EACH, EACH + 1);
            send(producer, topic, "b", EACH, EACH + 1);
            all.await("b", 0, EACH + 1);
            consumer.subscribeLite("a");
            all.await("a", 0, EACH + 1);
            if (all.got.containsKey("other")) {
                throw new AssertionError("not subscribed to: " + all.got.get("other"));
            }
        }
        // Another group, from an offset and from the end on.
        try (Producer producer = Grpc.producer(target, topic);
             LitePushConsumer consumer = consumer(target, topic, target.createLiteGroup(topic, false, Map.of()), late)) {
            consumer.subscribeLite("a", OffsetOption.ofOffset(4));
            consumer.subscribeLite("b", OffsetOption.MAX_OFFSET);
            late.await("a", 4, EACH + 1 - 4);
            send(producer, topic, "b", EACH + 1, EACH + 3);
            late.await("b", EACH + 1, 2);
        }
        return "received " + new java.util.TreeMap<>(all.got).keySet() + " in order";
    }
}
