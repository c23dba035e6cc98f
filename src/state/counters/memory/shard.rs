//! The counts of one shard, under its lock: looked at, taken, given back.
use std::collections::{HashMap, hash_map::Entry};

use super::{
    super::{By, Level, Micros, One, Ring, What, gcra, ring::PARTS, saved::Saved},
    MOMENT,
};
use crate::state::{
    ByKey, Key,
    counters::Ask,
    persist::{Change, Changes},
};

pub(super) struct Shard {
    pub(super) rates: HashMap<Key, Word, ByKey>,
    pub(super) others: HashMap<Key, Count, ByKey>,
    /// Changed since it was last saved.
    pub(super) changed: Changes,
}

pub(super) struct Word {
    pub(super) rest: Micros,
    pub(super) by: By,
}

pub(super) struct Count {
    pub(super) count: Kept,
    pub(super) by: By,
}

pub(super) enum Kept {
    Window { until: Micros, used: u64 },
    Rolling(Box<(Micros, Ring)>),
    AtOnce(u32),
}

impl Shard {
    pub(super) fn new(changes: usize) -> Self {
        Self {
            rates: HashMap::default(),
            others: HashMap::default(),
            changed: Changes::none(changes),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rates.len() + self.others.len()
    }

    pub(super) fn has(&self, ask: &Ask) -> bool {
        match ask.what {
            What::Rate { .. } => self.rates.contains_key(&ask.key),
            What::Window { .. } | What::Rolling { .. } | What::AtOnce { .. } => {
                self.others.contains_key(&ask.key)
            }
        }
    }

    /// What is to be saved of a count.
    pub(super) fn saved(&self, key: Key, now: Micros) -> Option<Vec<u8>> {
        if let Some(word) = self.rates.get(&key) {
            let rest = word.rest;
            return (rest > now).then(|| Saved::Rate { rest }.write(word.by));
        }
        let Count { count, by } = self.others.get(&key)?;
        let saved = match count {
            Kept::Window { until, used } => Saved::Window {
                until: *until,
                used: *used,
            },
            Kept::Rolling(kept) => Saved::Rolling {
                part: kept.0,
                ring: kept.1.clone(),
            },
            Kept::AtOnce(_) => return None,
        };
        Some(saved.write(*by))
    }

    /// All that is to be saved.
    pub(super) fn all_saved(&self, now: Micros) -> impl Iterator<Item = Change> {
        let keys = self.rates.keys().chain(self.others.keys());
        keys.map(move |key| (*key, self.saved(*key, now)))
            .filter(|(_, saved)| saved.is_some())
    }

    pub(super) fn put(&mut self, key: Key, mut count: Count, now: Micros) -> bool {
        let keep = !count.count.is_at_rest(now);
        if keep {
            self.others.insert(key, count);
        }
        keep
    }

    /// Whether it may be taken; else how long to wait, and what is left.
    pub(super) fn look(&mut self, one: &One, now: Micros) -> Result<(), (Micros, u64)> {
        let kept = self.others.get_mut(&one.key).map(|c| &mut c.count);
        match (one.what, kept) {
            (
                What::Rate {
                    interval,
                    tolerance,
                },
                _,
            ) => {
                let word = self.rates.get(&one.key).map_or(0, |word| word.rest);
                let word = gcra(word, now, interval, tolerance);
                word.map(|_| ()).map_err(|wait| (wait, 0))
            }
            (What::Window { until, limit, cost }, kept) => {
                let (used, until) = match kept {
                    Some(Kept::Window { until: known, used }) if *known >= until => (*used, *known),
                    Some(_) | None => (0, until),
                };
                fits(used, cost, limit).map_err(|left| (until.saturating_sub(now), left))
            }
            (What::Rolling { part, limit, cost }, Some(Kept::Rolling(kept))) => {
                let ring = &mut kept.1;
                ring.turn(now, part);
                fits(ring.used(), cost, limit)
                    .map_err(|left| (ring.wait(now, part, limit, cost.max(1)), left))
            }
            (What::Rolling { part, limit, cost }, _) => {
                fits(0, cost, limit).map_err(|left| (part * PARTS, left))
            }
            (What::AtOnce { limit }, Some(Kept::AtOnce(count))) if *count >= limit => {
                Err((MOMENT, 0))
            }
            (What::AtOnce { .. }, _) => Ok(()),
        }
    }

    /// Takes it. True if nobody had this count before.
    pub(super) fn take(&mut self, one: &mut One, now: Micros) -> bool {
        let by = one.by;
        match one.what {
            What::Rate {
                interval,
                tolerance,
            } => {
                let before = self.rates.get(&one.key).map_or(0, |word| word.rest);
                let Ok(rest) = gcra(before, now, interval, tolerance) else {
                    return false; // it was looked at under the same lock
                };
                one.word = rest;
                match self.rates.entry(one.key) {
                    Entry::Occupied(mut word) => word.get_mut().rest = rest,
                    Entry::Vacant(place) => {
                        place.insert(Word { rest, by });
                        return true;
                    }
                }
                false
            }
            What::Window { .. } | What::Rolling { .. } | What::AtOnce { .. } => {
                match self.others.entry(one.key) {
                    Entry::Occupied(mut count) => {
                        count.get_mut().count.add(one.what, now);
                        false
                    }
                    Entry::Vacant(place) => {
                        let mut count = Kept::none(one.what);
                        count.add(one.what, now);
                        place.insert(Count { count, by });
                        true
                    }
                }
            }
        }
    }

    pub(super) fn give_back(&mut self, one: &One, at: Micros, now: Micros) {
        if let What::Rate { interval, .. } = one.what {
            if let Some(word) = self.rates.get_mut(&one.key) {
                word.rest -= one.owed(interval, word.rest, now);
            }
        } else if let Some(count) = self.others.get_mut(&one.key) {
            count.count.give_back(one.what, at);
        }
    }

    pub(super) fn levels(&self, now: Micros) -> impl Iterator<Item = Level> {
        let rates = self.rates.iter().map(move |(key, word)| Level {
            key: *key,
            used: word.rest.saturating_sub(now),
            until: None,
        });
        let others = self.others.iter().map(move |(key, count)| {
            let (used, until) = match &count.count {
                Kept::Window { until, used } if *until > now => (*used, Some(*until)),
                Kept::Window { .. } => (0, None),
                Kept::Rolling(kept) => {
                    let mut ring = kept.1.clone();
                    ring.turn(now, kept.0);
                    (ring.used(), None)
                }
                Kept::AtOnce(count) => (u64::from(*count), None),
            };
            Level {
                key: *key,
                used,
                until,
            }
        });
        rates.chain(others)
    }

    /// Gives back room that a past crowd took.
    pub(super) fn shrink(&mut self) {
        if self.rates.capacity() > 4 * self.rates.len() + 64 {
            self.rates.shrink_to_fit();
        }
        if self.others.capacity() > 4 * self.others.len() + 64 {
            self.others.shrink_to_fit();
        }
    }
}

/// Whether so much more fits; what costs nothing yet needs something to be left.
const fn fits(used: u64, cost: u64, limit: u64) -> Result<(), u64> {
    let left = limit.saturating_sub(used);
    let least = if cost == 0 { 1 } else { cost };
    if least <= left { Ok(()) } else { Err(left) }
}

impl Kept {
    fn none(what: What) -> Self {
        match what {
            What::Rolling { part, .. } => Self::Rolling(Box::new((part, Ring::default()))),
            What::Window { until, .. } => Self::Window { until, used: 0 },
            What::AtOnce { .. } | What::Rate { .. } => Self::AtOnce(0),
        }
    }

    fn add(&mut self, what: What, now: Micros) {
        match (self, what) {
            (
                Self::Window { until, used },
                What::Window {
                    until: new, cost, ..
                },
            ) => {
                if new > *until {
                    (*until, *used) = (new, 0);
                }
                *used = used.saturating_add(cost);
            }
            (Self::Rolling(kept), What::Rolling { part, cost, .. }) => {
                kept.1.turn(now, part);
                kept.1.add(cost);
            }
            (Self::AtOnce(count), What::AtOnce { .. }) => *count = count.saturating_add(1),
            // Another kind of rule had this key: its name is in the key, and its kind, so that this does not happen.
            (Self::Window { .. } | Self::Rolling(_) | Self::AtOnce(_), _) => {}
        }
    }

    pub(super) fn give_back(&mut self, what: What, at: Micros) {
        match (self, what) {
            (
                Self::Window { until, used },
                What::Window {
                    until: then, cost, ..
                },
            ) => {
                if then == *until {
                    *used = used.saturating_sub(cost);
                }
            }
            (Self::Rolling(kept), What::Rolling { part, cost, .. }) => {
                kept.1.give_back(at, part, cost);
            }
            (Self::AtOnce(count), What::AtOnce { .. }) => *count = count.saturating_sub(1),
            (Self::Window { .. } | Self::Rolling(_) | Self::AtOnce(_), _) => {}
        }
    }

    pub(super) fn is_at_rest(&mut self, now: Micros) -> bool {
        match self {
            Self::Window { until, used } => *until <= now || *used == 0,
            Self::Rolling(kept) => {
                let part = kept.0;
                kept.1.turn(now, part);
                kept.1.used() == 0
            }
            Self::AtOnce(count) => *count == 0,
        }
    }
}
