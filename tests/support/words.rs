//! Calls and answers in each dialect.
use serde_json::Value;

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speak {
    J03,
    R03P,
    R03K,
    J10,
    R10,
}

pub use Speak::{J03, J10, R03K, R03P, R10};

pub const ALL: [Speak; 5] = [J03, R03P, R03K, J10, R10];

/// The first line and the body of a request.
pub type Words = (&'static str, String);

impl Speak {
    pub fn is_rpc(self) -> bool {
        matches!(self, J03 | J10)
    }

    pub fn is_old(self) -> bool {
        !matches!(self, J10 | R10)
    }

    fn message(self) -> &'static str {
        match self {
            J03 | R03K => {
                r#"{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}"#
            }
            R03P => {
                r#"{"message":{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}}"#
            }
            J10 | R10 => {
                r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#
            }
        }
    }

    fn call(self, old: &str, new: &str, params: &str) -> String {
        let method = if self == J03 { old } else { new };
        format!(r#"{{"jsonrpc":"2.0","id":"q1","method":"{method}","params":{params}}}"#)
    }

    pub fn send(self) -> Words {
        match self {
            J03 | J10 => (
                "POST /",
                self.call("message/send", "SendMessage", self.message()),
            ),
            R03P | R03K => ("POST /v1/message:send", self.message().to_owned()),
            R10 => ("POST /message:send", self.message().to_owned()),
        }
    }

    pub fn stream(self) -> Words {
        match self {
            J03 | J10 => (
                "POST /",
                self.call("message/stream", "SendStreamingMessage", self.message()),
            ),
            R03P | R03K => ("POST /v1/message:stream", self.message().to_owned()),
            R10 => ("POST /message:stream", self.message().to_owned()),
        }
    }

    pub fn get(self) -> Words {
        match self {
            J03 | J10 => (
                "POST /",
                self.call("tasks/get", "GetTask", r#"{"id":"t1"}"#),
            ),
            R03P | R03K => ("GET /v1/tasks/t1", String::new()),
            R10 => ("GET /tasks/t1", String::new()),
        }
    }

    pub fn subscribe(self) -> Words {
        match self {
            J03 | J10 => (
                "POST /",
                self.call("tasks/resubscribe", "SubscribeToTask", r#"{"id":"t1"}"#),
            ),
            R03P | R03K => ("POST /v1/tasks/t1:subscribe", String::new()),
            R10 => ("POST /tasks/t1:subscribe", String::new()),
        }
    }

    /// The JSON-RPC code of an error body or frame, where there is one; for v1.0 REST the status in it.
    pub fn code(self, error: &Value) -> i64 {
        let code = match self {
            J03 | J10 | R10 => &error["error"]["code"],
            R03P | R03K => &error["code"],
        };
        code.as_i64().unwrap_or_else(|| panic!("no code: {error}"))
    }

    pub fn message_of(self, error: &Value) -> &str {
        let message = match self {
            J03 | J10 | R10 => &error["error"]["message"],
            R03P | R03K => &error["message"],
        };
        message
            .as_str()
            .unwrap_or_else(|| panic!("no message: {error}"))
    }
}

/// The data of an event, and whether it is labelled as an error.
pub fn data(event: &str) -> (Value, bool) {
    let lines: Vec<_> = event
        .lines()
        .filter_map(|l| l.strip_prefix("data: "))
        .collect();
    assert_eq!(lines.len(), 1, "one line of data: {event}");
    let value = serde_json::from_str(lines[0]).unwrap();
    (value, event.lines().any(|l| l == "event: error"))
}

pub const TASK: &str = r#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}"#;
pub const WORKING: &str =
    r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}"#;
pub const ASKS: &str = r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
pub const DONE: &str = r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

/// A result of a v1.0 JSON-RPC agent.
pub fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

/// The task in a send's answer or as an event.
pub fn wrapped() -> String {
    format!(r#"{{"task":{TASK}}}"#)
}
