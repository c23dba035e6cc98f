//! The slot of one conversation, as a plain state machine: who holds it, and what may free it. No clock and no
//! store: the time is an argument, and a store keeps the [`Entry`].
//!
//! ```text
//!         take                    the task is known, and: not at rest, the caller left, a fault, a reset
//! Free ─────────► InFlight ─────────────────────────────────────────────────────────────────► Held
//!  ▲                 │ at rest, a bare message, a fault "not started" before any task           │
//!  ◄─────────────────┤                                                        at rest (asked    │
//!  ▲                 │ reset, timeout, 5xx, no task known                     since it is Held) │
//!  │                 └───────────────────► Unknown ─── named after a lapse ───────────────────► │
//!  ◄── no task ──────────────────────────────┘                                                  │
//!  ◄────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Every change of a holder raises its generation, a lapse and the renewal after it included, so that evidence
//! gathered before a change never counts after it. A lapsed lease leads to Held or Unknown, never to Free.
//!
//! An entry mostly has one holder. A message that went out before its conversation was known (its reply names
//! one that is taken) becomes a further one: then all must come to rest.
use std::time::Duration;

use smallvec::SmallVec;

/// Milliseconds on the store's clock.
pub type Millis = u64;

/// What a holder is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A message is out, and a gateway waits for its answer.
    InFlight,
    /// Nobody waits, but its task may go on.
    Held,
    /// Nobody waits, and whether it has a task is not known.
    Unknown,
}

impl Phase {
    /// Its name, for people and stores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Held => "held",
            Self::Unknown => "unknown",
        }
    }

    /// The phase of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::InFlight, Self::Held, Self::Unknown]
            .into_iter()
            .find(|p| p.name() == name)
    }
}

/// Who sent a message: a digest of the caller. Callers without any credential are one to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asker(pub u64);

impl Asker {
    const ANONYMOUS: u64 = 1 << 63;

    /// A caller whom the agent can tell from others.
    pub const fn known(digest: u64) -> Self {
        Self(digest & !Self::ANONYMOUS)
    }

    /// A caller without a credential, by what tells it apart here.
    pub const fn anonymous(digest: u64) -> Self {
        Self(digest | Self::ANONYMOUS)
    }

    /// Whether the agent answers both alike: only then does *not found* say that there is nothing.
    pub const fn sees_as(self, other: Self) -> bool {
        self.0 == other.0 || self.0 & other.0 & Self::ANONYMOUS != 0
    }
}

/// The times that the machine goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a holder that says nothing is believed to be there; `None` where it cannot die alone.
    pub lease: Option<Duration>,
    /// How long after a message went out its agent may not show it yet.
    pub settle: Duration,
    /// The longest that a slot stays taken without news.
    pub max_hold: Duration,
}

/// A holder as it was seen: evidence asked for then counts only while both still match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose.
    pub token: u64,
    /// How often it had changed.
    pub generation: u32,
}

/// One message that has the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Names this holding; random.
    pub token: u64,
    /// How often it changed.
    pub generation: u32,
    /// What it is doing.
    pub phase: Phase,
    /// Its task, once known.
    pub task: Option<Box<str>>,
    /// The message resumed that task, which may thus still show the state of before it.
    pub resumes: bool,
    /// Who sent it.
    pub asker: Asker,
    /// When it was taken.
    pub taken: Millis,
    /// From when on *none*, *not found* and an interrupted state of a resumed task count.
    pub settled: Millis,
    /// When it lapses, while in flight.
    pub lease: Millis,
    /// When it is given up without evidence.
    pub until: Millis,
}

/// A message that wants the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// Names the holding that begins; random.
    pub token: u64,
    /// Who sends it.
    pub asker: Asker,
    /// The task that it resumes.
    pub task: Option<&'a str>,
}

/// How a holding ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing runs.
    Free,
    /// This task may run; `None` for the one that is known already.
    Held(Option<Box<str>>),
    /// Something may run.
    Unknown,
}

impl Holder {
    fn new(of: &Newcomer<'_>, now: Millis, times: &Times) -> Self {
        let mut holder = Self {
            token: of.token,
            generation: 0,
            phase: Phase::InFlight,
            task: of.task.map(Into::into),
            resumes: of.task.is_some(),
            asker: of.asker,
            taken: now,
            settled: 0,
            lease: 0,
            until: 0,
        };
        holder.renew(now, times);
        holder
    }

    /// What evidence is compared with.
    pub const fn mark(&self) -> Mark {
        Mark {
            token: self.token,
            generation: self.generation,
        }
    }

    fn renew(&mut self, now: Millis, times: &Times) {
        (self.lease, self.until) = if let Some(lease) = times.lease {
            (now + millis(lease), now + millis(times.max_hold))
        } else {
            // In one process the holder is a value: it is there until it is dropped.
            (Millis::MAX, Millis::MAX)
        };
    }

    /// Into Held or Unknown. Evidence counts from `settled` on.
    fn leave(&mut self, now: Millis, settled: Millis, times: &Times) {
        self.phase = match self.task {
            Some(_) => Phase::Held,
            None => Phase::Unknown,
        };
        self.generation += 1;
        self.settled = settled;
        self.until = now + millis(times.max_hold);
    }
}

/// Who holds one conversation; nobody is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Mostly one.
    pub holders: SmallVec<[Holder; 1]>,
}

impl Entry {
    /// Lets time pass: leases lapse, and what nobody had news of for too long is given up.
    pub fn lapse(&mut self, now: Millis, times: &Times) {
        for holder in &mut self.holders {
            if holder.phase == Phase::InFlight && holder.lease <= now {
                // A message goes out only while its lease has `settle` left: the agent shows it by now.
                let until = holder.until;
                holder.leave(now, now, times);
                holder.until = until;
            }
        }
        self.holders.retain(|h| h.until > now);
    }

    /// Whether nobody holds it.
    pub fn is_free(&self) -> bool {
        self.holders.is_empty()
    }

    /// The holder whom a newcomer finds: one that is in flight if there is any, since no question helps then.
    pub fn holder(&self) -> Option<&Holder> {
        let in_flight = self.holders.iter().find(|h| h.phase == Phase::InFlight);
        in_flight.or(self.holders.first())
    }

    /// Takes it if it is free.
    pub fn take(&mut self, of: &Newcomer<'_>, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let free = self.is_free();
        if free {
            self.holders.push(Holder::new(of, now, times));
        }
        free
    }

    /// A message that is out already turns out to be of this conversation. True if another holds it too.
    pub fn join(&mut self, of: &Newcomer<'_>, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let overlap = !self.is_free();
        let mut holder = Holder::new(of, now, times);
        holder.resumes = false; // its task began with it
        self.holders.push(holder);
        overlap
    }

    /// Takes it from the holder that evidence was gathered against, if nothing changed since. Where another
    /// holds it as well, that one is to be asked next.
    pub fn take_over(&mut self, seen: Mark, of: &Newcomer<'_>, now: Millis, times: &Times) -> bool {
        self.free(seen, now, times);
        self.take(of, now, times)
    }

    /// Evidence that the marked holder's task is at rest, or never was. False if it changed since.
    pub fn free(&mut self, seen: Mark, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let before = self.holders.len();
        self.holders
            .retain(|h| h.phase == Phase::InFlight || h.mark() != seen);
        self.holders.len() != before
    }

    /// Evidence that the marked holder's task goes on, or, where it has none, some task of the conversation: it has
    /// that long again. A task that a list shows need not be that of the message whose answer was lost, so that it
    /// does not become the holder's: it could come to rest before the message is shown.
    pub fn goes_on(&mut self, seen: Mark, now: Millis, times: &Times) {
        self.lapse(now, times);
        let found = self.holders.iter_mut().find(|h| h.mark() == seen);
        if let Some(holder) = found.filter(|h| h.phase != Phase::InFlight) {
            holder.until = now + millis(times.max_hold); // no evidence loses its worth by it
        }
    }

    /// The holder learns its task.
    pub fn name(&mut self, token: u64, task: &str, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let Some(holder) = self.of(token) else {
            return false;
        };
        if holder.task.as_deref() != Some(task) {
            holder.task = Some(task.into());
            holder.generation += 1;
            holder.resumes = false;
        }
        if holder.phase == Phase::Unknown {
            holder.phase = Phase::Held;
        }
        true
    }

    /// The holder is still there. False if it has lost the slot.
    pub fn renew(&mut self, token: u64, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let Some(holder) = self.of(token) else {
            return false;
        };
        if holder.phase != Phase::InFlight {
            holder.phase = Phase::InFlight;
            holder.generation += 1;
        }
        holder.renew(now, times);
        true
    }

    /// The holder is done. False if it has lost the slot.
    pub fn settle(&mut self, token: u64, end: &End, now: Millis, times: &Times) -> bool {
        self.lapse(now, times);
        let Some(holder) = self.of(token) else {
            return false;
        };
        match end {
            End::Free => self.holders.retain(|h| h.token != token),
            End::Held(task) => {
                if let Some(task) = task {
                    if holder.task.as_ref() != Some(task) {
                        holder.resumes = false;
                    }
                    holder.task = Some(task.clone());
                }
                holder.leave(now, now + millis(times.settle), times);
            }
            End::Unknown => holder.leave(now, now + millis(times.settle), times),
        }
        true
    }

    fn of(&mut self, token: u64) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|h| h.token == token)
    }
}

/// As the store counts.
pub(super) fn millis(d: Duration) -> Millis {
    Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX / 4)
}
