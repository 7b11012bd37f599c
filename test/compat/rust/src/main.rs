//! The official Rust client against a server: sends, its simple consumer, redelivery, order.
//! The environment names the gRPC address, topics that exist, and the number of messages of
//! the large case. Each case prints one line, PASS or FAIL.
use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::{Producer, SimpleConsumer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env;
use std::time::{Duration, Instant};

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

async fn send_all(topic: &str, count: usize, groups: usize) -> Result<(), String> {
    let mut o = ProducerOption::default();
    o.set_topics(vec![topic]);
    let mut p = Producer::new(o, client()).map_err(|e| e.to_string())?;
    p.start().await.map_err(|e| e.to_string())?;
    for n in 0..count {
        let mut body = format!("{}:", n).into_bytes();
        body.extend(tail());
        let mut b = MessageBuilder::builder()
            .set_topic(topic)
            .set_body(body)
            .set_tag(format!("tag{}", n % 3))
            .set_keys(vec![format!("key-{}", n)])
            .set_properties(HashMap::from([("text", TEXT)]));
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

/// What a receive finds; a queue without a message is no error.
async fn receive(c: &SimpleConsumer, topic: &str, batch: i32, invisible: u64) -> Result<Vec<MessageView>, String> {
    let all = FilterExpression::new(FilterType::Tag, "*");
    c.receive_with(topic, &all, batch, Duration::from_secs(invisible))
        .await
        .map_err(|e| e.to_string())
}

async fn simple(topic: String, count: usize) -> Result<String, String> {
    let c = consumer(&topic, &format!("rust-simple-{}", topic)).await?;
    send_all(&topic, count, 0).await?;
    let mut seen = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(120);
    while seen.len() < count && Instant::now() < end {
        for m in receive(&c, &topic, 32, 60).await? {
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
        for m in receive(&c, &topic, 1, 10).await? {
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

async fn fifo(topic: String, _: usize) -> Result<String, String> {
    let (each, groups) = (20, 5);
    let c = consumer(&topic, &format!("rust-fifo-{}", topic)).await?;
    send_all(&topic, each * groups, groups).await?;
    let mut got: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut left = each * groups;
    let end = Instant::now() + Duration::from_secs(120);
    while left > 0 && Instant::now() < end {
        for m in receive(&c, &topic, 4, 30).await? {
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

fn print(name: &str, began: Instant, result: Result<String, String>) {
    let (verdict, text) = match result {
        Ok(t) => ("PASS", t),
        Err(t) => ("FAIL", t.replace('\n', " ")),
    };
    println!("{} rust {} ({:.1} s): {}", verdict, name, began.elapsed().as_secs_f64(), text);
}

#[tokio::main]
async fn main() {
    let count: usize = env::var("COMPAT_COUNT").unwrap().parse().unwrap();
    let topic = |name: &str| env::var(format!("COMPAT_TOPIC_{}", name)).unwrap();
    let began = Instant::now();
    print("simple consumer", began, simple(topic("SIMPLE"), count).await);
    let began = Instant::now();
    print("redelivery", began, redelivery(topic("AGAIN"), count).await);
    let began = Instant::now();
    print("fifo, unprepared group", began, fifo(topic("FIFO"), count).await);
}
