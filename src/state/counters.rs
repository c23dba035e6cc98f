//! What rules count: how often, how much in a window, how many at once. A call takes from all its counts together, or
//! from none.
//!
//! | Count | Kept as |
//! |---|---|
//! | rate | one word: when it will be at rest again (GCRA's theoretical arrival time) |
//! | window of the calendar | its end, and what was used |
//! | rolling window | what was used in each of 17 sixteenths of it, so that any time of its length holds no more |
//! | at once | how many |
//!
//! Times are microseconds since 1970, by the wall: they outlive a process, and replicas share them.
use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;

mod by;
pub mod memory;
mod ring;
mod saved;

use super::{Key, Trouble, persist::Persist, redis::Redis};
pub use by::By;
use memory::Local;
pub use ring::{PARTS, Ring};

/// Microseconds since 1970, or a time of that many.
pub type Micros = u64;

/// A key that was chosen for what is held at once keeps its place so long.
const HELD: Micros = 60_000_000;

/// What is taken of one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One call of a rate: one each `interval`, and what is `tolerance` early.
    Rate {
        /// Between two calls.
        interval: Micros,
        /// How far before its time a call may come.
        tolerance: Micros,
    },
    /// Of a window that ends then.
    Window {
        /// Its end.
        until: Micros,
        /// How much there is.
        limit: u64,
        /// How much is taken; nothing, where it is known only later: then something must be left.
        cost: u64,
    },
    /// Of a window that rolls, in parts of this length.
    Rolling {
        /// A sixteenth of it.
        part: Micros,
        /// How much there is.
        limit: u64,
        /// How much is taken.
        cost: u64,
    },
    /// One of so many at once.
    AtOnce {
        /// How many.
        limit: u32,
    },
}

/// A wish: what is to be taken of the count under this key.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The count.
    pub key: Key,
    /// The number of its rule.
    pub rule: u8,
    /// What the rule counts, and how: what has another stem is another count.
    pub stem: Key,
    /// Who could have made the key up. Beyond their share, the others of the same are one count.
    pub by: By,
    /// Whether a caller chose a part of the key itself.
    pub chosen: bool,
    /// What is taken.
    pub what: What,
}

/// What was taken of one count.
#[derive(Clone, Copy, Debug)]
pub struct One {
    /// The count.
    pub key: Key,
    /// What was taken.
    pub what: What,
    /// Nobody had this count before.
    pub new: bool,
    /// Who could have made the key up.
    pub by: By,
    /// Of a rate, its word after this was taken: the end of its own place in the line.
    pub word: Micros,
}

/// What was taken together.
#[derive(Clone, Debug)]
pub struct Taken {
    /// When.
    pub at: Micros,
    /// Of what, in the order of the wishes.
    pub of: SmallVec<[One; 4]>,
    /// In this process, while the store of all replicas was away.
    pub alone: bool,
}

/// Why nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which wish; the one that takes longest.
    pub which: usize,
    /// When to come again, from now.
    pub wait: Micros,
    /// What is left of it now.
    pub left: u64,
}

/// How full a count is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The count.
    pub key: Key,
    /// Used now: of a rate, the microseconds until it is at rest.
    pub used: u64,
    /// The end of its window, where that has one.
    pub until: Option<Micros>,
}

impl Ask {
    /// The count of all keys of its rule for which there is no room, or of those beyond a share.
    pub(crate) fn others(&self, of: By) -> Key {
        Key::of(&["others", &self.stem.to_string(), &of.0.to_string()])
    }
}

impl One {
    /// Nothing is taken yet of what is asked for, under this key.
    pub(crate) const fn of(ask: &Ask, key: Key, by: By) -> Self {
        Self {
            key,
            what: ask.what,
            new: false,
            by,
            word: 0,
        }
    }

    /// What of a rate may be given back now: its own place in the line as far as it has not come, else what time has
    /// given back already would come back twice, at the cost of those who were taken since.
    pub(crate) fn owed(&self, interval: Micros, word: Micros, now: Micros) -> Micros {
        let late = self.word.min(word).saturating_sub(now);
        interval.min(late)
    }
}

/// When a rate's next call conforms: how long to wait and nothing taken, or its new word.
pub const fn gcra(
    word: Micros,
    now: Micros,
    interval: Micros,
    tolerance: Micros,
) -> Result<Micros, Micros> {
    // More than a whole burst cannot be owed: what says more was written before the clock was set back. It is as if
    // all but one call had been made.
    let most = now.saturating_add(tolerance).saturating_add(interval);
    let owed = if word > most {
        now.saturating_add(tolerance)
    } else {
        word
    };
    if owed > now.saturating_add(tolerance) {
        return Err(owed - now - tolerance);
    }
    let from = if owed > now { owed } else { now };
    Ok(from.saturating_add(interval))
}

/// Where counts are kept. All clones keep the same.
#[derive(Clone)]
pub struct Counters {
    local: Arc<Local>,
    /// The file of this process.
    persist: Option<Arc<Persist>>,
    shared: Option<Shared>,
}

/// A store of all replicas.
#[derive(Clone)]
struct Shared {
    redis: Arc<Redis>,
    /// The keys that callers chose here, so that nobody fills the store.
    chosen: Arc<Local>,
    /// Each goes on by itself while it is away.
    alone: bool,
}

impl Counters {
    /// In this process.
    pub fn local(local: Local) -> Self {
        Self {
            local: Arc::new(local),
            persist: None,
            shared: None,
        }
    }

    /// In this process, with others.
    #[cfg(test)]
    pub(crate) fn of(local: Arc<Local>) -> Self {
        Self {
            local,
            persist: None,
            shared: None,
        }
    }

    /// In this process, and in a file of it.
    pub fn persisted(local: Arc<Local>, file: Option<Arc<Persist>>) -> Self {
        Self {
            local,
            persist: file,
            shared: None,
        }
    }

    /// In the store of all replicas; in this process while that is away, if they go on `alone` then.
    /// `chosen` bounds the keys that callers choose: those in the store are not counted.
    pub fn shared(redis: Arc<Redis>, local: Local, chosen: Local, alone: bool) -> Self {
        let shared = Some(Shared {
            redis,
            chosen: chosen.into(),
            alone,
        });
        Self {
            local: Arc::new(local),
            persist: None,
            shared,
        }
    }

    /// Whether a store may have to be waited for.
    pub const fn wait(&self) -> bool {
        self.shared.is_some()
    }

    /// The counts of this process.
    pub fn own(&self) -> &Arc<Local> {
        &self.local
    }

    /// Whether they are in a file.
    pub fn is_saved(&self) -> bool {
        self.persist.is_some()
    }

    /// From now on so many keys are kept, and so many that one caller chooses. What there is stays.
    pub fn set(&self, keys: usize, share: usize) {
        self.local.set(keys, share);
        if let Some(shared) = &self.shared {
            shared.chosen.set(keys, share);
        }
    }

    /// Takes all that is asked for, or nothing and says why. `call` is the call's own name.
    pub async fn take(
        &self,
        asks: &[Ask],
        call: u64,
        now: Micros,
    ) -> Result<Result<Taken, Refused>, Trouble> {
        let Some(shared) = &self.shared else {
            return Ok(self.local.take(asks, now));
        };
        let mut places = shared.chosen.places();
        let settled: SmallVec<[Ask; 4]> = asks.iter().map(|ask| places.settle(ask, now)).collect();
        let said = shared.redis.take_counts(&settled, call).await;
        if let Ok(Ok(_)) = said {
            places.stay();
        } else {
            drop(places);
        }
        let alone = self.shared.as_ref().is_some_and(|shared| shared.alone);
        if said.is_ok() || !alone {
            return said;
        }
        let mut said = self.local.take(asks, now);
        if let Ok(taken) = &mut said {
            taken.alone = true;
            for one in &taken.of {
                self.tell(one.key, one.what);
            }
        }
        Ok(said)
    }

    /// What was taken alone of a quota is told when the store is back.
    fn tell(&self, key: Key, what: What) {
        let (What::Window { cost, .. } | What::Rolling { cost, .. }) = what else {
            return;
        };
        if let Some(shared) = &self.shared
            && cost > 0
        {
            shared.redis.charge_count(key, what);
        }
    }

    /// Gives back what was taken. Not waited for.
    pub fn give_back(&self, taken: &Taken, call: u64, now: Micros) {
        match &self.shared {
            None => self.local.give_back(taken, now),
            Some(shared) => {
                let mut told = taken.clone();
                if taken.alone {
                    self.local.give_back(taken, now);
                    told.of.retain(|one| {
                        matches!(one.what, What::Window { .. } | What::Rolling { .. })
                    });
                }
                if !told.of.is_empty() {
                    shared.redis.give_counts(&told, call);
                }
            }
        }
    }

    /// What was taken at once ends. Not waited for.
    pub fn release(&self, taken: &Taken, call: u64) {
        for one in &taken.of {
            if !matches!(one.what, What::AtOnce { .. }) {
                continue;
            }
            match &self.shared {
                Some(shared) if !taken.alone => shared.redis.release_count(one.key, call),
                Some(_) | None => self.local.release(one.key),
            }
        }
    }

    /// More was used of what was taken from, whatever is left. Not waited for.
    pub fn charge(&self, taken: &Taken, of: &One, what: What, now: Micros) {
        if self.shared.is_none() || taken.alone {
            self.local.charge(of, what, now);
        }
        self.tell(of.key, what);
    }

    /// How often something was used or given back that the store of all replicas was never told.
    pub fn lost(&self) -> u64 {
        self.shared.as_ref().map_or(0, |s| s.redis.lost_counts())
    }

    /// How full the counts are: those of this process up to `limit`, or of a shared store those that are `known`.
    pub async fn list(
        &self,
        limit: usize,
        known: &[(Key, What)],
        now: Micros,
    ) -> Result<Vec<Level>, Trouble> {
        match &self.shared {
            None => Ok(self.local.list(limit, now)),
            Some(shared) => shared.redis.look_at_counts(known).await,
        }
    }

    /// At the end of the process: lets what is counted get into its file, in this time.
    pub fn close_within(&self, within: Duration) {
        if let Some(persist) = &self.persist {
            persist.close_within(within);
        }
    }

    /// Once a second, by anybody: forgets what is at rest.
    pub fn tick(&self, now: Micros) {
        self.local.tick(now);
        if let Some(shared) = &self.shared {
            shared.chosen.tick(now);
        }
    }
}

impl What {
    /// How long its count may say anything.
    const fn lasts(self, now: Micros) -> Micros {
        match self {
            Self::Rate {
                interval,
                tolerance,
            } => interval.saturating_add(tolerance),
            Self::Window { until, .. } => until.saturating_sub(now),
            Self::Rolling { part, .. } => part.saturating_mul(PARTS + 1),
            Self::AtOnce { .. } => HELD,
        }
    }
}

#[cfg(test)]
mod tests;
