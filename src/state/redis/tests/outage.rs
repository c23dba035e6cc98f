//! A store that is away, late, or lost its data.
use std::{pin::pin, time::Duration};

use futures_util::FutureExt as _;

use super::{
    proxy::Proxy,
    replica::{eventually, key, replica, settings, who},
    server::RedisServer,
};
use crate::state::{
    Take, Trouble,
    redis::{Address, Redis, Settings},
    slot::{End, Phase},
};

fn local() -> Settings {
    Settings {
        local: true,
        ..settings()
    }
}

/// Short deadlines, so that a store that says nothing is away soon.
fn hasty(of: Settings) -> Settings {
    Settings {
        timeout: Duration::from_millis(300),
        settle_timeout: Duration::from_millis(50),
        ..of
    }
}

#[tokio::test]
async fn a_take_whose_answer_is_lost_is_settled() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let late = Settings {
        timeout: Duration::from_secs(2),
        ..local()
    };
    let a = replica(&proxy.url(), late).await;
    let b = replica(&server.url(), settings()).await;
    proxy.swallow(true);
    // The store has it, and nobody knows.
    let seen = eventually(async || b.phases("c").await == [(1, Phase::InFlight)]);
    let (take, ()) = tokio::join!(a.takes("c", 1), seen);
    assert_eq!(take, Err(Trouble::Away));
    proxy.swallow(false);
    eventually(async || b.entry("c").await.is_free()).await;
}

#[tokio::test]
async fn a_take_that_is_dropped_with_its_answer_is_settled() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    {
        let mut take = pin!(a.takes("c", 1));
        assert_eq!(take.as_mut().now_or_never(), None);
        eventually(async || b.phases("c").await == [(1, Phase::InFlight)]).await;
        // What comes after it has an answer, so that its own has been told, too: to one who leaves without hearing it.
        assert_eq!(a.finds("c").await.token, 1);
    }
    eventually(async || b.entry("c").await.is_free()).await;
}

#[tokio::test]
async fn what_was_not_settled_in_time_is_settled_later() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&proxy.url(), hasty(settings())).await;
    let b = replica(&server.url(), settings()).await;
    for n in 1..4 {
        a.must_take(&n.to_string(), n).await;
    }
    proxy.cut();
    assert!(!a.settles("1", 1, End::Free).await);
    assert!(!a.settles("2", 2, End::Held(Some("t".into()))).await);
    assert!(!a.settles("3", 3, End::Unknown).await);
    proxy.mend();
    eventually(async || b.entry("1").await.is_free()).await;
    eventually(async || b.phases("2").await == [(2, Phase::Held)]).await;
    eventually(async || b.phases("3").await == [(3, Phase::Unknown)]).await;
}

#[tokio::test]
async fn without_the_store_messages_are_refused() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&proxy.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    a.must_take("mine", 1).await;
    proxy.cut();
    eventually(async || a.takes("c", 2).await == Err(Trouble::Away)).await;
    assert_eq!(a.bind(key("c"), "agent").await, Err(Trouble::Away));
    assert!(a.list(1).await.is_err());
    assert!(a.look(key("mine")).await.is_none());
    // Its message is out: it is told when that is possible.
    a.join(key("late"), &who(3, None));
    proxy.mend();
    eventually(async || b.phases("late").await == [(3, Phase::InFlight)]).await;
    eventually(async || a.takes("c", 4).await.is_ok()).await;
    assert_eq!(a.phases("mine").await, [(1, Phase::InFlight)]);
}

#[tokio::test]
async fn a_store_that_says_nothing_is_away_after_three_times() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&proxy.url(), hasty(local())).await;
    proxy.swallow(true);
    let mut refused = 0;
    while a.takes("c", 1 + refused).await == Err(Trouble::Away) {
        refused += 1;
    }
    assert!(refused <= 4, "{refused}");
    assert!(matches!(a.takes("c", 99).await, Ok(Take::Busy(..))));
}

#[tokio::test]
async fn alone_it_goes_on_and_tells_afterwards() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&proxy.url(), local()).await;
    let b = replica(&server.url(), settings()).await;
    for (n, name) in [(1, "runs"), (2, "ends"), (3, "leaves")] {
        a.must_take(name, n).await;
    }
    a.must_take("held", 4).await;
    assert!(a.settles("held", 4, End::Held(Some("t".into()))).await);
    proxy.cut();
    eventually(async || matches!(a.takes("new", 5).await, Ok(Take::Taken(None)))).await;

    // What it held before it still holds, and by the same rules.
    assert_eq!(a.finds("runs").await.token, 1);
    assert!(a.settles("ends", 2, End::Free).await);
    a.must_take("ends", 6).await;
    assert!(a.settles("ends", 6, End::Unknown).await);
    assert!(a.settles("leaves", 3, End::Held(Some("t3".into()))).await);
    let held = a.finds("held").await;
    assert_eq!((held.phase, held.task.as_deref()), (Phase::Held, Some("t")));
    a.must_take_over("held", held.mark(), 7).await;
    a.must_take("brief", 8).await;
    assert!(a.settles("brief", 8, End::Free).await);
    a.must_take("theirs", 9).await;
    b.must_take("theirs", 10).await;
    assert_eq!(a.list(100).await.unwrap().len(), 6);
    assert_eq!(a.bind(key("context"), "one").await, Ok(None));
    assert_eq!(a.bind(key("context"), "two").await, Ok(Some("one".into())));

    proxy.mend();
    let told = async || {
        b.phases("new").await == [(5, Phase::InFlight)]
            && b.phases("ends").await == [(6, Phase::Unknown)]
            && b.phases("held").await == [(7, Phase::InFlight)]
            && b.phases("leaves").await == [(3, Phase::Held)]
    };
    eventually(told).await;
    assert_eq!(b.phases("runs").await, [(1, Phase::InFlight)]);
    assert!(b.entry("brief").await.is_free());
    assert_eq!(b.finds("leaves").await.task.as_deref(), Some("t3"));
    // Both run: neither is forgotten, and each comes to rest by itself.
    let both = [(10, Phase::InFlight), (9, Phase::InFlight)];
    assert_eq!(b.phases("theirs").await, both);
    assert!(a.settles("theirs", 9, End::Free).await);
    assert_eq!(b.phases("theirs").await, [(10, Phase::InFlight)]);
    assert_eq!(b.bind(key("context"), "two").await, Ok(Some("one".into())));
    assert!(a.settles("new", 5, End::Free).await);
    b.must_take("new", 11).await;
}

#[tokio::test]
async fn a_store_that_starts_anew_gets_slots_back_and_admits_nobody_first() {
    let mut server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    a.must_take("runs", 1).await;
    a.must_take("held", 2).await;
    assert!(a.settles("held", 2, End::Held(Some("t".into()))).await);
    let seen = a.finds("held").await.mark();
    a.must_take("done", 3).await;
    assert!(a.settles("done", 3, End::Free).await);
    server.end();
    server.begin();
    // A newcomer is there before anything was put back.
    let address = Address::parse(&server.url()).unwrap();
    let b = Redis::start_at(address, settings(), 10_000).unwrap();
    assert_eq!(b.takes("runs", 4).await, Err(Trouble::Quiet));
    eventually(async || b.phases("runs").await == [(1, Phase::InFlight)]).await;
    eventually(async || b.phases("held").await == [(2, Phase::Held)]).await;
    assert!(b.entry("done").await.is_free());
    assert_eq!(b.takes("done", 5).await, Err(Trouble::Quiet));
    b.shift(Duration::from_secs(5));
    b.must_take("done", 5).await;
    assert_eq!(b.finds("runs").await.token, 1);
    // What was learned of it before it was lost counts no more.
    assert!(!b.frees("held", seen).await);
    let held = b.finds("held").await;
    b.must_take_over("held", held.mark(), 6).await;
    assert!(a.settles("runs", 1, End::Free).await);
    b.must_take("runs", 7).await;
}

#[tokio::test]
async fn what_is_put_back_first_does_not_keep_out_what_runs() {
    let mut server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = replica(&server.url(), settings()).await;
    let b = replica(&proxy.url(), settings()).await;
    a.must_take("c", 1).await;
    assert!(a.settles("c", 1, End::Held(Some("t".into()))).await);
    // Its task is at rest, as the other one has found out: of that, this one does not hear.
    let held = b.finds("c").await;
    b.must_take_over("c", held.mark(), 2).await;
    proxy.cut();
    server.end();
    server.begin();
    eventually(async || a.phases("c").await == [(1, Phase::Held)]).await;
    proxy.mend();
    let both = [(1, Phase::Held), (2, Phase::InFlight)];
    eventually(async || a.phases("c").await == both).await;
    assert!(b.settles("c", 2, End::Free).await);
    assert_eq!(a.phases("c").await, [(1, Phase::Held)]);
}

#[tokio::test]
async fn data_lost_behind_an_open_connection_are_put_back_too() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    a.must_take("runs", 1).await;
    redis::cmd("FLUSHALL")
        .exec(&mut server.connection())
        .unwrap();
    // Any command tells.
    assert_eq!(a.takes("runs", 2).await, Err(Trouble::Quiet));
    eventually(async || a.phases("runs").await == [(1, Phase::InFlight)]).await;
}

#[tokio::test]
async fn a_gateway_that_starts_without_its_store_says_so_and_connects_later() {
    let mut server = RedisServer::start();
    server.end();
    let address = Address::parse(&server.url()).unwrap();
    let refuses = Redis::start(address.clone(), settings()).unwrap();
    assert_eq!(refuses.takes("c", 1).await, Err(Trouble::Away));
    let goes_on = Redis::start(address, local()).unwrap();
    assert_eq!(goes_on.takes("c", 2).await, Ok(Take::Taken(None)));
    server.begin();
    eventually(async || refuses.phases("c").await == [(2, Phase::InFlight)]).await;
    eventually(async || refuses.takes("c", 3).await == Err(Trouble::Quiet)).await;
}
