import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
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
            case "@stop":
                producer.shutdown();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
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
