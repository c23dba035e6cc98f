//! Messages of conversations as each dialect writes them, and refusals as each dialect tells them.
use serde_json::{Map, Value, json};

use super::{
    client::Answer,
    words::{J03, J10, R03K, R03P, R10, Speak, Words, data},
};

/// What every message says. It is to be seen nowhere but at the agent.
pub const CONTENT: &str = "swordfish";

/// A message, and how its answer is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub id: &'a str,
    pub context: Option<&'a str>,
    pub task: Option<&'a str>,
    pub streams: bool,
    pub at_once: bool,
}

impl<'a> Message<'a> {
    /// One whose answer is a document.
    pub fn send(id: &'a str) -> Self {
        Self {
            id,
            context: None,
            task: None,
            streams: false,
            at_once: false,
        }
    }

    /// One whose answer is a stream.
    pub fn stream(id: &'a str) -> Self {
        Self {
            streams: true,
            ..Self::send(id)
        }
    }

    /// Of this conversation.
    pub fn of(self, context: &'a str) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }

    /// To this task.
    pub fn to(self, task: &'a str) -> Self {
        Self {
            task: Some(task),
            ..self
        }
    }

    /// Answered before its task has ended.
    pub fn at_once(self) -> Self {
        Self {
            at_once: true,
            ..self
        }
    }

    /// The first line and the body of its request.
    pub fn words(self, speak: Speak) -> Words {
        let params = self.params(speak).to_string();
        let rest = |send, stream| if self.streams { stream } else { send };
        let method = match speak {
            J03 => rest("message/send", "message/stream"),
            J10 => rest("SendMessage", "SendStreamingMessage"),
            R03P | R03K => {
                return (
                    rest("POST /v1/message:send", "POST /v1/message:stream"),
                    params,
                );
            }
            R10 => return (rest("POST /message:send", "POST /message:stream"), params),
        };
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"q1","method":"{method}","params":{params}}}"#);
        ("POST /", body)
    }

    fn params(self, speak: Speak) -> Value {
        let mut message = match speak {
            J03 | R03K => {
                json!({"kind": "message", "role": "user", "parts": [{"kind": "text", "text": CONTENT}]})
            }
            R03P => json!({"role": "ROLE_USER", "content": [{"text": CONTENT}]}),
            J10 | R10 => json!({"role": "ROLE_USER", "parts": [{"text": CONTENT}]}),
        };
        message["messageId"] = self.id.into();
        if let Some(context) = self.context {
            message["contextId"] = context.into();
        }
        if let Some(task) = self.task {
            message["taskId"] = task.into();
        }
        // v0.3 REST does not wait unless told so.
        let configuration = if speak.is_old() {
            json!({"blocking": !self.at_once})
        } else {
            json!({"returnImmediately": self.at_once})
        };
        json!({"message": message, "configuration": configuration})
    }
}

/// A refusal, however it was told.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    /// By JSON-RPC, and in v0.3 REST.
    pub code: i64,
    pub reason: String,
    pub metadata: Map<String, Value>,
    pub retry_after: Option<String>,
    /// All of it.
    pub body: String,
}

impl Refusal {
    pub fn read(speak: Speak, answer: &Answer) -> Self {
        let events = answer.head.get("content-type") == Some("text/event-stream");
        let value = if events {
            let mut frames = answer.body.trim_end().split("\n\n");
            let (value, _) = data(frames.next().unwrap());
            assert_eq!(frames.next(), None, "one frame: {answer:?}");
            value
        } else {
            answer.json()
        };
        let mut details = match speak {
            J03 => value["error"]["data"].clone(),
            J10 => value["error"]["data"][0].clone(),
            R03P | R03K => value["data"].clone(),
            R10 => value["error"]["details"][0].clone(),
        };
        let mut reason = details["reason"].take();
        let metadata = match (speak, details) {
            (J10 | R10, mut info) => info["metadata"].take(),
            (_, free) => free,
        };
        let mut metadata = metadata.as_object().cloned().unwrap_or_default();
        metadata.remove("reason");
        if let Some(text) = reason.as_str() {
            reason = text.into();
        }
        Self {
            status: answer.status(),
            code: speak.code(&value),
            reason: reason.as_str().unwrap_or_default().to_owned(),
            metadata,
            retry_after: answer.head.get("retry-after").map(str::to_owned),
            body: answer.body.clone(),
        }
    }

    pub fn is_busy(&self) -> bool {
        self.reason == "CONVERSATION_BUSY"
    }

    /// The holder's task.
    pub fn task(&self) -> Option<&str> {
        self.metadata.get("taskId")?.as_str()
    }

    /// Asserts that it is told as the dialect tells a request that cannot be.
    pub fn is_told_as_bad(&self, speak: Speak) {
        let (status, code) = match speak {
            J03 | J10 => (200, -32602),
            R03P | R03K => (400, -32602),
            R10 => (400, 400),
        };
        assert_eq!(
            (self.status, self.code),
            (status, code),
            "{speak:?}: {self:?}"
        );
    }
}
