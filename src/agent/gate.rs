//! The waker of one connection. Request, response body and connection are ends of channels inside hyper and
//! wake each other whenever something passes between them. They all live in one future here, which polls them
//! in turn, so these wakes are noise that would cost another poll of the whole call. The gate holds back what
//! rings while that future runs; it passes on what comes from outside.
//!
//! ```text
//!            enter               ring
//! Outside ─────────► Inside ─────────► Rung
//!    ▲                  │                │
//!    └──────────────────┴────────────────┘  leave, which says whether it rang
//! ```
//!
//! It also knows whether anything rang since the connection was polled last. If nothing did, polling it again would
//! show nothing, and that costs as much as reading an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

const OUTSIDE: u8 = 0;
const INSIDE: u8 = 1;
const RUNG: u8 = 2;

/// Wakes the task that polls the connection, unless that task is polling it just now.
pub(super) struct Gate {
    state: AtomicU8,
    stirred: AtomicBool,
    task: AtomicWaker,
}

impl Default for Gate {
    /// Of a connection that was not polled yet.
    fn default() -> Self {
        Self {
            state: AtomicU8::new(OUTSIDE),
            stirred: AtomicBool::new(true),
            task: AtomicWaker::new(),
        }
    }
}

impl Gate {
    /// Whether anything rang since this was last asked, just before the connection was polled.
    pub(super) fn stirred(&self) -> bool {
        self.stirred.load(Ordering::Relaxed) && self.stirred.swap(false, Ordering::AcqRel)
    }

    /// From here to `leave`, rings are only remembered.
    pub(super) fn enter(&self, task: &Waker) {
        self.task.register(task);
        self.state.store(INSIDE, Ordering::Release);
    }

    /// Forgets what rang up to now; right only just before the connection is polled, which sees for itself.
    pub(super) fn hush(&self) {
        self.state.store(INSIDE, Ordering::Release);
    }

    /// Whether something rang since `hush`. Who goes to sleep now must look to it.
    pub(super) fn leave(&self) -> bool {
        self.state.swap(OUTSIDE, Ordering::AcqRel) == RUNG
    }

    /// Nobody waits for the connection any more: an idle one must not wake the task that last used it.
    pub(super) fn rest(&self) {
        self.task.take();
        self.state.store(OUTSIDE, Ordering::Release);
    }
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.stirred.store(true, Ordering::Release);
        let rung = self
            .state
            .compare_exchange(INSIDE, RUNG, Ordering::AcqRel, Ordering::Acquire);
        if rung == Err(OUTSIDE) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stirs_once_for_all_that_rang() {
        let gate = Arc::new(Gate::default());
        assert!(gate.stirred());
        assert!(!gate.stirred());
        gate.enter(Waker::noop());
        for _ in 0..2 {
            Arc::clone(&gate).wake();
        }
        assert!(gate.stirred());
        assert!(!gate.stirred());
        assert!(gate.leave());
    }
}
