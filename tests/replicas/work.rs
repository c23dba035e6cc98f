//! What a message asks of the agent: its text is the work, so that the agent needs no list of its own.
use std::{fmt, time::Duration};

use serde_json::{Value, json};

/// How the agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With a bare message.
    Word,
    /// With a task, once it is at rest.
    Send,
    /// With a task that goes on.
    AtOnce,
    /// With a stream of events that ends when the task is at rest.
    Stream,
}

const NAMES: [(&str, How); 4] = [
    ("word", How::Word),
    ("send", How::Send),
    ("at-once", How::AtOnce),
    ("stream", How::Stream),
];

/// The work for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub how: How,
    /// From the message's arrival until its task is at rest.
    pub takes: Duration,
    /// It ends in input-required instead of completed.
    pub asks: bool,
}

impl Work {
    pub fn new(how: How, millis: u64) -> Self {
        Self {
            how,
            takes: Duration::from_millis(millis),
            asks: false,
        }
    }

    pub fn that_asks(self, asks: bool) -> Self {
        Self { asks, ..self }
    }

    /// Whether the agent knows it as a task.
    pub fn is_task(self) -> bool {
        self.how != How::Word
    }

    /// How its task ends.
    pub fn end(self) -> State {
        if self.asks { State::Asks } else { State::Done }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let name = words.next()?;
        let (_, how) = NAMES.into_iter().find(|(n, _)| *n == name)?;
        let millis = words.next()?.parse().ok()?;
        Some(Self::new(how, millis).that_asks(words.next() == Some("asks")))
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.into_iter().find(|(_, how)| *how == self.how);
        let name = name.expect("each has a name").0;
        let asks = if self.asks { " asks" } else { "" };
        write!(f, "{name} {}{asks}", self.takes.as_millis())
    }
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Works,
    Asks,
    Done,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "TASK_STATE_WORKING",
            Self::Asks => "TASK_STATE_INPUT_REQUIRED",
            Self::Done => "TASK_STATE_COMPLETED",
        }
    }
}

/// One message. Sent again it has another id, so that each arrival is told apart.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: String,
    pub context: String,
    /// The task that it resumes.
    pub task: Option<String>,
    pub work: Work,
}

impl Message {
    /// The task that works on it.
    pub fn task(&self) -> String {
        self.task.clone().unwrap_or_else(|| task_of(&self.id))
    }

    pub fn path(&self) -> &'static str {
        match self.work.how {
            How::Stream => "/message:stream",
            How::Word | How::Send | How::AtOnce => "/message:send",
        }
    }

    pub fn body(&self) -> String {
        let mut message = json!({
            "messageId": self.id, "contextId": self.context, "role": "ROLE_USER",
            "parts": [{"text": self.work.to_string()}],
        });
        if let Some(task) = &self.task {
            message["taskId"] = task.as_str().into();
        }
        let at_once = self.work.how == How::AtOnce;
        json!({"message": message, "configuration": {"returnImmediately": at_once}}).to_string()
    }

    pub fn read(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let message = &value["message"];
        let text = |name: &str| message[name].as_str().map(str::to_owned);
        Some(Self {
            id: text("messageId")?,
            context: text("contextId")?,
            task: text("taskId"),
            work: Work::parse(message["parts"][0]["text"].as_str()?)?,
        })
    }
}

/// The task that begins with this message.
pub fn task_of(message: &str) -> String {
    format!("task-of-{message}")
}
