//! How clients of MemoryLake ask, in each family of routes.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses its own part of this, and nothing is outside of a test"
)]
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{
    memorylake::{Lake, Op, Tongue},
    support::client::{Answer, Client},
};

pub const KEY: &str = "sk_xxxxxx";

/// A message that a client sends, with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Say {
    /// As v1.0 writes them.
    pub parts: Vec<Value>,
    pub context: Option<String>,
    pub id: Option<&'static str>,
    pub configuration: Value,
    /// `metadata.memorylake`.
    pub extension: Option<Value>,
    pub key: &'static str,
}

pub fn say(text: &str) -> Say {
    Say {
        parts: vec![json!({"text": text})],
        context: None,
        id: Some("msg-1"),
        configuration: json!({}),
        extension: Some(json!({})),
        key: KEY,
    }
}

impl Say {
    pub fn within(mut self, context: &str) -> Self {
        self.context = Some(context.to_owned());
        self
    }

    pub fn with(mut self, extension: Value) -> Self {
        self.extension = Some(extension);
        self
    }

    pub fn configured(mut self, configuration: Value) -> Self {
        self.configuration = configuration;
        self
    }

    pub fn part(mut self, part: Value) -> Self {
        self.parts.push(part);
        self
    }

    pub fn by(mut self, key: &'static str) -> Self {
        self.key = key;
        self
    }

    /// Does not wait for the task's end, in any version's words, and gets the history.
    pub fn at_once(self) -> Self {
        let configuration =
            json!({"returnImmediately": true, "blocking": false, "historyLength": 100});
        self.configured(configuration)
    }

    /// Waits, and gets the history.
    pub fn in_full(self) -> Self {
        self.configured(json!({"blocking": true, "historyLength": 100}))
    }

    pub fn params(&self, tongue: Tongue) -> Value {
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(|part| spelled(tongue, part))
            .collect();
        let list = if tongue == Tongue::R03 {
            "content"
        } else {
            "parts"
        };
        let role = if tongue == Tongue::J03 {
            "user"
        } else {
            "ROLE_USER"
        };
        let mut message = json!({"role": role, list: parts});
        if let Some(context) = &self.context {
            message["contextId"] = context.as_str().into();
        }
        if let Some(id) = self.id {
            message["messageId"] = id.into();
        }
        let mut params = json!({"message": message, "configuration": self.configuration});
        if let Some(extension) = &self.extension {
            params["metadata"] = json!({"memorylake": extension});
        }
        params
    }
}

fn spelled(tongue: Tongue, part: &Value) -> Value {
    let file = |uri: &str, bytes: &str| {
        let mut file = json!({"mimeType": part["mediaType"], "name": part["filename"]});
        match part.get("url") {
            Some(url) => file[uri] = url.clone(),
            None => file[bytes] = part["raw"].clone(),
        }
        file
    };
    let is_file = part.get("url").or_else(|| part.get("raw")).is_some();
    match tongue {
        Tongue::R10 | Tongue::J10 => part.clone(),
        Tongue::R03 if is_file => json!({"file": file("fileWithUri", "fileWithBytes")}),
        Tongue::R03 => match part.get("data") {
            Some(data) => json!({"data": {"data": data}}),
            None => part.clone(),
        },
        Tongue::J03 if is_file => json!({"kind": "file", "file": file("uri", "bytes")}),
        Tongue::J03 => {
            let mut part = part.clone();
            let kind = if part.get("data").is_some() {
                "data"
            } else {
                "text"
            };
            part["kind"] = kind.into();
            part
        }
    }
}

/// The first line and the body of a request. `params` is what JSON-RPC calls so.
pub fn request(base: &str, tongue: Tongue, op: Op, params: &Value) -> (String, String) {
    let (new, old) = match op {
        Op::Send => ("SendMessage", "message/send"),
        Op::Stream => ("SendStreamingMessage", "message/stream"),
        Op::Get => ("GetTask", "tasks/get"),
        Op::Cancel => ("CancelTask", "tasks/cancel"),
        Op::Subscribe => ("SubscribeToTask", "tasks/resubscribe"),
        Op::Card => unreachable!("a card is asked for by hand"),
    };
    let method = if tongue.is_old() { old } else { new };
    if tongue.is_rpc() {
        let body = json!({"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params});
        return (format!("POST {base}"), body.to_string());
    }
    let base = if tongue == Tongue::R03 {
        format!("{base}/v1")
    } else {
        base.to_owned()
    };
    let task = params["id"].as_str().unwrap_or_default();
    match op {
        Op::Send => (format!("POST {base}/message:send"), params.to_string()),
        Op::Stream => (format!("POST {base}/message:stream"), params.to_string()),
        Op::Get => (format!("GET {base}/tasks/{task}"), String::new()),
        Op::Cancel => (format!("POST {base}/tasks/{task}:cancel"), String::new()),
        Op::Subscribe => (format!("GET {base}/tasks/{task}:subscribe"), String::new()),
        Op::Card => unreachable!("a card is asked for by hand"),
    }
}

pub fn fields(key: &str, op: Op) -> String {
    let accept = match op {
        Op::Stream | Op::Subscribe => "accept: text/event-stream\r\n",
        Op::Send | Op::Get | Op::Cancel | Op::Card => "",
    };
    format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n{accept}")
}

/// Asks, and leaves the answer to be read.
pub fn begin(
    to: SocketAddr,
    base: &str,
    tongue: Tongue,
    op: Op,
    key: &str,
    params: &Value,
) -> Client {
    let (line, body) = request(base, tongue, op, params);
    let mut client = Client::connect(to);
    client.send(&line, &fields(key, op), &body);
    client
}

/// A client of one agent, in one family of routes.
pub struct Asks {
    pub to: SocketAddr,
    pub base: String,
    pub tongue: Tongue,
}

impl Lake {
    pub fn by(&self, tongue: Tongue) -> Asks {
        Asks {
            to: self.addr,
            base: self.base(),
            tongue,
        }
    }
}

impl Asks {
    pub fn ask(&self, op: Op, key: &str, params: &Value) -> Answer {
        begin(self.to, &self.base, self.tongue, op, key, params).answer()
    }

    pub fn send(&self, say: &Say) -> Answer {
        self.ask(Op::Send, say.key, &say.params(self.tongue))
    }

    /// Sends, and gives the task that comes back.
    pub fn task(&self, say: &Say) -> Value {
        task(self.tongue, &self.send(say))
    }

    /// Sends without waiting, and gives the task's id.
    pub fn starts(&self, say: Say) -> String {
        self.task(&say.at_once())["id"].as_str().unwrap().to_owned()
    }

    pub fn of_task(&self, op: Op, id: &str) -> Answer {
        self.ask(op, KEY, &json!({"id": id}))
    }

    /// The task that a question is answered with.
    pub fn get(&self, id: &str) -> Value {
        bare(self.tongue, &self.of_task(Op::Get, id))
    }

    pub fn opens(&self, op: Op, key: &str, params: &Value) -> Client {
        let mut client = begin(self.to, &self.base, self.tongue, op, key, params);
        let head = client.head();
        assert_eq!(head.status(), 200);
        assert_eq!(head.get("content-type"), Some("text/event-stream"));
        client
    }

    pub fn streams(&self, say: &Say) -> Client {
        self.opens(Op::Stream, say.key, &say.params(self.tongue))
    }

    pub fn subscribes(&self, id: &str) -> Client {
        self.opens(Op::Subscribe, KEY, &json!({"id": id}))
    }

    /// All events of a stream, out of their envelopes.
    pub fn events(&self, client: &mut Client) -> Vec<Value> {
        let frames = client.rest();
        let frames = frames.iter().filter(|frame| !frame.starts_with(':'));
        frames.map(|frame| self.event(frame)).collect()
    }

    pub fn event(&self, frame: &str) -> Value {
        let data = frame.strip_prefix("data: ").unwrap();
        opened(self.tongue, serde_json::from_str(data).unwrap())
    }

    /// Sent and streamed: all that comes.
    pub fn all(&self, say: &Say) -> Vec<Value> {
        self.events(&mut self.streams(say))
    }
}

/// Out of the envelope of JSON-RPC.
pub fn opened(tongue: Tongue, mut value: Value) -> Value {
    if !tongue.is_rpc() {
        return value;
    }
    assert_eq!(
        (&value["jsonrpc"], &value["id"]),
        (&json!("2.0"), &json!("req-1")),
        "{value}"
    );
    assert!(value.get("result").is_some(), "{value}");
    value["result"].take()
}

/// The task that a send is answered with.
pub fn task(tongue: Tongue, answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.body);
    let mut value = opened(tongue, answer.json());
    if tongue == Tongue::J03 {
        assert_eq!(value["kind"], "task");
        return value;
    }
    assert_eq!(value.as_object().unwrap().len(), 1, "only a task: {value}");
    value["task"].take()
}

pub fn bare(tongue: Tongue, answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.body);
    opened(tongue, answer.json())
}

/// A refusal by the product's own body.
pub fn refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json();
    assert_eq!(
        (answer.status(), body["error_code"].as_str()),
        (status, Some(code)),
        "{body}"
    );
    assert_eq!(body["success"], false);
    assert!(body["message"].is_string());
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
}

/// A refusal by the agent: REST's body, or an error object with this code; v0.3 has one code for all.
pub fn refused_by_agent(tongue: Tongue, answer: &Answer, status: u16, code: &str, number: i64) {
    if !tongue.is_rpc() {
        return refused(answer, status, code);
    }
    assert_eq!(answer.status(), 200);
    let number = if tongue == Tongue::J03 {
        -32603
    } else {
        number
    };
    let body = answer.json();
    assert_eq!(body["error"]["code"], number, "{body}");
    assert_eq!(body["id"], "req-1");
}

/// The state's name in this family.
pub fn state(tongue: Tongue, name: &str) -> String {
    match (tongue, name) {
        (Tongue::J03, _) => name.to_lowercase(),
        (Tongue::R03, "CANCELED") => "TASK_STATE_CANCELLED".to_owned(),
        (Tongue::R10 | Tongue::J10 | Tongue::R03, _) => format!("TASK_STATE_{name}"),
    }
}

/// What kind of event it is, and what is in it.
pub fn kind(tongue: Tongue, event: &Value) -> (String, Value) {
    if tongue == Tongue::J03 {
        let kind = event["kind"].as_str().unwrap();
        let kind = match kind {
            "status-update" => "statusUpdate",
            "artifact-update" => "artifactUpdate",
            other => other,
        };
        return (kind.to_owned(), event.clone());
    }
    let (kind, value) = event.as_object().unwrap().iter().next().unwrap();
    (kind.clone(), value.clone())
}

/// The parts of a message in this family.
pub fn parts(tongue: Tongue, message: &Value) -> Vec<Value> {
    let list = if tongue == Tongue::R03 {
        "content"
    } else {
        "parts"
    };
    message[list]
        .as_array()
        .unwrap_or_else(|| panic!("no {list}: {message}"))
        .clone()
}

/// All texts of the parts.
pub fn text(parts: &[Value]) -> String {
    parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect()
}

/// The text of a task's answer.
pub fn answer(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().expect("there is an answer");
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["name"], "result");
    text(artifacts[0]["parts"].as_array().unwrap())
}
