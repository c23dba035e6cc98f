//! What a file does not have yet. While it cannot be written that grows, also by what is gone again since; so beyond a
//! bound nothing is noted any more, and all is written anew.
use std::collections::HashSet;

use super::Change;
use crate::state::{ByKey, Key};

/// What has changed, as it is now.
#[derive(Debug, Default)]
pub struct Changed {
    /// The entries.
    pub of: Vec<Change>,
    /// They are all that there is: whatever else the file has is gone.
    pub all: bool,
}

/// The keys of what has changed since it was last saved.
pub struct Changes {
    keys: HashSet<Key, ByKey>,
    most: usize,
    all: bool,
}

impl Changes {
    /// None yet, and at most so many.
    pub fn none(most: usize) -> Self {
        Self {
            keys: HashSet::default(),
            most,
            all: false,
        }
    }

    /// From now on at most so many.
    pub const fn set(&mut self, most: usize) {
        self.most = most;
    }

    /// One has changed, or is gone.
    pub fn add(&mut self, key: Key) {
        if self.all {
            return;
        }
        self.keys.insert(key);
        if self.keys.len() > self.most {
            self.add_all();
        }
    }

    /// All is to be written anew.
    pub fn add_all(&mut self) {
        self.keys = HashSet::default();
        self.all = true;
    }

    /// Whether it is.
    pub const fn is_all(&self) -> bool {
        self.all
    }

    /// The keys, where it is not all. From now on there are none.
    pub fn take(&mut self) -> HashSet<Key, ByKey> {
        self.all = false;
        std::mem::take(&mut self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{
        counters::{Ask, By, Micros, What, memory::Local},
        persist::Kept as _,
    };

    const SECOND: Micros = 1_000_000;

    /// Once a second.
    fn ask(name: &str) -> Ask {
        Ask {
            key: Key::of(&[name]),
            rule: 0,
            stem: Key::of(&["rule"]),
            by: By::NOBODY,
            chosen: false,
            what: What::Rate {
                interval: SECOND,
                tolerance: 0,
            },
        }
    }

    #[test]
    fn what_cannot_be_saved_does_not_grow_with_what_is_gone() {
        let counts = Local::new(640, 640);
        counts.saves();
        let mut now = 1000 * SECOND;
        let mut last = 0;
        for n in 0..200 {
            for m in 0..100 {
                counts.take(&[ask(&format!("{n} {m}"))], now).unwrap();
            }
            now += SECOND;
            for _ in 0..64 {
                counts.tick(now);
            }
            counts.take(&[ask("stays")], now).unwrap();
            let changed = counts.changed(now);
            last = changed.of.len();
            assert!(last <= 2 * 640 + 64 * 64, "{n}: {last}");
            if changed.all {
                counts.change_all();
            } else {
                let keys = changed.of.into_iter().map(|(key, _)| key);
                counts.change_again(keys.collect());
            }
            now += SECOND;
        }
        assert_eq!(last, 1, "what there is, of 20,000 that were");
        let changed = counts.changed(now - SECOND);
        let keys: Vec<Key> = changed.of.iter().map(|(key, _)| *key).collect();
        assert_eq!((changed.all, keys), (true, vec![Key::of(&["stays"])]));
        let changed = counts.changed(now);
        assert!(changed.of.is_empty() && !changed.all, "it is saved");
    }
}
