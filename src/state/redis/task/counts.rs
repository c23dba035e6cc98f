//! What rules count: asked of the store, and told to it where nobody waits.
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    super::{
        Shared,
        counts::{Outcome as Said, given},
        flight::Fail,
        script::{Counted, Counting, Doing},
    },
    Landing, No, Task, To, WINDOW,
};
use crate::state::counters::What;

pub(super) use super::super::counts::Outcome;

/// What may wait for a store that is away, and how long; beyond, it is lost, and said so.
const WAITING: usize = 10_000;
const OLDEST: Duration = Duration::from_hours(1);
/// So often something is told whose answer does not come: each time it may have been counted.
const UNSURE: u8 = 3;
/// Tokens that one command renews.
const BATCH: usize = 100;

/// Something to be told of counts.
pub(super) struct Untold {
    counting: Counting,
    since: Instant,
    /// How often it went out, and nobody knows what became of it.
    unsure: u8,
}

/// What is still to be told of counts.
pub(super) struct Telling {
    queue: VecDeque<Untold>,
    /// What the store did not take, and is told at the next tick.
    again: Vec<Untold>,
    renewed: Option<Instant>,
    /// Whether it was said that something is lost, since all was told.
    said: bool,
    shared: Arc<Shared>,
}

impl Telling {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            queue: VecDeque::new(),
            again: vec![],
            renewed: None,
            said: false,
            shared,
        }
    }

    pub(super) fn add(&mut self, counting: Counting) {
        if self.queue.len() + self.again.len() >= WAITING {
            return self.lose(&counting);
        }
        let since = Instant::now();
        self.queue.push_back(Untold {
            counting,
            since,
            unsure: 0,
        });
    }

    fn next(&mut self) -> Option<Untold> {
        while let Some(untold) = self.queue.pop_front() {
            if untold.since.elapsed() < OLDEST {
                return Some(untold);
            }
            self.lose(&untold.counting);
        }
        None
    }

    /// The store did not take it, or nobody knows. What was used is told again, since it may be counted twice but not
    /// never, and so is what was held; what is given back is not, where it could come back twice. Leases are renewed
    /// again by themselves.
    pub(super) fn failed(&mut self, mut untold: Untold, fail: &Fail) {
        let sure = matches!(fail, Fail::Refused(_));
        untold.unsure += u8::from(!sure);
        let doing = untold.counting.doing;
        let renews = |what| doing == Doing::Charge && is_held(what);
        untold.counting.of.retain(|(_, what, _)| !renews(*what));
        let again = |what| match doing {
            Doing::Charge => untold.unsure < UNSURE,
            Doing::Give(_) => sure || is_held(what),
            Doing::Take | Doing::Look => false,
        };
        let of = std::mem::take(&mut untold.counting.of);
        let (of, lost) = of.into_iter().partition(|(_, what, _)| again(*what));
        self.lose(&Counting { doing, of: lost });
        untold.counting.of = of;
        if self.queue.len() + self.again.len() >= WAITING {
            self.lose(&untold.counting);
        } else if !untold.counting.of.is_empty() {
            self.again.push(untold);
        }
    }

    /// What failed is told again.
    pub(super) fn again(&mut self) {
        if self.queue.is_empty() && self.again.is_empty() {
            self.said = false;
        }
        self.queue.extend(self.again.drain(..));
    }

    fn lose(&mut self, counting: &Counting) {
        let many = counting.of.len() as u64;
        if many == 0 {
            return;
        }
        self.shared.lost.fetch_add(many, Relaxed);
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!(
                "limits: what calls used or gave back is not counted, since the state store did not take it in time"
            );
        }
    }

    /// At the end: what is left is lost.
    pub(super) fn close(&mut self) {
        self.again();
        for untold in std::mem::take(&mut self.queue) {
            self.lose(&untold.counting);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.again.is_empty()
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
        let taken = match &said {
            Ok(Outcome::Taken(at, each)) => Some((*at, each.clone())),
            Ok(Outcome::Refused(..)) | Err(_) => None,
        };
        if to.send(said).is_err()
            && let Some((at, each)) = taken
        {
            // Nobody knows that it is theirs.
            let mut held = self.shared.held.lock();
            for (key, _, token) in &of {
                held.remove(&(*key, *token));
            }
            drop(held);
            let doing = Doing::Give(at);
            let of = of.into_iter().zip(each);
            let of = of.map(|(one, (_, word))| given(one, word)).collect();
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
            let Some(mut telling) = self.counts.next() else {
                return;
            };
            let shift = self.shared.shift();
            self.fly(|wire, link| async move {
                let (left, said) = wire.tell_counts(link, &telling.counting, shift).await;
                telling.counting.of = left;
                Landing::Counted(telling, said)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{
        Key,
        redis::{Redis, tests::replica::settings},
    };

    fn charge() -> Counting {
        let what = What::Window {
            until: 1,
            limit: 1,
            cost: 1,
        };
        Counting {
            doing: Doing::Charge,
            of: SmallVec::from_iter([(Key::of(&["x"]), what, 0)]),
        }
    }

    fn telling() -> (Telling, Redis) {
        let (redis, _, _) = Redis::apart(&settings(), 0);
        (Telling::new(Arc::clone(&redis.shared)), redis)
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_by_number_and_age_and_what_is_lost_is_counted() {
        let (mut telling, redis) = telling();
        for _ in 0..WAITING + 3 {
            telling.add(charge());
        }
        assert_eq!((telling.queue.len(), redis.lost_counts()), (WAITING, 3));
        tokio::time::advance(OLDEST).await;
        assert!(telling.next().is_none());
        assert_eq!(redis.lost_counts(), WAITING as u64 + 3);
        telling.add(charge());
        telling.close();
        assert_eq!(redis.lost_counts(), WAITING as u64 + 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_knows_of_is_told_again_where_twice_does_no_harm() {
        let (mut telling, redis) = telling();
        for tries in 1..=UNSURE {
            if tries == 1 {
                telling.add(charge());
            }
            let untold = telling.next().unwrap();
            telling.failed(untold, &Fail::Late);
            assert!(telling.next().is_none(), "not before the next tick");
            telling.again();
        }
        assert!(telling.is_empty());
        assert_eq!(redis.lost_counts(), 1);
        telling.add(Counting {
            doing: Doing::Give(1),
            ..charge()
        });
        let untold = telling.next().unwrap();
        telling.failed(untold, &Fail::Late);
        assert_eq!(redis.lost_counts(), 2);
        // What is held is told again for good when it ends, and by itself while it lasts.
        let held = (Key::of(&["h"]), What::AtOnce { limit: 0 }, 1);
        for (doing, left) in [(Doing::Give(0), 1), (Doing::Charge, 0)] {
            let of = SmallVec::from_iter([held]);
            telling.add(Counting { doing, of });
            let untold = telling.next().unwrap();
            telling.failed(untold, &Fail::Late);
            assert_eq!(telling.again.drain(..).len(), left);
        }
        assert_eq!(redis.lost_counts(), 2);
    }
}
