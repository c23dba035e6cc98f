//! What answers a call, whichever binding it came by.

use std::{net::SocketAddr, sync::Arc};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    call::{Call, SendMessage},
    card,
    object::{Message, Part, fresh_id, text_of},
    refusal::{Fault, Refusal},
    store::{Begun, Event, Followed, Store},
    word::Word,
};

/// A result as JSON, or the events that make it.
pub(super) enum Answer {
    One(String),
    Events(Events),
}

/// The events of a stream: a first one, and what a task tells after it.
pub(super) struct Events {
    first: Option<Arc<str>>,
    rest: Option<Followed>,
}

/// The agent's table of tasks and the work on them.
pub(super) struct Desk {
    addr: SocketAddr,
    store: Arc<Store>,
    work: TaskTracker,
    stop: CancellationToken,
}

/// What a message led to.
enum Outcome {
    Task(Begun),
    Message(Message),
}

impl Desk {
    pub(super) fn new(addr: SocketAddr, stop: CancellationToken) -> Desk {
        Desk {
            addr,
            store: Arc::default(),
            work: TaskTracker::new(),
            stop,
        }
    }

    /// The public card.
    pub(super) fn card(&self) -> String {
        card::public(self.addr).to_string()
    }

    /// Waits for the work to end, which `stop` has asked for.
    pub(super) async fn closed(&self) {
        self.work.close();
        self.work.wait().await;
    }

    /// Does what a call asks.
    pub(super) async fn answer(&self, call: Call) -> Result<Answer, Refusal> {
        let store = &self.store;
        let one = match call.checked()? {
            Call::Send(send) => self.send(send).await?,
            Call::Stream(send) => return self.stream(send).map(Answer::Events),
            Call::Subscribe(task) => {
                return Ok(Answer::Events(Events::of_task(store.follow(&task.id)?)));
            }
            Call::Get(get) => store.show(&get.id, get.history_length)?,
            Call::List(list) => store.list(&list)?,
            Call::Cancel(task) => store.cancel(&task.id)?,
            Call::PushCreate(push) => store.push_create(push)?,
            Call::PushGet(push) => store.push_show(&push.task_id, &push.id)?,
            Call::PushList(list) => {
                store.push_list(&list.task_id, list.page_size, list.page_token.as_deref())?
            }
            Call::PushDelete(push) => store.push_delete(&push.task_id, &push.id)?,
            Call::ExtendedCard => card::extended(self.addr).to_string(),
        };
        Ok(Answer::One(one))
    }

    async fn send(&self, send: SendMessage) -> Result<String, Refusal> {
        let (at_once, history) = match &send.configuration {
            Some(wanted) => (
                wanted.return_immediately.unwrap_or(false),
                wanted.history_length,
            ),
            None => (false, None),
        };
        match self.begin(send)? {
            Outcome::Message(message) => Ok(text_of(&Event::Message(&message))),
            Outcome::Task(mut begun) => {
                // An error means that the log is closed: the task is at rest. Words bound how long that takes.
                while !at_once && begun.followed.log.changed().await.is_ok() {}
                self.store.result(&begun.id, history)
            }
        }
    }

    fn stream(&self, send: SendMessage) -> Result<Events, Refusal> {
        Ok(match self.begin(send)? {
            Outcome::Message(message) => Events {
                first: Some(text_of(&Event::Message(&message)).into()),
                rest: None,
            },
            Outcome::Task(begun) => Events::of_task(begun.followed),
        })
    }

    /// Starts the work, which goes on whether its client stays or not.
    fn begin(&self, send: SendMessage) -> Result<Outcome, Refusal> {
        let message = send.message;
        let word = match message.task_id {
            Some(_) => Word::resuming(&message),
            None => Word::of(&message)?,
        };
        if let Word::Message(text) = &word {
            let context = message.context_id.unwrap_or_else(fresh_id);
            return Ok(Outcome::Message(Message::of_agent(
                &context,
                None,
                vec![Part::text(text)],
            )));
        }
        if self.stop.is_cancelled() {
            return Err(Fault::Internal.because("the agent is ending"));
        }
        let push = send
            .configuration
            .and_then(|wanted| wanted.task_push_notification_config);
        let begun = self.store.begin(message, push)?;
        let (store, id, ended, stop) = (
            Arc::clone(&self.store),
            begun.id.clone(),
            begun.stop.clone(),
            self.stop.clone(),
        );
        self.work.spawn(stop.run_until_cancelled_owned(async move {
            ended.run_until_cancelled(word.perform(&store, &id)).await;
        }));
        Ok(Outcome::Task(begun))
    }
}

impl Events {
    fn of_task(followed: Followed) -> Events {
        Events {
            first: Some(Arc::clone(&followed.snapshot)),
            rest: Some(followed),
        }
    }

    /// The next event; none when the stream is over. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Arc<str>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let followed = self.rest.as_mut()?;
        let seen = followed.seen;
        let log = followed.log.wait_for(|log| log.len() > seen).await.ok()?;
        followed.seen += 1;
        log.get(seen).cloned()
    }
}
