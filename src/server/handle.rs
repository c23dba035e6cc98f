//! A hold on a server from elsewhere: to drain it, and to change what can be changed while it runs.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Counts, Running, Settings, Shared, followers, worker};

/// A server, as others see it. It keeps nothing alive.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    room: followers::Room,
}

impl Running {
    /// A hold on it.
    pub fn handle(&self) -> Handle {
        Handle {
            shared: Arc::clone(&self.shared),
            room: self.room.clone(),
        }
    }
}

impl Handle {
    #[cfg(test)]
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            room: followers::Room::new(1),
        }
    }

    /// Begins the drain, as [`Running::drain`] does.
    pub fn drain(&self) {
        self.shared.draining.cancel();
    }

    /// Whether a drain has begun.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.is_cancelled()
    }

    /// Whether new calls are refused.
    pub fn is_refusing(&self) -> bool {
        self.shared.is_refusing()
    }

    /// What the server counts.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// The longest that a drain can take from its beginning.
    pub fn longest_drain(&self) -> Duration {
        let settings = self.shared.settings();
        settings.drain_delay + settings.drain_grace + 2 * worker::GOODBYE
    }

    /// Goes by these from now on: connections and drains that begin later. Where it listens, its threads and its HTTP
    /// stay as they are.
    pub fn tune(&self, settings: &Settings) {
        let mut now = self.shared.settings.write();
        self.room.set(settings.max_followers);
        *now = Arc::new(Settings {
            name: now.name,
            listen: now.listen.clone(),
            tls: now.tls.clone(),
            max_age: now.max_age,
            workers: now.workers,
            sweep: now.sweep,
            http2: now.http2,
            ..settings.clone()
        });
        self.shared.changes.fetch_add(1, Relaxed);
    }
}
