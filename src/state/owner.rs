//! Whose a task or a context is. What is somebody's is a key, and so is who has it; the first who claims it has it, and
//! nobody takes it from them. A store that is away says so: to guess whose something is would be to give it away.
//!
//! A claim has a name while nobody relies on it but the call that made it: until then the call can take it back, if it
//! comes to nothing. Whoever claims the same for the same owner makes it last.
//!
//! In memory, what one owner has is bounded, and its own oldest goes first; where all that is remembered reaches its
//! bound, new things are refused and nobody's are forgotten. A shared store forgets only what its owner has not used for
//! `ttl`: its size is bounded by that and by nothing here. A store that evicts keys (`maxmemory-policy`) forgets owners,
//! too.
use std::{io, path::Path, pin::Pin, sync::Arc, time::Duration};

use smallvec::SmallVec;

use super::{
    Key, Store, Trouble,
    counters::Micros,
    persist::{All, COUNTS, Kept, OWNERS, Persist},
};

/// How much is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most that this process remembers; a shared store has no such bound.
    pub most: usize,
    /// The most of it that is one owner's.
    pub share: usize,
    /// How long, from the last use by its owner.
    pub ttl: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            most: 1000,
            share: 100,
            ttl: Duration::from_hours(1),
        }
    }
}

/// What is asked about: mostly a task, a context, or both.
pub type Keys = SmallVec<[Key; 2]>;

/// Whose each is, in the same order; nobody's, as far as is known, where there is none.
pub type Known = SmallVec<[Option<Key>; 2]>;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Nobody had it. It can be taken back under the name that it was claimed by.
    New,
    /// It was the owner's before, and is for good.
    Own,
    /// It is another's.
    Others,
    /// It is nobody's, and there is no room to remember it.
    Full,
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
    /// Says that something belongs to an owner, under a name that no other claim has.
    pub async fn claim(&self, what: Key, owner: Key, name: u64) -> Result<Claimed, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.owners.claim(what, owner, name)),
            Self::Redis(r) => Box::pin(r.claim(what, owner, name)).await,
        }
    }

    /// Takes a new claim back, unless somebody relies on it by now. Not waited for.
    pub fn unclaim(&self, what: Key, owner: Key, name: u64) {
        match self {
            Self::Memory(m) => m.owners.unclaim(what, owner, name),
            Self::Redis(r) => r.unclaim(what, owner, name),
        }
    }

    /// Claims what exists already, so that it must not be lost.
    pub fn claim_surely(&self, what: Key, owner: Key) -> Claiming {
        match self {
            Self::Memory(m) => Claiming::Done(m.owners.claim_surely(what, owner)),
            Self::Redis(r) => r.claim_surely(what, owner),
        }
    }

    /// Whether something new of this owner would be remembered.
    pub fn has_room(&self, owner: Key) -> bool {
        match self {
            Self::Memory(m) => m.owners.has_room(owner),
            Self::Redis(_) => true,
        }
    }

    /// Whose all this is, as far as it is known, in the same order. What is that of `by`, who asks, counts as used.
    pub async fn owners(&self, of: Keys, by: Key) -> Result<Known, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.owners.owners(&of, by)),
            Self::Redis(r) => Ok(Box::pin(r.owners(of.into_vec(), by)).await?.into()),
        }
    }

    /// A secret that all who share the store have: the first that was offered.
    pub async fn secret(&self, offered: [u8; 32]) -> Result<[u8; 32], Trouble> {
        match self {
            Self::Memory(m) => Ok(m.owners.secret(offered)),
            Self::Redis(r) => Box::pin(r.secret(offered)).await,
        }
    }

    /// Keeps the owners, and these counts if there are any, in a file of this process until the store is closed. A
    /// shared store keeps them itself.
    pub fn persist(
        &self,
        path: &Path,
        counts: Option<Arc<dyn Kept>>,
        now: impl Fn() -> Micros + Send + 'static,
    ) -> io::Result<Option<Arc<Persist>>> {
        let Self::Memory(memory) = self else {
            return Ok(None);
        };
        if let Some(file) = memory.file.get() {
            return Ok(Some(file.clone()));
        }
        let mut all: All = vec![(OWNERS, memory.owners.clone())];
        all.extend(counts.map(|counts| (COUNTS, counts)));
        let file = Arc::new(Persist::start(path, all, now)?);
        Ok(Some(memory.file.get_or_init(|| file).clone()))
    }
}
