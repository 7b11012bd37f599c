package dev.bolide.compat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ReceiptHandle;
import org.apache.rocketmq.common.lite.LiteSubscriptionAction;
import org.apache.rocketmq.common.lite.LiteSubscriptionDTO;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.body.LiteSubscriptionCtlRequestBody;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopLiteMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/**
 * One server's turn with lite topics in a store that goes from server to server: it has what the
 * one before has left, and no more, and leaves as much to the next. All of it goes over Remoting,
 * since no proxy is there.
 */
final class LiteStore {
    private static final List<String> LITES = List.of("a", "b", "c", "d", "e");

    private final Target target;
    private final MQClientAPIImpl api;
    private final String topic;
    private final String group;

    private LiteStore(Target target, String topic, String group) throws Exception {
        this.target = target;
        this.api = target.admin().getMQClientAPIImpl();
        this.topic = topic;
        this.group = group;
    }

    static String turn(Target target, String topic, int each, String group, int turn) throws Exception {
        LiteStore s = new LiteStore(target, topic, group);
        if (turn == 0) {
            s.create();
        }
        s.subscribe();
        int next = 2 * turn * each;
        if (turn > 0) {
            s.receive(next - each, next);
        }
        s.send(next, next + each);
        s.receive(next, next + each);
        s.send(next + each, next + 2 * each);
        return "sent and received up to " + (next + each) + ", left " + each;
    }

    private void create() throws Exception {
        TopicConfig config = new TopicConfig(topic, 1, 1);
        config.setAttributes(Map.of("+message.type", "LITE"));
        api.createTopic(target.broker, "TBW102", config, 10_000);
        SubscriptionGroupConfig bound = new SubscriptionGroupConfig();
        bound.setGroupName(group);
        bound.setAttributes(Map.of("+lite.bind.topic", topic));
        api.createSubscriptionGroup(target.broker, bound, 10_000);
    }

    private void subscribe() throws Exception {
        LiteSubscriptionCtlRequestBody body = new LiteSubscriptionCtlRequestBody();
        body.setSubscriptionSet(Set.of(new LiteSubscriptionDTO().setAction(LiteSubscriptionAction.PARTIAL_ADD)
            .setTopic(topic).setGroup(group).setClientId("client").setLiteTopicSet(Set.copyOf(LITES))));
        RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.LITE_SUBSCRIPTION_CTL, null);
        request.setBody(body.encode());
        ok(request);
    }

    private void send(int from, int to) throws Exception {
        DefaultMQProducer producer = Classic.producer(target);
        try {
            for (int i = from; i < to; i++) {
                for (String lite : LITES) {
                    Message m = new Message(topic, String.valueOf(i).getBytes(StandardCharsets.UTF_8));
                    MessageAccessor.setLiteTopic(m, lite);
                    producer.send(m);
                }
            }
        } finally {
            producer.shutdown();
        }
    }

    /** Receives until each lite topic has given these, in order, and nothing more comes. */
    private void receive(int from, int to) throws Exception {
        Map<String, Integer> next = new TreeMap<>();
        LITES.forEach(lite -> next.put(lite, from));
        int quiet = 0;
        for (long end = System.nanoTime() + 120_000_000_000L; quiet < 2 || next.values().stream().anyMatch(n -> n < to); ) {
            if (System.nanoTime() > end) {
                throw new AssertionError("wanted " + from + " to " + to + ", and have them up to " + next);
            }
            List<MessageExt> messages = pop();
            quiet = messages == null || messages.isEmpty() ? quiet + 1 : 0;
            for (MessageExt m : messages == null ? List.<MessageExt>of() : messages) {
                String lite = m.getProperty(MessageConst.PROPERTY_LITE_TOPIC);
                int n = Integer.parseInt(new String(m.getBody(), StandardCharsets.UTF_8));
                if (n != next.get(lite) || n >= to) {
                    throw new AssertionError(lite + " gave " + n + ", with all up to " + next + " of " + from + " to " + to);
                }
                next.put(lite, n + 1);
                ack(m, lite);
            }
        }
    }

    private List<MessageExt> pop() throws Exception {
        PopLiteMessageRequestHeader header = new PopLiteMessageRequestHeader();
        header.setTopic(topic);
        header.setConsumerGroup(group);
        header.setClientId("client");
        header.setMaxMsgNum(32);
        header.setInvisibleTime(15_000);
        header.setPollTime(1_000);
        header.setBornTime(System.currentTimeMillis());
        CompletableFuture<PopResult> popped = new CompletableFuture<>();
        api.popLiteMessageAsync("broker-a", target.broker, header, 10_000, new PopCallback() {
            @Override
            public void onSuccess(PopResult result) {
                popped.complete(result);
            }

            @Override
            public void onException(Throwable e) {
                popped.completeExceptionally(e);
            }
        });
        try {
            return popped.get().getMsgFoundList();
        } catch (ExecutionException e) {
            // Apache's server leaves one without an answer now and then; what it has handed out comes again.
            if (System.getenv("COMPAT_APACHE") != null && e.getCause() instanceof RemotingTimeoutException) {
                return List.of();
            }
            throw e;
        }
    }

    private void ack(MessageExt m, String lite) throws Exception {
        String handle = m.getProperty(MessageConst.PROPERTY_POP_CK);
        AckMessageRequestHeader ack = new AckMessageRequestHeader();
        ack.setTopic(topic);
        ack.setConsumerGroup(group);
        ack.setQueueId(0);
        ack.setOffset(ReceiptHandle.decode(handle).getOffset());
        ack.setExtraInfo(handle);
        ack.setLiteTopic(lite);
        ok(RemotingCommand.createRequestCommand(RequestCode.ACK_MESSAGE, ack));
    }

    private void ok(RemotingCommand request) throws Exception {
        RemotingCommand answer = api.getRemotingClient().invokeSync(target.broker, request, 10_000);
        if (answer.getCode() != 0) {
            throw new AssertionError(request.getCode() + " is answered " + answer.getCode() + " " + answer.getRemark());
        }
    }
}
