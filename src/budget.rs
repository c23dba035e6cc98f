//! The bytes of bodies that are held in memory, counted over all calls: beyond the limit there is no more.
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use bytes::Bytes;

/// How many bytes all calls together may hold.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: AtomicUsize,
    used: AtomicUsize,
}

/// A body at least this large keeps its bytes counted until they are written.
const LARGE: usize = 64 * 1024;

impl Budget {
    /// At most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Shared {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
        }))
    }

    /// At most so many from now on; what is held stays.
    pub fn set(&self, limit: usize) {
        self.0.limit.store(limit, Relaxed);
    }

    /// Nothing held yet.
    pub fn hold(&self) -> Hold {
        Hold {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// What is held now.
    pub fn used(&self) -> usize {
        self.0.used.load(Relaxed)
    }
}

/// Some bytes of the budget; dropping it gives them back.
#[derive(Debug)]
pub struct Hold {
    budget: Budget,
    bytes: usize,
}

impl Hold {
    /// Takes so many more. False when they are not there, and then nothing is taken.
    pub fn grow(&mut self, more: usize) -> bool {
        let shared = &self.budget.0;
        let before = shared.used.fetch_add(more, Relaxed);
        if before.saturating_add(more) > shared.limit.load(Relaxed) {
            shared.used.fetch_sub(more, Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }

    /// Nothing held yet, of the same budget.
    #[must_use]
    pub fn another(&self) -> Self {
        self.budget.hold()
    }

    /// How many bytes this holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds just so many from now on; false when they are not there.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes >= self.bytes {
            return self.grow(bytes - self.bytes);
        }
        self.budget.0.used.fetch_sub(self.bytes - bytes, Relaxed);
        self.bytes = bytes;
        true
    }

    /// The bytes, counted for as long as anybody holds them. Small ones are written at once, so that the count
    /// is not worth an allocation.
    pub fn keep(mut self, bytes: Bytes) -> Bytes {
        if bytes.len() < LARGE {
            return bytes;
        }
        self.resize(bytes.len());
        Bytes::from_owner(Held { bytes, _hold: self })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Relaxed);
    }
}

struct Held {
    bytes: Bytes,
    _hold: Hold,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let budget = Budget::new(100_000);
        let mut one = budget.hold();
        assert!(one.grow(60_000));
        let mut two = budget.hold();
        assert!(!two.grow(60_000));
        assert!(two.grow(40_000));
        drop(two);
        assert!(one.resize(100_000));
        let bytes = one.keep(Bytes::from(vec![0; 100_000]));
        let copy = bytes.clone();
        drop(bytes);
        assert_eq!(budget.used(), 100_000);
        drop(copy);
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.hold().keep(Bytes::from_static(b"x")), "x");
    }
}
