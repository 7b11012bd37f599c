package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.RecallReceipt;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages for a time of delivery, of both clients, and what is taken back before then. */
final class Timers {
    private static final String BACK = "taken back";
    private static final long AHEAD = 10_000;

    static String classic(Target target) throws Exception {
        String topic = target.createTopic("DELAY");
        DefaultMQProducer producer = Classic.producer(target);
        long at = System.currentTimeMillis() + AHEAD;
        try {
            Message byTime = new Message(topic, "time".getBytes(StandardCharsets.UTF_8));
            byTime.setDeliverTimeMs(at);
            producer.send(byTime);
            Message byDelay = new Message(topic, "delay".getBytes(StandardCharsets.UTF_8));
            byDelay.setDelayTimeMs(AHEAD);
            producer.send(byDelay);
            Message bySeconds = new Message(topic, "seconds".getBytes(StandardCharsets.UTF_8));
            bySeconds.setDelayTimeSec(AHEAD / 1000);
            producer.send(bySeconds);
            Message back = new Message(topic, BACK.getBytes(StandardCharsets.UTF_8));
            back.setDeliverTimeMs(at);
            SendResult r = producer.send(back);
            for (int i = 0; i < 2; i++) {
                if (!producer.recallMessage(topic, r.getRecallHandle()).equals(r.getMsgId())) {
                    throw new AssertionError("another message was taken back");
                }
            }
        } finally {
            producer.shutdown();
        }
        return received(target, topic, at, 3);
    }

    static String grpc(Target target) throws Exception {
        String topic = target.createTopic("DELAY");
        long at;
        try (Producer producer = Grpc.producer(target, topic)) {
            at = System.currentTimeMillis() + AHEAD; // not before it has started, which may take a while
            for (String body : List.of("a", "b")) {
                producer.send(Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setDeliveryTimestamp(at).setBody(body.getBytes(StandardCharsets.UTF_8)).build());
            }
            SendReceipt r = producer.send(
                Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setDeliveryTimestamp(at).setBody(BACK.getBytes(StandardCharsets.UTF_8)).build());
            RecallReceipt back = producer.recallMessage(topic, r.getRecallHandle());
            if (!back.getMessageId().toString().equals(r.getMessageId().toString())) {
                throw new AssertionError("another message was taken back: " + back.getMessageId());
            }
        }
        return received(target, topic, at, 2);
    }

    private static String received(Target target, String topic, long at, int count) throws Exception {
        List<String> got = new ArrayList<>();
        long late = 0;
        try (SimpleConsumer consumer = Grpc.simpleConsumer(target, target.createGroup(16, false), topic)) {
            long end = System.nanoTime() + 60_000_000_000L;
            long listen = 0;
            while (System.nanoTime() < end && (listen == 0 || System.nanoTime() < listen)) {
                for (MessageView m : consumer.receive(16, Duration.ofSeconds(30))) {
                    long now = System.currentTimeMillis();
                    if (now < at) {
                        throw new AssertionError("early by " + (at - now) + " ms");
                    }
                    late = Math.max(late, now - at);
                    got.add(StandardCharsets.UTF_8.decode(m.getBody()).toString());
                    consumer.ack(m);
                }
                if (got.size() >= count && listen == 0) {
                    listen = System.nanoTime() + 2_000_000_000L;
                }
            }
        }
        if (got.size() != count || got.contains(BACK)) {
            throw new AssertionError("received " + got);
        }
        return "received " + got + ", late by up to " + late + " ms";
    }

    /** Sends count messages, due from 20 s to 80 s from now, and takes every tenth back. The file tells the next step. */
    static String send(Target target, String topic, int count, String file) throws Exception {
        DefaultMQProducer producer = Classic.producer(target);
        List<String> lines = new ArrayList<>();
        long from = System.currentTimeMillis() + 20_000;
        lines.add("until " + (from + 60_000));
        try {
            for (int i = 0; i < count; i++) {
                long due = from + 60_000L * i / count;
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
        Thread.sleep(Math.max(0, until - 20_000 - System.currentTimeMillis()));
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
            long end = System.nanoTime() + 20_000_000_000L;
            while (System.nanoTime() < end) {
                for (MessageExt m : consumer.poll(1000)) {
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
