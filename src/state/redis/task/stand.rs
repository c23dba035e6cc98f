//! Whether the store is there: connecting, putting back, going away.
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt as _;
use redis::RedisResult;

use super::{
    super::{super::slot::Millis, address::Link, flight::Fail},
    LATE, Landing, Stand, Task,
};

impl Task {
    pub(super) fn connect(&mut self) {
        let (address, within) = (self.address.clone(), 3 * self.settings.timeout);
        self.connecting = Some(async move { address.connect(within).await }.boxed_local());
    }

    pub(super) fn connected(&mut self, link: RedisResult<Link>) {
        self.connecting = None;
        let link = match link {
            Ok(link) => link,
            Err(error) => return self.away(&error),
        };
        self.links += 1;
        self.late = 0;
        self.link = Some(link);
        self.stand = Stand::PuttingBack;
        self.ask_epochs();
        self.table.put_back(false, |_| true);
        self.sent.put_back(false, |_| true);
        self.tell_owed(true);
        for (context, agent) in std::mem::take(&mut self.bound) {
            self.bind(context, agent, None);
        }
    }

    pub(super) fn here_if_all_is_back(&mut self) {
        if self.stand != Stand::PuttingBack || self.link.is_none() {
            return;
        }
        if self.flying.is_empty() && self.table.is_quiet() && self.sent.is_quiet() {
            self.stand = Stand::Here;
            self.shared.here.store(true, Relaxed);
            if std::mem::take(&mut self.said) {
                tracing::info!(store = %self.address, "the state store is back, and has what is in flight here");
            } else {
                tracing::debug!(store = %self.address, "connected to the state store");
            }
        }
    }

    pub(super) fn away(&mut self, error: &dyn std::fmt::Display) {
        self.link = None;
        self.stand = Stand::Away;
        self.shared.here.store(false, Relaxed);
        self.table.wait_no_more();
        self.sent.wait();
        if !std::mem::replace(&mut self.said, true) {
            let store = &self.address;
            if self.settings.local {
                tracing::warn!(%store, %error, "the state store is away: each gateway goes on by itself, and two of \
                    them may let one conversation's messages run at once; bring the store back, or set state.on_error: refuse");
            } else {
                tracing::warn!(%store, %error, "the state store is away: messages are refused until it is back; \
                    look whether it runs and can be reached from here");
            }
        }
    }

    /// What a failure says of the store.
    pub(super) fn failed(&mut self, link: u64, fail: &Fail) {
        if link != self.links || self.link.is_none() {
            return; // of a connection that is given up already
        }
        self.late += 1;
        let often = self.late >= LATE;
        match fail {
            Fail::Broken(error) => self.away(error),
            // What could not be put back is put back once more.
            Fail::Late if often || self.stand == Stand::PuttingBack => {
                self.away(&"it does not answer in time");
            }
            Fail::Late => {}
            Fail::Refused(error) if often => self.away(error),
            Fail::Refused(error) => {
                // Its memory may be full, or a right is missing.
                if !std::mem::replace(&mut self.refused, true) {
                    tracing::warn!(store = %self.address, %error, "the state store refuses a command");
                }
            }
        }
    }

    /// The store has data of this age; another one than before is that it lost what it had.
    pub(super) fn learn_epoch(&mut self, tag: u8, epoch: Millis) {
        let known = &mut self.epochs[usize::from(tag)];
        let before = std::mem::replace(known, epoch);
        if before != 0 && before != epoch {
            if !std::mem::replace(&mut self.lost, true) {
                tracing::warn!(store = %self.address, "the state store has lost its data, and gets back what this \
                    gateway knows; give it persistence, and see that it evicts nothing");
            }
            let keys = &self.wire.keys;
            self.table.put_back(true, |key| keys.tag(key) == tag);
            self.sent.put_back(true, |key| keys.tag(key) == tag);
        }
    }

    pub(super) fn ask_epochs(&mut self) {
        for tag in self.wire.keys.tags() {
            let shift = self.shared.shift();
            self.epochs_asked += 1;
            self.fly(|wire, link| async move {
                Landing::Epoch(tag, wire.epoch(link, tag, shift).await)
            });
        }
    }
}
