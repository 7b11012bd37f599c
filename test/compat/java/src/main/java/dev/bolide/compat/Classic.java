package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** The classic client: DefaultMQProducer, DefaultMQPushConsumer, DefaultLitePullConsumer. */
final class Classic {
    static DefaultMQProducer producer(Target target) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(Target.fresh("java-producers"));
        producer.setNamesrvAddr(target.namesrv);
        producer.setInstanceName(Target.fresh("producer"));
        producer.setSendMsgTimeout(10_000);
        producer.setRetryTimesWhenSendFailed(0); // repeats are the ledger's, which counts them
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer consumer(Target target, String group, String topic) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(target.namesrv);
        consumer.setInstanceName(Target.fresh("consumer"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(32);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    static Message message(String topic, Sample s) {
        Message m = new Message(topic, s.tag, s.key, s.body);
        s.properties.forEach(m::putUserProperty);
        return m;
    }

    /** Sends two thirds alone and one third in batches of ten. */
    static void sendAll(Ledger ledger, DefaultMQProducer producer, String topic) throws Exception {
        int run = 30;
        ExecutorService senders = Executors.newFixedThreadPool(16);
        List<Future<?>> runs = new ArrayList<>();
        for (int start = 0; start < ledger.expected; start += run) {
            int from = start;
            int to = Math.min(start + run, ledger.expected);
            runs.add(senders.submit(() -> {
                List<Message> batch = new ArrayList<>();
                for (int number = from; number < to; number++) {
                    Message m = message(topic, new Sample(number));
                    if (number - from >= 20) {
                        batch.add(m);
                    } else {
                        ledger.sendUntilStored(1, () -> ok(producer.send(m)));
                    }
                }
                if (!batch.isEmpty()) {
                    ledger.sendUntilStored(batch.size(), () -> ok(producer.send(batch)));
                }
                return null;
            }));
        }
        for (Future<?> f : runs) {
            f.get();
        }
        senders.shutdown();
    }

    private static void ok(SendResult r) {
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(r.toString());
        }
    }

    static String push(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Ledger ledger = new Ledger(target.count);
        DefaultMQPushConsumer consumer = consumer(target, target.createGroup(16, false), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = producer(target);
        try {
            sendAll(ledger, producer, topic);
            ledger.await(120);
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        return ledger.check();
    }

    static String litePull(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Backlog.write(target, topic, target.count);
        return Backlog.read(target, topic, target.count, target.createGroup(16, false));
    }

    /** Orderly: each queue in its order, also across one suspended message. */
    static String orderly(Target target) throws Exception {
        String topic = target.createTopic("FIFO");
        int keys = 8;
        int each = 50;
        Map<Integer, List<Integer>> got = new ConcurrentHashMap<>();
        CountDownLatch left = new CountDownLatch(keys * each);
        AtomicInteger suspended = new AtomicInteger();
        DefaultMQPushConsumer consumer = consumer(target, target.createGroup(16, true), topic);
        consumer.setSuspendCurrentQueueTimeMillis(200);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt m : messages) {
                String[] parts = new String(m.getBody(), StandardCharsets.UTF_8).split(":");
                int key = Integer.parseInt(parts[0]);
                int number = Integer.parseInt(parts[1]);
                if (number == 25 && m.getReconsumeTimes() == 0) {
                    suspended.incrementAndGet();
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                got.computeIfAbsent(key, k -> new ArrayList<>()).add(number);
                left.countDown();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = producer(target);
        try {
            for (int number = 0; number < each; number++) {
                for (int key = 0; key < keys; key++) {
                    Message m = new Message(topic, (key + ":" + number).getBytes(StandardCharsets.UTF_8));
                    int chosen = key;
                    new Ledger(1).sendUntilStored(1, () -> ok(producer.send(m,
                        (queues, message, arg) -> queues.get(chosen % queues.size()), null)));
                }
            }
            if (!left.await(120, TimeUnit.SECONDS)) {
                throw new AssertionError(left.getCount() + " did not come");
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        for (Map.Entry<Integer, List<Integer>> e : got.entrySet()) {
            for (int i = 0; i < e.getValue().size(); i++) {
                if (e.getValue().get(i) != i) {
                    throw new AssertionError("key " + e.getKey() + " out of order: " + e.getValue());
                }
            }
        }
        return keys * each + " messages in order, " + suspended.get() + " suspended once";
    }

    /** RECONSUME_LATER: the message comes again through send-back, whole. */
    static String retry(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Map<String, List<Integer>> attempts = new ConcurrentHashMap<>();
        CountDownLatch done = new CountDownLatch(5);
        List<String> faults = new ArrayList<>();
        DefaultMQPushConsumer consumer = consumer(target, target.createGroup(16, false), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt m = messages.get(0);
            attempts.computeIfAbsent(m.getKeys(), k -> new ArrayList<>()).add(m.getReconsumeTimes());
            if (m.getReconsumeTimes() == 0) {
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            Sample want = new Sample(Sample.numberOf(m.getBody()));
            if (!Arrays.equals(want.body, m.getBody()) || !want.tag.equals(m.getTags()) || !topic.equals(m.getTopic())
                || !want.properties.get("text").equals(m.getUserProperty("text"))) {
                faults.add("redelivered message differs: " + m);
            }
            done.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = producer(target);
        try {
            for (int i = 0; i < 5; i++) {
                Message m = message(topic, new Sample(i));
                new Ledger(1).sendUntilStored(1, () -> ok(producer.send(m)));
            }
            if (!done.await(100, TimeUnit.SECONDS)) {
                throw new AssertionError("no second delivery: " + attempts);
            }
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        for (List<Integer> a : attempts.values()) {
            if (!a.equals(List.of(0, 1))) {
                throw new AssertionError("attempts " + attempts);
            }
        }
        if (!faults.isEmpty()) {
            throw new AssertionError(faults.toString());
        }
        return attempts.size() + " messages came twice";
    }

    /** With one retry allowed, the second refusal puts the message into the dead letters. */
    static String deadLetter(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(1, false);
        AtomicInteger deliveries = new AtomicInteger();
        DefaultMQPushConsumer consumer = consumer(target, group, topic);
        consumer.setMaxReconsumeTimes(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            deliveries.incrementAndGet();
            context.setDelayLevelWhenNextConsume(1);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        DefaultMQProducer producer = producer(target);
        try {
            Message m = message(topic, new Sample(7));
            new Ledger(1).sendUntilStored(1, () -> ok(producer.send(m)));
            target.awaitStored("%DLQ%" + group, 1, 100);
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        if (deliveries.get() != 2) {
            throw new AssertionError(deliveries.get() + " deliveries, want 2");
        }
        return "2 deliveries, then a dead letter";
    }

    /** Broadcasting: each member sees every message. */
    static String broadcasting(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        String group = target.createGroup(16, false);
        int count = 100;
        List<DefaultMQPushConsumer> members = new ArrayList<>();
        CountDownLatch left = new CountDownLatch(2 * count);
        List<Map<String, Integer>> got = List.of(new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
        DefaultMQProducer producer = producer(target);
        try {
            for (Map<String, Integer> mine : got) {
                DefaultMQPushConsumer c = consumer(target, group, topic);
                c.setMessageModel(MessageModel.BROADCASTING);
                c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    for (MessageExt m : messages) {
                        mine.merge(m.getKeys(), 1, Integer::sum);
                        left.countDown();
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                c.start();
                members.add(c);
            }
            for (int i = 0; i < count; i++) {
                Message m = message(topic, new Sample(i));
                new Ledger(1).sendUntilStored(1, () -> ok(producer.send(m)));
            }
            left.await(60, TimeUnit.SECONDS);
        } finally {
            producer.shutdown();
            members.forEach(DefaultMQPushConsumer::shutdown);
        }
        for (Map<String, Integer> mine : got) {
            if (mine.size() != count) {
                throw new AssertionError("a member saw " + mine.size() + " of " + count);
            }
        }
        return "2 members saw " + count + " each";
    }

    /** Asynchronous and one-way sends arrive as well; results name a queue and growing offsets. */
    static String sends(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Ledger ledger = new Ledger(200);
        DefaultMQPushConsumer consumer = consumer(target, target.createGroup(16, false), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = producer(target);
        Map<Integer, Long> last = new HashMap<>();
        List<String> faults = new ArrayList<>();
        try {
            for (int i = 0; i < 100; i++) {
                CountDownLatch answered = new CountDownLatch(1);
                producer.send(message(topic, new Sample(i)), new SendCallback() {
                    @Override
                    public void onSuccess(SendResult r) {
                        synchronized (last) {
                            Long before = last.put(r.getMessageQueue().getQueueId(), r.getQueueOffset());
                            if (before != null && r.getQueueOffset() <= before) {
                                faults.add("offset " + r.getQueueOffset() + " after " + before);
                            }
                        }
                        answered.countDown();
                    }

                    @Override
                    public void onException(Throwable e) {
                        faults.add(e.toString());
                        answered.countDown();
                    }
                });
                if (!answered.await(20, TimeUnit.SECONDS)) {
                    throw new AssertionError("no answer");
                }
            }
            for (int i = 100; i < 200; i++) {
                producer.sendOneway(message(topic, new Sample(i)));
            }
            ledger.await(60);
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        if (!faults.isEmpty()) {
            throw new AssertionError(faults.toString());
        }
        return ledger.check();
    }
}
