//! What is remembered of a message, in case its caller sends it again: what it said, as a digest, and what became
//! of it. Never the message, and never its answer.
//!
//! ```text
//! begin ─► Running ─► Rest, Left (its task is known), Message (no task), Unknown
//!   ▲         │ never begun       ▲                                        ▲
//!   └─────────┤                   │ its gateway has died, and its task is: │
//!             └───────────────────┴ known ─────────────────────── not known┘
//! ```
use super::Key;

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

impl Fate {
    /// Its name, for stores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Rest => "rest",
            Self::Left => "left",
            Self::Message => "message",
            Self::Unknown => "unknown",
        }
    }

    /// The fate of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        use Fate::{Left, Message, Rest, Running, Unknown};
        let all = [Running, Rest, Left, Message, Unknown];
        all.into_iter().find(|fate| fate.name() == name)
    }
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
}

/// What beginning a message gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is new, and remembered from now on.
    New,
    /// It was begun before. It runs only if its gateway is known to be there.
    Same(Record),
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
        }
    }

    /// Its gateway has died. What it sent may run on, and is not sent again.
    #[must_use]
    pub fn lapsed(mut self) -> Self {
        if self.fate == Fate::Running {
            self.fate = match self.task {
                Some(_) => Fate::Left,
                None => Fate::Unknown,
            };
        }
        self
    }

    /// What a newcomer with the same id finds.
    pub fn met_by(&self, new: &Self) -> Begun {
        if self.digest == new.digest {
            Begun::Same(self.clone())
        } else {
            Begun::Other
        }
    }
}
