//! A gateway's store, as tests use it.
use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::{Address, Redis, Settings},
    server::PATIENCE,
};
use crate::state::{
    Key, Settling, Take, Trouble,
    slot::{Asker, End, Entry, Holder, Mark, Newcomer, Phase, Times},
};

pub(in super::super) fn settings() -> Settings {
    Settings {
        prefix: "a2a".to_owned(),
        local: false,
        times: Times {
            lease: Some(Duration::from_secs(30)),
            settle: Duration::from_secs(5),
            max_hold: Duration::from_hours(1),
        },
        timeout: Duration::from_secs(5),
        settle_timeout: Duration::from_secs(5),
        slots: 1000,
        tasks: 1000,
        bindings: 1000,
        binding_ttl: Duration::from_hours(1),
        messages: 1000,
        message_ttl: Duration::from_mins(10),
        owners: crate::state::owner::Settings::default(),
    }
}

/// A store at that address, whose quiet time is over.
pub(super) async fn replica(url: &str, settings: Settings) -> Redis {
    let address = Address::parse(url).unwrap();
    let replica = Redis::start(address, settings).unwrap();
    // An answer comes only once it is connected, and the epoch has begun.
    eventually(async || replica.list(1).await.is_ok()).await;
    replica.shift(Duration::from_secs(10));
    replica
}

/// Asks until it is so.
pub(super) async fn eventually(mut is: impl AsyncFnMut() -> bool) {
    let by = Instant::now() + PATIENCE;
    while !is().await {
        assert!(Instant::now() < by, "never");
        tokio::time::sleep(Duration::from_millis(5)).await; // between two looks
    }
}

pub(super) fn key(name: &str) -> Key {
    Key::of(&[name])
}

pub(super) fn who(token: u64, task: Option<&str>) -> Newcomer<'_> {
    Newcomer {
        token,
        asker: Asker::known(1),
        task,
    }
}

impl Redis {
    pub(super) async fn takes(&self, name: &str, token: u64) -> Result<Take, Trouble> {
        self.take(key(name), None, &who(token, None)).await
    }

    pub(super) async fn must_take(&self, name: &str, token: u64) {
        let take = self.takes(name, token).await;
        assert!(matches!(take, Ok(Take::Taken(_))), "{name}: {take:?}");
    }

    pub(super) async fn must_take_over(&self, name: &str, seen: Mark, token: u64) {
        let take = self.take(key(name), Some(seen), &who(token, None)).await;
        assert!(matches!(take, Ok(Take::Taken(_))), "{name}: {take:?}");
    }

    /// Who is found there.
    pub(super) async fn finds(&self, name: &str) -> Holder {
        match self.takes(name, u64::MAX).await {
            Ok(Take::Busy(holder, _)) => holder,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub(super) async fn settles(&self, name: &str, token: u64, end: End) -> bool {
        match self.settle(key(name), token, end) {
            Settling::Done => true,
            Settling::Wait(done) => done.await,
        }
    }

    pub(super) async fn frees(&self, name: &str, seen: Mark) -> bool {
        match self.free(key(name), seen) {
            Settling::Done => false,
            Settling::Wait(done) => done.await,
        }
    }

    pub(super) async fn entry(&self, name: &str) -> Entry {
        self.look(key(name)).await.unwrap_or_default().0
    }

    pub(super) async fn phases(&self, name: &str) -> Vec<(u64, Phase)> {
        let entry = self.entry(name).await;
        entry.holders.iter().map(|h| (h.token, h.phase)).collect()
    }
}
