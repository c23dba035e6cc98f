//! Who has a place for a key: whether there is room for one more, and what comes and goes of those that anybody can make
//! up, and of groups.
use std::{collections::hash_map::Entry, sync::atomic::Ordering::Relaxed};

use smallvec::SmallVec;

use super::{
    super::{Ask, By, Micros, What},
    Local, SHARDS, place,
    shard::Word,
};
use crate::state::Key;

/// What one group may have of the places for keys that anybody can make up.
const GROUPS: usize = 16;
/// So many counts are looked at for one that finds no room, and each at most once a second.
const LOOKS: usize = 4096;
const SECOND: Micros = 1_000_000;

/// A place for a key of another store.
struct Place {
    key: Key,
    rest: Micros,
}

/// The places for keys that a call is the first to have. Unless they are to stay, they are another's: where a rule
/// refuses, the store does not answer or the caller is gone, nothing was taken.
pub(in super::super) struct Places<'l> {
    of: &'l Local,
    new: SmallVec<[Place; 4]>,
}

impl Places<'_> {
    /// The same wish, where too many such keys were made up, under the key of all others.
    pub(in super::super) fn settle(&mut self, ask: &Ask, now: Micros) -> Ask {
        if ask.by == By::NOBODY {
            return *ask;
        }
        let (key, place) = self.of.settle(ask, now);
        self.new.extend(place);
        Ask { key, ..*ask }
    }

    /// All was taken.
    pub(in super::super) fn stay(mut self) {
        self.new.clear();
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        for place in &self.new {
            self.of.leave(place);
        }
    }
}

impl Local {
    /// The key that a wish is counted under, and who could have made it up: its own, where there is one already or
    /// there is room.
    pub(super) fn settle_on(&self, ask: &Ask, now: Micros) -> (Key, By) {
        let free = ask.by == By::NOBODY && self.beyond(ask).is_none();
        if free || self.shards[place(ask.key)].lock().has(ask) {
            return (ask.key, ask.by);
        }
        match self.make_room(ask, now) {
            None => (ask.key, ask.by),
            Some(others) => (ask.others(others), ask.by.all()),
        }
    }

    /// Where there is no room for one more, with whom it counts.
    fn beyond(&self, ask: &Ask) -> Option<By> {
        let keys = self.keys.load(Relaxed);
        let half = keys / 2;
        let open = ask.by.is_open();
        if self.held.load(Relaxed) >= keys || open && self.open.load(Relaxed) >= half {
            return Some(ask.by.all());
        }
        if !ask.by.has_share() {
            return None;
        }
        let most = if open {
            u32::try_from(half.div_ceil(GROUPS)).unwrap_or(u32::MAX)
        } else {
            u32::MAX
        };
        let most = if ask.chosen {
            most.min(self.share.load(Relaxed))
        } else {
            most
        };
        let has = self.groups.lock().get(&ask.by).copied().unwrap_or(0);
        (has >= most).then_some(ask.by)
    }

    /// Where there is no room, what is at rest goes first. Nothing, if there is room then.
    fn make_room(&self, ask: &Ask, now: Micros) -> Option<By> {
        let mut looked = 0;
        loop {
            let beyond = self.beyond(ask)?;
            if looked >= LOOKS || !self.may_hurry(now) {
                return Some(beyond);
            }
            looked += self.tick(now).max(1);
        }
    }

    /// Each shard once a second, however many newcomers find no room.
    fn may_hurry(&self, now: Micros) -> bool {
        let mut hurry = self.hurry.lock();
        if now.abs_diff(hurry.0) >= SECOND {
            *hurry = (now, 0);
        }
        hurry.1 += 1;
        hurry.1 <= SHARDS
    }

    /// For a call, none yet.
    pub(in super::super) fn places(&self) -> Places<'_> {
        Places {
            of: self,
            new: SmallVec::new(),
        }
    }

    /// The key to count a wish under in another store, and a place for it here while that may say anything, if it has
    /// none yet.
    fn settle(&self, ask: &Ask, now: Micros) -> (Key, Option<Place>) {
        let interval = ask.what.lasts(now);
        let what = What::Rate {
            interval,
            tolerance: 0,
        };
        let (key, by) = self.settle_on(&Ask { what, ..*ask }, now);
        if key != ask.key {
            return (key, None);
        }
        let rest = now.saturating_add(interval);
        let mut shard = self.shards[place(key)].lock();
        match shard.rates.entry(key) {
            // Whoever made it up first: as that it is counted when it goes.
            Entry::Occupied(mut word) => {
                word.get_mut().rest = rest;
                (key, None)
            }
            Entry::Vacant(free) => {
                free.insert(Word { rest, by });
                self.came(by); // before it can go
                (key, Some(Place { key, rest }))
            }
        }
    }

    /// A place that nothing came of, unless somebody else has come to it since.
    fn leave(&self, of: &Place) {
        let mut shard = self.shards[place(of.key)].lock();
        let word = shard.rates.get(&of.key);
        let Some(by) = word.filter(|w| w.rest == of.rest).map(|w| w.by) else {
            return;
        };
        shard.rates.remove(&of.key);
        drop(shard);
        self.held.fetch_sub(1, Relaxed);
        self.went(by, 1);
    }

    /// Under the lock of its shard, so that nothing goes before it came.
    pub(super) fn came(&self, by: By) {
        self.held.fetch_add(1, Relaxed);
        if by.is_open() {
            self.open.fetch_add(1, Relaxed);
        }
        if by.has_share() {
            *self.groups.lock().entry(by).or_default() += 1;
        }
    }

    /// What came before. None are less than none: a count that wraps would keep everybody out until a restart.
    pub(super) fn went(&self, by: By, many: u32) {
        if by.is_open() {
            let less = |open: usize| Some(open.saturating_sub(many as usize));
            let before = self.open.fetch_update(Relaxed, Relaxed, less);
            debug_assert!(before.is_ok_and(|open| open >= many as usize), "{by:?}");
        }
        if !by.has_share() {
            return;
        }
        let mut groups = self.groups.lock();
        let group = groups.entry(by);
        debug_assert!(
            matches!(&group, Entry::Occupied(c) if *c.get() >= many),
            "{by:?}"
        );
        if let Entry::Occupied(mut count) = group {
            *count.get_mut() = count.get().saturating_sub(many);
            if *count.get() == 0 {
                count.remove();
            }
        }
        if groups.capacity() > 4 * groups.len() + 1024 {
            groups.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = 1_700_000_000_000_000;
    const MINUTE: Micros = 60_000_000;

    fn ask(by: By) -> Ask {
        let key = Key::of(&["shared"]);
        Ask {
            key,
            rule: 0,
            stem: key,
            by,
            chosen: true,
            what: What::Rate {
                interval: MINUTE,
                tolerance: 0,
            },
        }
    }

    #[test]
    fn a_key_of_a_known_and_an_anonymous_caller_goes_as_it_came() {
        let known = By::known(6);
        let (anybody, network) = (By::anybody(None), By::anybody(Some(8)));
        for (first, second) in [
            (known, anybody),
            (anybody, known),
            (known, network),
            (network, known),
            (anybody, network),
        ] {
            let left = Local::new(100, 100);
            let place = left.settle(&ask(first), NOW).1.unwrap();
            assert!(left.settle(&ask(second), NOW).1.is_none());
            left.leave(&place);
            let swept = Local::new(100, 100);
            assert!(swept.settle(&ask(first), NOW).1.is_some());
            assert!(swept.settle(&ask(second), NOW + MINUTE / 2).1.is_none());
            for _ in 0..SHARDS {
                swept.tick(NOW + MINUTE);
            }
            assert_eq!(swept.held(), 1, "who came last keeps it");
            for _ in 0..SHARDS {
                swept.tick(NOW + 2 * MINUTE);
            }
            for local in [left, swept] {
                let counts = (local.held(), local.open.load(Relaxed));
                assert_eq!(counts, (0, 0), "{first:?} {second:?}");
                let groups = local.groups.lock();
                assert!(groups.is_empty(), "{groups:?}: {first:?} {second:?}");
            }
        }
    }
}
