package dev.bolide.compat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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
import org.apache.rocketmq.client.apis.consumer.MessageListener;
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
        return message(topic, s, null);
    }

    /** A message of a message group, or of none. */
    static Message message(String topic, Sample s, String messageGroup) {
        MessageBuilder b = PROVIDER.newMessageBuilder().setTopic(topic).setKeys(s.key).setTag(s.tag).setBody(s.body);
        s.properties.forEach(b::addProperty);
        if (messageGroup != null) {
            b.setMessageGroup(messageGroup);
        }
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

    static void received(Ledger ledger, MessageView m) {
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

    static PushConsumer pushConsumer(Target target, String group, String topic, MessageListener listener) throws Exception {
        return PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration(target))
            .setConsumerGroup(group)
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .setConsumptionThreadCount(16)
            .setMessageListener(listener)
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
        try (PushConsumer consumer = pushConsumer(target, target.createGroup(16, false), topic, m -> {
            received(ledger, m);
            return ConsumeResult.SUCCESS;
        })) {
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
            Message m = message(topic, new Sample(0));
            Ledger ledger = new Ledger(1);
            ledger.sendUntilStored(1, () -> producer.send(m));
            MessageView first = next(consumer, 60);
            MessageView second = next(consumer, 60);
            if (first.getDeliveryAttempt() != 1 || second.getDeliveryAttempt() != 2) {
                throw new AssertionError("deliveries " + first + ", " + second);
            }
            received(ledger, second);
            consumer.changeInvisibleDuration(second, Duration.ofSeconds(20));
            consumer.ack(second);
            nothingFor(consumer, 24);
            ledger.check();
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
        try (PushConsumer consumer = pushConsumer(target, target.createGroup(16, true), topic, m -> {
                 int number = bytes(m.getBody())[0];
                 String of = m.getMessageGroup().orElse("");
                 if (number == each / 2 && failed.add(of)) {
                     return ConsumeResult.FAILURE;
                 }
                 got.computeIfAbsent(of, k -> Collections.synchronizedList(new ArrayList<>())).add(number);
                 left.countDown();
                 return ConsumeResult.SUCCESS;
             });
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

    /** What a member of a group has received goes to another one when it goes away, but what it has acknowledged. */
    static String goesAway(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        Ledger ledger = new Ledger(20);
        sendAll(target, ledger, topic);
        Set<String> left = new HashSet<>();
        int acked = 0;
        try (SimpleConsumer member = simpleConsumer(target, group, topic)) {
            while (acked + left.size() < 10) {
                MessageView m = next(member, 60);
                if (acked < 5) {
                    received(ledger, m);
                    member.ack(m);
                    acked++;
                } else {
                    left.add(m.getMessageId().toString());
                }
            }
        }
        int again = 0;
        try (SimpleConsumer member = simpleConsumer(target, group, topic)) {
            while (!ledger.isComplete()) {
                MessageView m = next(member, 60);
                boolean second = left.contains(m.getMessageId().toString());
                if (second != m.getDeliveryAttempt() > 1) {
                    throw new AssertionError("attempt " + m.getDeliveryAttempt() + " of a message that was " + (second ? "left" : "not received"));
                }
                again += second ? 1 : 0;
                received(ledger, m);
                member.ack(m);
            }
        }
        return ledger.check() + ", of them " + again + " from the member that went away";
    }

    /** Each asynchronous send is answered with the place of the message. */
    static String asyncSends(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Ledger ledger = new Ledger(200);
        try (PushConsumer consumer = pushConsumer(target, target.createGroup(16, false), topic, m -> {
                 received(ledger, m);
                 return ConsumeResult.SUCCESS;
             });
             Producer producer = producer(target, topic)) {
            Set<String> ids = new HashSet<>();
            for (int i = 0; i < ledger.expected; i++) {
                Message m = message(topic, new Sample(i));
                ledger.sendUntilStored(1, () -> ids.add(producer.sendAsync(m).get(20, TimeUnit.SECONDS).getMessageId().toString()));
            }
            ledger.await(60);
            if (ids.size() != ledger.expected) {
                throw new AssertionError(ids.size() + " message ids in the answers");
            }
        }
        return ledger.check();
    }

    /** The next message. */
    static MessageView next(SimpleConsumer consumer, int seconds) throws Exception {
        return poll(consumer, seconds).orElseThrow(() -> new AssertionError("nothing came in " + seconds + " s"));
    }

    private static void nothingFor(SimpleConsumer consumer, int seconds) throws Exception {
        Optional<MessageView> m = poll(consumer, seconds);
        if (m.isPresent()) {
            throw new AssertionError("came again after its ack: " + m);
        }
    }

    private static Optional<MessageView> poll(SimpleConsumer consumer, int seconds) throws Exception {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            try {
                List<MessageView> messages = consumer.receive(1, Duration.ofSeconds(10));
                if (!messages.isEmpty()) {
                    return Optional.of(messages.get(0));
                }
            } catch (org.apache.rocketmq.client.apis.ClientException e) {
                Thread.sleep(50);
            }
        }
        return Optional.empty();
    }
}
