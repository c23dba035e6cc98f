//! What policies remember of calls that have ended, or are in flight elsewhere: who holds which conversation,
//! which context a task belongs to, which agent a context is bound to.
//!
//! Two stores. [`memory::Memory`] serves one process: its holders are values, which settle when dropped, so that its
//! leases never lapse. [`redis::Redis`] serves all replicas, with leases in the store's own time. Neither ever sees a
//! credential or content: keys are digests, and callers are, too.
use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

pub mod counters;
mod key;
pub mod memory;
pub mod owner;
pub mod persist;
pub mod recent;
pub mod redis;
pub mod retry;
pub mod slot;

pub use key::{ByKey, Key};

use self::redis::Redis;
use memory::Memory;
use retry::{Begun, Record};
use slot::{End, Entry, Holder, Mark, Newcomer};

/// What asking for a slot gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is the newcomer's. The message may go out while `settle` is left until then, by our own clock;
    /// `None` is for as long as the holder is there.
    Taken(Option<Instant>),
    /// It is another's, at this time of the store.
    Busy(Holder, slot::Millis),
    /// So many slots are taken that this one is refused.
    Full,
}

/// Why a store cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It does not answer, and settings forbid to go on without it.
    #[error("the state store does not answer")]
    Away,
    /// It has lost its data, and waits for the replicas to put their slots back.
    #[error("the state store came back empty and gathers what is in flight")]
    Quiet,
}

/// A settlement on its way: done at once, or to be waited for, at most as long as the store's deadline.
pub enum Settling {
    /// It is in the store, or the holder had lost the slot.
    Done,
    /// It is on its way; true if it got there in time. What does not is left to the store's own queue.
    Wait(Pin<Box<dyn Future<Output = bool> + Send>>),
}

/// One conversation, for a person.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its key.
    pub key: Key,
    /// Who holds it.
    pub entry: Entry,
    /// The store's time.
    pub now: slot::Millis,
}

/// Where it is kept.
#[derive(Clone)]
pub enum Store {
    /// In this process.
    Memory(Arc<Memory>),
    /// In a Redis or Valkey that all replicas share.
    Redis(Arc<Redis>),
}

impl Settling {
    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) => other,
            (one, Self::Done) => one,
            (Self::Wait(one), Self::Wait(other)) => {
                Self::Wait(Box::pin(async move { one.await & other.await }))
            }
        }
    }

    /// Waits for it, where there is something to wait for.
    pub async fn done(self) {
        if let Self::Wait(wait) = self {
            let _in_time = wait.await;
        }
    }
}

#[allow(
    clippy::unused_async,
    clippy::needless_pass_by_value,
    reason = "a store that others share has to be waited for"
)]
impl Store {
    /// Asks for a free slot.
    pub async fn take(&self, key: Key, of: &Newcomer<'_>) -> Result<Take, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.take(key, None, of)),
            Self::Redis(r) => Box::pin(r.take(key, None, of)).await,
        }
    }

    /// Takes a slot from the marked holder, on evidence that it is at rest.
    pub async fn take_over(
        &self,
        key: Key,
        seen: Mark,
        of: &Newcomer<'_>,
    ) -> Result<Take, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.take(key, Some(seen), of)),
            Self::Redis(r) => r.take(key, Some(seen), of).await,
        }
    }

    /// A message that is out already is of this conversation. Not waited for: nothing can be done about another
    /// that has it, but to say so.
    pub fn join(&self, key: Key, of: &Newcomer<'_>) {
        match self {
            Self::Memory(m) => {
                if m.join(key, of) {
                    overlap(key);
                }
            }
            Self::Redis(r) => r.join(key, of),
        }
    }

    /// The marked holder's task is at rest.
    pub fn free(&self, key: Key, seen: Mark) -> Settling {
        match self {
            Self::Memory(m) => {
                m.free(key, seen);
                Settling::Done
            }
            Self::Redis(r) => r.free(key, seen),
        }
    }

    /// The marked holder's task goes on, or some task of a conversation whose holder has none.
    pub async fn goes_on(&self, key: Key, seen: Mark) {
        match self {
            Self::Memory(m) => m.goes_on(key, seen),
            Self::Redis(r) => Box::pin(r.goes_on(key, seen)).await,
        }
    }

    /// The holder's task is known. Not waited for.
    pub fn name(&self, key: Key, token: u64, task: &str) {
        match self {
            Self::Memory(m) => m.name(key, token, task),
            Self::Redis(r) => r.name(key, token, task),
        }
    }

    /// The holder is done.
    pub fn settle(&self, key: Key, token: u64, end: End) -> Settling {
        match self {
            Self::Memory(m) => {
                m.settle(key, token, &end);
                Settling::Done
            }
            Self::Redis(r) => r.settle(key, token, end),
        }
    }

    /// The same, from where nobody can wait.
    pub fn settle_later(&self, key: Key, token: u64, end: End) {
        match self {
            Self::Memory(m) => m.settle(key, token, &end),
            Self::Redis(r) => r.settle_later(key, token, end),
        }
    }

    /// Who holds it, in any phase, and the store's time; `None` if it is free or that cannot be told.
    pub async fn look(&self, key: Key) -> Option<(Entry, slot::Millis)> {
        match self {
            Self::Memory(m) => m.look(key),
            Self::Redis(r) => Box::pin(r.look(key)).await,
        }
    }

    /// How many conversations are held, as far as this process knows: with a store that others share, those of its own
    /// calls.
    pub fn held(&self) -> usize {
        match self {
            Self::Memory(m) => m.held(),
            Self::Redis(r) => r.held(),
        }
    }

    /// Whether it can be asked.
    pub fn is_up(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Redis(r) => r.is_up(),
        }
    }

    /// Up to `limit` conversations that are held.
    pub async fn list(&self, limit: usize) -> Result<Vec<Shown>, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.list(limit)),
            Self::Redis(r) => Box::pin(r.list(limit)).await,
        }
    }

    /// Frees it, whoever holds it: for an operator. True if somebody did.
    pub async fn release(&self, key: Key) -> Result<bool, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.release(key)),
            Self::Redis(r) => Box::pin(r.release(key)).await,
        }
    }

    /// Remembers which context a task belongs to. Not waited for.
    pub fn learn(&self, task: Key, context: &str) {
        match self {
            Self::Memory(m) => m.learn(task, context),
            Self::Redis(r) => r.learn(task, context),
        }
    }

    /// The context that a task belongs to, if it was learned.
    pub async fn context_of(&self, task: Key) -> Option<Box<str>> {
        match self {
            Self::Memory(m) => m.context_of(task),
            Self::Redis(r) => Box::pin(r.context_of(task)).await,
        }
    }

    /// Binds a context to an agent, unless it is bound already: then to which.
    pub async fn bind(&self, context: Key, agent: &str) -> Result<Option<Box<str>>, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.bind(context, agent)),
            Self::Redis(r) => Box::pin(r.bind(context, agent)).await,
        }
    }

    /// At the end of the process: waits until what ended is in the store, at most that long.
    pub async fn close(&self, within: Duration) {
        match self {
            Self::Memory(m) => {
                if let Some(file) = m.file.get() {
                    file.close(); // which does not wait for ever either
                }
            }
            Self::Redis(r) => Box::pin(r.close(within)).await,
        }
    }

    /// The same binding, from where nobody can wait: it is known only now which context a message is of.
    pub fn bind_later(&self, context: Key, agent: &str) {
        match self {
            Self::Memory(m) => {
                m.bind(context, agent);
            }
            Self::Redis(r) => r.bind_later(context, agent),
        }
    }

    /// Remembers a message that is about to be sent, unless it was sent before.
    pub async fn begin_retry(&self, message: Key, new: Record) -> Result<Begun, Trouble> {
        match self {
            Self::Memory(m) => Ok(m.begin_retry(message, new)),
            Self::Redis(r) => Box::pin(r.begin_retry(message, new)).await,
        }
    }

    /// What became of a message so far. Not waited for: until it is known, the message counts as running.
    pub fn retry_is(&self, message: Key, record: Record) {
        match self {
            Self::Memory(m) => m.retry_is(message, record),
            Self::Redis(r) => r.retry_is(message, record),
        }
    }

    /// The message of this token was never begun: whoever sends it again sends a new one. Not waited for.
    pub fn forget_retry(&self, message: Key, token: u64) {
        match self {
            Self::Memory(m) => m.forget_retry(message, token),
            Self::Redis(r) => r.forget_retry(message, token),
        }
    }

    /// Whether other processes change it, too.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Memory(m) => m.leases(),
            Self::Redis(_) => true,
        }
    }

    /// Once a second, by anybody: forgets what is over.
    pub fn tick(&self) {
        match self {
            Self::Memory(m) => m.tick(),
            Self::Redis(_) => {} // its own task does that
        }
    }
}

/// Two messages of one conversation are out, since it was not known when the second was sent.
fn overlap(key: Key) {
    tracing::warn!(
        conversation = %key,
        "conversation_overlap: a reply named a context that another message has; both must come to rest"
    );
}
