//! Calls that go on when their client has gone: an agent that was sent a message answers whether anybody listens or
//! not, and what the answer settles must be settled. Bounded, and a drain waits for them.

use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// How many may go on at once, over all workers.
#[derive(Clone, Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    most: usize,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        let most = limit.min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(most)),
            most,
        }
    }

    /// How many go on.
    pub(super) fn taken(&self) -> usize {
        self.most - self.places.available_permits()
    }
}

/// Takes over futures whose request is gone.
#[derive(Clone, Debug)]
pub struct Followers {
    room: Arc<Semaphore>,
    tracker: TaskTracker,
}

impl Followers {
    pub(super) fn new(room: &Room) -> Self {
        Self {
            room: Arc::clone(&room.places),
            tracker: TaskTracker::new(),
        }
    }

    /// Lets `work` go on by itself; it must bring its own deadline. Never waits, so `Drop` may call it. Returns false,
    /// and drops `work`, when too many go on already or no runtime is there.
    pub fn follow(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) -> bool {
        let Ok(handle) = Handle::try_current() else {
            return false;
        };
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
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
