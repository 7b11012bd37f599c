//! The official Rust client against a server: sends, its simple consumer, and each kind of
//! message that it knows. The environment names the gRPC address, topics that exist, and the
//! number of messages of the large case. Each case prints one line, PASS or FAIL. Cases that
//! wait for real time run beside the others.
use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const TEXT: &str = "größe 消息 / \"quoted\" {a:1} = ; , 🚀";

fn tail() -> Vec<u8> {
    (0..=255u8).collect()
}

fn client() -> ClientOption {
    let mut o = ClientOption::default();
    o.set_access_url(env::var("COMPAT_GRPC").unwrap());
    o.set_enable_tls(false);
    o.set_timeout(Duration::from_secs(10));
    o.set_long_polling_timeout(Duration::from_secs(6));
    o
}

async fn consumer(topic: &str, group: &str) -> Result<SimpleConsumer, String> {
    let mut o = SimpleConsumerOption::default();
    o.set_topics(vec![topic]);
    o.set_consumer_group(group);
    let mut c = SimpleConsumer::new(o, client()).map_err(|e| e.to_string())?;
    c.start().await.map_err(|e| e.to_string())?;
    Ok(c)
}

fn producer_option(topic: &str) -> ProducerOption {
    let mut o = ProducerOption::default();
    o.set_topics(vec![topic]);
    o
}

async fn producer(topic: &str) -> Result<Producer, String> {
    let mut p = Producer::new(producer_option(topic), client()).map_err(|e| e.to_string())?;
    p.start().await.map_err(|e| e.to_string())?;
    Ok(p)
}

fn sample(topic: &str, n: usize) -> MessageBuilder {
    let mut body = format!("{}:", n).into_bytes();
    body.extend(tail());
    MessageBuilder::builder()
        .set_topic(topic)
        .set_body(body)
        .set_tag(format!("tag{}", n % 3))
        .set_keys(vec![format!("key-{}", n)])
        .set_properties(HashMap::from([("text", TEXT.to_string()), ("number", n.to_string())]))
}

async fn send_all(topic: &str, count: usize, groups: usize) -> Result<(), String> {
    let p = producer(topic).await?;
    for n in 0..count {
        let mut b = sample(topic, n);
        if groups > 0 {
            b = b.set_message_group(format!("g{}", n % groups));
        }
        let m = b.build().map_err(|e| e.to_string())?;
        p.send(m).await.map_err(|e| e.to_string())?;
    }
    p.shutdown().await.map_err(|e| e.to_string())
}

fn number(m: &MessageView) -> Result<usize, String> {
    let body = m.body();
    let at = body.iter().position(|b| *b == b':').ok_or("no number")?;
    let n: usize = String::from_utf8_lossy(&body[..at]).parse().map_err(|_| "no number")?;
    if body[at + 1..] != tail()[..]
        || m.properties().get("text").map(String::as_str) != Some(TEXT)
        || m.tag() != Some(format!("tag{}", n % 3).as_str())
        || m.keys() != [format!("key-{}", n)]
    {
        return Err(format!("message {} is not what was sent: {:?}", n, m.properties()));
    }
    Ok(n)
}

fn all() -> FilterExpression {
    FilterExpression::new(FilterType::Tag, "*")
}

/// What a receive finds; a queue without a message is no error. Apache's server answers a poll that
/// finds nothing when the deadline that this client has set is over.
async fn receive(c: &SimpleConsumer, topic: &str, filter: &FilterExpression, batch: i32, invisible: u64) -> Result<Vec<MessageView>, String> {
    match c.receive_with(topic, filter, batch, Duration::from_secs(invisible)).await {
        Err(e) if env::var("COMPAT_APACHE").is_ok() && e.to_string().contains("Cancelled") => Ok(vec![]),
        other => other.map_err(|e| e.to_string()),
    }
}

async fn simple(topic: String, count: usize) -> Result<String, String> {
    let c = consumer(&topic, &format!("rust-simple-{}", topic)).await?;
    send_all(&topic, count, 0).await?;
    let mut seen = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(120);
    while seen.len() < count && Instant::now() < end {
        for m in receive(&c, &topic, &all(), 32, 60).await? {
            if !seen.insert(number(&m)?) {
                return Err(format!("message {} came twice", number(&m)?));
            }
            c.ack(&m).await.map_err(|e| e.to_string())?;
        }
    }
    c.shutdown().await.map_err(|e| e.to_string())?;
    if seen.len() != count {
        return Err(format!("{} of {}", seen.len(), count));
    }
    Ok(format!("{} messages, nothing twice", count))
}

async fn redelivery(topic: String, _: usize) -> Result<String, String> {
    let c = consumer(&topic, &format!("rust-again-{}", topic)).await?;
    send_all(&topic, 1, 0).await?;
    let mut attempts = Vec::new();
    let mut first = Instant::now();
    let mut waited = 0.0;
    let end = Instant::now() + Duration::from_secs(60);
    while attempts.len() < 2 && Instant::now() < end {
        for m in receive(&c, &topic, &all(), 1, 10).await? {
            attempts.push(m.delivery_attempt());
            if attempts.len() == 2 {
                waited = first.elapsed().as_secs_f64();
                c.ack(&m).await.map_err(|e| e.to_string())?;
            }
            first = Instant::now();
        }
    }
    c.shutdown().await.map_err(|e| e.to_string())?;
    if attempts != [1, 2] || waited < 9.0 {
        return Err(format!("attempts {:?} after {:.1} s", attempts, waited));
    }
    Ok(format!("again after {:.1} s", waited))
}

/// What a member of a group has received goes to another one when it goes away, but what it has acknowledged.
async fn goes_away(topic: String, _: usize) -> Result<String, String> {
    let (count, group) = (20, format!("rust-away-{}", topic));
    send_all(&topic, count, 0).await?;
    let (mut acked, mut left) = (BTreeSet::new(), BTreeSet::new());
    let first = consumer(&topic, &group).await?;
    let end = Instant::now() + Duration::from_secs(60);
    while acked.len() + left.len() < 10 && Instant::now() < end {
        for m in receive(&first, &topic, &all(), 1, 10).await? {
            if acked.len() < 5 {
                first.ack(&m).await.map_err(|e| e.to_string())?;
                acked.insert(number(&m)?);
            } else {
                left.insert(number(&m)?);
            }
        }
    }
    first.shutdown().await.map_err(|e| e.to_string())?;
    let second = consumer(&topic, &group).await?;
    let rest = count - acked.len();
    let seen = receive_until(&second, &topic, &all(), 60, |seen| seen.len() >= rest, |n, m| {
        match (m.delivery_attempt() > 1) == left.contains(&n) {
            true => Ok(()),
            false => Err(format!("attempt {} of message {}, left were {:?}", m.delivery_attempt(), n, left)),
        }
    })
    .await?;
    second.shutdown().await.map_err(|e| e.to_string())?;
    if seen != each_once((0..count).filter(|n| !acked.contains(n))) || left.len() != 5 {
        return Err(format!("received {:?}; acknowledged were {:?}, left {:?}", seen, acked, left));
    }
    Ok(format!("{} came again to the other member", left.len()))
}

/// With one retry allowed, what was received twice and not acknowledged lies in the group's dead-letter
/// topic, as it was sent. The topic is made with the first one.
async fn dead_letter(topic: String, _: usize) -> Result<String, String> {
    let group = env::var("COMPAT_GROUP_DEAD").unwrap();
    let c = consumer(&topic, &group).await?;
    send_all(&topic, 1, 0).await?;
    let (mut attempts, mut last) = (Vec::new(), Instant::now());
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let messages = receive(&c, &topic, &all(), 1, 10).await?;
        if !messages.is_empty() {
            last = Instant::now();
        } else if attempts.len() == 2 && last.elapsed() > Duration::from_secs(12) {
            break; // the second one has lapsed, and what came to nothing was looking for it
        }
        attempts.extend(messages.iter().map(|m| m.delivery_attempt()));
    }
    c.shutdown().await.map_err(|e| e.to_string())?;
    if attempts != [1, 2] {
        return Err(format!("attempts {:?}", attempts));
    }
    let dead = format!("%DLQ%{}", group);
    let mut found = Err(String::new());
    while found != Ok(0) && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(500)).await;
        found = read_dead(&dead, &format!("rust-dead-{}", topic)).await;
    }
    match found {
        Ok(0) => Ok("twice, then a dead letter".to_string()),
        other => Err(format!("no dead letter: {:?}", other)),
    }
}

async fn read_dead(topic: &str, group: &str) -> Result<usize, String> {
    let c = consumer(topic, group).await?;
    let mut found = Err("nothing came".to_string());
    for m in receive(&c, topic, &all(), 1, 30).await? {
        c.ack(&m).await.map_err(|e| e.to_string())?;
        found = number(&m);
    }
    c.shutdown().await.map_err(|e| e.to_string())?;
    found
}

/// A topic takes messages of its own type alone. This client sends them all: it is the server that refuses.
async fn topic_types(_: String, _: usize) -> Result<String, String> {
    let mut refused = 0;
    for of in ["NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE"] {
        let topic = env::var(format!("COMPAT_TOPIC_OF_{}", of)).unwrap();
        let checker = |_: String, _: MessageView| TransactionResolution::COMMIT;
        let mut p = Producer::new_transaction_producer(producer_option(&topic), client(), Box::new(checker)).map_err(|e| e.to_string())?;
        p.start().await.map_err(|e| e.to_string())?;
        for kind in ["NORMAL", "FIFO", "DELAY", "TRANSACTION"] {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 + 1;
            let b = match kind {
                "FIFO" => sample(&topic, 0).set_message_group("g"),
                "DELAY" => sample(&topic, 0).set_delivery_timestamp(at),
                "TRANSACTION" => sample(&topic, 0).enable_transaction(),
                _ => sample(&topic, 0),
            };
            let m = b.build().map_err(|e| e.to_string())?;
            let sent = match kind {
                "TRANSACTION" => match p.send_transaction_message(m).await {
                    Ok(transaction) => transaction.commit().await,
                    Err(e) => Err(e),
                },
                _ => p.send(m).await.map(|_| ()),
            };
            if sent.is_ok() != (kind == of) {
                return Err(format!("a {} message to a {} topic: {:?}", kind, of, sent));
            }
            refused += sent.is_err() as usize;
        }
        p.shutdown().await.map_err(|e| e.to_string())?;
    }
    Ok(format!("{} of other kinds were refused", refused))
}

async fn fifo(topic: String, _: usize) -> Result<String, String> {
    let (each, groups) = (20, 5);
    let c = consumer(&topic, &format!("rust-fifo-{}", topic)).await?;
    send_all(&topic, each * groups, groups).await?;
    let mut got: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut left = each * groups;
    let end = Instant::now() + Duration::from_secs(120);
    while left > 0 && Instant::now() < end {
        for m in receive(&c, &topic, &all(), 4, 30).await? {
            got.entry(m.message_group().unwrap_or("").to_string()).or_default().push(number(&m)?);
            left -= 1;
            c.ack(&m).await.map_err(|e| e.to_string())?;
        }
    }
    c.shutdown().await.map_err(|e| e.to_string())?;
    for (name, numbers) in &got {
        if numbers.len() != each || numbers.windows(2).any(|w| w[0] >= w[1]) {
            return Err(format!("{}: {:?}", name, numbers));
        }
    }
    if left > 0 {
        return Err(format!("{} did not come", left));
    }
    Ok(format!("{} message groups of {} in order", groups, each))
}

/// Receives until there is enough and, after that, a poll finds nothing more.
async fn receive_until(
    c: &SimpleConsumer,
    topic: &str,
    filter: &FilterExpression,
    limit: u64,
    enough: impl Fn(&BTreeMap<usize, usize>) -> bool,
    check: impl Fn(usize, &MessageView) -> Result<(), String>,
) -> Result<BTreeMap<usize, usize>, String> {
    let mut seen = BTreeMap::new();
    let end = Instant::now() + Duration::from_secs(limit);
    while Instant::now() < end {
        let messages = receive(c, topic, filter, 16, 60).await?;
        if messages.is_empty() && enough(&seen) {
            break;
        }
        for m in messages {
            let n = number(&m)?;
            check(n, &m)?;
            *seen.entry(n).or_insert(0) += 1;
            c.ack(&m).await.map_err(|e| e.to_string())?;
        }
    }
    Ok(seen)
}

fn each_once(numbers: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    numbers.map(|n| (n, 1)).collect()
}

/// What is sent for a time comes then, and once. This client's times are whole seconds.
async fn timers(topic: String, _: usize) -> Result<String, String> {
    let count = 3;
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 9;
    let c = consumer(&topic, &format!("rust-timers-{}", topic)).await?;
    let p = producer(&topic).await?;
    for n in 0..count {
        let m = sample(&topic, n).set_delivery_timestamp((start + n as u64) as i64);
        p.send(m.build().map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
    }
    let seen = receive_until(&c, &topic, &all(), 60, |seen| seen.len() >= count, |n, m| {
        let due = UNIX_EPOCH + Duration::from_secs(start + n as u64);
        match SystemTime::now().duration_since(due) {
            Ok(late) if late < Duration::from_secs(15) && m.delivery_timestamp() == Some((start + n as u64) as i64) => Ok(()),
            late => Err(format!("message {} after {:?}, for {:?}", n, late, m.delivery_timestamp())),
        }
    })
    .await?;
    p.shutdown().await.map_err(|e| e.to_string())?;
    c.shutdown().await.map_err(|e| e.to_string())?;
    if seen != each_once(0..count) {
        return Err(format!("received {:?}", seen));
    }
    Ok(format!("{} in time", count))
}

/// By the number modulo 4 one is committed or rolled back at once, or when the server asks.
async fn transactions(topic: String, _: usize) -> Result<String, String> {
    let count = 16;
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let notes = asked.clone();
    let checker = move |_: String, m: MessageView| {
        let n = number(&m).unwrap_or(usize::MAX);
        notes.lock().unwrap().insert(n);
        match n % 4 {
            2 => TransactionResolution::COMMIT,
            _ => TransactionResolution::ROLLBACK,
        }
    };
    let c = consumer(&topic, &format!("rust-transactions-{}", topic)).await?;
    let mut p = Producer::new_transaction_producer(producer_option(&topic), client(), Box::new(checker)).map_err(|e| e.to_string())?;
    p.start().await.map_err(|e| e.to_string())?;
    for n in 0..count {
        let m = sample(&topic, n).enable_transaction().build().map_err(|e| e.to_string())?;
        let transaction = p.send_transaction_message(m).await.map_err(|e| e.to_string())?;
        match n % 4 {
            0 => transaction.commit().await.map_err(|e| e.to_string())?,
            1 => transaction.rollback().await.map_err(|e| e.to_string())?,
            _ => {}
        }
    }
    let open: BTreeSet<usize> = (0..count).filter(|n| n % 4 >= 2).collect();
    let enough = |seen: &BTreeMap<usize, usize>| seen.len() >= count / 2 && asked.lock().unwrap().is_superset(&open);
    let seen = receive_until(&c, &topic, &all(), 150, enough, |_, _| Ok(())).await?;
    p.shutdown().await.map_err(|e| e.to_string())?;
    c.shutdown().await.map_err(|e| e.to_string())?;
    let asked = asked.lock().unwrap();
    if seen != each_once((0..count).step_by(2)) || *asked != open {
        return Err(format!("received {:?}, asked about {:?}", seen, asked));
    }
    Ok(format!("received {} of {}, asked about {}", seen.len(), count, asked.len()))
}

/// Messages of one call are stored each for itself; a filter on properties finds them.
async fn batch_and_filter(topic: String, _: usize) -> Result<String, String> {
    let (size, batches) = (10, 6);
    let c = consumer(&topic, &format!("rust-batch-{}", topic)).await?;
    let p = producer(&topic).await?;
    for batch in 0..batches {
        let mut messages = Vec::new();
        for n in batch * size..(batch + 1) * size {
            messages.push(sample(&topic, n).build().map_err(|e| e.to_string())?);
        }
        p.batch_send(messages).await.map_err(|e| e.to_string())?;
    }
    let filter = FilterExpression::new(FilterType::Sql, "number BETWEEN 20 AND 39 AND TAGS <> 'tag0'");
    let want = each_once((20..40).filter(|n| n % 3 != 0));
    let seen = receive_until(&c, &topic, &filter, 60, |seen| seen.len() >= want.len(), |_, _| Ok(())).await?;
    p.shutdown().await.map_err(|e| e.to_string())?;
    c.shutdown().await.map_err(|e| e.to_string())?;
    if seen != want {
        return Err(format!("received {:?}", seen));
    }
    Ok(format!("{} of {} messages in {} batches", want.len(), size * batches, batches))
}

async fn run<F: Future<Output = Result<String, String>>>(name: &str, topic: &str, count: usize, case: impl FnOnce(String, usize) -> F) {
    if !name.contains(&env::var("COMPAT_ONLY").unwrap_or_default()) {
        return;
    }
    let began = Instant::now();
    let (verdict, text) = match case(env::var(format!("COMPAT_TOPIC_{}", topic)).unwrap(), count).await {
        Ok(t) => ("PASS", t),
        Err(t) => ("FAIL", t.replace('\n', " ")),
    };
    println!("{} rust {} ({:.1} s): {}", verdict, name, began.elapsed().as_secs_f64(), text);
}

#[tokio::main]
async fn main() {
    let count: usize = env::var("COMPAT_COUNT").unwrap().parse().unwrap();
    let others = async {
        run("simple consumer", "SIMPLE", count, simple).await;
        run("batch and sql92 filter", "BATCH", count, batch_and_filter).await;
        run("fifo, unprepared group", "FIFO", count, fifo).await;
    };
    tokio::join!(
        others,
        run("redelivery", "AGAIN", count, redelivery),
        run("timers", "DELAY", count, timers),
        run("transactions", "TRANSACTION", count, transactions),
        run("topic types", "OF_NORMAL", count, topic_types),
        run("dead letter", "DEAD", count, dead_letter),
        run("member goes away", "AWAY", count, goes_away),
    );
}
