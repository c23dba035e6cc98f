//! How many connections there may be, over all workers. Whoever sends takes a permit first and keeps it until
//! the answer has ended. Idle connections hold no permit; they are closed, of whichever worker, when a new one
//! would be one too many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::error::Error;
use super::link::Link;
use super::streams::STREAMS;
use super::{Settings, after};

/// The permits shared by all workers' agents.
#[derive(Clone)]
pub struct Room(Arc<Hall>);

struct Hall {
    permits: Arc<Semaphore>,
    most: usize,
    open: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
}

impl Room {
    /// Room for `settings.max_connections`.
    pub fn new(settings: &Settings) -> Self {
        let share = if settings.http2 { STREAMS } else { 1 };
        let permits = settings.max_connections.saturating_mul(share);
        Self(Arc::new(Hall {
            permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            most: settings.max_connections,
            open: AtomicUsize::new(0),
            pools: Mutex::default(),
        }))
    }

    /// Whether both are one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits for a permit, for `wait` at most and not beyond `deadline`.
    pub(super) async fn enter(
        &self,
        wait: Duration,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(permit) = Arc::clone(&self.0.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let patience = after(wait);
        let permit = Arc::clone(&self.0.permits).acquire_owned();
        match tokio::time::timeout_at(patience.min(deadline), permit).await {
            Ok(Ok(permit)) => Ok(permit),
            Err(_) if deadline < patience => Err(Error::Timeout { sent: false }),
            // Nobody closes the semaphore.
            Ok(Err(_)) | Err(_) => Err(Error::Overloaded(wait)),
        }
    }

    /// Counts one more open connection, and closes an idle one if that is one too many. Permits bound the
    /// busy ones, so an idle one is there, save for one just on its way to or from a pool.
    pub(super) fn open(&self) -> Opened {
        if self.0.open.fetch_add(1, Ordering::Relaxed) >= self.0.most {
            let idle = locked(&self.0.pools)
                .iter()
                .filter_map(Weak::upgrade)
                .find_map(|pool| pool.oldest());
            drop(idle);
        }
        Opened(Arc::clone(&self.0))
    }

    pub(super) fn join(&self, pool: &Arc<Pool>) {
        let mut pools = locked(&self.0.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }
}

/// One open connection, counted until this is dropped.
pub(super) struct Opened(Arc<Hall>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One worker's idle connections; the last used is used first, so that the others can grow old.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "a link is large and moves in and out for each exchange"
)]
pub(super) struct Pool(Mutex<Vec<Box<Link>>>);

impl Pool {
    /// An idle connection that is still good.
    pub(super) fn take(&self, idle: Duration) -> Option<Box<Link>> {
        loop {
            let mut link = locked(&self.0).pop()?;
            if link.idle_since().elapsed() < idle && link.alive() {
                return Some(link);
            }
        }
    }

    /// Takes a connection whose exchange has ended, if it can serve another.
    pub(super) fn put(&self, mut link: Box<Link>) {
        if link.settle() {
            locked(&self.0).push(link);
        }
    }

    pub(super) fn sweep(&self, idle: Duration) {
        locked(&self.0).retain_mut(|link| link.idle_since().elapsed() < idle && link.alive());
    }

    fn oldest(&self) -> Option<Box<Link>> {
        let mut links = locked(&self.0);
        (!links.is_empty()).then(|| links.remove(0))
    }
}

/// What these locks guard is right between any two statements, so a panic elsewhere does not spoil it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
