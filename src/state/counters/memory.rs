//! Counts of one process: sharded maps under short locks. A call locks the shards of all its counts, in their order,
//! looks at all, and then takes from all.
//!
//! A count that is at rest says nothing that an absent one does not, and is forgotten: within a minute, and at once where
//! there is no room. What is left is bounded: beyond `keys`, new ones of a rule count together, and so do
//!
//! - those beyond half of `keys` that anybody can make up, and what one group of them has beyond a sixteenth of that,
//! - those beyond `share` that one caller chose itself.
//!
//! So whoever makes up keys gains nothing by it and takes no count from others.
//!
//! Memory: a rate takes a slot of 32 bytes, another count one of 48, and a map is never emptier than 7 of 16 slots
//! while it grows: at most 80 and 112 bytes a key, and 152 more for a rolling window. Each group takes 22 more.
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

mod places;
mod shard;

use super::{Ask, By, Level, Micros, One, Refused, Taken, What, saved::Saved};
use crate::state::{
    Key,
    persist::{self, Changed},
};
use shard::{Count, Kept, Shard, Word};

/// Locks, so that workers seldom meet at one.
const SHARDS: usize = 64;
/// Changes that a shard may note, beyond twice its part of all keys: shards are not filled evenly.
const CHANGES: usize = 64;
/// When to come again who finds too many at once: nobody knows, so a moment.
const MOMENT: Micros = 1_000_000;

/// The counts of this process.
pub struct Local {
    shards: Vec<Mutex<Shard>>,
    /// Keys in all shards.
    held: AtomicUsize,
    keys: AtomicUsize,
    share: AtomicU32,
    /// Those of them that anybody can make up.
    open: AtomicUsize,
    /// How many keys each group has.
    groups: Mutex<HashMap<By, u32>>,
    /// Since when, and how often, shards were swept because there was no room.
    hurry: Mutex<(Micros, usize)>,
    /// The shard that is swept next.
    sweep: AtomicUsize,
    /// Whether changes are noted, for who saves them.
    saves: AtomicBool,
}

type Locked<'a> = SmallVec<[(usize, MutexGuard<'a, Shard>); 4]>;

fn place(key: Key) -> usize {
    usize::from(key.0[15]) % SHARDS
}

/// How many changes a shard may note.
fn changes(keys: usize) -> usize {
    (keys / SHARDS).saturating_mul(2).saturating_add(CHANGES)
}

impl Local {
    /// None yet: at most so many keys, and so many that one caller chooses.
    pub fn new(keys: usize, share: usize) -> Self {
        let changes = changes(keys);
        Self {
            shards: (0..SHARDS)
                .map(|_| Mutex::new(Shard::new(changes)))
                .collect(),
            held: AtomicUsize::new(0),
            keys: AtomicUsize::new(keys),
            share: AtomicU32::new(u32::try_from(share).unwrap_or(u32::MAX)),
            open: AtomicUsize::new(0),
            groups: Mutex::default(),
            hurry: Mutex::default(),
            sweep: AtomicUsize::new(0),
            saves: AtomicBool::new(false),
        }
    }

    /// From now on so many keys, and so many that one caller chooses.
    pub fn set(&self, keys: usize, share: usize) {
        self.keys.store(keys, Relaxed);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        self.share.store(share, Relaxed);
        for shard in &self.shards {
            shard.lock().changed.set(changes(keys));
        }
    }

    /// Takes all, or nothing and says why.
    pub fn take(&self, asks: &[Ask], now: Micros) -> Result<Taken, Refused> {
        let mut of: SmallVec<[One; 4]> = asks
            .iter()
            .map(|ask| {
                let (key, by) = self.settle_on(ask, now);
                One::of(ask, key, by)
            })
            .collect();
        let mut locked = self.lock(of.iter().map(|one| one.key));
        let mut refused: Option<Refused> = None;
        for (which, one) in of.iter().enumerate() {
            let shard = find(&mut locked, one.key);
            if let Err((wait, left)) = shard.look(one, now)
                && refused.is_none_or(|before| before.wait < wait)
            {
                refused = Some(Refused { which, wait, left });
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        let saves = self.saves.load(Relaxed);
        for one in &mut of {
            let shard = find(&mut locked, one.key);
            one.new = shard.take(one, now);
            if saves {
                shard.changed.add(one.key);
            }
            if one.new {
                self.came(one.by);
            }
        }
        Ok(Taken {
            at: now,
            of,
            alone: false,
        })
    }

    /// In their order, so that no two calls wait for each other.
    fn lock(&self, keys: impl Iterator<Item = Key>) -> Locked<'_> {
        let mut places: SmallVec<[usize; 4]> = keys.map(place).collect();
        places.sort_unstable();
        places.dedup();
        let lock = |at: usize| (at, self.shards[at].lock());
        places.into_iter().map(lock).collect()
    }

    /// Gives back what was taken.
    pub fn give_back(&self, taken: &Taken, now: Micros) {
        for one in &taken.of {
            let mut shard = self.shards[place(one.key)].lock();
            shard.give_back(one, taken.at, now);
            if self.saves.load(Relaxed) {
                shard.changed.add(one.key);
            }
        }
    }

    /// One of what was taken ends.
    pub fn release(&self, key: Key) {
        let mut shard = self.shards[place(key)].lock();
        if let Some(Count { count, .. }) = shard.others.get_mut(&key)
            && let Kept::AtOnce(count) = count
        {
            *count = count.saturating_sub(1);
        }
    }

    /// More was used of a window that was taken from, whatever is left of it.
    pub fn charge(&self, of: &One, what: What, now: Micros) {
        let mut shard = self.shards[place(of.key)].lock();
        if shard.take(&mut One { what, ..*of }, now) {
            self.came(of.by); // it was at rest in between
        }
        if self.saves.load(Relaxed) {
            shard.changed.add(of.key);
        }
    }

    /// Up to `limit` counts.
    pub fn list(&self, limit: usize, now: Micros) -> Vec<Level> {
        let mut all = vec![];
        for shard in &self.shards {
            let shard = shard.lock();
            let left = limit - all.len();
            all.extend(shard.levels(now).take(left));
        }
        all
    }

    /// The memory of all keys.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let of = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            let slots = |capacity: usize| (capacity * 8).div_ceil(7).next_power_of_two();
            slots(shard.rates.capacity()) * (size_of::<(Key, Word)>() + 1)
                + slots(shard.others.capacity()) * (size_of::<(Key, Count)>() + 1)
        };
        let groups = (self.groups.lock().capacity() * 8)
            .div_ceil(7)
            .next_power_of_two();
        self.shards.iter().map(of).sum::<usize>() + groups * (size_of::<(By, u32)>() + 1)
    }

    /// Keys that are kept.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Forgets what is at rest, in one shard. Says how many were looked at.
    pub fn tick(&self, now: Micros) -> usize {
        let next = self.sweep.fetch_add(1, Relaxed) % SHARDS;
        let mut gone: HashMap<By, u32> = HashMap::new();
        let mut shard = self.shards[next].lock();
        let shard = &mut *shard;
        let saves = self.saves.load(Relaxed);
        let before = shard.len();
        shard.rates.retain(|key, word| {
            let keep = word.rest > now;
            if saves && !keep {
                shard.changed.add(*key);
            }
            if !keep {
                *gone.entry(word.by).or_default() += 1;
            }
            keep
        });
        shard.others.retain(|key, count| {
            let keep = !count.count.is_at_rest(now);
            if saves && !keep {
                shard.changed.add(*key);
            }
            if !keep {
                *gone.entry(count.by).or_default() += 1;
            }
            keep
        });
        self.held.fetch_sub(before - shard.len(), Relaxed);
        shard.shrink();
        for (by, many) in gone {
            self.went(by, many);
        }
        before
    }
}

impl persist::Kept for Local {
    fn saves(&self) {
        self.saves.store(true, Relaxed);
    }

    fn changed(&self, now: Micros) -> Changed {
        let all = self.shards.iter().any(|s| s.lock().changed.is_all());
        let mut of = vec![];
        for shard in &self.shards {
            let mut shard = shard.lock();
            if all {
                shard.changed.take();
                of.extend(shard.all_saved(now));
            } else if !shard.changed.is_all() {
                let changed = shard.changed.take();
                of.extend(changed.into_iter().map(|key| (key, shard.saved(key, now))));
            } // else since then: next time
        }
        Changed { of, all }
    }

    fn change_again(&self, keys: Vec<Key>) {
        for key in keys {
            self.shards[place(key)].lock().changed.add(key);
        }
    }

    fn change_all(&self) {
        for shard in &self.shards {
            shard.lock().changed.add_all();
        }
    }

    fn restore(&self, key: Key, saved: &[u8], now: Micros) -> bool {
        let Some((saved, by)) = Saved::read(saved) else {
            return false;
        };
        let mut shard = self.shards[place(key)].lock();
        let kept = match saved {
            Saved::Rate { rest } => {
                if rest > now {
                    shard.rates.insert(key, Word { rest, by });
                }
                rest > now
            }
            Saved::Window { until, used } => {
                let count = Kept::Window { until, used };
                shard.put(key, Count { count, by }, now)
            }
            Saved::Rolling { part, ring } => {
                let count = Kept::Rolling(Box::new((part, ring)));
                shard.put(key, Count { count, by }, now)
            }
        };
        if kept {
            self.came(by);
        }
        kept
    }
}

fn find<'a>(locked: &'a mut Locked<'_>, key: Key) -> &'a mut Shard {
    let at = place(key);
    let found = locked.iter_mut().find(|(place, _)| *place == at);
    &mut found.expect("the shards of all keys are locked").1
}
