//! Whose tasks and contexts are, where several gateways share it.
use std::time::Duration;

use redis::Commands as _;

use super::{
    proxy::Proxy,
    replica::{eventually, key, replica, settings},
    server::RedisServer,
};
use crate::state::{
    Key, Trouble,
    owner::{self, Claimed, Claiming},
    redis::{Redis, Settings},
};

impl Redis {
    async fn owner(&self, what: &str) -> Result<Option<Key>, Trouble> {
        let mut all = self.owners(vec![key(what)], key("nobody")).await?;
        Ok(all.pop().flatten())
    }

    async fn claims(&self, what: &str, owner: &str) -> Result<Claimed, Trouble> {
        self.claim(key(what), key(owner), 7).await
    }

    async fn claims_surely(&self, what: &str, owner: &str) -> Option<bool> {
        match self.claim_surely(key(what), key(owner)) {
            Claiming::Done(mine) => Some(mine),
            Claiming::Wait(wait) => wait.await,
        }
    }
}

#[tokio::test]
async fn the_first_who_claims_it_has_it_at_every_gateway() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    assert_eq!(a.owner("t1").await, Ok(None));
    assert_eq!(a.claims("t1", "ann").await, Ok(Claimed::New));
    assert_eq!(b.claims("t1", "bob").await, Ok(Claimed::Others));
    assert_eq!(b.claims_surely("t1", "bob").await, Some(false));
    assert_eq!(b.claims("t1", "ann").await, Ok(Claimed::Own));
    assert_eq!(b.claims_surely("t2", "bob").await, Some(true));
    let all = ["t1", "none", "t2"].map(key).to_vec();
    let owners = vec![Some(key("ann")), None, Some(key("bob"))];
    assert_eq!(a.owners(all, key("ann")).await, Ok(owners));
    assert_eq!(a.owners(vec![], key("ann")).await, Ok(vec![]));
    // What somebody else wrote there is nobody's who asks.
    let name = a_name(&server, "t2");
    let () = server.connection().set(name, "nonsense").unwrap();
    assert!(matches!(a.owner("t2").await, Ok(Some(owner)) if owner != key("bob")));
    let secret = a.secret([1; 32]).await.unwrap();
    assert_eq!(b.secret([2; 32]).await, Ok(secret));
}

fn a_name(server: &RedisServer, what: &str) -> String {
    let ending = format!("o:{}", key(what));
    let names: Vec<String> = server.connection().keys("*").unwrap();
    let name = names.into_iter().find(|name| name.ends_with(&ending));
    name.unwrap()
}

#[tokio::test]
async fn an_owner_is_remembered_from_the_last_use_of_what_it_owns() {
    let server = RedisServer::start();
    let brief = Settings {
        owners: owner::Settings {
            ttl: Duration::from_mins(10),
            ..owner::Settings::default()
        },
        ..settings()
    };
    let a = replica(&server.url(), brief).await;
    a.claims("t1", "ann").await.unwrap();
    let mut store = server.connection();
    let name = a_name(&server, "t1");
    let mut left = || store.pttl::<_, i64>(&name).unwrap();
    let long = Duration::from_mins(10).as_millis();
    assert!((1..=i64::try_from(long).unwrap()).contains(&left()));
    for (look, who) in [(true, "ann"), (false, "ann"), (true, "bob"), (false, "bob")] {
        let () = server.connection().pexpire(&name, 10_000).unwrap();
        if look {
            a.owners(vec![key("t1")], key(who)).await.unwrap();
        } else {
            a.claims("t1", who).await.unwrap();
        }
        assert_eq!(left() > 60_000, who == "ann", "its owner refreshes it");
    }
}

#[tokio::test]
async fn a_store_that_is_away_says_so_even_where_the_rest_goes_on_alone() {
    let mut server = RedisServer::start();
    for local in [true, false] {
        let own = Settings {
            local,
            ..settings()
        };
        let a = replica(&server.url(), own).await;
        a.claims("t1", "ann").await.unwrap();
        server.end();
        eventually(async || a.owner("t1").await == Err(Trouble::Away)).await;
        assert_eq!(a.claims("t2", "ann").await, Err(Trouble::Away));
        assert_eq!(a.secret([1; 32]).await, Err(Trouble::Away));
        // What exists already is told when it is back.
        assert_eq!(a.claims_surely("t3", "ann").await, None);
        server.begin();
        eventually(async || a.owner("t3").await == Ok(Some(key("ann")))).await;
        assert_eq!(a.owner("t1").await, Ok(None), "its data were lost");
    }
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_made_again() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let hasty = Settings {
        timeout: Duration::from_millis(300),
        ..settings()
    };
    let a = replica(&proxy.url(), hasty).await;
    let b = replica(&server.url(), settings()).await;
    proxy.swallow(true);
    assert_eq!(a.claims_surely("t1", "ann").await, None);
    assert_eq!(a.claims_surely("t2", "ann").await, None);
    let () = server.connection().flushdb().unwrap();
    proxy.swallow(false);
    proxy.cut();
    proxy.mend();
    eventually(async || b.owner("t1").await == Ok(Some(key("ann")))).await;
    eventually(async || b.owner("t2").await == Ok(Some(key("ann")))).await;
    // Nobody else had it in between; else it would be theirs.
    assert_eq!(b.claims("t1", "bob").await, Ok(Claimed::Others));
    a.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn what_is_owed_to_a_store_that_is_away_stays_the_first_who_claimed_it() {
    let mut server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    server.end();
    eventually(async || a.owner("t1").await == Err(Trouble::Away)).await;
    for _ in 0..2 {
        assert_eq!(a.claims_surely("t1", "ann").await, None);
        assert_eq!(a.claims_surely("t1", "bob").await, Some(false));
    }
    server.begin();
    eventually(async || a.owner("t1").await == Ok(Some(key("ann")))).await;
    // It is not owed any more: the store says whose it is.
    assert_eq!(a.claims_surely("t1", "bob").await, Some(false));
    assert_eq!(a.claims_surely("t1", "ann").await, Some(true));
    assert_eq!(a.owner("t1").await, Ok(Some(key("ann"))));
}

#[tokio::test]
async fn of_two_who_claim_it_at_once_the_store_tells_whose_it_is() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    assert_eq!(b.claims("t1", "bob").await, Ok(Claimed::New));
    // Both are on their way together, and the first of them is not its owner.
    let both = tokio::join!(a.claims_surely("t1", "ann"), a.claims_surely("t1", "bob"));
    assert_eq!(both, (Some(false), Some(true)));
}

#[tokio::test]
async fn what_is_owed_is_told_before_a_gateway_ends() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let wait = a.claim_surely(key("t1"), key("ann"));
    drop(wait);
    a.close(Duration::from_secs(5)).await;
    let b = replica(&server.url(), settings()).await;
    assert_eq!(b.owner("t1").await, Ok(Some(key("ann"))));
}

#[tokio::test]
async fn a_new_claim_is_taken_back_unless_somebody_relies_on_it() {
    let server = RedisServer::start();
    let a = replica(&server.url(), settings()).await;
    let b = replica(&server.url(), settings()).await;
    assert_eq!(a.claim(key("c1"), key("ann"), 1).await, Ok(Claimed::New));
    assert_eq!(
        b.owner("c1").await,
        Ok(Some(key("ann"))),
        "by its name as well"
    );
    a.unclaim(key("c1"), key("bob"), 1);
    a.unclaim(key("c1"), key("ann"), 2);
    assert_eq!(b.claim(key("c2"), key("ann"), 3).await, Ok(Claimed::New));
    assert_eq!(a.owner("c1").await, Ok(Some(key("ann"))));
    a.unclaim(key("c1"), key("ann"), 1);
    eventually(async || b.owner("c1").await == Ok(None)).await;
    // Another gateway has it by now.
    assert_eq!(a.claim(key("c2"), key("ann"), 4).await, Ok(Claimed::Own));
    b.unclaim(key("c2"), key("ann"), 3);
    assert_eq!(b.claim(key("c3"), key("ann"), 5).await, Ok(Claimed::New));
    b.unclaim(key("c3"), key("ann"), 5);
    eventually(async || a.owner("c3").await == Ok(None)).await;
    assert_eq!(a.owner("c2").await, Ok(Some(key("ann"))));
}
