//! A bounded map that forgets the oldest: two halves, and when the young one is full it becomes the old one.
use std::collections::HashMap;

use super::{ByKey, Key};

/// At most `limit` entries; at least the newest half of that many is kept. Reading refreshes.
#[derive(Debug)]
pub struct Recent<V> {
    young: HashMap<Key, V, ByKey>,
    old: HashMap<Key, V, ByKey>,
    half: usize,
}

impl<V> Recent<V> {
    /// An empty one.
    pub fn new(limit: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            half: (limit / 2).max(1),
        }
    }

    /// From now on at most so many; those that are beyond go as new ones come.
    pub fn set(&mut self, limit: usize) {
        self.half = (limit / 2).max(1);
    }

    /// The value, which counts as new then.
    pub fn get(&mut self, key: &Key) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.put(*key, value);
        }
        self.young.get_mut(key)
    }

    /// Sets the value.
    pub fn put(&mut self, key: Key, value: V) {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Forgets one.
    pub fn remove(&mut self, key: &Key) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &V)> {
        self.young.iter().chain(&self.old)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_and_what_is_read_stays() {
        let key = |k: u8| Key([k; 16]);
        let mut recent = Recent::new(4);
        for k in 0..3 {
            recent.put(key(k), k);
        }
        assert_eq!(recent.get(&key(0)), Some(&mut 0));
        for k in 3..5 {
            recent.put(key(k), k);
        }
        assert!(recent.len() <= 4, "{}", recent.len());
        assert_eq!(recent.get(&key(1)), None);
        assert_eq!(recent.get(&key(4)), Some(&mut 4));
        assert_eq!(recent.remove(&key(4)), Some(4));
        assert_eq!(recent.get(&key(4)), None);
    }
}
