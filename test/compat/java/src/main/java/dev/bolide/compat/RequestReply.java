package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/** The classic client asks and is answered; replies of more than 4 KiB come compressed. */
final class RequestReply {
    static String run(Target target) throws Exception {
        String topic = target.createTopic("NORMAL");
        DefaultMQProducer asker = Classic.producer(target);
        DefaultMQProducer replier = Classic.producer(target);
        DefaultMQPushConsumer consumer = Classic.consumer(target, target.createGroup(16, false), topic);
        BlockingQueue<String> faults = new ArrayBlockingQueue<>(100);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                try {
                    replier.send(MessageUtil.createReplyMessage(m, answer(text(m))));
                } catch (Exception e) {
                    faults.offer(e.toString());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            for (int i = 0; i < 20; i++) {
                String question = "question " + i;
                Message m = asker.request(new Message(topic, question.getBytes(StandardCharsets.UTF_8)), 20_000);
                check(question, m);
            }
            BlockingQueue<Object> later = new ArrayBlockingQueue<>(1);
            asker.request(new Message(topic, "later".getBytes(StandardCharsets.UTF_8)), new RequestCallback() {
                @Override
                public void onSuccess(Message m) {
                    later.add(m);
                }

                @Override
                public void onException(Throwable e) {
                    later.add(e);
                }
            }, 20_000);
            if (!(later.poll(30, TimeUnit.SECONDS) instanceof Message m)) {
                throw new AssertionError("no answer to the callback");
            }
            check("later", m);
            nobody(replier);
        } finally {
            consumer.shutdown();
            asker.shutdown();
            replier.shutdown();
        }
        if (!faults.isEmpty()) {
            throw new AssertionError(List.copyOf(faults).toString());
        }
        return "21 answers, and a clear word about one to nobody";
    }

    /** A reply to a client that is not there is refused. */
    private static void nobody(DefaultMQProducer replier) throws Exception {
        Message m = new Message("DefaultCluster_REPLY_TOPIC", new byte[] {1});
        MessageAccessor.putProperty(m, MessageConst.PROPERTY_MESSAGE_TYPE, "reply");
        MessageAccessor.putProperty(m, MessageConst.PROPERTY_MESSAGE_REPLY_TO_CLIENT, "nobody@1");
        try {
            replier.send(m);
        } catch (MQClientException e) { // all that its attempts have come to
            if (e.getCause() instanceof MQBrokerException b && b.getResponseCode() == 1 && b.getErrorMessage().contains("nobody@1")) {
                return;
            }
            throw e;
        }
        throw new AssertionError("a reply to nobody was taken");
    }

    private static byte[] answer(String question) {
        return ("answer to " + question + " ".repeat(question.hashCode() % 2 == 0 ? 10_000 : 1)).getBytes(StandardCharsets.UTF_8);
    }

    private static void check(String question, Message got) {
        if (!new String(answer(question), StandardCharsets.UTF_8).equals(new String(got.getBody(), StandardCharsets.UTF_8))) {
            throw new AssertionError(question + " was answered with " + got);
        }
    }

    private static String text(MessageExt m) {
        return new String(m.getBody(), StandardCharsets.UTF_8);
    }
}
