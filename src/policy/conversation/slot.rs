//! The right to send one message, until its task is at rest or somebody else looks after it.
use tokio::time::Instant;

use super::{Conversations, Wanted, slot_key, task_key};
use crate::{
    a2a::{
        Fault, Kind,
        answer::{Named, Seen},
        shape::State,
    },
    state::{
        Key, Settling,
        slot::{End, Mark, Newcomer},
    },
};

/// Admission of one message. Dropping it settles it, once, without waiting: unsent frees, what may be running never.
pub struct Slot {
    of: Conversations,
    wanted: Wanted,
    /// The slot; none before the first reply names the context.
    key: Option<Key>,
    token: u64,
    /// The message may go out until then, by our clock.
    until: Option<Instant>,
    phase: Phase,
    /// A reply named the task, or the message did.
    task: Option<Box<str>>,
    /// A reply told of a task: from then on no fault says that nothing began.
    replied: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent.
    Unsent,
    /// The agent may have it.
    Out,
    /// It came to rest; its stream may go on all the same.
    Settled,
}

impl Slot {
    pub(super) fn new(
        of: &Conversations,
        wanted: Wanted,
        key: Key,
        token: u64,
        until: Option<Instant>,
    ) -> Self {
        Self {
            of: of.clone(),
            task: wanted.task.as_deref().map(Into::into),
            wanted,
            key: Some(key),
            token,
            until,
            phase: Phase::Unsent,
            replied: false,
        }
    }

    /// For a message whose context is not known.
    pub(super) fn open(of: &Conversations, wanted: Wanted) -> Self {
        let mut slot = Self::new(of, wanted, Key([0; 16]), of.token(), None);
        slot.key = None;
        slot
    }

    /// The message is about to go out. Refused where the lease is too short: another might ask the agent, who
    /// does not show the message yet, and be told that nothing runs.
    pub fn goes_out(&mut self) -> Result<(), Fault> {
        let settle = self.of.0.settings.settle;
        if self
            .until
            .is_some_and(|until| Instant::now() + settle > until)
        {
            let mut fault = Fault::new(
                Kind::Overloaded,
                "the conversation's lease ran out before its message was sent",
            );
            fault.retry_after = Some(1);
            return Err(fault);
        }
        self.phase = Phase::Out;
        Ok(())
    }

    /// Whether somebody else could look after it: its task is known, or it is settled.
    pub fn can_be_left(&self) -> bool {
        self.phase != Phase::Out || self.task.is_some()
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        self.key.is_none() || self.task.is_none() || !self.replied
    }

    /// An answer or an event. What it settles is to be waited for before the client sees it.
    pub fn seen(&mut self, seen: &Seen) -> Settling {
        // After a task was told, a bare message says nothing of it.
        let bare = seen.message && !self.replied;
        let rest = matches!(seen.state, Some(State::Terminal | State::Interrupted));
        self.named(&seen.named, seen.state);
        self.replied |= seen.task || seen.update || seen.named.task.is_some();
        if rest || bare {
            return self.settle(&End::Free);
        }
        if seen.state.is_some() && self.phase == Phase::Settled {
            self.goes_on_by_itself();
        }
        Settling::Done
    }

    /// The last of a document: a task that is not at rest goes on without us.
    pub fn left(&mut self) -> Settling {
        let end = self.end();
        self.settle(&end)
    }

    /// It failed, before or after somebody answered. Free only if the agent cannot have begun.
    pub fn failed(&mut self, fault: &Fault, answered: bool) -> Settling {
        let may_run = fault.may_have_started(answered) || self.replied;
        let end = if may_run { self.end() } else { End::Free };
        self.settle(&end)
    }

    fn end(&self) -> End {
        match (&self.task, self.phase) {
            (_, Phase::Unsent) => End::Free,
            (Some(task), _) => End::Held(Some(task.clone())),
            (None, _) => End::Unknown,
        }
    }

    /// What a reply names, once. A slot that is freed next need not learn its task, and nobody resumes a task that is
    /// over: what it was of is not remembered.
    fn named(&mut self, named: &Named, state: Option<State>) {
        let rest = matches!(state, Some(State::Terminal | State::Interrupted));
        let store = &self.of.0.store;
        if let (None, Some(context)) = (self.key, &named.context) {
            let key = slot_key(&self.wanted.scope, context);
            self.key = Some(key);
            self.wanted.context = Some(context.to_string());
            let newcomer = Newcomer {
                token: self.token,
                asker: self.wanted.asker,
                task: self.task.as_deref(),
            };
            store.join(key, &newcomer);
            if let Some(agent) = &self.wanted.agent {
                store.bind_later(Key::of(&["bound", &self.wanted.scope, context]), agent);
            }
        }
        let Some(task) = &named.task else { return };
        if self.task.as_ref() != Some(task) {
            self.task = Some(task.clone());
            if let (Some(key), Phase::Out, false) = (self.key, self.phase, rest) {
                store.name(key, self.token, task);
            }
        } else if self.replied {
            return;
        }
        if state == Some(State::Terminal) {
            return;
        }
        if let Some(context) = &self.wanted.context {
            store.learn(task_key(&self.wanted.scope, task), context);
        }
    }

    /// It was at rest for authentication, and goes on: it has its slot again, beside whoever took it meanwhile.
    fn goes_on_by_itself(&mut self) {
        let Some(key) = self.key else { return };
        self.token = self.of.token();
        let newcomer = Newcomer {
            token: self.token,
            asker: self.wanted.asker,
            task: self.task.as_deref(),
        };
        self.of.0.store.join(key, &newcomer);
        self.phase = Phase::Out;
    }

    fn settle(&mut self, end: &End) -> Settling {
        if self.phase == Phase::Settled {
            return Settling::Done;
        }
        self.phase = Phase::Settled;
        let Some(key) = self.key else {
            return Settling::Done;
        };
        let settling = self.of.0.store.settle(key, self.token, end.clone());
        self.of.changed(key);
        settling
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.phase == Phase::Settled {
            return;
        }
        let end = self.end();
        let Some(key) = self.key else { return };
        self.of.0.store.settle_later(key, self.token, end);
        self.of.changed(key);
    }
}

/// A client's own look at a task, which may show that its slot can be free.
pub struct Watch {
    of: Conversations,
    key: Key,
    /// The holder as it was before the agent was asked.
    mark: Mark,
    /// An interrupted state counts, too.
    interrupted: bool,
    task: Box<str>,
}

impl Conversations {
    /// Notes who holds the task's conversation, before the agent is asked about the task. `replays` is for
    /// answers that tell the past: then only a terminal state counts.
    pub async fn watch(&self, scope: &str, task: &str, replays: bool) -> Option<Watch> {
        let context = self.context_of(scope, task).await?;
        let key = slot_key(scope, &context);
        let (entry, now) = self.0.store.look(key).await?;
        let of_task = |h: &&crate::state::slot::Holder| {
            h.phase == crate::state::slot::Phase::Held && h.task.as_deref() == Some(task)
        };
        let holder = entry.holders.iter().find(of_task)?;
        Some(Watch {
            of: self.clone(),
            key,
            mark: holder.mark(),
            interrupted: !replays && (now >= holder.settled || !holder.resumes),
            task: task.into(),
        })
    }
}

impl Watch {
    /// The agent's answer, or an event. What it frees is to be waited for before the client sees it.
    pub fn seen(&self, seen: &Seen) -> Settling {
        let rest = match seen.state {
            Some(State::Terminal) => true,
            Some(State::Interrupted) => self.interrupted,
            Some(State::Running) | None => false,
        };
        let other = seen.named.task.as_ref().is_some_and(|t| *t != self.task);
        if !rest || other {
            return Settling::Done;
        }
        let (of, key, mark) = (self.of.clone(), self.key, self.mark);
        let settling = of.0.store.free(key, mark);
        of.changed(key);
        settling
    }
}

/// What a call has to do with its conversation.
#[derive(Default)]
pub enum Care {
    /// Nothing.
    #[default]
    Nothing,
    /// It sends a message.
    Slot(Box<Slot>),
    /// It looks at a task.
    Watch(Box<Watch>),
}

impl Care {
    /// An answer or an event. What it settles is to be waited for before the client sees it.
    pub fn seen(&mut self, seen: &Seen) -> Settling {
        match self {
            Self::Nothing => Settling::Done,
            Self::Slot(slot) => slot.seen(seen),
            Self::Watch(watch) => watch.seen(seen),
        }
    }

    /// The call failed, before or after somebody answered it.
    pub fn failed(&mut self, fault: &Fault, answered: bool) -> Settling {
        match self {
            Self::Slot(slot) => slot.failed(fault, answered),
            Self::Nothing | Self::Watch(_) => Settling::Done,
        }
    }

    /// Its document is whole.
    pub fn left(&mut self) -> Settling {
        match self {
            Self::Slot(slot) => slot.left(),
            Self::Nothing | Self::Watch(_) => Settling::Done,
        }
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        match self {
            Self::Slot(slot) => slot.learns(),
            Self::Watch(_) => true,
            Self::Nothing => false,
        }
    }

    /// Whether its caller may leave even before the agent has said anything.
    pub fn can_be_left_at_once(&self) -> bool {
        match self {
            Self::Slot(slot) => slot.task.is_some(),
            Self::Nothing | Self::Watch(_) => true,
        }
    }

    /// Whether a message of it is at rest, or there is none.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Slot(slot) => slot.phase == Phase::Settled,
            Self::Nothing | Self::Watch(_) => true,
        }
    }

    /// Whether its caller may leave without anybody having to read on.
    pub fn can_be_left(&self) -> bool {
        match self {
            Self::Slot(slot) => slot.can_be_left(),
            Self::Nothing | Self::Watch(_) => true,
        }
    }
}
