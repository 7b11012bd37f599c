package dev.bolide.compat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs all cases, or those whose names hold the argument; or commands, for suites that have several processes or
 * servers: "write TOPIC N", "write-evenly TOPIC N" (round the queues), "read TOPIC N" and "consume TOPIC N GROUP" send and
 * read a backlog; "member TOPIC SLOT" and "produce TOPIC RATE" are processes of the suite rebalance.
 *
 * <p>"together NAME COMMAND [then COMMAND]... [and NAME ...]..." runs the commands of several names side by side and says how
 * each name ended. For the exchange of stores between servers there are: "pop TOPIC N GROUP FILE", which leaves some of N
 * messages in flight, and "popped TOPIC N GROUP FILE EXACT", which waits for them; "halves TOPIC N", which leaves transactions
 * open, and "checks TOPIC N DECIDED", which decides some of them; "lites TOPIC N GROUP TURN", which does so with N messages of
 * each lite topic; "timers-send", "timers-await" and "timers-check TOPIC N FILE", which do so with timers.
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
            if (args[0].equals("together")) {
                System.exit(together(target, List.of(args).subList(1, args.length)) ? 0 : 1);
            }
            System.out.println(command(target, List.of(args)));
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
        small.put("grpc dead letters", DeadLetters::grpc);
        small.put("grpc member goes away", Grpc::goesAway);
        small.put("grpc async sends", Grpc::asyncSends);
        small.put("grpc topic types", TopicTypes::grpc);
        small.put("classic topic types", TopicTypes::classic);
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

    /** Runs what is between "and" and "and" side by side: a name, and its commands with "then" between them. */
    private static boolean together(Target target, List<String> args) throws Exception {
        ExecutorService beside = Executors.newCachedThreadPool();
        List<Future<Boolean>> all = new ArrayList<>();
        for (List<String> of : split(args, "and")) {
            List<List<String>> commands = split(of.subList(1, of.size()), "then");
            all.add(beside.submit(() -> run(of.get(0), t -> {
                List<String> results = new ArrayList<>();
                for (List<String> c : commands) {
                    results.add(command(t, c));
                }
                return String.join("; ", results);
            }, target)));
        }
        boolean ok = true;
        for (Future<Boolean> f : all) {
            ok &= f.get();
        }
        return ok;
    }

    private static List<List<String>> split(List<String> args, String separator) {
        List<List<String>> parts = new ArrayList<>();
        parts.add(new ArrayList<>());
        for (String arg : args) {
            if (arg.equals(separator)) {
                parts.add(new ArrayList<>());
            } else {
                parts.get(parts.size() - 1).add(arg);
            }
        }
        return parts;
    }

    private static String command(Target target, List<String> args) throws Exception {
        String topic = args.get(1);
        int count = Integer.parseInt(args.get(2));
        return switch (args.get(0)) {
            case "write" -> Backlog.write(target, topic, count);
            case "write-evenly" -> Backlog.writeEvenly(target, topic, count);
            case "read" -> Backlog.read(target, topic, count, Target.fresh("reader"));
            case "consume" -> Backlog.read(target, topic, count, args.get(3));
            case "pop" -> InFlight.pop(target, topic, count, args.get(3), args.get(4));
            case "popped" -> InFlight.popped(target, topic, count, args.get(3), args.get(4), Boolean.parseBoolean(args.get(5)));
            case "halves" -> Transactions.halves(target, topic, count);
            case "checks" -> Transactions.checks(target, topic, count, Integer.parseInt(args.get(3)));
            case "timers-send" -> Timers.send(target, topic, count, args.get(3));
            case "timers-await" -> Timers.await(args.get(3));
            case "timers-check" -> Timers.check(target, topic, count, args.get(3));
            case "lites" -> LiteStore.turn(target, topic, count, args.get(3), Integer.parseInt(args.get(4)));
            default -> throw new IllegalArgumentException(args.get(0));
        };
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
