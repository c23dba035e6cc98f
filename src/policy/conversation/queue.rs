//! Who waits, in this process, for a conversation to come free: in order, and bounded in number and bytes.
use std::{collections::HashMap, pin::Pin, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedMutexGuard, futures::OwnedNotified},
    time::Instant,
};

use crate::state::{ByKey, Key};

/// All that wait.
pub(super) struct Queue {
    rooms: Mutex<HashMap<Key, Arc<Room>, ByKey>>,
    used: Mutex<Used>,
    most: Mutex<Used>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    messages: usize,
    bytes: usize,
}

/// Those that wait for one conversation.
#[derive(Default)]
struct Room {
    freed: Arc<Notify>,
    /// Whose turn it is: the lock is fair, so that this is the order of arrival.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Queue {
    pub(super) fn new(messages: usize, bytes: usize) -> Self {
        Self {
            rooms: Mutex::default(),
            used: Mutex::default(),
            most: Mutex::new(Used { messages, bytes }),
        }
    }

    /// From now on it is for so many; those that wait stay.
    pub(super) fn set(&self, messages: usize, bytes: usize) {
        *self.most.lock() = Used { messages, bytes };
    }

    /// A place before one conversation; nothing is kept until it waits.
    pub(super) fn place(&self, key: Key) -> Place<'_> {
        Place {
            queue: self,
            key,
            room: None,
            turn: None,
            bytes: None,
        }
    }

    pub(super) fn wake(&self, key: Key) {
        let room = self.rooms.lock().get(&key).cloned();
        if let Some(room) = room {
            room.freed.notify_waiters();
        }
    }
}

/// One newcomer's place. Dropping it gives it back.
pub(super) struct Place<'q> {
    queue: &'q Queue,
    key: Key,
    room: Option<Arc<Room>>,
    turn: Option<OwnedMutexGuard<()>>,
    bytes: Option<usize>,
}

/// There is no room to wait.
pub(super) struct NoRoom;

impl Place<'_> {
    /// Whether others wait for the same conversation.
    pub(super) fn others(&self) -> bool {
        self.queue.rooms.lock().contains_key(&self.key)
    }

    fn room(&mut self) -> Arc<Room> {
        let (rooms, key) = (&self.queue.rooms, self.key);
        let made = || rooms.lock().entry(key).or_default().clone();
        self.room.get_or_insert_with(made).clone()
    }

    /// Hears of the next time that the conversation comes free, from now on.
    pub(super) fn listen(&mut self) -> Pin<Box<OwnedNotified>> {
        let mut freed = Box::pin(self.room().freed.clone().notified_owned());
        freed.as_mut().enable();
        freed
    }

    /// Counts it among those that wait; once.
    pub(super) fn enter(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if self.bytes.is_some() {
            return Ok(());
        }
        let mut used = self.queue.used.lock();
        let most = *self.queue.most.lock();
        if used.messages >= most.messages || used.bytes.saturating_add(bytes) > most.bytes {
            return Err(NoRoom);
        }
        used.messages += 1;
        used.bytes += bytes;
        self.bytes = Some(bytes);
        Ok(())
    }

    /// Waits until those before it are gone, at most until then.
    pub(super) async fn turn(&mut self, until: Instant) {
        if self.turn.is_some() {
            return;
        }
        let turn = self.room().turn.clone().lock_owned();
        self.turn = tokio::time::timeout_at(until, turn).await.ok();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes {
            let mut used = self.queue.used.lock();
            used.messages -= 1;
            used.bytes -= bytes;
        }
        self.turn = None;
        let Some(room) = self.room.take() else { return };
        let mut rooms = self.queue.rooms.lock();
        // Ours, and the map's.
        if Arc::strong_count(&room) <= 2 {
            rooms.remove(&self.key);
        }
    }
}
