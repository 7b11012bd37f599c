import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.consumer.ReceiptHandle;
import org.apache.rocketmq.common.lite.LiteSubscriptionAction;
import org.apache.rocketmq.common.lite.LiteSubscriptionDTO;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.body.LiteSubscriptionCtlRequestBody;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopLiteMessageRequestHeader;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs commands of mqadmin one after the other in one JVM, since a JVM of its own takes each
 * of them seconds. Every line of standard input is one command, its words separated by tabs;
 * the answer is a line with the length in bytes of what the command printed, and that.
 * Commands that begin with @ are a producer and consumers for the others to look at.
 */
public class Admin {
    private static final Map<String, DefaultMQPushConsumer> CONSUMERS = new HashMap<>();
    private static final Map<String, AtomicInteger> CONSUMED = new HashMap<>();
    private static DefaultMQProducer producer;

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null; ) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(to);
            System.setErr(to);
            String[] words = line.split("\t", -1);
            try {
                if (words[0].startsWith("@")) {
                    own(words);
                } else {
                    MQAdminStartup.main0(words, null);
                }
            } catch (Throwable e) {
                e.printStackTrace();
            }
            to.flush();
            byte[] text = printed.toByteArray();
            answers.println(text.length);
            answers.write(text, 0, text.length);
            answers.flush();
        }
        System.exit(0);
    }

    private static void own(String[] words) throws Exception {
        switch (words[0]) {
            case "@send": // topic, count: evenly over the queues; prints the ids of the last
                send(words[1], Integer.parseInt(words[2]));
                break;
            case "@consume": // group, topic, messages to wait for
                consume(words[1], words[2], Integer.parseInt(words[3]));
                break;
            case "@leave": // group
                CONSUMERS.remove(words[1]).shutdown();
                break;
            case "@lite-send": // parent, lite topic, count
                for (int i = 0; i < Integer.parseInt(words[3]); i++) {
                    Message m = new Message(words[1], ("lite " + i).getBytes(StandardCharsets.UTF_8));
                    MessageAccessor.setLiteTopic(m, words[2]);
                    producer.send(m);
                }
                break;
            case "@lite-subscribe": // broker, parent, group, client, lite topics
                liteSubscribe(words);
                break;
            case "@lite-pop": // broker, parent, group, client, messages to acknowledge; none more than these are taken
                litePop(words, Integer.parseInt(words[5]));
                break;
            case "@stop":
                producer.shutdown();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static MQClientAPIImpl api() {
        return producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl();
    }

    private static void liteSubscribe(String[] words) throws Exception {
        LiteSubscriptionDTO wants = new LiteSubscriptionDTO().setAction(LiteSubscriptionAction.PARTIAL_ADD)
            .setTopic(words[2]).setGroup(words[3]).setClientId(words[4]).setLiteTopicSet(Set.of(words[5].split(",")));
        LiteSubscriptionCtlRequestBody body = new LiteSubscriptionCtlRequestBody();
        body.setSubscriptionSet(Set.of(wants));
        RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.LITE_SUBSCRIPTION_CTL, null);
        request.setBody(body.encode());
        RemotingCommand answer = api().getRemotingClient().invokeSync(words[1], request, 5_000);
        if (answer.getCode() != 0) {
            throw new IllegalStateException(answer.getCode() + " " + answer.getRemark());
        }
    }

    private static void litePop(String[] words, int count) throws Exception {
        for (long end = System.currentTimeMillis() + 60_000; count > 0; ) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException(count + " messages missing after a minute");
            }
            PopLiteMessageRequestHeader header = new PopLiteMessageRequestHeader();
            header.setTopic(words[2]);
            header.setConsumerGroup(words[3]);
            header.setClientId(words[4]);
            header.setMaxMsgNum(Math.min(count, 32));
            header.setInvisibleTime(60_000);
            header.setPollTime(1_000);
            header.setBornTime(System.currentTimeMillis());
            CompletableFuture<PopResult> popped = new CompletableFuture<>();
            api().popLiteMessageAsync("broker-a", words[1], header, 10_000, new PopCallback() {
                @Override
                public void onSuccess(PopResult result) {
                    popped.complete(result);
                }

                @Override
                public void onException(Throwable e) {
                    popped.completeExceptionally(e);
                }
            });
            List<MessageExt> messages = popped.get().getMsgFoundList();
            for (MessageExt m : messages == null ? List.<MessageExt>of() : messages) {
                AckMessageRequestHeader ack = new AckMessageRequestHeader();
                String handle = m.getProperty(MessageConst.PROPERTY_POP_CK);
                ack.setTopic(words[2]);
                ack.setConsumerGroup(words[3]);
                ack.setQueueId(0);
                ack.setOffset(ReceiptHandle.decode(handle).getOffset());
                ack.setExtraInfo(handle);
                ack.setLiteTopic(m.getProperty(MessageConst.PROPERTY_LITE_TOPIC));
                RemotingCommand answer = api().getRemotingClient().invokeSync(words[1],
                    RemotingCommand.createRequestCommand(RequestCode.ACK_MESSAGE, ack), 5_000);
                if (answer.getCode() != 0) {
                    throw new IllegalStateException(answer.getCode() + " " + answer.getRemark());
                }
                count--;
            }
        }
    }

    private static void send(String topic, int count) throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("adm-producer");
            producer.setInstanceName("adm-producer");
            producer.start();
        }
        MessageQueue[] queues = producer.fetchPublishMessageQueues(topic).toArray(new MessageQueue[0]);
        Arrays.sort(queues);
        SendResult last = null;
        for (int i = 0; i < count; i++) {
            Message m = new Message(topic, "tag" + i % 2, "key-" + i, ("body " + i).getBytes(StandardCharsets.UTF_8));
            last = producer.send(m, queues[i % queues.length]);
        }
        System.out.println(last.getMsgId() + " " + last.getOffsetMsgId());
    }

    private static void consume(String group, String topic, int count) throws Exception {
        AtomicInteger seen = CONSUMED.computeIfAbsent(group, g -> new AtomicInteger());
        if (!CONSUMERS.containsKey(group)) {
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
            consumer.setInstanceName(group);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                seen.addAndGet(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            CONSUMERS.put(group, consumer);
            System.out.println(consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
        }
        for (long end = System.currentTimeMillis() + 60_000; seen.get() < count; Thread.sleep(20)) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("only " + seen.get() + " of " + count + " messages after a minute");
            }
        }
        seen.set(0);
        CONSUMERS.get(group).getDefaultMQPushConsumerImpl().getOffsetStore()
            .persistAll(CONSUMERS.get(group).getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet());
    }
}
