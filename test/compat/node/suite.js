'use strict';
// The official Node client against a server: sends, both consumers, and each kind of message.
// The environment names the gRPC address, topics and a group that exist, and the number of
// messages of the large cases. Each case prints one line, PASS or FAIL. Cases that wait for
// real time run beside the others.
const crypto = require('node:crypto');
const { Producer, SimpleConsumer, PushConsumer, LitePushConsumerBuilder, ConsumeResult, FilterExpression } = require('rocketmq-client-nodejs');
const { FilterType, TransactionResolution } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const endpoints = process.env.COMPAT_GRPC;
const apache = 'COMPAT_APACHE' in process.env;
const count = Number(process.env.COMPAT_COUNT);
const text = 'größe 消息 / "quoted" {a:1} = ; , 🚀';
const tail = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const silent = { info() {}, warn() {}, error() {}, debug() {}, trace() {} };
const namespace = '';

const fresh = (kind) => `node-${kind}-${crypto.randomUUID().slice(0, 8)}`;
const all = (topic) => new Map([[topic, FilterExpression.SUB_ALL]]);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

const numbersBelow = (n) => Array.from({ length: n }, (_, i) => i);

const sample = (topic, n) => ({
  topic,
  body: Buffer.concat([Buffer.from(`${n}:`), tail]),
  tag: `tag${n % 3}`,
  keys: [`key-${n}`],
  properties: new Map([['text', text], ['number', `${n}`]]),
});

async function sendAll(topic, numbers, group) {
  const producer = new Producer({ endpoints, namespace, logger: silent });
  await producer.startup();
  try {
    for (const n of numbers) {
      await producer.send({ ...sample(topic, n), messageGroup: group ? group(n) : undefined });
    }
  } finally {
    await producer.shutdown();
  }
}

function numberOf(m) {
  const at = m.body.indexOf(':');
  const n = Number(m.body.subarray(0, at).toString());
  if (!m.body.subarray(at + 1).equals(tail) || m.properties.get('text') !== text || m.tag !== `tag${n % 3}` || m.keys[0] !== `key-${n}`) {
    throw new Error(`message ${n} is not what was sent: tag ${m.tag}, keys ${m.keys}, properties ${[...m.properties]}`);
  }
  return n;
}

async function simple(topic) {
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('simple'), subscriptions: all(topic), awaitDuration: 5000 });
  await consumer.startup();
  try {
    await sendAll(topic, numbersBelow(count));
    const seen = new Set();
    let duplicates = 0;
    for (const end = Date.now() + 120_000; Date.now() < end;) {
      const messages = await consumer.receive(32, 30_000);
      for (const m of messages) {
        const n = numberOf(m);
        duplicates += seen.has(n) ? 1 : 0;
        seen.add(n);
        await consumer.ack(m);
      }
      if (messages.length === 0 && seen.size === count) break;
    }
    if (seen.size !== count || duplicates > 0) throw new Error(`${seen.size} of ${count}, ${duplicates} duplicates`);
    return `${count} messages, nothing twice`;
  } finally {
    await consumer.shutdown();
  }
}

async function redelivery(topic) {
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('again'), subscriptions: all(topic), awaitDuration: 5000 });
  await consumer.startup();
  try {
    await sendAll(topic, [7]);
    const one = async (ms) => {
      for (const end = Date.now() + ms; Date.now() < end;) {
        const [m] = await consumer.receive(1, 10_000);
        if (m) return m;
      }
      throw new Error('nothing came');
    };
    const m = await one(30_000);
    const began = Date.now();
    await consumer.changeInvisibleDuration(m, 12_000);
    const again = await one(40_000);
    const waited = (Date.now() - began) / 1000;
    if (numberOf(again) !== 7 || again.deliveryAttempt !== 2 || waited < 11 || waited > 20) {
      throw new Error(`attempt ${again.deliveryAttempt} after ${waited} s`);
    }
    await consumer.ack(again);
    for (const end = Date.now() + 15_000; Date.now() < end;) {
      if ((await consumer.receive(1, 10_000)).length > 0) throw new Error('it came again after it was acknowledged');
    }
    return `again after ${waited.toFixed(1)} s, attempt 2, and no more`;
  } finally {
    await consumer.shutdown();
  }
}

async function push(topic) {
  const failed = new Set();
  const seen = new Set();
  const twice = [];
  const consumer = new PushConsumer({
    endpoints, namespace, logger: silent, consumerGroup: fresh('push'), subscriptions: all(topic),
    messageListener: {
      consume(m) {
        const n = numberOf(m);
        if (n % 10 === 0 && !failed.has(n)) {
          failed.add(n);
          return ConsumeResult.FAILURE;
        }
        if (seen.has(n)) twice.push(n);
        seen.add(n);
        return ConsumeResult.SUCCESS;
      },
    },
  });
  await consumer.startup();
  try {
    await sendAll(topic, numbersBelow(count));
    for (const end = Date.now() + 150_000; seen.size < count && Date.now() < end;) await sleep(50);
    if (seen.size !== count || twice.length > 0) throw new Error(`${seen.size} of ${count}, twice: ${twice.slice(0, 5)}`);
    return `${count} messages, ${failed.size} of them after a failure`;
  } finally {
    await consumer.shutdown();
  }
}

// A group that nobody has prepared gets each message group in order, but of Apache's server.
async function fifo(topic) {
  const each = 20;
  const groups = 5;
  const got = new Map();
  let left = each * groups;
  const consumers = [];
  for (let i = 0; i < 3; i++) {
    const c = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: `node-fifo-${topic}`, subscriptions: all(topic), awaitDuration: 3000 });
    await c.startup();
    consumers.push(c);
  }
  try {
    await sendAll(topic, numbersBelow(each * groups), (n) => `g${n % groups}`);
    const end = Date.now() + 90_000;
    await Promise.all(consumers.map(async (c) => {
      while (left > 0 && Date.now() < end) {
        for (const m of await c.receive(4, 30_000)) {
          const list = got.get(m.messageGroup) || [];
          list.push(numberOf(m));
          got.set(m.messageGroup, list);
          left--;
          await c.ack(m);
        }
      }
    }));
    if (left !== 0) throw new Error(`${left} did not come`);
    for (const [name, numbers] of got) {
      const ordered = numbers.every((n, i) => i === 0 || n > numbers[i - 1]);
      if (new Set(numbers).size !== each || !(ordered || apache)) throw new Error(`${name}: ${numbers}`);
    }
    return `${groups} message groups of ${each} in order by 3 consumers`;
  } finally {
    await Promise.all(consumers.map((c) => c.shutdown()));
  }
}

// A topic takes messages of its own type alone.
async function topicTypes() {
  const kinds = { NORMAL: {}, FIFO: { messageGroup: 'g' }, DELAY: { deliveryTimestamp: new Date(Date.now() + 1000) }, TRANSACTION: {}, PRIORITY: { priority: 1 }, LITE: { liteTopic: 'l' } };
  const checker = { check: async () => TransactionResolution.COMMIT };
  for (const of of Object.keys(kinds)) {
    const topic = process.env[`COMPAT_TOPIC_OF_${of}`];
    const producer = new Producer({ endpoints, namespace, logger: silent, topic, checker });
    await producer.startup();
    try {
      for (const [kind, fields] of Object.entries(kinds)) {
        const transaction = kind === 'TRANSACTION' ? producer.beginTransaction() : undefined;
        let refused;
        try {
          await producer.send({ ...sample(topic, 0), ...fields }, transaction);
        } catch (e) {
          refused = e;
        }
        if ((refused === undefined) !== (kind === of)) throw new Error(`a ${kind} message to a ${of} topic: ${refused || 'taken'}`);
        if (transaction && !refused) await transaction.commit();
      }
    } finally {
      await producer.shutdown();
    }
  }
  return `each of ${Object.keys(kinds).length} types takes its own`;
}

// With one retry allowed, what fails twice lies in the group's dead-letter topic, as it was sent. What has no
// message group the server moves there, what has one the client: at once, when it knows no time for the next attempt.
async function deadLetters(topic) {
  await Promise.all([fails(topic, 'DEAD'), fails(process.env.COMPAT_TOPIC_DEAD_FIFO, 'DEAD_FIFO', () => 'one')]);
  return 'twice, then a dead letter, with and without a message group';
}

async function fails(topic, name, messageGroup) {
  const consumerGroup = process.env[`COMPAT_GROUP_${name}`];
  let attempts = 0;
  const consumer = new PushConsumer({
    endpoints, namespace, logger: silent, consumerGroup, subscriptions: all(topic),
    messageListener: {
      consume() {
        attempts++;
        return ConsumeResult.FAILURE;
      },
    },
  });
  await consumer.startup();
  try {
    await sendAll(topic, [7], messageGroup);
    const dead = await receiveDead(consumerGroup);
    if (attempts !== (apache && messageGroup ? 1 : 2) || numberOf(dead) !== 7) throw new Error(`${attempts} attempts, then ${numberOf(dead)} as a dead letter`);
  } finally {
    await consumer.shutdown();
  }
}

// The dead letter of a group. Its topic is made with the first one, and this client does not start without it.
async function receiveDead(group) {
  const end = Date.now() + 90_000;
  for (;;) {
    const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('dead'), subscriptions: all(`%DLQ%${group}`), awaitDuration: 5000 });
    try {
      await consumer.startup();
    } catch (e) {
      await consumer.shutdown();
      if (Date.now() > end) throw e;
      continue;
    }
    try {
      while (Date.now() < end) {
        for (const m of await consumer.receive(1, 30_000)) {
          await consumer.ack(m);
          return m;
        }
      }
      throw new Error('no dead letter');
    } finally {
      await consumer.shutdown();
    }
  }
}

// What a member of a group has received goes to another one when it goes away, but what it has acknowledged.
async function goesAway(topic) {
  const total = 20;
  const consumerGroup = fresh('away');
  const acked = new Set();
  const left = new Set();
  const seen = new Map();
  const member = async () => {
    const c = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup, subscriptions: all(topic), awaitDuration: 5000 });
    await c.startup();
    return c;
  };
  await sendAll(topic, numbersBelow(total));
  const first = await member();
  try {
    for (const end = Date.now() + 60_000; acked.size + left.size < 10 && Date.now() < end;) {
      for (const m of await first.receive(1, 10_000)) {
        if (acked.size < 5) {
          await first.ack(m);
          acked.add(numberOf(m));
        } else {
          left.add(numberOf(m));
        }
      }
    }
  } finally {
    await first.shutdown();
  }
  const second = await member();
  try {
    await receiveUntil(second, 60_000, () => seen.size >= total - acked.size, (m) => {
      const n = numberOf(m);
      countIn(seen, n);
      if ((m.deliveryAttempt > 1) !== left.has(n)) throw new Error(`attempt ${m.deliveryAttempt} of message ${n}, left were ${[...left]}`);
    });
  } finally {
    await second.shutdown();
  }
  const want = numbersBelow(total).filter((n) => !acked.has(n));
  if (want.some((n) => seen.get(n) !== 1) || seen.size !== want.length || left.size !== 5) {
    throw new Error(`received ${[...seen]}; acknowledged were ${[...acked]}, left ${[...left]}`);
  }
  return `${left.size} came again to the other member`;
}

// The most urgent message comes first. (This client sends no priority of 0.)
async function priority(topic) {
  const sent = [3, 1, 7, 6, 2, 5, 4, 900];
  const got = [];
  const producer = new Producer({ endpoints, namespace, logger: silent });
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('priority'), subscriptions: all(topic), awaitDuration: 5000 });
  await producer.startup();
  await consumer.startup();
  try {
    for (const n of sent) await producer.send({ topic, body: Buffer.from(`${n}`), priority: n });
    for (const end = Date.now() + 60_000; got.length < sent.length && Date.now() < end;) {
      for (const m of await consumer.receive(1, 30_000)) {
        got.push(`${m.body}`);
        await consumer.ack(m);
      }
    }
    if (`${got}` !== '7,900,6,5,4,3,2,1') throw new Error(`received ${got}`);
    return `received ${got}`;
  } finally {
    await producer.shutdown();
    await consumer.shutdown();
  }
}

// Receives until there is enough and, after that, a poll finds nothing more.
async function receiveUntil(consumer, ms, enough, received) {
  for (const end = Date.now() + ms; Date.now() < end;) {
    const messages = await consumer.receive(16, 60_000);
    for (const m of messages) {
      received(m);
      await consumer.ack(m);
    }
    if (messages.length === 0 && enough()) return;
  }
}

const countIn = (map, key) => map.set(key, (map.get(key) || 0) + 1);
const inOrder = (map) => JSON.stringify([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
const eachOnce = (numbers) => JSON.stringify(numbers.map((n) => [n, 1]));

// What is sent for a time comes then, once, and what is taken back does not.
async function timers(topic) {
  const kept = 3;
  const lateness = 15_000;
  const due = new Map();
  const seen = new Map();
  const faults = [];
  const producer = new Producer({ endpoints, namespace, logger: silent });
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('timers'), subscriptions: all(topic), awaitDuration: 5000 });
  await producer.startup();
  await consumer.startup();
  try {
    const start = Date.now() + 8000;
    for (const n of numbersBelow(kept + 1)) {
      due.set(n, start + (n % kept) * 700);
      const receipt = await producer.send({ ...sample(topic, n), deliveryTimestamp: new Date(due.get(n)) });
      if (n === kept && (await producer.recallMessage(topic, receipt.recallHandle)).messageId !== receipt.messageId) {
        throw new Error('another message was taken back');
      }
    }
    await receiveUntil(consumer, 60_000, () => seen.size >= kept, (m) => {
      const n = numberOf(m);
      const late = Date.now() - due.get(n);
      countIn(seen, n);
      if (late < 0 || late > lateness || m.deliveryTimestamp.getTime() !== due.get(n)) faults.push(`message ${n} after ${late} ms, for ${m.deliveryTimestamp}`);
    });
    if (inOrder(seen) !== eachOnce(numbersBelow(kept)) || faults.length > 0) throw new Error(`received ${inOrder(seen)}, ${faults}`);
    return `${kept} in time, one taken back`;
  } finally {
    await producer.shutdown();
    await consumer.shutdown();
  }
}

// By the number modulo 4 one is committed or rolled back at once, or when the server asks.
async function transactions(topic) {
  const n = 16;
  const seen = new Map();
  const asked = new Set();
  const checker = {
    async check(m) {
      asked.add(numberOf(m));
      return numberOf(m) % 4 === 2 ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
    },
  };
  const producer = new Producer({ endpoints, namespace, logger: silent, topic, checker });
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('transactions'), subscriptions: all(topic), awaitDuration: 5000 });
  await producer.startup();
  await consumer.startup();
  try {
    for (const i of numbersBelow(n)) {
      const transaction = producer.beginTransaction();
      await producer.send(sample(topic, i), transaction);
      if (i % 4 === 0) await transaction.commit();
      if (i % 4 === 1) await transaction.rollback();
    }
    const open = numbersBelow(n).filter((i) => i % 4 >= 2);
    await receiveUntil(consumer, 150_000, () => seen.size >= n / 2 && open.every((i) => asked.has(i)), (m) => countIn(seen, numberOf(m)));
    if (inOrder(seen) !== eachOnce(numbersBelow(n).filter((i) => i % 2 === 0)) || asked.size !== open.length) {
      throw new Error(`received ${inOrder(seen)}, asked about ${[...asked]}`);
    }
    return `received ${seen.size} of ${n}, asked about ${asked.size}`;
  } finally {
    await producer.shutdown();
    await consumer.shutdown();
  }
}

// A filter on properties.
async function sql92(topic) {
  const seen = new Map();
  const filter = new FilterExpression("number BETWEEN 20 AND 39 AND TAGS <> 'tag0'", FilterType.SQL);
  const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('sql92'), subscriptions: new Map([[topic, filter]]), awaitDuration: 5000 });
  await consumer.startup();
  try {
    await sendAll(topic, numbersBelow(60));
    const want = numbersBelow(60).filter((n) => n >= 20 && n < 40 && n % 3 !== 0);
    await receiveUntil(consumer, 60_000, () => seen.size >= want.length, (m) => countIn(seen, numberOf(m)));
    if (inOrder(seen) !== eachOnce(want)) throw new Error(`received ${inOrder(seen)}`);
    return `${want.length} of 60 messages`;
  } finally {
    await consumer.shutdown();
  }
}

// Bodies in gzip, which are there before, found by each kind of filter. (This client reads no zlib.)
async function packed(topic) {
  for (const filter of [new FilterExpression('tag0'), new FilterExpression('number = 0 AND text IS NOT NULL', FilterType.SQL)]) {
    const seen = new Map();
    const consumer = new SimpleConsumer({ endpoints, namespace, logger: silent, consumerGroup: fresh('packed'), subscriptions: new Map([[topic, filter]]), awaitDuration: 5000 });
    await consumer.startup();
    try {
      await receiveUntil(consumer, 60_000, () => seen.size >= 1, (m) => countIn(seen, numberOf(m)));
    } finally {
      await consumer.shutdown();
    }
    if (inOrder(seen) !== eachOnce([0])) throw new Error(`received ${inOrder(seen)} by ${filter}`);
  }
  return 'gzip, by tag and by SQL92';
}

// A lite push consumer gets the messages of the lite topics that it has subscribed to, in order.
async function litePush(topic) {
  const lites = ['l0', 'l1', 'l2'];
  const each = 5;
  const got = new Map();
  let left = lites.length * each;
  const consumer = await new LitePushConsumerBuilder()
    .setClientConfiguration({ endpoints, namespace, logger: silent })
    .setConsumerGroup(process.env.COMPAT_GROUP_LITE)
    .bindTopic(topic)
    .setMessageListener({
      consume(m) {
        got.set(m.liteTopic, [...(got.get(m.liteTopic) || []), numberOf(m)]);
        left--;
        return ConsumeResult.SUCCESS;
      },
    })
    .build();
  const producer = new Producer({ endpoints, namespace, logger: silent });
  await producer.startup();
  try {
    for (const lite of lites) await consumer.subscribeLite(lite);
    for (const n of numbersBelow(each)) {
      for (const liteTopic of [...lites, 'other']) await producer.send({ ...sample(topic, n), liteTopic });
    }
    for (const end = Date.now() + 60_000; left > 0 && Date.now() < end;) await sleep(50);
    if (inOrder(got) !== JSON.stringify(lites.map((lite) => [lite, numbersBelow(each)]))) throw new Error(`received ${inOrder(got)}`);
    return `${each} messages of each of ${lites.length} lite topics, in order`;
  } finally {
    await producer.shutdown();
    await consumer.close();
  }
}

async function run([name, test, topic]) {
  const began = Date.now();
  let verdict = 'PASS';
  let result;
  try {
    result = await test(process.env[topic]);
  } catch (e) {
    console.error(e);
    verdict = 'FAIL';
    result = String(e);
  }
  console.log(`${verdict} node ${name} (${((Date.now() - began) / 1000).toFixed(1)} s): ${result}`);
}

async function main() {
  const chosen = ([name]) => name.includes(process.env.COMPAT_ONLY || '');
  const waiting = [['timers and recall', timers, 'COMPAT_TOPIC_DELAY'], ['transactions', transactions, 'COMPAT_TOPIC_TRANSACTION'],
    ['redelivery', redelivery, 'COMPAT_TOPIC_AGAIN'], ['sql92 filter', sql92, 'COMPAT_TOPIC_SQL92'],
    ['packed bodies', packed, 'COMPAT_TOPIC_PACKED'], ['lite push consumer', litePush, 'COMPAT_TOPIC_LITE'],
    ['topic types', topicTypes, 'COMPAT_TOPIC_OF_NORMAL'], ['dead letters', deadLetters, 'COMPAT_TOPIC_DEAD'],
    ['member goes away', goesAway, 'COMPAT_TOPIC_AWAY']];
  const others = [['simple consumer', simple, 'COMPAT_TOPIC_SIMPLE'], ['push consumer', push, 'COMPAT_TOPIC_PUSH'],
    ['fifo, unprepared group', fifo, 'COMPAT_TOPIC_FIFO'], ['priority', priority, 'COMPAT_TOPIC_PRIORITY']];
  const beside = waiting.filter(chosen).map(run);
  for (const c of others.filter(chosen)) await run(c);
  await Promise.all(beside);
  process.exit(0);
}

main();
