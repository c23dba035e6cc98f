//! Whose a task or a context is. What is somebody's is a key, and so is who has it; the first who claims it has it, and
//! nobody takes it from them. A store that is away says so: to guess whose something is would be to give it away.
use std::{pin::Pin, time::Duration};

use super::{Key, Store, Trouble};

/// How much is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most that this process remembers; a shared store has no such bound.
    pub most: usize,
    /// How long, from the last use.
    pub ttl: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            most: 1000,
            ttl: Duration::from_hours(1),
        }
    }
}

/// A claim on its way: whether it holds, or to be waited for. What could not be told in time is told later, by the
/// store's own queue.
pub enum Claiming {
    /// True if it holds, false if it is another's.
    Done(bool),
    /// The same; `None` if that is not known in time.
    Wait(Pin<Box<dyn Future<Output = Option<bool>> + Send>>),
}

impl Store {
    /// Says that something belongs to an owner. False if it is another's.
    pub async fn claim(&self, what: Key, owner: Key) -> Result<bool, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.owners.claim(what, owner)),
            Self::Redis(r) => Box::pin(r.claim(what, owner)).await,
        }
    }

    /// The same for what exists already, so that it must not be lost.
    pub fn claim_surely(&self, what: Key, owner: Key) -> Claiming {
        match self {
            Self::Memory(m) => Claiming::Done(m.owners.claim(what, owner)),
            Self::Redis(r) => r.claim_surely(what, owner),
        }
    }

    /// Whose all this is, as far as it is known, in the same order.
    pub async fn owners(&self, of: Vec<Key>) -> Result<Vec<Option<Key>>, Trouble> {
        match self {
            Self::Memory(m) => Ok(of.into_iter().map(|what| m.owners.owner(what)).collect()),
            Self::Redis(r) => Box::pin(r.owners(of)).await,
        }
    }

    /// A secret that all who share the store have: the first that was offered.
    pub async fn secret(&self, offered: [u8; 32]) -> Result<[u8; 32], Trouble> {
        match self {
            Self::Memory(m) => Ok(m.owners.secret(offered)),
            Self::Redis(r) => Box::pin(r.secret(offered)).await,
        }
    }
}
