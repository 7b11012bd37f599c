package dev.bolide.compat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs all cases, or those whose names hold the argument. "write TOPIC N" and "read TOPIC N"
 * send and read a backlog instead, for the exchange of stores between servers;
 * "pop TOPIC N GROUP FILE" leaves some of N messages in flight, "popped TOPIC N GROUP FILE EXACT"
 * waits for them; "halves TOPIC N" leaves transactions open, "checks TOPIC N DECIDED" decides some of them;
 * "lites TOPIC N GROUP TURN" does so with N messages of each lite topic;
 * "timers-send", "timers-await" and "timers-check TOPIC N FILE" do so with timers;
 * "member TOPIC SLOT" and "produce TOPIC RATE" are processes of the suite rebalance;
 * "write-evenly TOPIC N" goes round the queues, "consume TOPIC N GROUP" reads for a named group.
 */
public final class Suite {
    interface Case {
        String run(Target target) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Target target = new Target();
        if (args.length == 3 && (args[0].equals("member") || args[0].equals("produce"))) {
            if (args[0].equals("member")) {
                Rebalance.member(target, args[1], Integer.parseInt(args[2]));
            } else {
                Rebalance.produce(target, args[1], Integer.parseInt(args[2]));
            }
            System.exit(0);
        }
        if (args.length >= 3) {
            Thread.setDefaultUncaughtExceptionHandler((thread, e) -> { // clients have threads of their own
                e.printStackTrace();
                System.exit(1);
            });
            int count = Integer.parseInt(args[2]);
            System.out.println(switch (args[0]) {
                case "write" -> Backlog.write(target, args[1], count);
                case "write-evenly" -> Backlog.writeEvenly(target, args[1], count);
                case "read" -> Backlog.read(target, args[1], count, Target.fresh("reader"));
                case "pop" -> InFlight.pop(target, args[1], count, args[3], args[4]);
                case "popped" -> InFlight.popped(target, args[1], count, args[3], args[4], Boolean.parseBoolean(args[5]));
                case "halves" -> Transactions.halves(target, args[1], count);
                case "checks" -> Transactions.checks(target, args[1], count, Integer.parseInt(args[3]));
                case "timers-send" -> Timers.send(target, args[1], count, args[3]);
                case "timers-await" -> Timers.await(args[3]);
                case "timers-check" -> Timers.check(target, args[1], count, args[3]);
                case "lites" -> LiteStore.turn(target, args[1], count, args[3], Integer.parseInt(args[4]));
                case "consume" -> Backlog.read(target, args[1], count, args[3]);
                default -> throw new IllegalArgumentException(args[0]);
            });
            System.exit(0);
        }
        // The large cases run one after the other; those that wait for real time run beside them.
        Map<String, Case> large = new LinkedHashMap<>();
        large.put("classic push consumer", Classic::push);
        large.put("classic lite pull consumer", Classic::litePull);
        large.put("classic POP consumer", Pop::push);
        large.put("grpc simple consumer", Grpc::simple);
        large.put("grpc push consumer", Grpc::push);
        Map<String, Case> small = new LinkedHashMap<>();
        small.put("classic orderly consumer", Classic::orderly);
        small.put("classic retry", Classic::retry);
        small.put("classic dead letter", Classic::deadLetter);
        small.put("classic broadcasting", Classic::broadcasting);
        small.put("classic one-way and async sends", Classic::sends);
        small.put("classic POP retry", Pop::retry);
        small.put("classic POP shared queues", Pop::shared);
        small.put("classic pull, POP, pull", Pop::switching);
        small.put("classic SQL92 filter", Filters::classic);
        small.put("grpc SQL92 filter", Filters::grpc);
        small.put("grpc redelivery", Grpc::redelivery);
        small.put("grpc fifo", Grpc::fifo);
        small.put("grpc lite push consumer", Lite::push);
        small.put("classic transactions", Transactions::classic);
        small.put("grpc transactions", Transactions::grpc);
        small.put("grpc timers and recall", Timers::grpc);
        small.put("classic timers and recall", Timers::classic);
        small.put("classic delay levels", Timers::levels);
        small.put("grpc priority", Priority::grpc);
        small.put("classic priority", Priority::classic);
        small.put("classic request and reply", RequestReply::run);
        small.put("classic batch", Batch::run);
        small.put("classic trace", Trace::run);
        small.put("compressed bodies", Compressed::run);

        String only = args.length > 0 ? args[0] : "";
        int passed = 0;
        int failed = 0;
        ExecutorService beside = Executors.newCachedThreadPool();
        List<Future<Boolean>> waiting = new ArrayList<>();
        for (Map.Entry<String, Case> c : small.entrySet()) {
            if (c.getKey().contains(only)) {
                waiting.add(beside.submit(() -> run(c.getKey(), c.getValue(), target)));
            }
        }
        for (Map.Entry<String, Case> c : large.entrySet()) {
            if (c.getKey().contains(only)) {
                if (run(c.getKey(), c.getValue(), target)) {
                    passed++;
                } else {
                    failed++;
                }
            }
        }
        for (Future<Boolean> f : waiting) {
            if (f.get()) {
                passed++;
            } else {
                failed++;
            }
        }
        target.close();
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 && passed > 0 ? 0 : 1);
    }

    private static boolean run(String name, Case c, Target target) {
        long began = System.nanoTime();
        String result;
        boolean ok = true;
        try {
            result = c.run(target);
        } catch (Throwable e) {
            ok = false;
            result = e.toString();
            e.printStackTrace();
        }
        System.out.printf("%s java %s (%.1f s): %s%n", ok ? "PASS" : "FAIL", name,
            (System.nanoTime() - began) / 1e9, result);
        return ok;
    }
}
