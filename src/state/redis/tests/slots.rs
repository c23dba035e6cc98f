//! Replicas at one store that is there.
use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::{
    replica::{eventually, key, replica, settings, who},
    server::RedisServer,
};
use crate::state::{
    Take, Trouble,
    redis::{Redis, Settings},
    slot::{End, Mark, Phase, Times},
};

async fn two(server: &RedisServer) -> (Redis, Redis) {
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    (a, b)
}

#[tokio::test]
async fn what_is_settled_is_free_at_once_at_another_replica() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    let before = tokio::time::Instant::now();
    let Ok(Take::Taken(Some(until))) = a.takes("c", 1).await else {
        panic!("not taken");
    };
    // By our own clock of before it was sent, so that it never ends later than the store's.
    assert!(until >= before + Duration::from_secs(30));
    assert!(until <= tokio::time::Instant::now() + Duration::from_secs(30));
    for token in 2..50 {
        assert_eq!(b.finds("c").await.token, token - 1);
        assert!(a.settles("c", token - 1, End::Free).await);
        b.must_take("c", token).await;
        b.settle_later(key("c"), token, End::Free);
        eventually(async || a.entry("c").await.is_free()).await;
        a.must_take("c", token).await;
    }
}

#[tokio::test]
async fn a_lapsed_lease_is_never_free() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_take("bare", 1).await;
    a.must_take("tasked", 2).await;
    a.name(key("tasked"), 2, "t");
    eventually(async || b.finds("tasked").await.task.as_deref() == Some("t")).await;
    b.shift(Duration::from_secs(31));
    assert_eq!(b.phases("bare").await, [(1, Phase::Unknown)]);
    assert_eq!(b.phases("tasked").await, [(2, Phase::Held)]);
    b.shift(Duration::from_hours(1));
    b.must_take("bare", 3).await;
}

fn short() -> Settings {
    Settings {
        times: Times {
            lease: Some(Duration::from_millis(150)),
            ..settings().times
        },
        ..settings()
    }
}

#[tokio::test]
async fn leases_are_renewed_until_the_end() {
    let server = RedisServer::start();
    let a = replica(&server.url(), short()).await;
    let b = replica(&server.url(), short()).await;
    a.must_take("c", 1).await;
    let first = b.finds("c").await;
    // Past five leases, one after the other.
    let past = first.lease + 5 * 150;
    eventually(async || b.finds("c").await.lease > past).await;
    assert_eq!(b.phases("c").await, [(1, Phase::InFlight)]);
    assert!(a.settles("c", 1, End::Held(Some("t".into()))).await);
    let held = b.finds("c").await;
    assert_eq!((held.phase, held.task.as_deref()), (Phase::Held, Some("t")));
    assert!(b.frees("c", held.mark()).await);
}

#[tokio::test]
async fn what_another_has_is_not_renewed() {
    let server = RedisServer::start();
    let a = replica(&server.url(), short()).await;
    let b = replica(&server.url(), settings()).await;
    a.must_take("c", 1).await;
    a.must_take("other", 2).await;
    assert_eq!(b.release(key("c")).await, Ok(true));
    b.must_take("c", 3).await;
    // A few renewals of the other one are as many that could have been of this one.
    let past = b.finds("other").await.lease + 5 * 150;
    eventually(async || b.finds("other").await.lease > past).await;
    assert_eq!(b.phases("c").await, [(3, Phase::InFlight)]);
    assert!(a.settles("c", 1, End::Held(Some("t".into()))).await);
    assert_eq!(b.phases("c").await, [(3, Phase::InFlight)]);
    // Nor is what nobody has put back.
    assert_eq!(b.release(key("other")).await, Ok(true));
    a.must_take("third", 4).await;
    let past = b.finds("third").await.lease + 5 * 150;
    eventually(async || b.finds("third").await.lease > past).await;
    assert!(b.entry("other").await.is_free());
}

// C09: a holder whose lease ran out, and who settles when another has the slot.
#[tokio::test]
async fn a_late_settlement_does_not_free_anothers_slot() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_take("c", 1).await;
    b.shift(Duration::from_secs(31));
    let lapsed = b.finds("c").await;
    assert_eq!(lapsed.phase, Phase::Unknown);
    // Seen before it lapsed is not seen since.
    let before = Mark {
        generation: 0,
        ..lapsed.mark()
    };
    let take = b.take(key("c"), Some(before), &who(9, None)).await;
    assert!(matches!(take, Ok(Take::Busy(..))), "{take:?}");
    b.must_take_over("c", lapsed.mark(), 2).await;
    assert!(a.settles("c", 1, End::Free).await);
    assert_eq!(a.phases("c").await, [(2, Phase::InFlight)]);
    assert!(matches!(a.takes("c", 3).await, Ok(Take::Busy(..))));
}

#[tokio::test]
async fn evidence_counts_and_goes_on() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_take("c", 1).await;
    assert!(a.settles("c", 1, End::Unknown).await);
    let unknown = b.finds("c").await;
    b.goes_on(key("c"), unknown.mark()).await;
    let later = b.finds("c").await;
    assert_eq!(
        (later.phase, later.mark()),
        (Phase::Unknown, unknown.mark())
    );
    assert!(later.until >= unknown.until);
    assert!(a.settles("c", 1, End::Held(Some("t".into()))).await);
    assert!(!b.frees("c", unknown.mark()).await);
    let held = b.finds("c").await;
    assert!(b.frees("c", held.mark()).await);
    // A message that is out already joins whoever is there.
    a.must_take("c", 2).await;
    b.join(key("c"), &who(3, Some("t")));
    b.join(key("d"), &who(4, None));
    eventually(async || a.entry("c").await.holders.len() == 2).await;
    eventually(async || a.phases("d").await == [(4, Phase::InFlight)]).await;
    // What ended before the store was told is never put there.
    b.join(key("e"), &who(5, None));
    assert!(b.settles("e", 5, End::Free).await);
    assert!(b.settles("c", 3, End::Free).await);
    eventually(async || a.phases("c").await == [(2, Phase::InFlight)]).await;
    assert!(a.entry("e").await.is_free());
}

#[tokio::test]
async fn contexts_and_bindings_are_shared() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    let (task, context) = (key("task"), key("context"));
    assert_eq!(b.context_of(task).await, None);
    a.learn(task, "c-1");
    eventually(async || b.context_of(task).await.as_deref() == Some("c-1")).await;
    assert_eq!(a.bind(context, "one").await, Ok(None));
    assert_eq!(b.bind(context, "one").await, Ok(None));
    assert_eq!(b.bind(context, "two").await, Ok(Some("one".into())));
}

#[tokio::test]
async fn an_operator_sees_and_releases() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    for n in 0..20 {
        a.must_take(&n.to_string(), n + 1).await;
    }
    let all = b.list(100).await.unwrap();
    assert_eq!(all.len(), 20);
    assert_eq!(b.list(7).await.unwrap().len(), 7);
    assert!(all.iter().all(|s| s.entry.holders.len() == 1));
    assert_eq!(b.release(key("3")).await, Ok(true));
    assert_eq!(b.release(key("3")).await, Ok(false));
    b.must_take("3", 99).await;
}

#[tokio::test]
async fn a_process_holds_no_more_than_it_may() {
    let server = RedisServer::start();
    let few = Settings {
        slots: 2,
        ..settings()
    };
    let a = replica(&server.url(), few).await;
    a.must_take("1", 1).await;
    a.must_take("2", 2).await;
    assert_eq!(a.takes("3", 3).await, Ok(Take::Full));
    // What only may run on is the store's.
    assert!(a.settles("1", 1, End::Unknown).await);
    a.must_take("3", 3).await;
    assert_eq!(a.takes("4", 4).await, Ok(Take::Full));
    assert!(a.settles("2", 2, End::Free).await);
    a.must_take("4", 4).await;
}

#[tokio::test]
async fn what_ended_is_settled_before_the_process_ends() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    for n in 0..200 {
        a.must_take(&n.to_string(), n + 1).await;
        a.settle_later(key(&n.to_string()), n + 1, End::Free);
    }
    a.close(Duration::from_secs(5)).await;
    assert!(b.list(1).await.unwrap().is_empty());
    assert_eq!(a.takes("x", 1).await, Err(Trouble::Away));
}

#[tokio::test]
async fn a_full_table_of_notes_is_read_in_order() {
    let server = RedisServer::start();
    let (a, b) = two(&server).await;
    a.must_take("c", 1).await;
    a.name(key("c"), 1, "t1");
    a.name(key("c"), 1, "t2");
    assert!(a.settles("c", 1, End::Held(None)).await);
    assert_eq!(b.finds("c").await.task.as_deref(), Some("t2"));
}

#[tokio::test]
async fn what_nobody_can_read_stops_only_its_own_conversation() {
    let server = RedisServer::start();
    let (a, _) = two(&server).await;
    let name = format!("{{a2a:00}}s:{}", key("c"));
    let mut connection = server.connection();
    let garbled = redis::cmd("SET").arg(&name).arg("[{]").take();
    garbled.exec(&mut connection).unwrap();
    for token in 1..10 {
        assert_eq!(a.takes("c", token).await, Err(Trouble::Away));
        a.must_take(&token.to_string(), token).await;
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_frees_its_slot() {
    let server = RedisServer::start();
    let (a, mut hand) = Redis::by_hand(&server.url(), &Arc::default(), settings());
    hand.rest(0).await;
    let mut takes = Box::pin(a.takes("c", 1));
    assert!((&mut takes).now_or_never().is_none());
    hand.rest(10_000).await;
    // Its caller hangs up when the answer is there already.
    drop(takes);
    hand.rest(10_000).await;
    let (b, _) = two(&server).await;
    assert!(b.entry("c").await.is_free());
}
