package dev.bolide.compat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages of each kind to topics of each type. */
final class TopicTypes {
    private static final List<String> TYPES = List.of("NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE");

    /** Over gRPC a topic takes messages of its own type alone. */
    static String grpc(Target target) throws Exception {
        Map<String, Consumer<MessageBuilder>> kinds = new LinkedHashMap<>();
        kinds.put("NORMAL", b -> { });
        kinds.put("FIFO", b -> b.setMessageGroup("g"));
        kinds.put("DELAY", b -> b.setDeliveryTimestamp(System.currentTimeMillis() + 1000));
        kinds.put("TRANSACTION", b -> { });
        kinds.put("PRIORITY", b -> b.setPriority(1));
        kinds.put("LITE", b -> b.setLiteTopic("l"));
        for (String type : TYPES) {
            String topic = target.createTopic(type);
            try (Producer producer = Grpc.PROVIDER.newProducerBuilder()
                .setClientConfiguration(Grpc.configuration(target))
                .setTopics(topic)
                .setMaxAttempts(1)
                .setTransactionChecker(m -> TransactionResolution.COMMIT)
                .build()) {
                for (String kind : kinds.keySet()) {
                    MessageBuilder b = Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setBody(new byte[] {1});
                    kinds.get(kind).accept(b);
                    boolean taken = taken(producer, b.build(), kind.equals("TRANSACTION"));
                    if (taken != kind.equals(type)) {
                        throw new AssertionError("a " + kind + " message to a " + type + " topic was " + (taken ? "taken" : "refused"));
                    }
                }
            }
        }
        return "each of " + TYPES.size() + " types takes its own";
    }

    private static boolean taken(Producer producer, Message m, boolean half) {
        try {
            if (half) {
                Transaction transaction = producer.beginTransaction();
                producer.send(m, transaction);
                transaction.commit();
            } else {
                producer.send(m);
            }
            return true;
        } catch (ClientException | IllegalArgumentException e) {
            return false;
        }
    }

    /** A classic client does not ask for the type, and the broker delivers each kind in a topic of each type. */
    static String classic(Target target) throws Exception {
        List<String> topics = new ArrayList<>();
        for (String type : TYPES) {
            topics.add(target.createTopic(type));
        }
        Set<String> got = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topics.get(0));
        for (String topic : topics) {
            consumer.subscribe(topic, "*");
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                if (!got.add(m.getTopic() + " " + m.getTags())) {
                    got.add(m.getTopic() + " " + m.getTags() + ", again");
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        TransactionMQProducer halves = Transactions.committing(target);
        Set<String> want = new HashSet<>();
        try {
            for (String topic : topics) {
                producer.send(message(topic, "NORMAL", want));
                producer.send(message(topic, "FIFO", want), (queues, m, arg) -> queues.get(0), null);
                org.apache.rocketmq.common.message.Message late = message(topic, "DELAY", want);
                late.setDelayTimeMs(1000);
                producer.send(late);
                org.apache.rocketmq.common.message.Message urgent = message(topic, "PRIORITY", want);
                urgent.setPriority(1);
                producer.send(urgent);
                halves.sendMessageInTransaction(message(topic, "TRANSACTION", want), null);
            }
            long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
            while (System.nanoTime() < end && !got.containsAll(want)) {
                Thread.sleep(50);
            }
        } finally {
            producer.shutdown();
            halves.shutdown();
            consumer.shutdown();
        }
        if (!got.equals(want)) {
            throw new AssertionError("received " + got + ", want " + want);
        }
        return want.size() + " messages of all kinds in topics of all types";
    }

    private static org.apache.rocketmq.common.message.Message message(String topic, String kind, Set<String> want) {
        want.add(topic + " " + kind);
        return new org.apache.rocketmq.common.message.Message(topic, kind, new byte[] {1, 0, 0, 0});
    }
}
