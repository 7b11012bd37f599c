package dev.bolide.compat;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * Dead letters of the client of gRPC: with one retry allowed, what fails twice lies in the group's dead-letter
 * topic, as it was sent. What has no message group the server moves there, what has one the client.
 */
final class DeadLetters {
    static String grpc(Target target) throws Exception {
        return fails(target, "NORMAL", null) + "; in order: " + fails(target, "FIFO", "one");
    }

    private static String fails(Target target, String type, String messageGroup) throws Exception {
        String topic = target.createTopic(type);
        String group = target.createGroup(1, messageGroup != null);
        List<Integer> attempts = new CopyOnWriteArrayList<>();
        try (PushConsumer consumer = Grpc.pushConsumer(target, group, topic, m -> {
                 attempts.add(m.getDeliveryAttempt());
                 return ConsumeResult.FAILURE;
             });
             Producer producer = Grpc.producer(target, topic)) {
            Message m = Grpc.message(topic, new Sample(0), messageGroup);
            Ledger ledger = new Ledger(1);
            ledger.sendUntilStored(1, () -> producer.send(m));
            String dead = "%DLQ%" + group;
            target.awaitStored(dead, 1, 90);
            try (SimpleConsumer reader = Grpc.simpleConsumer(target, target.createGroup(16, false), dead)) {
                MessageView read = Grpc.next(reader, 60);
                Grpc.received(ledger, read);
                reader.ack(read);
            }
            ledger.check();
        }
        if (!attempts.equals(List.of(1, 2))) {
            throw new AssertionError("attempts " + attempts);
        }
        return "attempts " + attempts + ", then a dead letter";
    }
}
