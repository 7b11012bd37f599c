package dev.bolide.compat;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A backlog of samples in a topic: written through one server, read through another. */
final class Backlog {
    static String write(Target target, String topic, int count) throws Exception {
        Ledger ledger = new Ledger(count);
        DefaultMQProducer producer = Classic.producer(target);
        try {
            Classic.sendAll(ledger, producer, topic);
        } finally {
            producer.shutdown();
        }
        return "wrote " + count;
    }

    /** One after the other to the queues in turn, so that each gets the same number. */
    static String writeEvenly(Target target, String topic, int count) throws Exception {
        Ledger ledger = new Ledger(count);
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = 0; i < count; i++) {
                int number = i;
                Message m = Classic.message(topic, new Sample(number));
                ledger.sendUntilStored(1, () -> producer.send(m, (queues, message, arg) -> {
                    queues.sort(null);
                    return queues.get(number % queues.size());
                }, null));
            }
        } finally {
            producer.shutdown();
        }
        return "wrote " + count;
    }

    static String read(Target target, String topic, int count, String group) throws Exception {
        Ledger ledger = new Ledger(count);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(target.namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(32);
        consumer.subscribe(topic, "*");
        consumer.start();
        try {
            long end = System.nanoTime() + 120_000_000_000L;
            while (!ledger.isComplete() && System.nanoTime() < end) {
                List<MessageExt> messages = consumer.poll(1000);
                for (MessageExt m : messages) {
                    ledger.received(m.getBody(), m.getKeys(), m.getTags(), m.getProperties());
                }
            }
            consumer.commit();
        } finally {
            consumer.shutdown();
        }
        return ledger.check();
    }
}
