package dev.bolide.compat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.IntFunction;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactions of both clients: decided at once, or when the server asks. */
final class Transactions {
    private static final int COUNT = 24;
    private static final String GROUP = "java-transactions";

    /** A producer whose answers depend on the number in the body. */
    private static TransactionMQProducer producer(Target target, String group, IntFunction<LocalTransactionState> atOnce,
            IntFunction<LocalTransactionState> asked, java.util.Set<Integer> checked) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(group);
        producer.setNamesrvAddr(target.namesrv);
        producer.setInstanceName(Target.fresh("transactions"));
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                return atOnce.apply(Sample.numberOf(m.getBody()));
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                int n = Sample.numberOf(m.getBody());
                checked.add(n);
                return asked.apply(n);
            }
        });
        producer.start();
        return producer;
    }

    /** A producer whose transactions are all committed. */
    static TransactionMQProducer committing(Target target) throws Exception {
        return producer(target, Target.fresh("java-transactions"), n -> known(true), n -> known(true), new ConcurrentSkipListSet<>());
    }

    private static DefaultMQPushConsumer consumer(Target target, String topic, Map<Integer, Integer> seen) throws Exception {
        DefaultMQPushConsumer consumer = Classic.consumer(target, Target.fresh("java-reader"), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (list, context) -> {
            for (MessageExt m : list) {
                seen.merge(Sample.numberOf(m.getBody()), 1, Integer::sum);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static LocalTransactionState known(boolean commit) {
        return commit ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
    }

    /** Waits for exactly the numbers that pass, each once; the server has stored no others. */
    private static void expect(Target target, String topic, Map<Integer, Integer> seen, int count, java.util.function.IntPredicate pass) throws Exception {
        TreeMap<Integer, Integer> want = new TreeMap<>();
        for (int i = 0; i < count; i++) {
            if (pass.test(i)) {
                want.put(i, 1);
            }
        }
        long end = System.nanoTime() + 150_000_000_000L;
        while (System.nanoTime() < end && !seen.keySet().containsAll(want.keySet())) {
            Thread.sleep(100);
        }
        long stored = target.stored(topic);
        if (!new TreeMap<>(seen).equals(want) || stored != want.size()) {
            throw new AssertionError("received " + new TreeMap<>(seen) + ", want " + want.keySet() + "; stored are " + stored);
        }
    }

    /** Waits until the server has asked about all that is left open at first. */
    private static void awaitChecks(ConcurrentSkipListSet<Integer> checked, int count) throws Exception {
        long end = System.nanoTime() + 150_000_000_000L;
        while (System.nanoTime() < end && checked.stream().filter(n -> n % 4 >= 2).count() < count / 2) {
            Thread.sleep(100);
        }
    }

    static String classic(Target target) throws Exception {
        String topic = target.createTopic("TRANSACTION");
        Map<Integer, Integer> seen = new ConcurrentSkipListMap<>();
        ConcurrentSkipListSet<Integer> checked = new ConcurrentSkipListSet<>();
        TransactionMQProducer producer = producer(target, Target.fresh("java-transactions"),
            n -> n % 4 < 2 ? known(n % 4 == 0) : LocalTransactionState.UNKNOW, n -> known(n % 4 == 2), checked);
        DefaultMQPushConsumer consumer = consumer(target, topic, seen);
        try {
            for (int i = 0; i < COUNT; i++) {
                producer.sendMessageInTransaction(Classic.message(topic, new Sample(i)), null);
            }
            awaitChecks(checked, COUNT);
            expect(target, topic, seen, COUNT, n -> n % 4 == 0 || n % 4 == 2);
            if (checked.stream().anyMatch(n -> n % 4 < 2)) {
                throw new AssertionError("asked about what was decided: " + checked);
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        return "received " + seen.size() + " of " + COUNT + ", asked about " + checked.size();
    }

    static String grpc(Target target) throws Exception {
        String topic = target.createTopic("TRANSACTION");
        TreeMap<Integer, Integer> seen = new TreeMap<>();
        ConcurrentSkipListSet<Integer> checked = new ConcurrentSkipListSet<>();
        try (Producer producer = Grpc.PROVIDER.newProducerBuilder().setClientConfiguration(Grpc.configuration(target)).setTopics(topic)
                .setTransactionChecker(m -> {
                    int n = Sample.numberOf(Grpc.bytes(m.getBody()));
                    checked.add(n);
                    return n % 4 == 2 ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
                }).build();
             SimpleConsumer consumer = Grpc.simpleConsumer(target, target.createGroup(16, false), topic)) {
            for (int i = 0; i < COUNT; i++) {
                Transaction transaction = producer.beginTransaction();
                producer.send(Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setBody(new Sample(i).body).build(), transaction);
                if (i % 4 == 0) {
                    transaction.commit();
                } else if (i % 4 == 1) {
                    transaction.rollback();
                }
            }
            long end = System.nanoTime() + 150_000_000_000L;
            while (System.nanoTime() < end && seen.size() < COUNT / 2) {
                for (MessageView m : consumer.receive(16, java.time.Duration.ofSeconds(30))) {
                    seen.merge(Sample.numberOf(Grpc.bytes(m.getBody())), 1, Integer::sum);
                    consumer.ack(m);
                }
            }
            awaitChecks(checked, COUNT);
        }
        expect(target, topic, seen, COUNT, n -> n % 4 == 0 || n % 4 == 2);
        return "received " + seen.size() + " of " + COUNT + ", asked about " + checked.size();
    }

    // For the exchange of stores, by the number modulo 6: committed at once, rolled back at once,
    // and the others by the second server's or the third's question, commit and rollback in turn.

    /** The first server: leaves four of six open. */
    static String halves(Target target, String topic, int count) throws Exception {
        TransactionMQProducer producer = producer(target, GROUP, n -> n % 6 < 2 ? known(n % 6 == 0) : LocalTransactionState.UNKNOW,
            n -> LocalTransactionState.UNKNOW, ConcurrentHashMap.newKeySet());
        try {
            for (int i = 0; i < count; i++) {
                producer.sendMessageInTransaction(Classic.message(topic, new Sample(i)), null);
            }
            Thread.sleep(1_000); // decisions are one-way
        } finally {
            producer.shutdown();
        }
        return "sent " + count;
    }

    /** A later server: decides two of six when it asks, and asks about nothing that is decided. */
    static String checks(Target target, String topic, int count, int decided) throws Exception {
        Map<Integer, Integer> seen = new ConcurrentSkipListMap<>();
        ConcurrentSkipListSet<Integer> checked = new ConcurrentSkipListSet<>();
        List<Integer> wrong = new ArrayList<>();
        TransactionMQProducer producer = producer(target, GROUP, n -> LocalTransactionState.UNKNOW,
            n -> n % 6 / 2 == decided / 2 ? known(n % 2 == 0) : LocalTransactionState.UNKNOW, checked);
        DefaultMQPushConsumer consumer = consumer(target, topic, seen);
        try {
            // It has sent nothing, so it knows no broker of its own accord.
            producer.getDefaultMQProducerImpl().getMqClientFactory().updateTopicRouteInfoFromNameServer(topic);
            producer.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
            TreeSet<Integer> open = new TreeSet<>();
            for (int i = 0; i < count; i++) {
                if (i % 6 >= decided) {
                    open.add(i);
                }
            }
            long end = System.nanoTime() + 150_000_000_000L;
            while (System.nanoTime() < end && !checked.containsAll(open)) {
                Thread.sleep(100);
            }
            expect(target, topic, seen, count, n -> n % 2 == 0 && n % 6 <= decided);
            for (int n : checked) {
                if (!open.contains(n)) {
                    wrong.add(n);
                }
            }
            if (!wrong.isEmpty() || !checked.containsAll(open)) {
                open.removeAll(checked);
                throw new AssertionError("asked about " + wrong + ", which are decided; not about " + open);
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        return "asked about " + checked.size() + ", received " + seen.size();
    }
}
