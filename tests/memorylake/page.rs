//! The examples of the pages, as data: `page/VERSION/*.http` are the requests that the page writes for `curl`, `*.json`
//! and `*.sse` what it shows of answers, with `…` where it leaves something out.
//!
//! An answer is like the page's when it is the same JSON once the task's id is written as the page writes it. Where the
//! page has a `…` among the members of an object, there may be more members; nowhere else.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses its own part of this, and nothing is outside of a test"
)]
use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{memorylake::Page, support::client::Client};

/// The eight combinations, as the page numbers them.
pub const REQUESTS: [&str; 8] = [
    "1-v10-send-rest",
    "2-v10-stream-rest",
    "3-v03-send-rest",
    "4-v03-stream-rest",
    "5-v10-send-rpc",
    "6-v10-stream-rpc",
    "7-v03-send-rpc",
    "8-v03-stream-rpc",
];

fn file(page: Page, name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root
        .join("tests/memorylake/page")
        .join(page.name())
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A request of the page.
pub struct Example {
    pub target: String,
    /// Whole lines.
    pub fields: String,
    pub body: String,
}

impl Example {
    pub fn read(page: Page, name: &str) -> Self {
        let text = file(page, &format!("{name}.http"));
        let (head, body) = text.split_once("\n\n").unwrap();
        let mut lines = head.lines();
        let line = lines.next().unwrap();
        let target = line.strip_prefix("POST ").unwrap();
        let target = target.strip_suffix(" HTTP/1.1").unwrap();
        Self {
            target: target.to_owned(),
            fields: lines
                .flat_map(|line| {
                    [
                        line, "
",
                    ]
                })
                .collect(),
            body: body.to_owned(),
        }
    }

    /// What it sends, without the envelope of JSON-RPC.
    pub fn params(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body.get("params").unwrap_or(&body).clone()
    }

    /// Sends it as it is; the name of the host is in lowercase only because our client looks for it.
    pub fn send(&self, client: &mut Client) {
        let fields = self.fields.replace("Host:", "host:");
        client.send(&format!("POST {}", self.target), &fields, &self.body);
    }
}

pub fn json(page: Page, name: &str) -> Value {
    serde_json::from_str(&file(page, name)).unwrap()
}

/// The events of the page's stream.
pub fn stream(page: Page) -> Vec<Value> {
    let text = file(page, "stream.sse");
    let events = text.split_terminator("\n\n");
    events
        .map(|e| elided(e.strip_prefix("data: ").unwrap()))
        .collect()
}

/// Reads JSON in which `…` stands for members.
fn elided(text: &str) -> Value {
    let text = text
        .replace(", …}", r#", "…": 0}"#)
        .replace("{…, ", r#"{"…": 0, "#);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The answer with the id of its task as the page has it.
pub fn renamed(value: &Value, task: &str, as_on_page: &str) -> Value {
    let text = value.to_string().replace(task, as_on_page);
    serde_json::from_str(&text).unwrap()
}

/// Fails where the answer is not like the page's.
pub fn is_like(page: &Value, answer: &Value) {
    if let Some(why) = differs(page, answer, "") {
        panic!("{why}\npage:   {page}\nanswer: {answer}");
    }
}

fn differs(page: &Value, answer: &Value, at: &str) -> Option<String> {
    match (page, answer) {
        (Value::Object(page), Value::Object(answer)) => {
            let more = page.contains_key("…");
            let unknown = answer.keys().find(|k| !more && !page.contains_key(*k));
            if let Some(name) = unknown {
                return Some(format!("{at}.{name} is not on the page"));
            }
            let told = page.iter().filter(|(name, _)| *name != "…");
            let mut found = told.map(|(name, value)| match answer.get(name) {
                Some(got) => differs(value, got, &format!("{at}.{name}")),
                None => Some(format!("{at}.{name} is missing")),
            });
            found.find_map(|why| why)
        }
        (Value::Array(page), Value::Array(answer)) if page.len() == answer.len() => {
            let both = page.iter().zip(answer).enumerate();
            let mut found = both.map(|(n, (p, a))| differs(p, a, &format!("{at}[{n}]")));
            found.find_map(|why| why)
        }
        _ if page == answer => None,
        _ => Some(format!("{at} differs")),
    }
}

#[test]
fn a_difference_is_found() {
    let page = elided(r#"{"a": {"b": 1, …}, "c": [1]}"#);
    let same = serde_json::json!({"a": {"b": 1, "x": 2}, "c": [1]});
    assert_eq!(differs(&page, &same, ""), None);
    for other in [
        serde_json::json!({"a": {"b": 2}, "c": [1]}),
        serde_json::json!({"a": {}, "c": [1]}),
        serde_json::json!({"a": {"b": 1}, "c": [1, 2]}),
        serde_json::json!({"a": {"b": 1}, "c": [1], "d": 1}),
        serde_json::json!({"a": {"b": 1}}),
    ] {
        assert!(differs(&page, &other, "").is_some(), "{other}");
    }
}

/// An answer with the ids that are made for each call numbered by their coming, and without times.
pub fn leveled(value: &Value) -> Value {
    let mut made = vec![];
    level(value, &mut made)
}

fn level(value: &Value, made: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => numbered(text, made).into(),
        Value::Array(items) => items.iter().map(|item| level(item, made)).collect(),
        Value::Object(members) => {
            let mut out = serde_json::Map::new();
            for (name, value) in members {
                let told = match name.as_str() {
                    "timestamp" => "a time".into(),
                    _ => level(value, made),
                };
                out.insert(name.clone(), told);
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Ids are `run-` or `ctx_` and 32 hex digits; a message's own is 36 characters with four dashes.
fn numbered(text: &str, made: &mut Vec<String>) -> String {
    let mut number = |id: &str| {
        let known = made.iter().position(|m| m == id);
        known.unwrap_or_else(|| {
            made.push(id.to_owned());
            made.len() - 1
        })
    };
    let is_hex = |t: &str| t.bytes().all(|b| b.is_ascii_hexdigit());
    for prefix in ["run-", "ctx_"] {
        let Some((before, rest)) = text.split_once(prefix) else {
            continue;
        };
        if let Some(id) = rest.get(..32).filter(|id| is_hex(id)) {
            let number = number(id);
            return format!("{before}{prefix}{number}{}", &rest[32..]);
        }
    }
    if text.len() == 36 && text.matches('-').count() == 4 && is_hex(&text.replace('-', "")) {
        return format!("id-{}", number(text));
    }
    text.to_owned()
}
