//! The first sending of a message: it says what becomes of it, to those that wait for it and to the store.
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::watch;

use super::{Retries, Said};
use crate::{
    a2a::{Fault, answer::Seen, shape::State},
    state::{
        Key,
        retry::{Fate, Record},
    },
};

/// One that runs here, for those that wait for it.
pub(super) struct Flight {
    pub(super) digest: Key,
    news: watch::Sender<News>,
}

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub(super) task: Option<Box<str>>,
    /// The task is at rest.
    pub(super) rest: bool,
    pub(super) done: Option<Done>,
}

/// How it ended.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// With this answer.
    Said(Arc<Said>),
    /// With this fault, and without a task.
    Failed(Fault),
    /// Its task goes on, or is at rest.
    Left,
    /// Nobody knows.
    Unknown,
    /// It was not sent.
    Gone,
}

impl Flight {
    pub(super) fn new(digest: Key) -> Self {
        let (news, _) = watch::channel(News::default());
        Self { digest, news }
    }

    pub(super) fn listen(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not yet in the store.
    New,
    /// Nothing was sent.
    Unsent,
    /// The agent may have it.
    Out,
    /// What became of it is told.
    Done,
}

/// The first sending. Dropping it tells what is known: unsent is forgotten, what may have begun never is.
pub struct First {
    of: Retries,
    key: Key,
    flight: Arc<Flight>,
    record: Record,
    phase: Phase,
}

impl First {
    pub(super) fn new(of: &Retries, key: Key, token: u64, flight: Arc<Flight>) -> Self {
        Self {
            of: of.clone(),
            key,
            record: Record::new(token, flight.digest),
            flight,
            phase: Phase::New,
        }
    }

    pub(super) fn record(&self) -> Record {
        self.record.clone()
    }

    /// The store has it.
    pub(super) fn begun(mut self) -> Self {
        self.phase = Phase::Unsent;
        self
    }

    /// It is about to be sent.
    pub fn goes_out(&mut self) {
        self.phase = Phase::Out;
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        self.phase != Phase::Done && self.record.task.is_none()
    }

    /// Whether nothing more is to be learned of it.
    pub fn is_settled(&self) -> bool {
        self.phase == Phase::Done || self.record.fate == Fate::Rest
    }

    /// Whether its caller may leave without anybody having to read on: what is known answers who sends it again.
    pub fn can_be_left(&self) -> bool {
        self.phase != Phase::Out || self.record.task.is_some()
    }

    /// An event, and the agent's text of it.
    pub fn seen(&mut self, seen: &Seen, text: &[u8]) {
        if self.phase == Phase::Done {
            return;
        }
        if seen.message {
            return self.said(Said {
                fields: HeaderMap::new(),
                text: Bytes::copy_from_slice(text),
            });
        }
        if !self.learn(seen) {
            return;
        }
        let task = self.record.task.clone();
        let rest = self.record.fate == Fate::Rest;
        self.flight.news.send_modify(|news| {
            news.task = task;
            news.rest = rest;
        });
        self.store();
    }

    /// The agent's whole answer.
    pub fn answered(&mut self, seen: &Seen, fields: &HeaderMap, text: &Bytes) {
        let said = Said {
            fields: fields.clone(),
            text: text.clone(),
        };
        if seen.message {
            return self.said(said);
        }
        self.learn(seen);
        let fate = match (self.record.fate, &self.record.task) {
            (_, None) => Fate::Unknown,
            (Fate::Rest, Some(_)) => Fate::Rest,
            (_, Some(_)) => Fate::Left,
        };
        self.done(fate, Done::Said(said.into()));
    }

    /// It failed. It is as if it had never been sent if the agent cannot have begun.
    pub fn failed(&mut self, fault: &Fault, answered: bool) {
        let out = self.phase == Phase::Out;
        if self.record.task.is_some() {
            self.left();
        } else if out && fault.may_have_started(answered) {
            self.done(Fate::Unknown, Done::Failed(fault.clone()));
        } else {
            self.forget(Done::Failed(fault.clone()));
        }
    }

    fn said(&mut self, said: Said) {
        let said = Arc::new(said);
        let inner = &self.of.0;
        let until = tokio::time::Instant::now() + inner.settings.window;
        inner.small.lock().put(self.key, &said, until);
        self.done(Fate::Message, Done::Said(said));
    }

    /// What a reply says of its task. True if that is new.
    fn learn(&mut self, seen: &Seen) -> bool {
        let before = (self.record.task.is_some(), self.record.fate);
        if let (None, Some(task)) = (&self.record.task, &seen.named.task) {
            self.record.task = Some(task.clone());
        }
        if let Some(state) = seen.state {
            self.record.fate = match state {
                State::Terminal | State::Interrupted => Fate::Rest,
                State::Running => Fate::Running,
            };
        }
        before != (self.record.task.is_some(), self.record.fate)
    }

    /// Nobody reads on.
    fn left(&mut self) {
        let (fate, done) = match (&self.record.task, self.record.fate) {
            (None, _) => (Fate::Unknown, Done::Unknown),
            (Some(_), Fate::Rest) => (Fate::Rest, Done::Left),
            (Some(_), _) => (Fate::Left, Done::Left),
        };
        self.done(fate, done);
    }

    fn done(&mut self, fate: Fate, done: Done) {
        if self.phase == Phase::Done {
            return;
        }
        self.record.fate = fate;
        self.store(); // before it lands: who comes next finds one or the other
        self.land(done);
    }

    fn forget(&mut self, done: Done) {
        if self.phase == Phase::Done {
            return;
        }
        let store = self.of.0.conversations.store();
        store.forget_retry(self.key, self.record.token);
        self.land(done);
    }

    fn store(&self) {
        let store = self.of.0.conversations.store();
        store.retry_is(self.key, self.record.clone());
    }

    fn land(&mut self, done: Done) {
        self.phase = Phase::Done;
        let mut flights = self.of.0.flights.lock();
        flights.remove(&self.key);
        drop(flights);
        let (task, rest) = (self.record.task.clone(), self.record.fate == Fate::Rest);
        self.flight.news.send_modify(|news| {
            news.task = task;
            news.rest = rest;
            news.done = Some(done);
        });
    }
}

impl Drop for First {
    fn drop(&mut self) {
        match self.phase {
            // Whoever gave up while the store was asked does not know that it has it.
            Phase::New | Phase::Unsent => self.forget(Done::Gone),
            Phase::Out => self.left(),
            Phase::Done => {}
        }
    }
}
