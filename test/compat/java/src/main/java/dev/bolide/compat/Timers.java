package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.RecallReceipt;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages for a time of delivery, of both clients, and what is taken back before then. */
final class Timers {
    private static final String BACK = "taken back";
    private static final long AHEAD = 10_000;

    private static final String LAST = "last";
    private static final long DELAY = 15_000; // in which a busy machine sends and takes back
    private static final long LATENESS = 20_000; // which a busy machine may take to hand out what is due

    static String classic(Target target) throws Exception {
        String topic = target.createTopic("DELAY");
        DefaultMQProducer producer = Classic.producer(target);
        long asked = System.nanoTime();
        try {
            Message byTime = new Message(topic, "time".getBytes(StandardCharsets.UTF_8));
            byTime.setDeliverTimeMs(System.currentTimeMillis() + DELAY);
            producer.send(byTime);
            Message back = new Message(topic, BACK.getBytes(StandardCharsets.UTF_8));
            back.setDeliverTimeMs(System.currentTimeMillis() + DELAY);
            SendResult r = producer.send(back);
            for (int i = 0; i < 2; i++) {
                if (!producer.recallMessage(topic, r.getRecallHandle()).equals(r.getMsgId())) {
                    throw new AssertionError("another message was taken back");
                }
            }
            Message byDelay = new Message(topic, "delay".getBytes(StandardCharsets.UTF_8));
            byDelay.setDelayTimeMs(DELAY);
            producer.send(byDelay);
            Message bySeconds = new Message(topic, "seconds".getBytes(StandardCharsets.UTF_8));
            bySeconds.setDelayTimeSec(DELAY / 1000);
            producer.send(bySeconds);
            Message last = new Message(topic, LAST.getBytes(StandardCharsets.UTF_8));
            last.setDeliverTimeMs(System.currentTimeMillis() + DELAY + 2_000);
            producer.send(last);
        } finally {
            producer.shutdown();
        }
        return received(target, topic, asked, 4);
    }

    static String grpc(Target target) throws Exception {
        String topic = target.createTopic("DELAY");
        long asked = System.nanoTime();
        try (Producer producer = Grpc.producer(target, topic)) {
            producer.send(message(topic, "a", DELAY));
            SendReceipt r = producer.send(message(topic, BACK, DELAY));
            RecallReceipt back = producer.recallMessage(topic, r.getRecallHandle());
            if (!back.getMessageId().toString().equals(r.getMessageId().toString())) {
                throw new AssertionError("another message was taken back: " + back.getMessageId());
            }
            producer.send(message(topic, "b", DELAY));
            producer.send(message(topic, LAST, DELAY + 2_000));
        }
        return received(target, topic, asked, 3);
    }

    /** The levels 1 to 3 hold a message back for 1, 5 and 10 seconds from when it is stored. */
    static String levels(Target target) throws Exception {
        long[] seconds = {1, 5, 10};
        String topic = target.createTopic("DELAY");
        Ledger ledger = new Ledger(seconds.length);
        Map<Integer, Long> due = new ConcurrentHashMap<>();
        Queue<String> faults = new ConcurrentLinkedQueue<>();
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                int number = Sample.numberOf(m.getBody());
                long late = System.currentTimeMillis() - due.get(number);
                if (late < 0 || late > LATENESS || m.getStoreTimestamp() < due.get(number)) {
                    faults.add("level " + (number + 1) + " came after " + late + " ms");
                }
                ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < seconds.length; i++) {
                Message m = Classic.message(topic, new Sample(i));
                m.setDelayTimeLevel(i + 1);
                due.put(i, System.currentTimeMillis() + seconds[i] * 1000);
                producer.send(m);
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

    private static org.apache.rocketmq.client.apis.message.Message message(String topic, String body, long delay) {
        return Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setDeliveryTimestamp(System.currentTimeMillis() + delay)
            .setBody(body.getBytes(StandardCharsets.UTF_8)).build();
    }

    /**
     * Receives until there is nothing more behind the last one, which is due after all others: what was
     * taken back would be there by then. None was asked for before asked.
     */
    private static String received(Target target, String topic, long asked, int count) throws Exception {
        List<String> got = new ArrayList<>();
        try (SimpleConsumer consumer = Grpc.simpleConsumer(target, target.createGroup(16, false), topic)) {
            long end = System.nanoTime() + 120_000_000_000L;
            while (System.nanoTime() < end) {
                List<MessageView> messages = consumer.receive(16, Duration.ofMinutes(2));
                long passed = (System.nanoTime() - asked) / 1_000_000;
                if (messages.isEmpty() && got.size() >= count && got.contains(LAST)) {
                    break;
                }
                for (MessageView m : messages) {
                    if (passed < DELAY - 2 || passed > DELAY + 2_000 + LATENESS) { // the due times are whole milliseconds
                        throw new AssertionError("came after " + passed + " ms");
                    }
                    got.add(StandardCharsets.UTF_8.decode(m.getBody()).toString());
                    consumer.ack(m);
                }
            }
        }
        if (got.size() != count || got.contains(BACK)) {
            throw new AssertionError("received " + got);
        }
        return "received " + got;
    }

    // For the exchange of stores: each of three servers has messages to deliver, but the first one few or none.
    private static final long FIRST = 25_000;
    private static final long SPAN = 120_000;

    /** Sends count messages, due from FIRST on for SPAN, and takes every tenth back. The file tells the next steps. */
    static String send(Target target, String topic, int count, String file) throws Exception {
        DefaultMQProducer producer = Classic.producer(target);
        List<String> lines = new ArrayList<>();
        long from = System.currentTimeMillis() + FIRST;
        lines.add("until " + (from + SPAN));
        try {
            for (int i = 0; i < count; i++) {
                long due = from + SPAN * i / count;
                Message m = new Message(topic, Integer.toString(i).getBytes(StandardCharsets.UTF_8));
                m.setDeliverTimeMs(due);
                SendResult r = producer.send(m);
                if (i % 10 == 9) {
                    producer.recallMessage(topic, r.getRecallHandle());
                    due = -1;
                }
                lines.add(i + " " + due);
            }
        } finally {
            producer.shutdown();
        }
        Files.write(Path.of(file), lines);
        return "sent " + count;
    }

    /** Waits until two thirds of the messages are due. */
    static String await(String file) throws Exception {
        long until = Long.parseLong(Files.readAllLines(Path.of(file)).get(0).split(" ")[1]);
        Thread.sleep(Math.max(0, until - SPAN / 3 - System.currentTimeMillis()));
        return "waited";
    }

    /** Waits for all of them, and reads the topic from its beginning: nothing early, lost or repeated. */
    static String check(Target target, String topic, int count, String file) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(file));
        long until = Long.parseLong(lines.get(0).split(" ")[1]);
        Map<String, Long> due = new HashMap<>();
        for (String line : lines.subList(1, lines.size())) {
            due.put(line.split(" ")[0], Long.parseLong(line.split(" ")[1]));
        }
        Thread.sleep(Math.max(0, until + 5_000 - System.currentTimeMillis()));
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(Target.fresh("reader"));
        consumer.setNamesrvAddr(target.namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        Map<String, Integer> times = new HashMap<>();
        long late = 0;
        try {
            // Nothing more comes in three seconds after as many as there have to be.
            long wanted = due.values().stream().filter(at -> at >= 0).count();
            long end = System.nanoTime() + 20_000_000_000L;
            for (int quiet = 0; System.nanoTime() < end && (quiet < 3 || times.size() < wanted); ) {
                List<MessageExt> messages = consumer.poll(1000);
                quiet = messages.isEmpty() ? quiet + 1 : 0;
                for (MessageExt m : messages) {
                    String body = new String(m.getBody(), StandardCharsets.UTF_8);
                    times.merge(body, 1, Integer::sum);
                    if (m.getStoreTimestamp() < due.get(body)) {
                        throw new AssertionError(body + " was delivered early");
                    }
                    late = Math.max(late, m.getStoreTimestamp() - due.get(body));
                }
            }
        } finally {
            consumer.shutdown();
        }
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, Long> e : due.entrySet()) {
            int want = e.getValue() < 0 ? 0 : 1;
            int got = times.getOrDefault(e.getKey(), 0);
            if (got != want) {
                wrong.add(e.getKey() + ": " + got + " times instead of " + want);
            }
        }
        if (!wrong.isEmpty() || due.size() != count) {
            throw new AssertionError(wrong.size() + " wrong of " + due.size() + ": " + wrong);
        }
        return count + " in time, each once, the latest by " + late + " ms";
    }
}
