//! Who has a place for a key: whether there is room for one more, and what comes and goes of those that anybody can make
//! up, and of groups.
use std::{collections::hash_map::Entry, sync::atomic::Ordering::Relaxed};

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
pub(in super::super) struct Place {
    key: Key,
    rest: Micros,
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
        let half = self.keys / 2;
        let open = ask.by.is_open();
        if self.held.load(Relaxed) >= self.keys || open && self.open.load(Relaxed) >= half {
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
            most.min(self.share)
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

    /// The key to count a wish under in another store, and a place for it here while that may say anything, if it has
    /// none yet.
    pub(in super::super) fn settle(&self, ask: &Ask, now: Micros) -> (Key, Option<Place>) {
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
        let new = shard.rates.insert(key, Word { rest, by }).is_none();
        drop(shard);
        if new {
            self.came(by);
        }
        (key, new.then_some(Place { key, rest }))
    }

    /// A place that nothing came of, unless somebody else has come to it since.
    pub(in super::super) fn leave(&self, of: &Place) {
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

    pub(super) fn came(&self, by: By) {
        self.held.fetch_add(1, Relaxed);
        if by.is_open() {
            self.open.fetch_add(1, Relaxed);
        }
        if by.has_share() {
            *self.groups.lock().entry(by).or_default() += 1;
        }
    }

    pub(super) fn went(&self, by: By, many: u32) {
        if by.is_open() {
            self.open.fetch_sub(many as usize, Relaxed);
        }
        if !by.has_share() {
            return;
        }
        let mut groups = self.groups.lock();
        if let Entry::Occupied(mut count) = groups.entry(by) {
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
