package dev.bolide.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.AckStatus;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;

/** Popped messages whose server is replaced by another one before they are done. */
final class InFlight {
    private static final long INVISIBLE = 90_000;

    /**
     * Pops all: a third is acknowledged at once, of the rest every fifth gets its receipt into a
     * file, for the next server.
     */
    static String pop(Target target, String topic, int count, String group, String file) throws Exception {
        Map<Integer, MessageExt> got = new TreeMap<>();
        long end = System.nanoTime() + 60_000_000_000L;
        while (got.size() < count && System.nanoTime() < end) {
            for (MessageExt m : once(target, topic, group, INVISIBLE)) {
                got.put(Sample.numberOf(m.getBody()), m);
            }
        }
        if (got.size() != count) {
            throw new AssertionError("popped " + got.size() + " of " + count);
        }
        List<String> receipts = new ArrayList<>();
        int acked = 0;
        for (Map.Entry<Integer, MessageExt> e : got.entrySet()) {
            String receipt = e.getValue().getProperty(MessageConst.PROPERTY_POP_CK);
            if (e.getKey() % 3 == 0) {
                ack(target, topic, group, receipt);
                acked++;
            } else if (e.getKey() % 5 == 0) {
                receipts.add(receipt);
            }
        }
        Files.write(Path.of(file), receipts);
        return "popped " + count + ", acknowledged " + acked;
    }

    /** What was not acknowledged comes; with exact, nothing else does, and nothing before its time. */
    static String popped(Target target, String topic, int count, String group, String file, boolean exact) throws Exception {
        List<String> receipts = Files.readAllLines(Path.of(file));
        TreeSet<Integer> missing = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            if (i % 3 != 0 && (!exact || i % 5 != 0)) {
                missing.add(i);
            }
        }
        if (exact) {
            for (String receipt : receipts) {
                ack(target, topic, group, receipt);
            }
        }
        TreeSet<Integer> unexpected = new TreeSet<>();
        int early = 0;
        int expected = missing.size();
        long end = System.nanoTime() + 180_000_000_000L;
        long last = 0; // one more look after the last one has come
        while (System.nanoTime() < end && (last == 0 || System.nanoTime() < last)) {
            for (MessageExt m : once(target, topic, group, 60_000)) {
                int number = Sample.numberOf(m.getBody());
                if (!missing.remove(number)) {
                    unexpected.add(number);
                }
                String first = m.getProperty(MessageConst.PROPERTY_FIRST_POP_TIME);
                if (first != null && System.currentTimeMillis() < Long.parseLong(first) + INVISIBLE) {
                    early++;
                }
                ack(target, topic, group, m.getProperty(MessageConst.PROPERTY_POP_CK));
            }
            if (missing.isEmpty() && last == 0) {
                last = System.nanoTime() + 5_000_000_000L;
            }
        }
        if (!missing.isEmpty() || exact && (!unexpected.isEmpty() || early > 0)) {
            throw new AssertionError("missing " + missing + ", not expected " + unexpected + ", early " + early);
        }
        return expected + " came again, " + unexpected.size() + " others";
    }

    private static List<MessageExt> once(Target target, String topic, String group, long invisible) throws Exception {
        PopMessageRequestHeader h = new PopMessageRequestHeader();
        h.setConsumerGroup(group);
        h.setTopic(topic);
        h.setQueueId(-1);
        h.setMaxMsgNums(32);
        h.setInvisibleTime(invisible);
        h.setPollTime(2_000);
        h.setBornTime(System.currentTimeMillis());
        h.setInitMode(0);
        CompletableFuture<List<MessageExt>> done = new CompletableFuture<>();
        target.admin().getMQClientAPIImpl().popMessageAsync("broker-a", target.broker, h, 15_000, new PopCallback() {
            @Override
            public void onSuccess(PopResult r) {
                done.complete(r.getMsgFoundList() == null ? List.of() : r.getMsgFoundList());
            }

            @Override
            public void onException(Throwable e) {
                done.completeExceptionally(e);
            }
        });
        return done.get(30, TimeUnit.SECONDS);
    }

    private static void ack(Target target, String topic, String group, String receipt) throws Exception {
        String[] parts = ExtraInfoUtil.split(receipt);
        AckMessageRequestHeader h = new AckMessageRequestHeader();
        h.setConsumerGroup(group);
        h.setTopic(ExtraInfoUtil.getRealTopic(parts, topic, group));
        h.setQueueId(ExtraInfoUtil.getQueueId(parts));
        h.setOffset(ExtraInfoUtil.getQueueOffset(parts));
        h.setExtraInfo(receipt);
        CompletableFuture<AckResult> done = new CompletableFuture<>();
        target.admin().getMQClientAPIImpl().ackMessageAsync(target.broker, 10_000, new AckCallback() {
            @Override
            public void onSuccess(AckResult r) {
                done.complete(r);
            }

            @Override
            public void onException(Throwable e) {
                done.completeExceptionally(e);
            }
        }, h);
        AckResult r = done.get(20, TimeUnit.SECONDS);
        if (r.getStatus() != AckStatus.OK) {
            throw new AssertionError("ack of " + receipt + ": " + r.getStatus());
        }
    }
}
