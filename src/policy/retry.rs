//! A message that is sent again is the same call: its agent sees it once. Who asks, whom, and the message's id say
//! that it is the same; the digest of what it says must be the same as well.
//!
//! ```text
//! meet ─► new ──────────────► First ─► goes_out ─► seen … ─► what became of it (dropped: by what is known)
//!   └───► running here ─────► waits for that First: its answer, or its task
//!   └───► sent before ──────► its task as it is now, the bare message, or a refusal; never sent twice
//! ```
//! What became of messages lies in [`crate::state`]. Here is what dies with the process: who runs now, for those
//! that wait for it, and small answers.
use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::watch;

mod first;
mod small;

pub use first::First;

use first::{Done, Flight, News};
use small::Small;

use super::conversation::{Conversations, away};
use crate::{
    a2a::{Fault, Kind},
    state::{
        Key,
        retry::{Begun, Fate, Record},
        slot::Asker,
    },
};

/// What retries go by.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether messages are known again at all.
    pub on: bool,
    /// How long a bare message is kept.
    pub window: Duration,
    /// The longest that an answer can take, its body included.
    pub longest: Duration,
    /// The status of a refusal because it runs elsewhere: by REST 409 instead of 400.
    pub conflict: bool,
}

/// All messages that may be sent again, over all workers.
#[derive(Clone)]
pub struct Retries(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// Whose store it is.
    conversations: Conversations,
    /// Those that run here: as many as calls do.
    flights: Arc<Mutex<HashMap<Key, Arc<Flight>>>>,
    small: Arc<Mutex<Small>>,
}

/// A message that may have been sent before.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who sends it.
    pub asker: Asker,
    /// The agents, by their address without what names one among others.
    pub scope: &'a str,
    /// The one among those.
    pub agent: Option<&'a str>,
    /// Whom the agent serves by it.
    pub tenant: Option<&'a str>,
    /// Its id.
    pub id: &'a str,
}

impl Message<'_> {
    /// Another agent or tenant is another addressee: then it is another message.
    fn key(&self) -> Key {
        let asker = format!("{:x}", self.asker.0);
        let agent = self.agent.unwrap_or_default();
        let tenant = self.tenant.unwrap_or_default();
        Key::of(&["retry", &asker, self.scope, agent, tenant, self.id])
    }
}

/// What a message is.
pub enum Known {
    /// New: it is to be sent.
    New(Box<First>),
    /// Sent before.
    Again(Again),
}

/// How a message is answered that was sent before.
#[derive(Clone, Debug)]
pub enum Again {
    /// As it was.
    Said(Arc<Said>),
    /// With its task as it is now.
    Task(Box<str>),
    /// With what its task is still to say.
    Subscribe(Box<str>),
    /// With its task as it is now and, unless that is at rest, with what it is still to say.
    Look(Box<str>),
}

/// An answer as its agent gave it.
#[derive(Debug)]
pub struct Said {
    /// The fields that came with it.
    pub fields: HeaderMap,
    /// A document, or the data of an event.
    pub text: Bytes,
}

impl Retries {
    /// Nothing sent yet.
    pub fn new(settings: Settings, conversations: Conversations) -> Self {
        Self(Arc::new(Inner {
            settings,
            conversations,
            flights: Arc::default(),
            small: Arc::default(),
        }))
    }

    /// The same messages by other settings.
    #[must_use]
    pub fn by(&self, settings: Settings, conversations: Conversations) -> Self {
        Self(Arc::new(Inner {
            settings,
            conversations,
            flights: self.0.flights.clone(),
            small: self.0.small.clone(),
        }))
    }

    /// Whether messages are known again at all.
    pub fn on(&self) -> bool {
        self.0.settings.on
    }

    /// Once a second, by anybody: forgets what is over.
    pub fn tick(&self) {
        self.0.small.lock().tick();
    }

    /// Whether it was sent before, and then how it is answered; `streams` says that events are asked for.
    pub async fn meet(
        &self,
        message: Message<'_>,
        digest: [u8; 16],
        streams: bool,
    ) -> Result<Known, Fault> {
        let (key, digest) = (message.key(), Key(digest));
        loop {
            let first = match self.fly(key, digest) {
                Ok(first) => first,
                Err(flight) if flight.digest != digest => return Err(other()),
                Err(flight) => {
                    let news = flight.listen();
                    drop(flight);
                    match self.join(news, streams).await? {
                        Some(again) => return Ok(Known::Again(again)),
                        None => continue, // it was never sent: this one may be
                    }
                }
            };
            let store = self.0.conversations.store();
            let begun = store.begin_retry(key, first.record()).await;
            return match begun.map_err(away)? {
                Begun::New => Ok(Known::New(Box::new(first.begun()))),
                Begun::Other => Err(other()),
                Begun::Same(old) => self.before(key, &old, streams).map(Known::Again),
            };
        }
    }

    /// Runs here from now on, unless another does.
    fn fly(&self, key: Key, digest: Key) -> Result<First, Arc<Flight>> {
        let mut flights = self.0.flights.lock();
        if let Some(flight) = flights.get(&key) {
            return Err(flight.clone());
        }
        let flight = Arc::new(Flight::new(digest));
        flights.insert(key, flight.clone());
        let token = self.0.conversations.token();
        Ok(First::new(self, key, token, flight))
    }

    /// Waits for the one that runs here. `None` if it was not sent after all.
    async fn join(
        &self,
        mut news: watch::Receiver<News>,
        streams: bool,
    ) -> Result<Option<Again>, Fault> {
        let enough = |n: &News| n.task.is_some() || n.done.is_some();
        let heard = async { news.wait_for(enough).await.map(|n| n.clone()) };
        let heard = tokio::time::timeout(self.0.settings.longest, heard).await;
        let late = |_| {
            Fault::new(
                Kind::BackendTimeout,
                "the agent did not answer this message in time, which was sent before",
            )
        };
        let Ok(news) = heard.map_err(late)? else {
            return Ok(None);
        };
        Ok(Some(match (news.done, news.task) {
            (Some(Done::Gone), _) => return Ok(None),
            (Some(Done::Failed(fault)), _) => return Err(fault),
            // An answer that is not the last word is only the first event.
            (Some(Done::Said(said)), task) => match task.filter(|_| streams && !news.rest) {
                Some(task) => Again::Subscribe(task),
                None => Again::Said(said),
            },
            (Some(Done::Left), Some(task)) => left(task, streams),
            (None, Some(task)) if streams && !news.rest => Again::Subscribe(task),
            (None, Some(task)) => Again::Task(task),
            (Some(Done::Unknown), _) | (Some(Done::Left) | None, None) => return Err(unknown()),
        }))
    }

    /// One that does not run here.
    fn before(&self, key: Key, old: &Record, streams: bool) -> Result<Again, Fault> {
        match (old.fate, &old.task) {
            (Fate::Rest, Some(task)) => Ok(Again::Task(task.clone())),
            (Fate::Left, Some(task)) => Ok(left(task.clone(), streams)),
            (Fate::Running, Some(task)) if streams => Ok(left(task.clone(), streams)),
            (Fate::Running, _) => Err(self.elsewhere(old)),
            (Fate::Message, _) => match self.0.small.lock().get(key) {
                Some(said) => Ok(Again::Said(said)),
                None => Err(Fault::new(
                    Kind::DuplicateMessage,
                    "this message was sent before and answered; the answer is not kept",
                )),
            },
            (Fate::Rest | Fate::Left | Fate::Unknown, _) => Err(unknown()),
        }
    }

    fn elsewhere(&self, old: &Record) -> Fault {
        let conflict = self.0.settings.conflict;
        let mut fault = Fault::new(
            Kind::ConversationBusy { conflict },
            "this message was sent before and is in flight at another gateway",
        );
        fault.retry_after = Some(1);
        match &old.task {
            Some(task) => fault.with("taskId", task.to_string()),
            None => fault,
        }
    }
}

fn left(task: Box<str>, streams: bool) -> Again {
    if streams {
        Again::Look(task)
    } else {
        Again::Task(task)
    }
}

fn other() -> Fault {
    Fault::new(
        Kind::DuplicateMessage,
        "another message was sent under this messageId; see retry.message_id",
    )
}

fn unknown() -> Fault {
    Fault::new(
        Kind::OutcomeUnknown,
        "this message was sent before, and what became of it is not known; it is not sent again",
    )
}

#[cfg(test)]
mod tests;
