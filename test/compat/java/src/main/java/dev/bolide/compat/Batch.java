package dev.bolide.compat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** One answer names all messages of a batch, which are at consecutive offsets of one queue. */
final class Batch {
    private record Place(int queue, long offset, String id) {
    }

    static String run(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        int size = 10;
        Ledger ledger = new Ledger(5 * size);
        Map<String, Place> sent = new HashMap<>(); // by key
        Map<String, Place> got = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                got.put(m.getKeys(), new Place(m.getQueueId(), m.getQueueOffset(), m.getMsgId()));
                ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int from = 0; from < ledger.expected; from += size) {
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < size; i++) {
                    batch.add(Classic.message(topic, new Sample(from + i)));
                }
                SendResult r = producer.send(batch);
                String[] ids = r.getMsgId().split(",");
                if (ids.length != size || r.getOffsetMsgId().split(",").length != size) {
                    throw new AssertionError("a batch of " + size + " is answered with " + r);
                }
                for (int i = 0; i < size; i++) {
                    sent.put(batch.get(i).getKeys(), new Place(r.getMessageQueue().getQueueId(), r.getQueueOffset() + i, ids[i]));
                }
            }
            ledger.await(60);
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
        String result = ledger.check();
        if (!got.equals(sent)) {
            throw new AssertionError("sent to " + sent + ", came from " + got);
        }
        return result + " in batches of " + size;
    }
}
