package dev.bolide.compat;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** The server under test, given by the environment. */
final class Target {
    final String namesrv = env("COMPAT_NAMESRV");
    final String broker = env("COMPAT_BROKER");
    final String grpc = System.getenv("COMPAT_GRPC");
    final int count;
    private MQClientInstance admin;

    Target() {
        String n = System.getenv("COMPAT_COUNT");
        count = n == null || n.isEmpty() ? 10_000 : Integer.parseInt(n);
    }

    private static String env(String name) {
        String value = System.getenv(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalStateException("set " + name);
        }
        return value;
    }

    /** A name that no earlier run has used. */
    static String fresh(String kind) {
        return kind + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    synchronized MQClientInstance admin() throws Exception {
        if (admin == null) {
            ClientConfig config = new ClientConfig();
            config.setNamesrvAddr(namesrv);
            config.setInstanceName(fresh("admin"));
            admin = MQClientManager.getInstance().getOrCreateMQClientInstance(config);
            admin.getMQClientAPIImpl().start();
        }
        return admin;
    }

    String createTopic(String type) throws Exception {
        String topic = fresh("java-topic");
        TopicConfig config = new TopicConfig(topic, 8, 8);
        config.setAttributes(Map.of("+message.type", type));
        admin().getMQClientAPIImpl().createTopic(broker, "TBW102", config, 10_000);
        for (int i = 0; ; i++) {
            try {
                admin().getMQClientAPIImpl().getTopicRouteInfoFromNameServer(topic, 5_000);
                return topic;
            } catch (Exception e) {
                if (i == 600) {
                    throw e;
                }
                Thread.sleep(50);
            }
        }
    }

    /** How many messages the server has stored in a topic. */
    long stored(String topic) throws Exception {
        return admin().getMQClientAPIImpl().getTopicStatsInfo(broker, topic, 10_000).getOffsetTable().values().stream()
            .mapToLong(o -> o.getMaxOffset()).sum();
    }

    /** Waits until a topic, which may have to be made first, has so many messages. */
    void awaitStored(String topic, long messages, int seconds) throws Exception {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (true) {
            String there;
            try {
                long stored = stored(topic);
                if (stored >= messages) {
                    return;
                }
                there = stored + " messages";
            } catch (MQClientException | MQBrokerException e) {
                there = e.toString();
            }
            if (System.nanoTime() > end) {
                throw new AssertionError(topic + " has not " + messages + " messages: " + there);
            }
            Thread.sleep(100);
        }
    }

    String createGroup(int retries, boolean orderly) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setRetryMaxTimes(retries);
        config.setConsumeMessageOrderly(orderly);
        return createGroup(config);
    }

    /** A group that consumes the lite topics of the topic. */
    String createLiteGroup(String topic, boolean orderly, Map<String, String> attributes) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setConsumeMessageOrderly(orderly);
        Map<String, String> all = new HashMap<>(attributes);
        all.put("+lite.bind.topic", topic);
        config.setAttributes(all);
        return createGroup(config);
    }

    private String createGroup(SubscriptionGroupConfig config) throws Exception {
        config.setGroupName(fresh("java-group"));
        admin().getMQClientAPIImpl().createSubscriptionGroup(broker, config, 10_000);
        return config.getGroupName();
    }

    /** How the group gets the topic's messages: assigned queues to pull, or POP. */
    void setMode(String topic, String group, MessageRequestMode mode, int share) throws Exception {
        admin().getMQClientAPIImpl().setMessageRequestMode(broker, topic, group, mode, share, 10_000);
    }

    void close() {
        if (admin != null) {
            admin.getMQClientAPIImpl().shutdown();
        }
    }
}
