package dev.bolide.compat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The client of gRPC v2, rocketmq-client-java. */
final class Grpc {
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    static ClientConfiguration configuration(Target target) {
        return ClientConfiguration.newBuilder()
            .setEndpoints(target.grpc)
            .setRequestTimeout(Duration.ofSeconds(10))
            .build();
    }

    static Producer producer(Target target, String topic) throws Exception {
        return PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration(target))
            .setTopics(topic)
            .setMaxAttempts(1)
            .build();
    }

    static Message message(String topic, Sample s) {
        MessageBuilder b = PROVIDER.newMessageBuilder().setTopic(topic).setKeys(s.key).setTag(s.tag).setBody(s.body);
        s.properties.forEach(b::addProperty);
        return b.build();
    }

    static void sendAll(Target target, Ledger ledger, String topic) throws Exception {
        ExecutorService senders = Executors.newFixedThreadPool(32);
        try (Producer producer = producer(target, topic)) {
            List<Future<?>> sends = new ArrayList<>();
            for (int i = 0; i < ledger.expected; i++) {
                Message m = message(topic, new Sample(i));
                sends.add(senders.submit(() -> {
                    ledger.sendUntilStored(1, () -> producer.send(m));
                    return null;
                }));
            }
            for (Future<?> f : sends) {
                f.get();
            }
        } finally {
            senders.shutdown();
        }
    }

    static byte[] bytes(ByteBuffer body) {
        byte[] b = new byte[body.remaining()];
        body.duplicate().get(b);
        return b;
    }

    private static void received(Ledger ledger, MessageView m) {
        ledger.received(bytes(m.getBody()), String.join(" ", m.getKeys()), m.getTag().orElse(null), m.getProperties());
    }

    static SimpleConsumer simpleConsumer(Target target, String group, String topic) throws Exception {
        return PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration(target))
            .setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .build();
    }

    static String simple(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Ledger ledger = new Ledger(target.count);
        ExecutorService receivers = Executors.newFixedThreadPool(4);
        List<Future<?>> loops = new ArrayList<>();
        try (SimpleConsumer consumer = simpleConsumer(target, target.createGroup(16, false), topic)) {
            long end = System.nanoTime() + 180_000_000_000L;
            for (int i = 0; i < 4; i++) {
                loops.add(receivers.submit(() -> {
                    while (!ledger.isComplete() && System.nanoTime() < end) {
                        List<MessageView> messages;
                        try {
                            messages = consumer.receive(32, Duration.ofSeconds(60));
                        } catch (org.apache.rocketmq.client.apis.ClientException e) {
                            Thread.sleep(50);
                            continue;
                        }
                        for (MessageView m : messages) {
                            received(ledger, m);
                            consumer.ack(m);
                        }
                    }
                    return null;
                }));
            }
            sendAll(target, ledger, topic);
            for (Future<?> f : loops) {
                f.get();
            }
        } finally {
            receivers.shutdown();
        }
        return ledger.check();
    }

    static String push(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Ledger ledger = new Ledger(target.count);
        try (PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration(target))
            .setConsumerGroup(target.createGroup(16, false))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .setConsumptionThreadCount(16)
            .setMessageListener(m -> {
                received(ledger, m);
                return ConsumeResult.SUCCESS;
            })
            .build()) {
            sendAll(target, ledger, topic);
            ledger.await(180);
        }
        return ledger.check();
    }

    /** Not acknowledged: it comes again with attempt 2, and after its ack no more. */
    static String redelivery(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        try (Producer producer = producer(target, topic);
             SimpleConsumer consumer = simpleConsumer(target, target.createGroup(16, false), topic)) {
            Message m = message(topic, new Sample(3));
            new Ledger(1).sendUntilStored(1, () -> producer.send(m));
            MessageView first = next(consumer, 60);
            MessageView second = next(consumer, 60);
            if (first == null || second == null || first.getDeliveryAttempt() != 1 || second.getDeliveryAttempt() != 2) {
                throw new AssertionError("deliveries " + first + ", " + second);
            }
            Ledger whole = new Ledger(4);
            received(whole, second);
            consumer.changeInvisibleDuration(second, Duration.ofSeconds(20));
            consumer.ack(second);
            if (next(consumer, 24) != null) {
                throw new AssertionError("came again after its ack");
            }
            return "attempts 1 and 2, then no more";
        }
    }

    /** Each message group in its order, across one failure in it. */
    static String fifo(Target target) throws Exception {
        String topic = target.createTopic("FIFO");
        int groups = 5;
        int each = 20;
        Map<String, List<Integer>> got = new ConcurrentHashMap<>();
        Set<String> failed = ConcurrentHashMap.newKeySet();
        CountDownLatch left = new CountDownLatch(groups * each);
        try (PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
                .setClientConfiguration(configuration(target))
                .setConsumerGroup(target.createGroup(16, true))
                .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
                .setConsumptionThreadCount(16)
                .setMessageListener(m -> {
                    int number = bytes(m.getBody())[0];
                    String of = m.getMessageGroup().orElse("");
                    if (number == each / 2 && failed.add(of)) {
                        return ConsumeResult.FAILURE;
                    }
                    got.computeIfAbsent(of, k -> Collections.synchronizedList(new ArrayList<>())).add(number);
                    left.countDown();
                    return ConsumeResult.SUCCESS;
                })
                .build();
             Producer producer = producer(target, topic)) {
            for (int number = 0; number < each; number++) {
                for (int g = 0; g < groups; g++) {
                    Message m = PROVIDER.newMessageBuilder().setTopic(topic).setMessageGroup("g" + g).setBody(new byte[] {(byte) number}).build();
                    new Ledger(1).sendUntilStored(1, () -> producer.send(m));
                }
            }
            if (!left.await(120, TimeUnit.SECONDS)) {
                throw new AssertionError(left.getCount() + " did not come: " + got);
            }
        }
        List<Integer> want = IntStream.range(0, each).boxed().toList();
        if (got.size() != groups || got.values().stream().anyMatch(numbers -> !numbers.equals(want))) {
            throw new AssertionError("out of order: " + got);
        }
        return groups + " message groups of " + each + " in order, " + failed.size() + " failed once";
    }

    private static MessageView next(SimpleConsumer consumer, int seconds) throws Exception {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            try {
                List<MessageView> messages = consumer.receive(1, Duration.ofSeconds(10));
                if (!messages.isEmpty()) {
                    return messages.get(0);
                }
            } catch (org.apache.rocketmq.client.apis.ClientException e) {
                Thread.sleep(50);
            }
        }
        return null;
    }
}
