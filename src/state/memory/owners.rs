//! Whose a task or a context is, in one process. One owner has at most its share, beyond which its own oldest is
//! forgotten; where there is too much of all, what is new is refused, and nobody loses anything by what others make.
//!
//! One lock for all: what is asked of it is a look-up, mostly.
use std::{sync::OnceLock, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::{
    Key,
    counters::Micros,
    owner::{Claimed, Known, Settings},
    persist::{Changed, Changes, Kept},
};

mod table;

use table::{Bounds, Owned, Table};

pub(in crate::state) struct Owners {
    began: Instant,
    table: Mutex<Table>,
    secret: OnceLock<[u8; 32]>,
}

impl Owners {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            began: Instant::now(),
            table: Mutex::new(Table::new(settings)),
            secret: OnceLock::new(),
        }
    }

    /// Goes by these from now on. What there is stays.
    pub(super) fn set(&self, settings: Settings) {
        let mut table = self.table.lock();
        table.bounds = Bounds::new(settings);
        if let Some(changed) = &mut table.changed {
            changed.set(settings.most.saturating_mul(2));
        }
    }

    fn now(&self) -> i64 {
        millis(self.began.elapsed())
    }

    pub(in crate::state) fn claim(&self, what: Key, owner: Key, name: u64) -> Claimed {
        let now = self.now();
        let mut table = self.table.lock();
        if let Some(by) = table.known(what, now) {
            return table.again(what, owner == by, now);
        }
        if table.held(owner) >= table.bounds.share {
            table.make_room(owner);
        } else if table.is_full(now) {
            return Claimed::Full;
        }
        table.add(Owned {
            what,
            by: owner,
            used: now,
            name: Some(name),
        });
        Claimed::New
    }

    /// False if it is another's. There is room for what exists already: an owner that has anything gives its oldest for
    /// it, so that there are never more than `most` and one for each who has none.
    pub(in crate::state) fn claim_surely(&self, what: Key, owner: Key) -> bool {
        let now = self.now();
        let mut table = self.table.lock();
        if let Some(by) = table.known(what, now) {
            return table.again(what, owner == by, now) == Claimed::Own;
        }
        if table.held(owner) >= table.bounds.share {
            table.make_room(owner);
        } else if table.is_full(now) {
            table.forget_oldest(owner);
        }
        table.add(Owned {
            what,
            by: owner,
            used: now,
            name: None,
        });
        true
    }

    pub(in crate::state) fn unclaim(&self, what: Key, owner: Key, name: u64) {
        let mut table = self.table.lock();
        let named = |owned: &Owned| owned.by == owner && owned.name == Some(name);
        if table.look(what).is_some_and(named) {
            table.forget(what);
        }
    }

    pub(in crate::state) fn has_room(&self, owner: Key) -> bool {
        let mut table = self.table.lock();
        table.held(owner) >= table.bounds.share || !table.is_full(self.now())
    }

    pub(in crate::state) fn owners(&self, of: &[Key], by: Key) -> Known {
        let now = self.now();
        let mut table = self.table.lock();
        let mut one = |what: &Key| {
            let owner = table.known(*what, now)?;
            if owner == by {
                table.used(*what, now);
            }
            Some(owner)
        };
        of.iter().map(&mut one).collect()
    }

    pub(in crate::state) fn secret(&self, offered: [u8; 32]) -> [u8; 32] {
        *self.secret.get_or_init(|| offered)
    }

    /// Forgets what nobody has used for long.
    pub(super) fn tick(&self) {
        let now = self.now();
        self.table.lock().lapse(now);
    }
}

/// In a file: who has it, and when that was last used, by the clock on the wall.
impl Kept for Owners {
    fn saves(&self) {
        let mut table = self.table.lock();
        let most = table.bounds.most.saturating_mul(2);
        table.changed = Some(Changes::none(most));
    }

    fn restore(&self, what: Key, saved: &[u8], wall: Micros) -> bool {
        let Some((by, used)) = saved.split_first_chunk::<16>() else {
            return false;
        };
        let Ok(used) = used.try_into().map(Micros::from_le_bytes) else {
            return false;
        };
        let now = self.now();
        let age = i64::try_from(wall.saturating_sub(used) / 1000).unwrap_or(i64::MAX);
        let used = now.saturating_sub(age);
        let mut table = self.table.lock();
        let good = used > table.bounds.lapsed(now);
        if good {
            table.restore(Owned {
                what,
                by: Key(*by),
                used,
                name: None,
            });
        }
        good
    }

    fn changed(&self, wall: Micros) -> Changed {
        let now = self.now();
        let mut table = self.table.lock();
        let Some(changes) = &mut table.changed else {
            return Changed::default();
        };
        let (all, keys) = (changes.is_all(), changes.take());
        let saved = |owned: &Owned| {
            let age = u64::try_from(now.saturating_sub(owned.used)).unwrap_or(0);
            let used = wall.saturating_sub(age.saturating_mul(1000));
            [owned.by.0.as_slice(), &used.to_le_bytes()].concat()
        };
        let of = if all {
            let each = table.iter();
            each.map(|owned| (owned.what, Some(saved(owned)))).collect()
        } else {
            let each = keys.into_iter();
            each.map(|what| (what, table.look(what).map(saved)))
                .collect()
        };
        Changed { of, all }
    }

    fn change_again(&self, keys: Vec<Key>) {
        let mut table = self.table.lock();
        for what in keys {
            table.changes(what);
        }
    }

    fn change_all(&self) {
        if let Some(changes) = &mut self.table.lock().changed {
            changes.add_all();
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests;
