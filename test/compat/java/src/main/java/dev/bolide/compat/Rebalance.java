package dev.bolide.compat;

import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One process of a group whose members come, go and are killed: it has a consumer for each
 * strategy, once concurrent and once in order, and says what each of them has consumed, a line
 * a message, before the message counts as consumed.
 */
final class Rebalance {
    static final int QUEUES = 12;
    static final String ROOM = "room"; // of the broker, whose name is ROOM@something

    /** Consumes as the member of a slot until standard input ends. */
    static void member(Target target, String topic, int slot) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (Map.Entry<String, AllocateMessageQueueStrategy> s : strategies(target, topic, slot).entrySet()) {
            consumers.add(consumer(target, topic, s.getKey() + "/concurrent", slot, s.getValue(), out));
            consumers.add(consumer(target, topic, s.getKey() + "/orderly", slot, s.getValue(), out));
        }
        out.println("started");
        untilInputEnds();
        for (DefaultMQPushConsumer c : consumers) {
            c.shutdown();
        }
    }

    private static void untilInputEnds() {
        try {
            while (System.in.read() >= 0) {
                // only its end counts
            }
        } catch (IOException e) {
            // as good as its end
        }
    }

    private static Map<String, AllocateMessageQueueStrategy> strategies(Target target, String topic, int slot) throws Exception {
        Map<String, AllocateMessageQueueStrategy> all = new LinkedHashMap<>();
        all.put("AVG", new AllocateMessageQueueAveragely());
        all.put("AVG_BY_CIRCLE", new AllocateMessageQueueAveragelyByCircle());
        all.put("CONSISTENT_HASH", new AllocateMessageQueueConsistentHash());
        AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
        room.setConsumeridcs(Set.of(ROOM));
        all.put("MACHINE_ROOM", room);
        // The member of slot 1 is in another room and gets queues only while the others are away.
        all.put("MACHINE_ROOM_NEARBY", new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(),
            new AllocateMachineRoomNearby.MachineRoomResolver() {
                @Override
                public String brokerDeployIn(MessageQueue q) {
                    return q.getBrokerName().split("@")[0];
                }

                @Override
                public String consumerDeployIn(String client) {
                    return client.contains("slot1") ? "elsewhere" : ROOM;
                }
            }));
        AllocateMessageQueueByConfig fixed = new AllocateMessageQueueByConfig();
        List<MessageQueue> own = new ArrayList<>();
        String broker = target.admin().getMQClientAPIImpl().getTopicRouteInfoFromNameServer(topic, 10_000)
            .getQueueDatas().get(0).getBrokerName();
        for (int q = slot; q < QUEUES; q += 3) {
            own.add(new MessageQueue(topic, broker, q));
        }
        fixed.setMessageQueueList(own);
        all.put("CONFIG", fixed);
        return all;
    }

    private static DefaultMQPushConsumer consumer(Target target, String topic, String name, int slot,
        AllocateMessageQueueStrategy strategy, PrintStream out) throws Exception {
        DefaultMQPushConsumer c = Classic.consumer(target, group(topic, name), topic);
        c.setInstanceName(Target.fresh("slot" + slot));
        c.setAllocateMessageQueueStrategy(strategy);
        c.setConsumeThreadMin(2);
        c.setConsumeThreadMax(4);
        if (name.endsWith("/orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                consume(name, messages, out);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                consume(name, messages, out);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c.start();
        return c;
    }

    static String group(String topic, String name) {
        return topic + "-" + name.replace("/", "-");
    }

    private static void consume(String name, List<MessageExt> messages, PrintStream out) {
        for (MessageExt m : messages) {
            long began = System.currentTimeMillis();
            if (m.getQueueOffset() % 16 == 0) { // some work takes long enough to be cut off
                try {
                    Thread.sleep(5);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            // One write: processes that are killed leave no half lines of several threads.
            out.print("consumed " + name + " " + m.getQueueId() + " " + m.getQueueOffset() + " " + began + " "
                + System.currentTimeMillis() + " " + m.getReconsumeTimes() + "\n");
            out.flush();
        }
    }

    /** Sends to all queues in turn until standard input ends, and says how far each queue is. */
    static void produce(Target target, String topic, int perSecond) throws Exception {
        DefaultMQProducer producer = Classic.producer(target);
        long[] ends = new long[QUEUES];
        List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
        AtomicBoolean ended = new AtomicBoolean();
        Thread input = new Thread(() -> {
            untilInputEnds();
            ended.set(true);
        });
        input.start();
        System.out.println("started");
        long began = System.nanoTime();
        for (int i = 0; !ended.get(); i++) {
            MessageQueue q = queues.get(i % queues.size());
            SendResult r = producer.send(new Message(topic, ("message " + i).getBytes()), q);
            ends[q.getQueueId()] = Math.max(ends[q.getQueueId()], r.getQueueOffset() + 1);
            long due = began + (i + 1) * 1_000_000_000L / perSecond;
            long wait = (due - System.nanoTime()) / 1_000_000;
            if (wait > 0) {
                Thread.sleep(wait);
            }
        }
        producer.shutdown();
        for (int q = 0; q < QUEUES; q++) {
            System.out.println("end " + q + " " + ends[q]);
        }
    }
}
