package dev.bolide.compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Counts what comes out against what went in. */
final class Ledger {
    final int expected;
    private final BitSet seen;
    private final List<String> faults = new ArrayList<>();
    private final CountDownLatch complete = new CountDownLatch(1);
    private final AtomicInteger repeatedSends = new AtomicInteger();
    private int duplicates;

    Ledger(int expected) {
        this.expected = expected;
        this.seen = new BitSet(expected);
    }

    interface Send {
        void once() throws Exception;
    }

    /** Sends until it is stored. A refusal may have come after it was stored, so it is counted. */
    void sendUntilStored(int messages, Send send) throws Exception {
        Exception last = null;
        for (int i = 0; i < 20; i++) {
            try {
                send.once();
                return;
            } catch (Exception e) {
                last = e;
                repeatedSends.addAndGet(messages);
                Thread.sleep(100);
            }
        }
        throw last;
    }

    synchronized void received(byte[] body, String key, String tag, Map<String, String> properties) {
        int number = body.length < 4 ? -1 : Sample.numberOf(body);
        if (number < 0 || number >= expected) {
            faults.add("a message numbered " + number + " of " + expected);
            return;
        }
        Sample want = new Sample(number);
        if (!Arrays.equals(body, want.body)) {
            faults.add("message " + number + ": another body of " + body.length + " bytes, not " + want.body.length);
        }
        if (!want.key.equals(key) || !want.tag.equals(tag)) {
            faults.add("message " + number + ": key " + key + ", tag " + tag);
        }
        for (Map.Entry<String, String> e : want.properties.entrySet()) {
            if (!e.getValue().equals(properties.get(e.getKey()))) {
                faults.add("message " + number + ": property " + e.getKey() + " is " + properties.get(e.getKey()));
            }
        }
        if (seen.get(number)) {
            duplicates++;
        } else {
            seen.set(number);
            if (seen.cardinality() == expected) {
                complete.countDown();
            }
        }
    }

    boolean isComplete() {
        return complete.getCount() == 0;
    }

    void await(int seconds) throws InterruptedException {
        complete.await(seconds, TimeUnit.SECONDS);
    }

    /** Waits for the first so many different messages. */
    void awaitSeen(int messages, int seconds) throws InterruptedException {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (seen() < messages && System.nanoTime() < end) {
            Thread.sleep(10);
        }
    }

    private synchronized int seen() {
        return seen.cardinality();
    }

    /** Fails on losses, wrong messages, and duplicates that no repeated send explains. */
    synchronized String check() {
        int missing = expected - seen.cardinality();
        if (missing > 0) {
            faults.add(missing + " of " + expected + " messages lost, the first: " + seen.nextClearBit(0));
        }
        if (duplicates > repeatedSends.get()) {
            faults.add(duplicates + " duplicates with " + repeatedSends.get() + " repeated sends");
        }
        if (!faults.isEmpty()) {
            throw new AssertionError(faults.size() + " faults: " + faults.subList(0, Math.min(5, faults.size())));
        }
        return expected + " messages, " + duplicates + " duplicates, " + repeatedSends.get() + " repeated sends";
    }
}
