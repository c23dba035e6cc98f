//! Calls that go on when their client has gone: an agent that was sent a message answers whether anybody listens or
//! not, and what the answer settles must be settled. Bounded, and a drain waits for them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// How many may go on at once, over all workers.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Hall>);

#[derive(Debug)]
struct Hall {
    most: AtomicUsize,
    going: AtomicUsize,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Hall {
            most: AtomicUsize::new(limit),
            going: AtomicUsize::new(0),
        }))
    }

    /// From now on it is for so many; those that go on already do.
    pub(super) fn set(&self, limit: usize) {
        self.0.most.store(limit, Relaxed);
    }

    /// How many go on.
    pub(super) fn taken(&self) -> usize {
        self.0.going.load(Relaxed)
    }

    fn take(&self) -> Option<Place> {
        let most = self.0.most.load(Relaxed);
        let more = |n: usize| (n < most).then_some(n + 1);
        self.0.going.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Place(Arc::clone(&self.0)))
    }
}

struct Place(Arc<Hall>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.going.fetch_sub(1, Relaxed);
    }
}

/// Takes over futures whose request is gone.
#[derive(Clone, Debug)]
pub struct Followers {
    room: Room,
    tracker: TaskTracker,
}

impl Followers {
    pub(super) fn new(room: &Room) -> Self {
        Self {
            room: room.clone(),
            tracker: TaskTracker::new(),
        }
    }

    /// Lets `work` go on by itself; it must bring its own deadline. Never waits, so `Drop` may call it. Returns false,
    /// and drops `work`, when too many go on already or no runtime is there.
    pub fn follow(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) -> bool {
        let Ok(handle) = Handle::try_current() else {
            return false;
        };
        let Some(place) = self.room.take() else {
            return false;
        };
        self.tracker.spawn_on(
            async move {
                work.await;
                drop(place);
            },
            &handle,
        );
        true
    }

    /// How many go on at this worker.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether none goes on at this worker.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Resolves when none is left.
    pub(super) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
