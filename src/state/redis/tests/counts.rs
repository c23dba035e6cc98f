//! Counts that replicas share: the script does what the memory does, and no two replicas take more than there is.
use std::{cell::RefCell, sync::Arc, time::Duration};

use futures_util::future::join_all;
use proptest::prelude::*;

use super::{
    cluster::cluster,
    proxy::Proxy,
    replica::{eventually, key, replica, settings},
    server::RedisServer,
};
use crate::state::{
    Trouble,
    counters::{Ask, By, Counters, Micros, One, Refused, Taken, What, memory::Local},
    redis::{Redis, Settings},
};

mod places;

const SECOND: Micros = 1_000_000;
/// Long enough that what passes while a test runs is nothing.
const STEP: Micros = 1000 * SECOND;

fn ask(name: &str, what: What) -> Ask {
    Ask {
        key: key(name),
        rule: 0,
        stem: key("rule"),
        by: By::NOBODY,
        chosen: false,
        what,
    }
}

const fn rate(burst: u64) -> What {
    What::Rate {
        interval: STEP,
        tolerance: STEP * (burst - 1),
    }
}

const fn daily(limit: u64) -> What {
    What::Window {
        until: u64::MAX >> 12,
        limit,
        cost: 1,
    }
}

type Said = Result<Result<Taken, Refused>, Trouble>;

fn is_taken(said: &Said) -> bool {
    matches!(said, Ok(Ok(_)))
}

#[derive(Clone, Debug)]
enum Step {
    /// So many times 997 seconds: never just an interval.
    Pass(u64),
    Take(Vec<(u8, u64)>),
    Give,
    Charge(u8, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let wish = || (0..4_u8, 0..4_u64);
    prop_oneof![
        3 => (0..4_u64).prop_map(Step::Pass),
        8 => proptest::collection::vec(wish(), 1..4).prop_map(Step::Take),
        2 => Just(Step::Give),
        1 => wish().prop_map(|(kind, cost)| Step::Charge(kind, cost)),
    ]
}

/// A wish of this kind. Windows are of days that begin with the test.
fn wish(kind: u8, cost: u64, began: Micros, now: Micros) -> Ask {
    let day = 10 * STEP;
    match kind {
        0 => ask("rate", rate(3)),
        1 => {
            let until = began + ((now - began) / day + 1) * day;
            let limit = 5;
            ask("window", What::Window { until, limit, cost })
        }
        2 => {
            let (part, limit) = (STEP, 5);
            ask("rolling", What::Rolling { part, limit, cost })
        }
        _ => ask("at once", What::AtOnce { limit: 3 }),
    }
}

#[test]
fn the_script_counts_as_the_memory_does() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connection = RefCell::new(server.connection());
    let lasting = Settings {
        times: crate::state::slot::Times {
            lease: Some(Duration::from_hours(100_000)),
            ..settings().times
        },
        ..settings()
    };
    let store = runtime.block_on(replica(&server.url(), lasting));
    let time = || -> Micros {
        let (s, us): (u64, u64) = redis::cmd("TIME")
            .query(&mut *connection.borrow_mut())
            .unwrap();
        s * SECOND + us + store.shared.shift() * 1000
    };
    // A note says nothing of when it was left: this answer shows that those before it were read.
    let sync = || {
        let one = [ask("sync", daily(1_000_000))];
        runtime
            .block_on(store.take_counts(&one, 0))
            .unwrap()
            .unwrap();
    };
    proptest!(ProptestConfig::with_cases(60), |(steps in proptest::collection::vec(step(), 1..40))| {
        store.shared.held.lock().clear(); // else what the case before held is renewed
        sync();
        redis::cmd("FLUSHALL").exec(&mut *connection.borrow_mut()).unwrap();
        let memory = Local::new(1000, 1000);
        let began = time();
        let mut taken: Vec<(Taken, Taken, u64)> = vec![];
        for (token, step) in (1_u64..).zip(steps) {
            let now = time();
            match step {
                Step::Pass(times) => {
                    sync();
                    store.shift(Duration::from_secs(997) * u32::try_from(times).unwrap());
                }
                Step::Take(wishes) => {
                    let mut asks: Vec<Ask> = vec![];
                    for (kind, cost) in wishes {
                        let wish = wish(kind, cost, began, now);
                        if asks.iter().all(|a| a.key != wish.key) {
                            asks.push(wish);
                        }
                    }
                    let shared = runtime.block_on(store.take_counts(&asks, token)).unwrap();
                    match (memory.take(&asks, now), shared) {
                        (Ok(ours), Ok(theirs)) => {
                            prop_assert_eq!(ours.of.len(), theirs.of.len());
                            taken.push((ours, theirs, token));
                        }
                        (Err(ours), Err(theirs)) => {
                            prop_assert_eq!((ours.which, ours.left), (theirs.which, theirs.left));
                            prop_assert!(ours.wait.abs_diff(theirs.wait) < 2 * SECOND, "{:?} {:?}", ours, theirs);
                        }
                        (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
                    }
                }
                Step::Give => if let Some((ours, theirs, token)) = taken.pop() {
                    memory.give_back(&ours, now);
                    store.give_counts(&theirs, token);
                },
                Step::Charge(kind, cost) => if matches!(kind, 1 | 2) {
                    let wish = wish(kind, cost, began, now);
                    memory.charge(&One::of(&wish, wish.key, wish.by), wish.what, now);
                    store.charge_count(wish.key, wish.what);
                },
            }
        }
    });
}

async fn exact(a: &Redis, b: &Redis) {
    let asks = [
        ask("x", daily(100)),
        ask("y", rate(1000)),
        ask("z", daily(500)),
    ];
    let one = |n: u64| {
        let store = if n.is_multiple_of(2) { a } else { b };
        store.take_counts(&asks, n)
    };
    let said = join_all((0..640).map(one)).await;
    assert_eq!(said.iter().filter(|s| is_taken(s)).count(), 100);
    // What one refused, the others did not take.
    let both = [(key("y"), rate(1000)), (key("z"), daily(500))];
    let levels = a.look_at_counts(&both).await.unwrap();
    assert_eq!(levels[1].used, 100);
    let owed = levels[0].used.div_ceil(STEP);
    assert_eq!(owed, 100);
}

#[tokio::test]
async fn two_replicas_take_no_more_than_there_is() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    exact(&a, &b).await;
}

#[tokio::test]
async fn in_a_cluster_what_one_tag_refuses_the_others_give_back() {
    let (_server, url) = cluster();
    let a = replica(&url, settings()).await;
    let tag = |name: &str| key(name).0[0] % 64;
    assert!(
        tag("x") != tag("y") && tag("y") != tag("z"),
        "they are of several tags"
    );
    // One after another: side by side, a call that is refused may cost another one that comes just then.
    let asks = [
        ask("x", daily(100)),
        ask("y", rate(1000)),
        ask("z", daily(500)),
    ];
    let mut taken = 0;
    for n in 0..150 {
        taken += usize::from(is_taken(&a.take_counts(&asks, n).await));
    }
    assert_eq!(taken, 100);
    let both = [(key("y"), rate(1000)), (key("z"), daily(500))];
    let levels = a.look_at_counts(&both).await.unwrap();
    assert_eq!((levels[0].used.div_ceil(STEP), levels[1].used), (100, 100));
    // Many at once never get more than there is.
    let asks = [ask("x2", daily(100)), ask("y2", daily(1000))];
    let said = join_all((0..300).map(|n| a.take_counts(&asks, n))).await;
    assert_eq!(said.iter().filter(|s| is_taken(s)).count(), 100);
}

#[tokio::test]
async fn what_is_held_at_once_is_shared_and_lapses_with_its_gateway() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    let two = [ask("held", What::AtOnce { limit: 2 })];
    assert!(is_taken(&a.take_counts(&two, 1).await));
    assert!(is_taken(&b.take_counts(&two, 2).await));
    assert!(!is_taken(&b.take_counts(&two, 3).await));
    a.release_count(key("held"), 1);
    eventually(async || is_taken(&b.take_counts(&two, 4).await)).await;
    assert!(!is_taken(&a.take_counts(&two, 5).await));
    drop(b); // its leases are not renewed any more
    a.shift(Duration::from_secs(31));
    assert!(is_taken(&a.take_counts(&two, 6).await));
}

#[tokio::test]
async fn what_is_held_for_long_is_renewed() {
    let server = RedisServer::start();
    let short = || Settings {
        times: crate::state::slot::Times {
            lease: Some(Duration::from_secs(1)),
            settle: Duration::from_millis(100),
            max_hold: Duration::from_hours(1),
        },
        ..settings()
    };
    let a = replica(&server.url(), short()).await;
    let b = replica(&server.url(), short()).await;
    let one = [ask("held", What::AtOnce { limit: 1 })];
    assert!(is_taken(&a.take_counts(&one, 1).await));
    let mut connection = server.connection();
    let mut time = || -> u64 {
        let (s, us): (u64, u64) = redis::cmd("TIME").query(&mut connection).unwrap();
        s * SECOND + us
    };
    let until = time() + 3 * SECOND;
    eventually(async || {
        assert!(!is_taken(&b.take_counts(&one, 2).await));
        time() > until
    })
    .await;
    a.release_count(key("held"), 1);
    eventually(async || is_taken(&b.take_counts(&one, 2).await)).await;
}

#[tokio::test]
async fn who_gives_up_holds_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let late = Settings {
        timeout: Duration::from_secs(2),
        ..settings()
    };
    let a = replica(&proxy.url(), late).await;
    let one = [ask("held", What::AtOnce { limit: 1 })];
    for token in 1..20 {
        let gives_up = tokio::time::timeout(
            Duration::from_micros(token * 20),
            a.take_counts(&one, token),
        );
        if gives_up.await.is_ok_and(|said| is_taken(&said)) {
            a.release_count(key("held"), token);
        }
    }
    eventually(async || is_taken(&a.take_counts(&one, 99).await)).await;
    assert_eq!(a.shared.held.lock().len(), 1);
}

#[tokio::test]
async fn alone_each_goes_on_by_itself_and_tells_what_was_used() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let hasty = Settings {
        timeout: Duration::from_millis(300),
        ..settings()
    };
    let a = Arc::new(replica(&proxy.url(), hasty.clone()).await);
    let b = replica(&server.url(), settings()).await;
    let local = || Local::new(1000, 1000);
    let alone = Counters::shared(a.clone(), local(), local(), true);
    let refuses = Counters::shared(a.clone(), local(), local(), false);
    let three = [ask("quota", daily(3))];
    let taken = alone.take(&three, 1, STEP).await.unwrap().unwrap();
    assert!(!taken.alone);
    proxy.cut();
    eventually(async || refuses.take(&three, 2, STEP).await.is_err()).await;
    let mut went = vec![];
    for token in 10..20 {
        if let Ok(taken) = alone.take(&three, token, STEP).await.unwrap() {
            assert!(taken.alone);
            went.push(taken);
        }
    }
    assert_eq!(went.len(), 3, "by itself it has all that there is");
    alone.give_back(&went.pop().unwrap(), 12, STEP);
    proxy.mend();
    eventually(async || {
        refuses
            .take(&[ask("other", daily(1000))], 30, STEP)
            .await
            .is_ok()
    })
    .await;
    let used = || async { b.look_at_counts(&[(key("quota"), daily(3))]).await.unwrap()[0].used };
    eventually(async || used().await == 3).await;
}

#[tokio::test]
async fn chosen_keys_are_bounded_in_a_shared_store_as_well() {
    let server = RedisServer::start();
    let a = Arc::new(replica(&server.url(), settings()).await);
    let counters = Counters::shared(a, Local::new(1000, 10), Local::new(1000, 10), false);
    let mut admitted = 0;
    for n in 0..100 {
        let chosen = Ask {
            by: By::known(7),
            chosen: true,
            ..ask(&format!("chosen {n}"), daily(1))
        };
        admitted += usize::from(is_taken(&counters.take(&[chosen], n, STEP).await));
    }
    assert_eq!(admitted, 11);
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg("*}l:*")
        .query(&mut server.connection())
        .unwrap();
    assert_eq!(keys.len(), 11);
}

#[tokio::test]
async fn a_place_for_a_key_is_free_again_where_another_rule_refuses() {
    let server = RedisServer::start();
    let a = Arc::new(replica(&server.url(), settings()).await);
    let counters = Counters::shared(a, Local::new(1000, 10), Local::new(1000, 10), false);
    let made = |name: &str| Ask {
        by: By::known(7),
        chosen: true,
        ..ask(name, daily(1))
    };
    let spent = ask("spent", daily(1));
    let takes = async |asks: &[Ask], n| is_taken(&counters.take(asks, n, STEP).await);
    assert!(takes(&[spent], 1).await);
    for n in 0..100 {
        assert!(!takes(&[made(&format!("refused {n}")), spent], n).await);
    }
    let mut admitted = 0;
    for n in 0..20 {
        admitted += u64::from(takes(&[made(&format!("free {n}"))], n).await);
    }
    assert_eq!(admitted, 11, "its share, and its others together");
}

#[tokio::test]
async fn the_others_of_two_rules_are_two_counts_in_the_store() {
    let server = RedisServer::start();
    let a = Arc::new(replica(&server.url(), settings()).await);
    let counters = Counters::shared(a, Local::new(1000, 1), Local::new(1000, 1), false);
    let kinds = [
        rate(3),
        daily(3),
        What::Rolling {
            part: STEP,
            limit: 3,
            cost: 1,
        },
        What::AtOnce { limit: 3 },
    ];
    for n in 0..3 {
        for (rule, what) in (0..).zip(kinds) {
            let one = Ask {
                rule,
                stem: key(&format!("rule {rule}")),
                by: By::known(7),
                chosen: true,
                ..ask(&format!("{n} of {rule}"), what)
            };
            assert!(is_taken(&counters.take(&[one], n, STEP).await), "{what:?}");
        }
    }
}

#[tokio::test]
async fn what_time_gave_back_does_not_come_back_twice_in_the_store() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let two = [ask("rate", rate(2))];
    let early = a.take_counts(&two, 1).await.unwrap().unwrap();
    a.shift(Duration::from_mins(1000));
    assert!(is_taken(&a.take_counts(&two, 2).await));
    let last = a.take_counts(&two, 3).await.unwrap().unwrap();
    a.give_counts(&early, 1);
    assert!(!is_taken(&a.take_counts(&two, 4).await));
    // One that is not late comes back whole.
    a.give_counts(&last, 3);
    assert!(is_taken(&a.take_counts(&two, 5).await));
}

#[tokio::test]
async fn what_the_store_does_not_take_is_told_again() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    assert!(is_taken(
        &a.take_counts(&[ask("quota", daily(100))], 1).await
    ));
    let mut connection = server.connection();
    let mut is_full = |bytes: &str| {
        let all = ["SET", "maxmemory", bytes];
        redis::cmd("CONFIG")
            .arg(&all)
            .exec(&mut connection)
            .unwrap();
    };
    is_full("1");
    let What::Window { until, limit, .. } = daily(100) else {
        unreachable!("a day is a window")
    };
    let cost = 40;
    a.charge_count(key("quota"), What::Window { until, limit, cost });
    let mut other = server.connection();
    eventually(async || {
        let said: String = redis::cmd("INFO")
            .arg("errorstats")
            .query(&mut other)
            .unwrap();
        said.contains("errorstat_OOM")
    })
    .await;
    is_full("0");
    let used = || async {
        a.look_at_counts(&[(key("quota"), daily(100))])
            .await
            .unwrap()[0]
            .used
    };
    eventually(async || used().await == 41).await;
    assert_eq!(a.lost_counts(), 0);
}
