package dev.bolide.compat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;

/** The classic client in POP mode: the broker assigns, and says how to get the messages. */
final class Pop {
    private static DefaultMQPushConsumer consumer(Target target, String group, String topic) throws Exception {
        DefaultMQPushConsumer consumer = Classic.consumer(target, group, topic);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(10_000);
        consumer.setPopBatchNums(16);
        return consumer;
    }

    /** Two members share all queues; nothing is lost and nothing comes twice. */
    static String push(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        target.setMode(topic, group, MessageRequestMode.POP, 0);
        Ledger ledger = new Ledger(target.count);
        AtomicInteger popped = new AtomicInteger();
        List<DefaultMQPushConsumer> members = new ArrayList<>();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < 2; i++) {
                DefaultMQPushConsumer c = consumer(target, group, topic);
                c.setPopInvisibleTime(60_000);
                c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    for (MessageExt m : messages) {
                        if (m.getProperty("POP_CK") != null) {
                            popped.incrementAndGet();
                        }
                        ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                c.start();
                members.add(c);
            }
            Classic.sendAll(ledger, producer, topic);
            ledger.await(120);
        } finally {
            producer.shutdown();
            members.forEach(DefaultMQPushConsumer::shutdown);
        }
        if (popped.get() < ledger.expected) {
            throw new AssertionError("only " + popped.get() + " came by POP");
        }
        return ledger.check();
    }

    /** RECONSUME_LATER: the message comes again, from POP's retry topic, whole. */
    static String retry(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        target.setMode(topic, group, MessageRequestMode.POP, 0);
        int count = 5;
        Map<String, List<Integer>> attempts = new ConcurrentHashMap<>();
        CountDownLatch done = new CountDownLatch(count);
        Set<String> topics = Collections.synchronizedSet(new HashSet<>());
        DefaultMQPushConsumer consumer = consumer(target, group, topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                topics.add(m.getTopic());
                List<Integer> of = attempts.computeIfAbsent(m.getKeys(), k -> Collections.synchronizedList(new ArrayList<>()));
                of.add(m.getReconsumeTimes());
                if (of.size() == 1) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < count; i++) {
                producer.send(Classic.message(topic, new Sample(i)));
            }
            if (!done.await(90, TimeUnit.SECONDS)) {
                throw new AssertionError(done.getCount() + " did not come again: " + attempts);
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        for (List<Integer> of : attempts.values()) {
            if (!of.equals(List.of(0, 1))) {
                throw new AssertionError("attempts " + attempts);
            }
        }
        if (!topics.equals(Set.of(topic))) {
            throw new AssertionError("topics " + topics);
        }
        return count + " came again once";
    }

    /** popShareQueueNum: each of four members pops its own queues and those of the next one. */
    static String shared(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        target.setMode(topic, group, MessageRequestMode.POP, 1);
        Ledger ledger = new Ledger(400);
        List<Set<Integer>> queues = new ArrayList<>();
        List<DefaultMQPushConsumer> members = new ArrayList<>();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < 4; i++) {
                Set<Integer> mine = Collections.synchronizedSet(new HashSet<>());
                queues.add(mine);
                DefaultMQPushConsumer c = consumer(target, group, topic);
                c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    for (MessageExt m : messages) {
                        mine.add(m.getQueueId());
                        ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                c.start();
                members.add(c);
            }
            for (int i = 0; i < ledger.expected; i++) {
                Message m = Classic.message(topic, new Sample(i));
                int queue = i % 8;
                ledger.sendUntilStored(1, () -> producer.send(m, (all, message, arg) -> all.get(queue % all.size()), null));
                // By the last round all four must know of each other, and requests from before
                // be over.
                if (i % 40 == 0 && i > 0) {
                    ledger.awaitSeen(i + 1, 20);
                    boolean settled = i == 360 || queues.stream().allMatch(q -> q.size() <= 4);
                    if (!settled) {
                        Thread.sleep(4_000);
                    }
                    queues.forEach(Set::clear);
                }
            }
            ledger.await(60);
        } finally {
            producer.shutdown();
            members.forEach(DefaultMQPushConsumer::shutdown);
        }
        for (Set<Integer> mine : queues) {
            if (mine.size() > 4) {
                throw new AssertionError("a member with a share of 1 had queues " + queues);
            }
        }
        return ledger.check();
    }

    /**
     * The group pulls, pops and pulls again while messages come and one of three fails once.
     * Every message is consumed. A switch may repeat messages, it never loses one.
     */
    static String switching(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        int phase = 200;
        int count = 3 * phase;
        Map<Integer, Integer> tries = new ConcurrentHashMap<>();
        Set<Integer> consumed = ConcurrentHashMap.newKeySet();
        AtomicInteger popped = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(count);
        List<DefaultMQPushConsumer> members = new ArrayList<>();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < 2; i++) {
                DefaultMQPushConsumer c = consumer(target, group, topic);
                c.setConsumeMessageBatchMaxSize(1);
                c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    for (MessageExt m : messages) {
                        int number = Sample.numberOf(m.getBody());
                        if (m.getProperty("POP_CK") != null) {
                            popped.incrementAndGet();
                        }
                        if (tries.merge(number, 1, Integer::sum) == 1 && number % 3 == 0) {
                            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                        }
                        if (consumed.add(number)) {
                            all.countDown();
                        }
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                c.start();
                members.add(c);
            }
            MessageRequestMode[] modes = {MessageRequestMode.PULL, MessageRequestMode.POP, MessageRequestMode.PULL};
            for (int p = 0; p < modes.length; p++) {
                target.setMode(topic, group, modes[p], 0);
                for (int i = p * phase; i < (p + 1) * phase; i++) {
                    Message m = Classic.message(topic, new Sample(i));
                    new Ledger(1).sendUntilStored(1, () -> producer.send(m));
                    Thread.sleep(20); // members learn of the switch while messages come
                }
            }
            if (!all.await(150, TimeUnit.SECONDS)) {
                List<Integer> missing = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    if (!consumed.contains(i)) {
                        missing.add(i);
                    }
                }
                throw new AssertionError(missing.size() + " of " + count + " are missing: " + missing);
            }
        } finally {
            producer.shutdown();
            members.forEach(DefaultMQPushConsumer::shutdown);
        }
        if (popped.get() == 0) {
            throw new AssertionError("nothing came by POP");
        }
        int total = tries.values().stream().mapToInt(Integer::intValue).sum();
        return count + " messages, " + popped.get() + " by POP, " + (total - count - count / 3) + " repeated by the switches";
    }
}
