package dev.bolide.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Messages with a priority, of both clients: the most urgent comes first. */
final class Priority {
    private static final int[] SENT = {3, 0, 7, 1, 6, 2, 5, 4, 900};

    static String grpc(Target target) throws Exception {
        String topic = target.createTopic("PRIORITY");
        try (Producer producer = Grpc.producer(target, topic)) {
            for (int n : SENT) {
                producer.send(Grpc.PROVIDER.newMessageBuilder().setTopic(topic).setPriority(n).setBody(new byte[] {1}).build());
            }
        }
        return received(target, topic);
    }

    /** The queue that the answer names is that of the priority, whichever the client chose. */
    static String classic(Target target) throws Exception {
        String topic = target.createTopic("PRIORITY");
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int n : SENT) {
                Message m = new Message(topic, new byte[] {1});
                m.setPriority(n);
                SendResult r = producer.send(m);
                if (r.getMessageQueue().getQueueId() != Math.min(n, 7)) {
                    throw new AssertionError("priority " + n + " went to " + r.getMessageQueue());
                }
            }
        } finally {
            producer.shutdown();
        }
        return received(target, topic);
    }

    private static String received(Target target, String topic) throws Exception {
        List<Integer> got = new ArrayList<>();
        try (SimpleConsumer consumer = Grpc.simpleConsumer(target, target.createGroup(16, false), topic)) {
            long end = System.nanoTime() + 60_000_000_000L;
            while (got.size() < SENT.length && System.nanoTime() < end) {
                for (MessageView m : consumer.receive(1, Duration.ofSeconds(30))) {
                    got.add(m.getPriority().orElse(-1));
                    consumer.ack(m);
                }
            }
        }
        if (!got.equals(List.of(7, 900, 6, 5, 4, 3, 2, 1, 0))) {
            throw new AssertionError("received " + got);
        }
        return "received " + got;
    }
}
