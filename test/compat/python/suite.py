"""The official Python client against a server: sends, both consumers, and each kind of message.

The environment names the gRPC address, topics and a group that exist, and the number of
messages of the large cases. Each case prints one line, PASS or FAIL. Cases that wait for
real time run beside the others.
"""
import collections
import contextlib
import os
import threading
import time
import traceback
import uuid

from rocketmq import (ClientConfiguration, ConsumeResult, Credentials, FilterExpression, LitePushConsumer,
                      LiteSimpleConsumer, Message, MessageListener, Producer, PushConsumer, SimpleConsumer,
                      TransactionChecker, TransactionResolution)
from rocketmq.grpc_protocol import FilterType
from rocketmq.v5.exception import IllegalArgumentException

GRPC = os.environ["COMPAT_GRPC"]
COUNT = int(os.environ["COMPAT_COUNT"])
APACHE = "COMPAT_APACHE" in os.environ
TEXT = "größe 消息 / \"quoted\" {a:1} = ; , 🚀"


def config():
    return ClientConfiguration(GRPC, Credentials())


def fresh(kind):
    return f"python-{kind}-{uuid.uuid4().hex[:8]}"


def sample(topic, n):
    m = Message()
    m.topic = topic
    m.body = f"{n}:".encode() + bytes(range(256))
    m.tag = f"tag{n % 3}"
    m.keys = f"key-{n}"
    m.add_property("text", TEXT)
    m.add_property("number", str(n))
    return m


@contextlib.contextmanager
def running(*clients):
    """Clients that run within the block: it gets the only one, or all."""
    with contextlib.ExitStack() as started:
        for c in clients:
            c.startup()
            started.callback(c.shutdown)
        yield clients[0] if len(clients) == 1 else clients


def producer_of(topic, **more):
    return Producer(config(), (topic,), **more)


def consumer_of(topic, group, expression=None, await_duration=5):
    return SimpleConsumer(config(), group, {topic: expression or FilterExpression()}, await_duration=await_duration)


def send_all(topic, numbers, group=None):
    with running(producer_of(topic)) as producer:
        for n in numbers:
            m = sample(topic, n)
            if group:
                m.message_group = group(n)
            producer.send(m)


def number(m):
    n, _, rest = m.body.partition(b":")
    if rest != bytes(range(256)) or m.properties.get("text") != TEXT or m.tag != f"tag{int(n) % 3}" or f"key-{int(n)}" not in m.keys:
        raise AssertionError(f"message {n} is not what was sent: tag {m.tag}, keys {m.keys}, properties {m.properties}")
    return int(n)


class Listener(MessageListener):
    def __init__(self, consume):
        self.lock = threading.Lock()
        self.of = consume

    def consume(self, message):
        with self.lock:
            return self.of(message)


def receive(consumer, count, invisible):
    """What a receive finds. Apache's server refuses receives until it has the settings, which this client does
    not wait for."""
    try:
        return consumer.receive(count, invisible) or []
    except Exception as e:
        if not APACHE or '"settings" is null' not in str(e):
            raise
        return []


def receive_until(consumer, limit, enough, received):
    """Receives and acknowledges until there is enough and, after that, a poll finds nothing more."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        messages = receive(consumer, 16, 60)
        for m in messages:
            received(m)
            consumer.ack(m)
        if not messages and enough():
            return


def receive_numbers(consumer, limit, enough):
    """How often each message came until there were enough different ones and nothing more."""
    seen = collections.Counter()
    receive_until(consumer, limit, lambda: len(seen) >= enough, lambda m: seen.update([number(m)]))
    return seen


def simple(topic):
    with running(consumer_of(topic, fresh("simple"))) as consumer:
        send_all(topic, range(COUNT))
        seen, duplicates, end = set(), 0, time.monotonic() + 120
        while time.monotonic() < end:
            messages = consumer.receive(32, 30)
            for m in messages or []:
                n = number(m)
                duplicates += n in seen
                seen.add(n)
                consumer.ack(m)
            if not messages and len(seen) == COUNT:
                break
        if len(seen) != COUNT or duplicates:
            raise AssertionError(f"{len(seen)} of {COUNT}, {duplicates} duplicates")
        return f"{COUNT} messages, nothing twice"


def redelivery(topic):
    with running(consumer_of(topic, fresh("again"))) as consumer:
        send_all(topic, [7])

        def one(limit):
            end = time.monotonic() + limit
            while time.monotonic() < end:
                try:
                    messages = consumer.receive(1, 10)
                except Exception as e:  # a machine that stalls past the client's own deadline
                    if "DEADLINE_EXCEEDED" not in repr(e):
                        raise
                    continue
                for m in messages or []:
                    return m
            raise AssertionError("nothing came")

        m = one(30)
        began = time.monotonic()
        consumer.change_invisible_duration(m, 12)
        again = one(40)
        waited = time.monotonic() - began
        if number(again) != 7 or again.delivery_attempt != 2 or not 11 < waited < 20:
            raise AssertionError(f"attempt {again.delivery_attempt} after {waited:.1f} s")
        consumer.ack(again)
        end = time.monotonic() + 15
        while time.monotonic() < end:
            if consumer.receive(1, 10):
                raise AssertionError("it came again after it was acknowledged")
        return f"again after {waited:.1f} s, attempt 2, and no more"


def push(topic):
    failed, seen, extra, done = set(), set(), [], threading.Event()

    def consume(m):
        n = number(m)
        if n % 10 == 0 and n not in failed:
            failed.add(n)
            return ConsumeResult.FAILURE
        if n in seen:
            extra.append(n)
        seen.add(n)
        if len(seen) == COUNT:
            done.set()
        return ConsumeResult.SUCCESS

    with running(PushConsumer(config(), fresh("push"), Listener(consume), {topic: FilterExpression()})):
        send_all(topic, range(COUNT))
        if not done.wait(150) or extra:
            raise AssertionError(f"{len(seen)} of {COUNT}, twice: {extra[:5]}")
        return f"{COUNT} messages, {len(failed)} of them after a failure"


def fifo(topic):
    """A group that nobody has prepared gets each message group in order, but of Apache's server."""
    each, groups = 20, 5
    got, done = {}, threading.Event()
    consumers = [consumer_of(topic, "python-fifo-" + topic, await_duration=3) for _ in range(3)]
    left = [each * groups]
    lock = threading.Lock()

    def run(c):
        while not done.is_set():
            for m in receive(c, 4, 30):
                n = number(m)
                with lock:
                    got.setdefault(m.message_group, []).append(n)
                    left[0] -= 1
                    if left[0] == 0:
                        done.set()
                c.ack(m)

    threads = [threading.Thread(target=run, args=(c,), daemon=True) for c in consumers]
    with running(*consumers), contextlib.ExitStack() as end:
        end.callback(done.set)
        send_all(topic, range(each * groups), group=lambda n: f"g{n % groups}")
        for t in threads:
            t.start()
        if not done.wait(90):
            raise AssertionError(f"{left[0]} did not come")
        for t in threads:
            t.join(20)
        for name, numbers in got.items():
            if numbers != sorted(numbers) and not APACHE or len(set(numbers)) != each:
                raise AssertionError(f"{name}: {numbers}")
        return f"{groups} message groups of {each} in order by 3 consumers"


def topic_types(_):
    """A topic takes messages of its own type alone."""
    kinds = {"NORMAL": {}, "FIFO": {"message_group": "g"}, "DELAY": {"delivery_timestamp": int(time.time()) + 1},
             "TRANSACTION": {}, "PRIORITY": {"priority": 1}, "LITE": {"lite_topic": "l"}}
    for of in kinds:
        topic = os.environ["COMPAT_TOPIC_OF_" + of]
        with running(producer_of(topic, checker=Checker())) as producer:
            for kind, fields in kinds.items():
                m = sample(topic, 0)
                for name, value in fields.items():
                    setattr(m, name, value)
                transaction = producer.begin_transaction() if kind == "TRANSACTION" else None
                try:
                    producer.send(m, transaction)
                except IllegalArgumentException as e:
                    if kind == of:
                        raise AssertionError(f"a {kind} message to a topic of that type: {e}")
                    continue
                if kind != of:
                    raise AssertionError(f"a {kind} message to a {of} topic was taken")
                if transaction:
                    transaction.commit()
    return f"each of {len(kinds)} types takes its own"


def dead_letters(topic):
    """With one retry allowed, what fails twice lies in the group's dead-letter topic, as it was sent. What has
    no message group the server moves there, what has one the client."""
    for at, name, message_group in (topic, "DEAD", None), (os.environ["COMPAT_TOPIC_DEAD_FIFO"], "DEAD_FIFO", lambda _: "one"):
        attempts, group = [], os.environ["COMPAT_GROUP_" + name]

        def consume(m):
            attempts.append(number(m))
            return ConsumeResult.FAILURE

        with running(PushConsumer(config(), group, Listener(consume), {at: FilterExpression()})):
            send_all(at, [7], message_group)
            dead = receive_dead(group)
        if attempts != [7, 7] or number(dead) != 7:
            raise AssertionError(f"{attempts}, then {number(dead)} as a dead letter")
    return "twice, then a dead letter, with and without a message group"


def receive_dead(group):
    """The dead letter of a group. Its topic is made with the first one."""
    with running(consumer_of("%DLQ%" + group, fresh("dead"))) as consumer:
        end, why = time.monotonic() + 90, None
        while time.monotonic() < end:
            try:
                for m in receive(consumer, 1, 30):
                    consumer.ack(m)
                    return m
            except Exception as e:  # no such topic yet
                why = e
                time.sleep(0.5)
        raise AssertionError(f"no dead letter: {why}")


def goes_away(topic):
    """What a member of a group has received goes to another one when it goes away, but what it has acknowledged."""
    count, group, left, acked, seen = 20, fresh("away"), set(), set(), collections.Counter()
    send_all(topic, range(count))
    with running(consumer_of(topic, group)) as member:
        end = time.monotonic() + 60
        while len(left) + len(acked) < 10 and time.monotonic() < end:
            for m in receive(member, 1, 10):
                if len(acked) < 5:
                    member.ack(m)
                    acked.add(number(m))
                else:
                    left.add(number(m))

    def received(m):
        seen[number(m)] += 1
        if (m.delivery_attempt > 1) != (number(m) in left):
            raise AssertionError(f"attempt {m.delivery_attempt} of message {number(m)}, left were {left}")

    with running(consumer_of(topic, group)) as member:
        receive_until(member, 60, lambda: len(seen) >= count - len(acked), received)
    if seen != {n: 1 for n in range(count) if n not in acked} or len(left) != 5:
        raise AssertionError(f"received {seen}; acknowledged were {acked}, left {left}")
    return f"{len(left)} came again to the other member"


def async_sends(topic):
    """Each asynchronous send is answered, and what was sent is there."""
    count = 100
    with running(producer_of(topic), consumer_of(topic, fresh("async"))) as (producer, consumer):
        receipts = [f.result(20) for f in [producer.send_async(sample(topic, n)) for n in range(count)]]
        seen = receive_numbers(consumer, 60, count)
        if seen != {n: 1 for n in range(count)} or len({r.message_id for r in receipts}) != count:
            raise AssertionError(f"received {seen}, answered with {receipts}")
        return f"{count} messages"


def priority(topic):
    """The most urgent message comes first."""
    sent, got = [3, 0, 7, 1, 6, 2, 5, 4, 900], []
    with running(producer_of(topic), consumer_of(topic, fresh("priority"))) as (producer, consumer):
        for n in sent:
            m = Message()
            m.topic, m.body, m.priority = topic, b"x", n
            producer.send(m)
        end = time.monotonic() + 60
        while len(got) < len(sent) and time.monotonic() < end:
            for m in receive(consumer, 1, 30):
                got.append(m.priority)
                consumer.ack(m)
        if got != [7, 900, 6, 5, 4, 3, 2, 1, 0]:
            raise AssertionError(f"received {got}")
        return f"received {got}"


def timers(topic):
    """What is sent for a time comes then, once, and what is taken back does not. This client's
    times of delivery are whole seconds."""
    count, back, lateness = 3, 3, 15
    due, seen, faults = {}, collections.Counter(), []
    with running(producer_of(topic), consumer_of(topic, fresh("timers"))) as (producer, consumer):
        start = int(time.time()) + 9
        for n in range(count + 1):
            m = sample(topic, n)
            m.delivery_timestamp = due[n] = start + n % count
            receipt = producer.send(m)
            if n == back and producer.recall_message(topic, receipt.recall_handle) != receipt.message_id:
                raise AssertionError("another message was taken back")

        def received(m):
            n, late = number(m), time.time() - due[number(m)]
            seen[n] += 1
            if not 0 <= late < lateness or m.delivery_timestamp != due[n] * 1000:
                faults.append(f"message {n} after {late:.3f} s, for {m.delivery_timestamp}")

        receive_until(consumer, 60, lambda: len(seen) >= count, received)
        if seen != {n: 1 for n in range(count)} or faults:
            raise AssertionError(f"received {seen}, {faults}")
        return f"{count} in time, one taken back"


class Checker(TransactionChecker):
    def __init__(self):
        self.asked = set()

    def check(self, message):
        n = number(message)
        self.asked.add(n)
        return TransactionResolution.COMMIT if n % 4 == 2 else TransactionResolution.ROLLBACK


def transactions(topic):
    """By the number modulo 4 one is committed or rolled back at once, or when the server asks."""
    count, seen, checker = 16, collections.Counter(), Checker()
    with running(producer_of(topic, checker=checker), consumer_of(topic, fresh("transactions"))) as (producer, consumer):
        for n in range(count):
            transaction = producer.begin_transaction()
            producer.send(sample(topic, n), transaction)
            if n % 4 == 0:
                transaction.commit()
            elif n % 4 == 1:
                transaction.rollback()
        open_ones = {n for n in range(count) if n % 4 >= 2}
        receive_until(consumer, 150, lambda: len(seen) >= count / 2 and checker.asked >= open_ones, lambda m: seen.update([number(m)]))
        if seen != {n: 1 for n in range(0, count, 2)} or checker.asked != open_ones:
            raise AssertionError(f"received {seen}, asked about {checker.asked}")
        return f"received {len(seen)} of {count}, asked about {len(checker.asked)}"


def sql92(topic):
    """A filter on properties."""
    count = 60
    expression = FilterExpression("number BETWEEN 20 AND 39 AND TAGS <> 'tag0'", FilterType.SQL)
    with running(consumer_of(topic, fresh("sql92"), expression)) as consumer:
        send_all(topic, range(count))
        want = {n: 1 for n in range(20, 40) if n % 3}
        seen = receive_numbers(consumer, 60, len(want))
        if seen != want:
            raise AssertionError(f"received {seen}")
        return f"{len(want)} of {count} messages"


def packed(topic):
    """Bodies in gzip and in zlib, which are there before, found by each kind of filter."""
    for kind, text in ((FilterType.TAG, "tag0 || tag1"), (FilterType.SQL, "number < 2 AND text IS NOT NULL")):
        with running(consumer_of(topic, fresh("packed"), FilterExpression(text, kind))) as consumer:
            seen = receive_numbers(consumer, 60, 2)
        if seen != {0: 1, 1: 1}:
            raise AssertionError(f"received {seen} by {text}")
    return "gzip and zlib, by tag and by SQL92"


EACH = 5


def send_lites(topic, lites):
    with running(producer_of(topic)) as producer:
        for n in range(EACH):
            for lite in lites + ("other",):
                m = sample(topic, n)
                m.lite_topic = lite
                producer.send(m)


def check_lites(got, lites):
    if got != {lite: list(range(EACH)) for lite in lites}:
        raise AssertionError(f"received {got}")
    return f"{EACH} messages of each of {len(lites)} lite topics, in order"


def lite_push(topic):
    """This client subscribes to each letter of the name at first, and to the name 30 s later."""
    lites, got, done = ("l0", "l1", "l2"), {}, threading.Event()

    def consume(m):
        got.setdefault(m.lite_topic, []).append(number(m))
        if sum(map(len, got.values())) == EACH * len(lites):
            done.set()
        return ConsumeResult.SUCCESS

    with running(LitePushConsumer(config(), os.environ["COMPAT_GROUP_LITE"], topic, Listener(consume))) as consumer:
        for lite in lites:
            consumer.subscribe_lite(lite)
        send_lites(topic, lites)
        done.wait(90)
        return check_lites(got, lites)


def lite_simple(topic):
    """Apache's server never sends such a consumer its settings. This client does not wait for them."""
    lites, got = ("a", "b", "c"), {}
    with running(LiteSimpleConsumer(topic, config(), os.environ["COMPAT_GROUP_LITE_SIMPLE"], await_duration=5)) as consumer:
        end = time.monotonic() + (5 if APACHE else 30)
        while True:
            try:
                consumer.subscribe_lite(lites[0])
                break
            except Exception as e:
                if "exceed quota: 0" not in str(e):
                    raise
                if time.monotonic() > end:
                    if APACHE:
                        return "no settings came"
                    raise
                time.sleep(0.05)
        for lite in lites[1:]:
            consumer.subscribe_lite(lite)
        send_lites(topic, lites)
        receive_until(consumer, 60, lambda: sum(map(len, got.values())) >= EACH * len(lites),
                      lambda m: got.setdefault(m.lite_topic, []).append(number(m)))
        return check_lites(got, lites)


def run(name, case, topic):
    began = time.monotonic()
    try:
        result, verdict = case(os.environ[topic]), "PASS"
    except BaseException as e:  # noqa: B902
        traceback.print_exc()
        result, verdict = " ".join(repr(e).split()), "FAIL"
    print(f"{verdict} python {name} ({time.monotonic() - began:.1f} s): {result}", flush=True)


def main():
    waiting = [("timers and recall", timers, "COMPAT_TOPIC_DELAY"), ("transactions", transactions, "COMPAT_TOPIC_TRANSACTION"),
               ("redelivery", redelivery, "COMPAT_TOPIC_AGAIN"), ("sql92 filter", sql92, "COMPAT_TOPIC_SQL92"),
               ("packed bodies", packed, "COMPAT_TOPIC_PACKED"), ("topic types", topic_types, "COMPAT_TOPIC_OF_NORMAL"),
               ("dead letters", dead_letters, "COMPAT_TOPIC_DEAD"), ("member goes away", goes_away, "COMPAT_TOPIC_AWAY"),
               ("async sends", async_sends, "COMPAT_TOPIC_ASYNC"),
               ("lite push consumer", lite_push, "COMPAT_TOPIC_LITE"), ("lite simple consumer", lite_simple, "COMPAT_TOPIC_LITE_SIMPLE")]
    others = [("simple consumer", simple, "COMPAT_TOPIC_SIMPLE"), ("push consumer", push, "COMPAT_TOPIC_PUSH"),
              ("fifo, unprepared group", fifo, "COMPAT_TOPIC_FIFO"), ("priority", priority, "COMPAT_TOPIC_PRIORITY")]
    chosen = [[c for c in cases if os.environ.get("COMPAT_ONLY", "") in c[0]] for cases in (waiting, others)]
    threads = [threading.Thread(target=run, args=c) for c in chosen[0]]
    for t in threads:
        t.start()
    for c in chosen[1]:
        run(*c)
    for t in threads:
        t.join()
    os._exit(0)


main()
