//! What rules count: asked of the store, and told to it where nobody waits.
use std::collections::VecDeque;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    super::{
        counts::Outcome as Said,
        script::{Counted, Counting, Doing},
    },
    Landing, No, Task, To, WINDOW,
};
use crate::state::counters::What;

pub(super) use super::super::counts::Outcome;

/// What may wait for a store that is away; beyond, it is forgotten.
const WAITING: usize = 10_000;
/// Tokens that one command renews.
const BATCH: usize = 100;

/// What is still to be told of counts.
#[derive(Default)]
pub(super) struct Telling {
    queue: VecDeque<Counting>,
    renewed: Option<Instant>,
    said: bool,
}

impl Telling {
    pub(super) fn add(&mut self, counting: Counting) {
        if self.queue.len() < WAITING {
            self.said = false;
            self.queue.push_back(counting);
        } else if !std::mem::replace(&mut self.said, true) {
            tracing::warn!(
                "limits: what calls used is not counted, since the state store is away for too long"
            );
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Task {
    pub(super) fn count(&mut self, counting: Counting, to: To<Said>) {
        self.read(); // what ended before is free
        self.tell_of_counts();
        if to.is_closed() {
            return; // who asked has given up
        }
        if self.link.is_none() {
            let _ = to.send(Err(No::Away));
            return;
        }
        let shift = self.shared.shift();
        let shared = self.shared.clone();
        self.fly(|wire, link| async move {
            let of = counting.of.clone();
            let said = wire.take_counts(link, counting.of, shift).await;
            if let Ok(Outcome::Taken(..)) = &said {
                // Before its caller knows, who may let it go at once.
                let held = of.iter().filter(|(_, what, _)| is_held(*what));
                let held = held.map(|(key, _, token)| (*key, *token));
                shared.held.lock().extend(held);
            }
            Landing::Taken(to, of, said)
        });
    }

    pub(super) fn taken(
        &mut self,
        to: To<Said>,
        of: SmallVec<[Counted; 4]>,
        said: Result<Said, No>,
    ) {
        let at = match &said {
            Ok(Outcome::Taken(at, _)) => Some(*at),
            Ok(Outcome::Refused(..)) | Err(_) => None,
        };
        if to.send(said).is_err()
            && let Some(at) = at
        {
            // Nobody knows that it is theirs.
            let mut held = self.shared.held.lock();
            for (key, _, token) in &of {
                held.remove(&(*key, *token));
            }
            drop(held);
            let doing = Doing::Give(at);
            self.counts.add(Counting { doing, of });
        }
    }

    pub(super) fn look_at(&mut self, counting: Counting, to: To<Vec<(u64, u64)>>) {
        if self.link.is_none() {
            let _ = to.send(Err(No::Away));
            return;
        }
        let shift = self.shared.shift();
        self.fly(|wire, link| async move {
            Landing::LookedAt(to, wire.look_at_counts(link, counting, shift).await)
        });
    }

    pub(super) fn tell_of_counts(&mut self) {
        while self.link.is_some() && self.flying.len() < WINDOW {
            let Some(counting) = self.counts.queue.pop_front() else {
                return;
            };
            let shift = self.shared.shift();
            self.fly(|wire, link| async move {
                Landing::Counted(wire.tell_counts(link, counting, shift).await)
            });
        }
    }

    /// What is held is told three times in a lease.
    pub(super) fn renew_counts(&mut self) {
        let lease = self.settings.times.lease.unwrap_or_default() / 3;
        let due = self.counts.renewed.is_none_or(|at| at.elapsed() >= lease);
        if self.link.is_none() || !due {
            return;
        }
        self.counts.renewed = Some(Instant::now());
        let held: Vec<Counted> = {
            let held = self.shared.held.lock();
            let one = |(key, token): &(_, _)| (*key, What::AtOnce { limit: 0 }, *token);
            held.iter().map(one).collect()
        };
        for some in held.chunks(BATCH) {
            self.counts.add(Counting {
                doing: Doing::Charge,
                of: some.iter().copied().collect(),
            });
        }
    }
}

const fn is_held(what: What) -> bool {
    matches!(what, What::AtOnce { .. })
}
