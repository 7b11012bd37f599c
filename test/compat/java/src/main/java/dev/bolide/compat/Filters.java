package dev.bolide.compat;

import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Consumers with SQL92 filters, which wait before the messages come. */
final class Filters {
    private static final String TEXT = "number BETWEEN 50 AND 149 AND TAGS <> 'tag0' AND absent IS NULL";
    private static final int SAMPLES = 300;

    private final Set<Integer> got = ConcurrentHashMap.newKeySet();

    private static boolean takes(int number) {
        return number >= 50 && number <= 149 && number % 3 != 0;
    }

    private String check() throws Exception {
        int wanted = 0;
        for (int number = 0; number < SAMPLES; number++) {
            wanted += takes(number) ? 1 : 0;
        }
        long end = System.nanoTime() + 120_000_000_000L;
        while (got.size() < wanted && System.nanoTime() < end) {
            Thread.sleep(20);
        }
        for (int number : got) {
            if (!takes(number)) {
                throw new AssertionError("received message " + number + ", which the filter does not take");
            }
        }
        if (got.size() != wanted) {
            throw new AssertionError("received " + got.size() + " messages of " + wanted);
        }
        return wanted + " of " + SAMPLES + " messages";
    }

    private static DefaultMQPushConsumer classicConsumer(Target target, String topic, String text) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(target.createGroup(16, false));
        consumer.setNamesrvAddr(target.namesrv);
        consumer.setInstanceName(Target.fresh("consumer"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, MessageSelector.bySql(text));
        return consumer;
    }

    /** By heartbeat, on pulls; and what the client is told of an expression that can't be read. */
    static String classic(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Filters filters = new Filters();
        DefaultMQPushConsumer consumer = classicConsumer(target, topic, TEXT);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                filters.got.add(Integer.parseInt(m.getUserProperty("number")));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Classic.producer(target);
        try {
            Classic.sendAll(new Ledger(SAMPLES), producer, topic);
            return filters.check() + "; " + refused(target, topic);
        } finally {
            producer.shutdown();
            consumer.shutdown();
        }
    }

    private static String refused(Target target, String topic) throws Exception {
        DefaultMQPushConsumer consumer = classicConsumer(target, topic, "number >");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        try {
            consumer.start();
        } catch (MQClientException e) {
            return "an expression that can't be read ends the start";
        } finally {
            consumer.shutdown();
        }
        throw new AssertionError("started with an expression that can't be read");
    }

    /** On receives of the gRPC client. */
    static String grpc(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        Filters filters = new Filters();
        try (PushConsumer consumer = Grpc.PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(Grpc.configuration(target))
            .setConsumerGroup(target.createGroup(16, false))
            .setSubscriptionExpressions(Collections.singletonMap(topic, new FilterExpression(TEXT, FilterExpressionType.SQL92)))
            .setConsumptionThreadCount(4)
            .setMessageListener(m -> {
                filters.got.add(Integer.parseInt(m.getProperties().get("number")));
                return ConsumeResult.SUCCESS;
            })
            .build()) {
            Grpc.sendAll(target, new Ledger(SAMPLES), topic);
            return filters.check();
        }
    }
}
