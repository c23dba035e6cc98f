//! What is remembered of a message, in case its caller sends it again: what it said, as a digest, and what became
//! of it. Never the message, and never its answer.
//!
//! ```text
//! begin ─► Running ─► Rest, Left (its task is known), Message (no task), Unknown
//!   ▲         │ never begun
//!   └─────────┘
//! ```
use super::{Key, slot::Millis};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A gateway waits for its answer, or reads it.
    Running,
    /// Its task was at rest.
    Rest,
    /// Its task may go on, but nobody here reads of it.
    Left,
    /// It was answered by a bare message.
    Message,
    /// It was sent, and what came of it is not known.
    Unknown,
}

/// One message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Names this sending; random.
    pub token: u64,
    /// What it said.
    pub digest: Key,
    /// What became of it.
    pub fate: Fate,
    /// Its task, as a reply named it.
    pub task: Option<Box<str>>,
    /// When it was begun; the store sets it.
    pub began: Millis,
}

/// What beginning a message gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is new, and remembered from now on.
    New,
    /// It was begun before, at that time; the second is the time now.
    Same(Record, Millis),
    /// Its id was that of a message that said something else.
    Other,
}

impl Record {
    /// A message that is about to be sent.
    pub const fn new(token: u64, digest: Key) -> Self {
        Self {
            token,
            digest,
            fate: Fate::Running,
            task: None,
            began: 0,
        }
    }

    /// What a newcomer with the same id finds.
    pub fn met_by(&self, new: &Self, now: Millis) -> Begun {
        if self.digest == new.digest {
            Begun::Same(self.clone(), now)
        } else {
            Begun::Other
        }
    }
}
