//! The time that counts go by: the wall's, since it outlives the process, moved by the monotonic clock in between.
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use crate::state::counters::Micros;

/// Less than this is no correction of the wall's clock, but two readings that are not one.
const SLACK: i64 = 100_000;

/// A clock.
#[derive(Clone, Debug)]
pub struct Clock {
    began: Instant,
    /// The wall's time when it began.
    wall: Arc<AtomicI64>,
    /// Whether it follows the wall's corrections.
    follows: bool,
}

impl Clock {
    /// The wall's.
    pub fn wall() -> Self {
        Self {
            began: Instant::now(),
            wall: Arc::new(AtomicI64::new(wall())),
            follows: true,
        }
    }

    /// One that was this late when it was made, and goes with tokio's time.
    pub fn at(now: Micros) -> Self {
        Self {
            began: Instant::now(),
            wall: Arc::new(AtomicI64::new(now.cast_signed())),
            follows: false,
        }
    }

    /// Microseconds since 1970.
    pub fn now(&self) -> Micros {
        let passed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let now = self.wall.load(Relaxed).saturating_add(passed);
        now.max(0).cast_unsigned()
    }

    /// Follows the wall's clock where somebody set it.
    pub fn set(&self) {
        if !self.follows {
            return;
        }
        let (known, wall) = (self.wall.load(Relaxed), wall());
        let passed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        if (wall - known.saturating_add(passed)).abs() > SLACK {
            self.wall.store(wall.saturating_sub(passed), Relaxed); // by several workers at once, to the same
        }
    }
}

fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0))
}
