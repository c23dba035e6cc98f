//! Messages that are sent again, to another replica.
use std::time::Duration;

use redis::Commands as _;

use super::{
    super::{
        Redis, Settings,
        script::{Saying, Told},
        sent::Sent,
    },
    proxy::Proxy,
    replica::{eventually, key, replica, settings},
    server::RedisServer,
};
use crate::state::{
    Trouble,
    retry::{Begun, Fate, Record},
    slot::Times,
};

const WINDOW: Duration = Duration::from_mins(10);

async fn two(server: &RedisServer) -> (Redis, Redis) {
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    (a, b)
}

fn says(token: u64, what: &str) -> Record {
    Record::new(token, key(what))
}

fn is(token: u64, fate: Fate, task: Option<&str>) -> Record {
    Record {
        fate,
        task: task.map(Into::into),
        ..says(token, "hi")
    }
}

/// Names of what is kept there.
fn kept(server: &RedisServer, message: &str) -> Vec<String> {
    let mut connection = server.connection();
    let mut names: Vec<_> = connection.hkeys(name(message)).unwrap();
    names.sort();
    names
}

fn name(message: &str) -> String {
    format!("{{a2a:00}}r:{}", key(message))
}

impl Redis {
    async fn begins(&self, message: &str, token: u64) -> Result<Begun, Trouble> {
        self.begin_retry(key(message), says(token, "hi")).await
    }

    async fn must_begin(&self, message: &str, token: u64) {
        assert_eq!(self.begins(message, token).await, Ok(Begun::New));
    }

    /// What became of a message that another replica knows.
    async fn knows(&self, message: &str) -> (Fate, Option<Box<str>>) {
        match self.begins(message, 999).await {
            Ok(Begun::Same(old)) => (old.fate, old.task),
            other => panic!("{message}: {other:?}"),
        }
    }

    async fn will_know(&self, message: &str, fate: Fate, task: Option<&str>) {
        eventually(async || self.knows(message).await == (fate, task.map(Into::into))).await;
    }
}

#[tokio::test]
async fn a_message_is_known_at_another_replica() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_begin("m", 1).await;
    for at in [&a, &b] {
        let found = at.begins("m", 2).await;
        assert_eq!(found, Ok(Begun::Same(says(1, "hi"))));
        let other = at.begin_retry(key("m"), says(2, "bye")).await;
        assert_eq!(other, Ok(Begun::Other));
    }
    assert_eq!(
        kept(&server, "m"),
        ["digest", "ends", "fate", "lease", "token"]
    );
    for (fate, task) in [
        (Fate::Running, Some("t")),
        (Fate::Rest, Some("t")),
        (Fate::Left, Some("t\u{e9}\n")),
        (Fate::Message, None),
        (Fate::Unknown, None),
    ] {
        a.retry_is(key("m"), is(1, fate, task));
        // Here at once, there as soon as the store knows.
        assert_eq!(a.knows("m").await, (fate, task.map(Into::into)));
        b.will_know("m", fate, task).await;
        let other = b.begin_retry(key("m"), says(2, "bye")).await;
        assert_eq!(other, Ok(Begun::Other));
    }
}

#[tokio::test]
async fn a_message_is_changed_and_forgotten_by_its_token_only() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    // The largest must not lose its last bits on the way.
    a.must_begin("m", u64::MAX).await;
    b.forget_retry(key("m"), u64::MAX - 1);
    b.retry_is(key("m"), is(u64::MAX - 1, Fate::Rest, Some("t")));
    b.must_begin("behind", 2).await;
    assert_eq!(b.knows("m").await.0, Fate::Running);
    a.forget_retry(key("m"), 3);
    assert_eq!(a.knows("m").await.0, Fate::Running);
    // Who sends it again here need not wait for the store.
    a.forget_retry(key("m"), u64::MAX);
    a.must_begin("m", 4).await;
    assert_eq!(b.knows("m").await.0, Fate::Running);
    a.forget_retry(key("m"), 4);
    eventually(async || b.begins("m", 5).await == Ok(Begun::New)).await;
    a.retry_is(key("m"), is(4, Fate::Rest, Some("t")));
    a.must_begin("behind too", 6).await;
    b.retry_is(key("m"), is(5, Fate::Left, Some("t5")));
    eventually(async || a.knows("m").await == (Fate::Left, Some("t5".into()))).await;
}

#[tokio::test]
async fn a_message_is_new_when_its_window_is_over() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_begin("m", 1).await;
    a.retry_is(key("m"), is(1, Fate::Rest, Some("t")));
    b.will_know("m", Fate::Rest, Some("t")).await;
    let mut connection = server.connection();
    let left: i64 = connection.pttl(name("m")).unwrap();
    let all = i64::try_from(WINDOW.as_millis()).unwrap();
    assert!((1..=all).contains(&left), "{left}");
    b.shift(Duration::from_secs(WINDOW.as_secs() - 20));
    assert_eq!(b.knows("m").await.0, Fate::Rest);
    b.shift(Duration::from_secs(20));
    b.must_begin("m", 2).await;
    assert_eq!(
        b.begin_retry(key("m"), says(3, "bye")).await,
        Ok(Begun::Other)
    );
}

#[tokio::test]
async fn one_that_runs_outlives_its_lease_and_its_window() {
    let server = RedisServer::start();
    let short = Settings {
        times: Times {
            lease: Some(Duration::from_millis(150)),
            ..settings().times
        },
        message_ttl: Duration::from_millis(100),
        ..settings()
    };
    let a = replica(&server.url(), short.clone()).await;
    let b = replica(&server.url(), short).await;
    a.must_begin("m", 1).await;
    let mut connection = server.connection();
    let mut lease = || -> u64 { connection.hget(name("m"), "lease").unwrap() };
    let past = lease() + 5 * 150;
    eventually(async || lease() > past).await;
    assert_eq!(b.knows("m").await, (Fate::Running, None));
    // Nobody says so any more once it has ended.
    a.retry_is(key("m"), is(1, Fate::Message, None));
    eventually(async || b.begins("m", 2).await == Ok(Begun::New)).await;
}

#[tokio::test]
async fn what_a_dead_gateway_sent_is_not_sent_again() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_begin("bare", 1).await;
    a.must_begin("tasked", 2).await;
    a.retry_is(key("tasked"), is(2, Fate::Running, Some("t")));
    b.will_know("tasked", Fate::Running, Some("t")).await;
    drop(a);
    b.shift(Duration::from_secs(29));
    assert_eq!(b.knows("bare").await, (Fate::Running, None));
    b.shift(Duration::from_secs(2));
    assert_eq!(b.knows("bare").await, (Fate::Unknown, None));
    assert_eq!(b.knows("tasked").await, (Fate::Left, Some("t".into())));
    b.shift(Duration::from_secs(WINDOW.as_secs() - 30));
    assert_eq!(b.knows("bare").await, (Fate::Unknown, None));
    b.shift(Duration::from_secs(31));
    b.must_begin("bare", 3).await;
}

#[tokio::test]
async fn without_the_store_nothing_is_begun() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&proxy.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    for (token, message) in [(1, "runs"), (2, "ends"), (3, "never sent")] {
        a.must_begin(message, token).await;
    }
    proxy.cut();
    eventually(async || a.begins("new", 4).await == Err(Trouble::Away)).await;
    assert_eq!(a.begins("runs", 5).await, Err(Trouble::Away));
    a.retry_is(key("ends"), is(2, Fate::Rest, Some("t")));
    a.forget_retry(key("never sent"), 3);
    proxy.mend();
    b.will_know("ends", Fate::Rest, Some("t")).await;
    eventually(async || b.begins("never sent", 6).await == Ok(Begun::New)).await;
    eventually(async || b.begins("new", 7).await == Ok(Begun::New)).await;
    assert_eq!(b.knows("runs").await.0, Fate::Running);
}

#[tokio::test]
async fn alone_it_knows_its_own_and_tells_afterwards() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let local = Settings {
        local: true,
        ..settings()
    };
    let a = replica(&proxy.url(), local).await;
    let b = replica(&server.url(), settings()).await;
    a.must_begin("before", 1).await;
    a.retry_is(key("before"), is(1, Fate::Rest, Some("t1")));
    b.will_know("before", Fate::Rest, Some("t1")).await;
    proxy.cut();
    eventually(async || a.begins("new", 2).await == Ok(Begun::New)).await;
    assert_eq!(a.knows("new").await, (Fate::Running, None));
    assert_eq!(a.knows("before").await, (Fate::Rest, Some("t1".into())));
    a.must_begin("ends", 3).await;
    a.retry_is(key("ends"), is(3, Fate::Left, Some("t3")));
    a.must_begin("never sent", 4).await;
    a.forget_retry(key("never sent"), 4);
    a.must_begin("never sent", 5).await;
    a.forget_retry(key("never sent"), 5);
    a.must_begin("theirs", 6).await;
    b.must_begin("theirs", 7).await;
    b.retry_is(key("theirs"), is(7, Fate::Rest, Some("t7")));
    a.must_begin("only theirs", 10).await;
    b.must_begin("only theirs", 11).await;
    a.forget_retry(key("only theirs"), 10);
    proxy.mend();
    eventually(async || !kept(&server, "ends").is_empty()).await;
    eventually(async || !kept(&server, "new").is_empty()).await;
    assert_eq!(b.knows("ends").await, (Fate::Left, Some("t3".into())));
    let found = b.begins("new", 8).await;
    assert_eq!(found, Ok(Begun::Same(says(2, "hi"))));
    // It was sent twice: whose record is in the store tells of it.
    eventually(async || a.knows("theirs").await == (Fate::Rest, Some("t7".into()))).await;
    b.must_begin("never sent", 9).await;
    assert_eq!(kept(&server, "only theirs").len(), 5);
}

#[tokio::test]
async fn a_store_that_lost_its_data_gets_messages_back_before_any_is_begun() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_begin("runs", 1).await;
    a.must_begin("ended", 2).await;
    a.retry_is(key("ended"), is(2, Fate::Rest, Some("t")));
    b.will_know("ended", Fate::Rest, Some("t")).await;
    redis::cmd("FLUSHALL")
        .exec(&mut server.connection())
        .unwrap();
    assert_eq!(b.begins("runs", 3).await, Err(Trouble::Quiet));
    eventually(async || kept(&server, "runs").len() == 5).await;
    eventually(async || kept(&server, "ended").len() == 6).await;
    b.shift(Duration::from_secs(5));
    assert_eq!(b.knows("runs").await.0, Fate::Running);
    assert_eq!(b.knows("ended").await, (Fate::Rest, Some("t".into())));
}

#[tokio::test]
async fn one_whose_answer_is_lost_is_forgotten() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let late = Settings {
        timeout: Duration::from_secs(2),
        ..settings()
    };
    let a = replica(&proxy.url(), late).await;
    let b = replica(&server.url(), settings()).await;
    a.must_begin("before", 1).await; // the store has the script
    proxy.swallow(true);
    let seen = eventually(async || !kept(&server, "m").is_empty());
    let (begun, ()) = tokio::join!(a.begins("m", 2), seen);
    assert_eq!(begun, Err(Trouble::Away));
    proxy.swallow(false);
    eventually(async || b.begins("m", 3).await == Ok(Begun::New)).await;
}

/// What writes waits from now on: scripts do.
fn pause(server: &RedisServer) {
    let pause = ["PAUSE", "60000", "WRITE"];
    let mut connection = server.connection();
    redis::cmd("CLIENT")
        .arg(&pause)
        .exec(&mut connection)
        .unwrap();
}

fn unpause(server: &RedisServer) {
    let mut connection = server.connection();
    redis::cmd("CLIENT")
        .arg("UNPAUSE")
        .exec(&mut connection)
        .unwrap();
}

#[tokio::test]
async fn what_the_store_was_not_told_yet_counts_here() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_begin("m", 1).await;
    pause(&server);
    a.retry_is(key("m"), is(1, Fate::Running, Some("t")));
    assert_eq!(a.knows("m").await, (Fate::Running, Some("t".into())));
    // What it is told first is on its way.
    a.forget_retry(key("m"), 1);
    let (begun, ()) = tokio::join!(a.begins("m", 2), async { unpause(&server) });
    assert_eq!(begun, Ok(Begun::New));
    let found = b.begins("m", 3).await;
    assert_eq!(found, Ok(Begun::Same(says(2, "hi"))));
    // Nor does the process end before.
    pause(&server);
    a.retry_is(key("m"), is(2, Fate::Message, None));
    let mut ends = Box::pin(a.close(Duration::from_secs(5)));
    let soon = Duration::from_millis(50);
    assert!(tokio::time::timeout(soon, &mut ends).await.is_err());
    unpause(&server);
    ends.await;
    assert_eq!(b.knows("m").await, (Fate::Message, None));
}

#[tokio::test]
async fn what_is_not_told_yet_is_told_before_the_process_ends() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    for n in 1..100 {
        a.must_begin(&n.to_string(), n).await;
        a.retry_is(key(&n.to_string()), is(n, Fate::Message, None));
    }
    a.must_begin("runs", 100).await;
    a.close(Duration::from_secs(5)).await;
    assert_eq!(a.begins("x", 101).await, Err(Trouble::Away));
    for n in 1..100 {
        assert_eq!(b.knows(&n.to_string()).await.0, Fate::Message);
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_that_ended_goes_and_what_runs_stays() {
    let mut sent = Sent::new(settings().times, WINDOW, 3);
    let k = |n: u64| key(&n.to_string());
    for n in 1..=2 {
        sent.add(k(n), says(n, "hi"));
    }
    for n in 3..=20 {
        sent.add(k(n), says(n, "hi"));
        sent.became(k(n), is(n, Fate::Rest, Some("t")));
        let (at, saying) = sent.next().unwrap();
        sent.told(at, &saying, Some(Told::Yes));
    }
    let known = |sent: &Sent| (1..=24).filter(|n| sent.get(k(*n)).is_some()).collect();
    let all: Vec<u64> = known(&sent);
    assert_eq!(all, [1, 2, 20]);
    // Not before the store was told, unless it is away; and no longer than its window.
    sent.became(k(20), is(20, Fate::Left, Some("t")));
    sent.add(k(21), says(21, "hi"));
    let (at, saying) = sent.next().unwrap();
    let tells = Saying::Tell(is(20, Fate::Left, Some("t")), WINDOW);
    assert_eq!((at, &saying), (k(20), &tells));
    assert!(!sent.is_settled());
    sent.add(k(22), says(22, "hi"));
    let all: Vec<u64> = known(&sent);
    assert_eq!(all, [1, 2, 20, 21, 22]);
    assert!(!sent.told(at, &saying, Some(Told::Yes)));
    assert!(sent.is_settled() && sent.next().is_none());
    tokio::time::advance(WINDOW).await;
    assert!(sent.get(k(20)).is_none());
    sent.forget(k(21), 21);
    sent.forget(k(22), 22);
    sent.wait();
    tokio::time::advance(WINDOW).await;
    sent.tick();
    // By then those that run say so.
    let renewals = [sent.next().unwrap().1, sent.next().unwrap().1];
    for token in [1, 2] {
        assert!(renewals.contains(&Saying::Tell(says(token, "hi"), WINDOW)));
    }
}

#[tokio::test]
async fn a_binding_lasts_from_its_last_use() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    let context = key("context");
    assert_eq!(a.bind(context, "one").await, Ok(None));
    let name = format!("{{a2a:00}}b:{context}");
    let mut connection = server.connection();
    let hour = 3_600_000;
    let mut left = || -> i64 { connection.pttl(&name).unwrap() };
    assert!((hour - 60_000..=hour).contains(&left()));
    let mut other = server.connection();
    let mut soon = || -> bool { other.pexpire(&name, 90_000).unwrap() };
    // Another agent's attempt is no use of it.
    assert!(soon());
    assert_eq!(b.bind(context, "two").await, Ok(Some("one".into())));
    assert!(left() <= 90_000);
    assert_eq!(b.bind(context, "one").await, Ok(None));
    assert!(left() > 90_000);
    // One that nobody waits for is a use like any other.
    assert!(soon());
    b.bind_later(context, "one");
    eventually(async || left() > 90_000).await;
}
