//! Who has what, in the order of use: of all, and of each owner. Both orders are lists through one table of slots, so
//! that a use moves a few numbers and looks for nothing.
use std::{collections::HashMap, time::Duration};

use super::millis;
use crate::state::{
    ByKey, Key,
    owner::{Claimed, Settings},
    persist::Changes,
};

/// So many of an owner's last days are told apart by how long ago they were: a use soon after another says nothing new.
const GRAINS: u32 = 100;
/// And a use after this does.
const GRAIN: Duration = Duration::from_mins(1);

/// So many lapsed ones are forgotten in one go.
const BATCH: usize = 1000;

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Table {
    pub(super) bounds: Bounds,
    places: HashMap<Key, u32, ByKey>,
    slots: Vec<Slot>,
    /// Slots that are free.
    free: Vec<u32>,
    all: List,
    of: HashMap<Key, Share, ByKey>,
    /// Something was restored behind what was used later.
    unsorted: bool,
    /// What a file does not have yet, if there is one.
    pub(super) changed: Option<Changes>,
}

/// How much there may be, and for how long; times are milliseconds.
#[derive(Default)]
pub(super) struct Bounds {
    pub(super) most: usize,
    pub(super) share: usize,
    ttl: i64,
    /// A use so soon after another says nothing new.
    pub(super) grain: i64,
}

impl Bounds {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            most: settings.most,
            share: settings.share,
            ttl: millis(settings.ttl),
            grain: millis((settings.ttl / GRAINS).min(GRAIN)),
        }
    }

    /// What was last used then, or before, is nobody's.
    pub(super) fn lapsed(&self, now: i64) -> i64 {
        now.saturating_sub(self.ttl)
    }
}

/// Something that somebody has.
pub(super) struct Owned {
    pub(super) what: Key,
    pub(super) by: Key,
    /// When it was last used, in milliseconds from the beginning.
    pub(super) used: i64,
    /// The name of the claim that it can be taken back by.
    pub(super) name: Option<u64>,
}

struct Slot {
    owned: Owned,
    in_all: Link,
    in_share: Link,
}

/// The neighbours in a list.
#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy)]
struct List {
    oldest: u32,
    newest: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
        }
    }
}

/// What one owner has.
#[derive(Default)]
struct Share {
    list: List,
    held: usize,
}

impl Table {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            bounds: Bounds::new(settings),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// How much an owner has.
    pub(super) fn held(&self, owner: Key) -> usize {
        self.of.get(&owner).map_or(0, |share| share.held)
    }

    pub(super) fn look(&self, what: Key) -> Option<&Owned> {
        let place = *self.places.get(&what)?;
        Some(&self.slots[place as usize].owned)
    }

    pub(super) fn look_mut(&mut self, what: Key) -> Option<&mut Owned> {
        let place = *self.places.get(&what)?;
        Some(&mut self.slots[place as usize].owned)
    }

    /// All, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Owned> {
        let places = self.places.values();
        places.map(|place| &self.slots[*place as usize].owned)
    }

    /// What was not used for longest, of all.
    pub(super) fn oldest(&mut self) -> Option<&Owned> {
        self.sort();
        let slot = self.slots.get(self.all.oldest as usize)?; // NONE is no place
        Some(&slot.owned)
    }

    /// It is the newest now: of two who come at the same moment, the clock of the one that gets the lock last may be a
    /// little behind.
    pub(super) fn put(&mut self, owned: Owned) {
        self.forget(owned.what);
        self.add(owned);
    }

    /// The same for what is not there.
    pub(super) fn add(&mut self, mut owned: Owned) {
        let newest = self.slots.get(self.all.newest as usize);
        let newest = newest.map_or(i64::MIN, |newest| newest.owned.used);
        owned.used = owned.used.max(newest);
        self.append(owned);
    }

    /// What comes from a file comes in no order.
    pub(super) fn restore(&mut self, owned: Owned) {
        self.forget(owned.what);
        let newest = self.slots.get(self.all.newest as usize);
        self.unsorted |= newest.is_some_and(|newest| newest.owned.used > owned.used);
        self.append(owned);
    }

    fn append(&mut self, owned: Owned) {
        let (what, by) = (owned.what, owned.by);
        let link = Link {
            older: NONE,
            newer: NONE,
        };
        let slot = Slot {
            owned,
            in_all: link,
            in_share: link,
        };
        let place = if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("there is no memory for so many")
        };
        self.places.insert(what, place);
        let share = self.of.entry(by).or_default();
        share.held += 1;
        put_last(&mut self.all, place, &mut self.slots, |slot| {
            &mut slot.in_all
        });
        put_last(&mut share.list, place, &mut self.slots, |slot| {
            &mut slot.in_share
        });
        self.changes(what);
    }

    pub(super) fn forget(&mut self, what: Key) {
        let Some(place) = self.places.remove(&what) else {
            return;
        };
        let by = self.slots[place as usize].owned.by;
        unlink(&mut self.all, place, &mut self.slots, |slot| {
            &mut slot.in_all
        });
        if let Some(share) = self.of.get_mut(&by) {
            unlink(&mut share.list, place, &mut self.slots, |slot| {
                &mut slot.in_share
            });
            share.held -= 1;
            if share.held == 0 {
                self.of.remove(&by);
            }
        }
        self.free.push(place);
        if self.places.is_empty() {
            // Gives back room that a past crowd took.
            self.slots = vec![];
            self.free = vec![];
        }
        self.changes(what);
    }

    /// False if it has nothing.
    pub(super) fn forget_oldest(&mut self, owner: Key) -> bool {
        self.sort();
        let Some(share) = self.of.get(&owner) else {
            return false;
        };
        self.forget(self.slots[share.list.oldest as usize].owned.what);
        true
    }

    /// Who has it. What was not used for long is nobody's, and goes.
    pub(super) fn known(&mut self, what: Key, now: i64) -> Option<Key> {
        let known = self.look(what)?;
        if known.used <= self.bounds.lapsed(now) {
            self.forget(what);
            return None;
        }
        Some(known.by)
    }

    /// It is claimed again.
    pub(super) fn again(&mut self, what: Key, own: bool, now: i64) -> Claimed {
        if !own {
            return Claimed::Others;
        }
        if let Some(owned) = self.look_mut(what) {
            owned.name = None; // somebody else relies on it
        }
        self.used(what, now);
        Claimed::Own
    }

    /// Its owner uses it.
    pub(super) fn used(&mut self, what: Key, now: i64) {
        let Some(&Owned { by, used, name, .. }) = self.look(what) else {
            return;
        };
        if now.saturating_sub(used) >= self.bounds.grain {
            self.put(Owned {
                what,
                by,
                used: now,
                name,
            });
        }
    }

    /// For one more of an owner that has its share: its own oldest go.
    pub(super) fn make_room(&mut self, owner: Key) {
        while self.held(owner) >= self.bounds.share && self.forget_oldest(owner) {}
    }

    /// Whether there is no room for what is new, also without what was not used for long.
    pub(super) fn is_full(&mut self, now: i64) -> bool {
        if self.len() < self.bounds.most {
            return false;
        }
        self.lapse(now);
        self.len() >= self.bounds.most
    }

    /// Forgets what nobody has used for long.
    pub(super) fn lapse(&mut self, now: i64) {
        let lapsed = self.bounds.lapsed(now);
        for _ in 0..BATCH {
            match self.oldest() {
                Some(owned) if owned.used <= lapsed => {
                    let what = owned.what;
                    self.forget(what);
                }
                Some(_) | None => return,
            }
        }
    }

    pub(super) fn changes(&mut self, what: Key) {
        if let Some(changed) = &mut self.changed {
            changed.add(what);
        }
    }

    /// Once after a restart, before anybody asks for the oldest.
    fn sort(&mut self) {
        if !std::mem::take(&mut self.unsorted) {
            return;
        }
        let mut places: Vec<u32> = self.places.values().copied().collect();
        places.sort_unstable_by_key(|place| self.slots[*place as usize].owned.used);
        self.all = List::default();
        for share in self.of.values_mut() {
            share.list = List::default();
        }
        for place in places {
            put_last(&mut self.all, place, &mut self.slots, |slot| {
                &mut slot.in_all
            });
            let by = self.slots[place as usize].owned.by;
            if let Some(share) = self.of.get_mut(&by) {
                put_last(&mut share.list, place, &mut self.slots, |slot| {
                    &mut slot.in_share
                });
            }
        }
    }
}

/// Puts a slot at the end of a list that it is not in.
fn put_last(list: &mut List, place: u32, slots: &mut [Slot], link: fn(&mut Slot) -> &mut Link) {
    let older = std::mem::replace(&mut list.newest, place);
    *link(&mut slots[place as usize]) = Link { older, newer: NONE };
    match slots.get_mut(older as usize) {
        Some(older) => link(older).newer = place,
        None => list.oldest = place,
    }
}

fn unlink(list: &mut List, place: u32, slots: &mut [Slot], link: fn(&mut Slot) -> &mut Link) {
    let Link { older, newer } = *link(&mut slots[place as usize]);
    match slots.get_mut(older as usize) {
        Some(older) => link(older).newer = newer,
        None => list.oldest = newer,
    }
    match slots.get_mut(newer as usize) {
        Some(newer) => link(newer).older = older,
        None => list.newest = older,
    }
}
