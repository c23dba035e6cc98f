//! Whether the answer to a message is as it should be. The envelope is looked at here; what is in it is read by the code
//! that reads agents' answers.
use http::response::Parts;
use serde_json::Value;

use super::{
    link::{self, Link, Whole},
    report::{Draft, Wrong},
    way::Asked,
};
use crate::a2a::{
    Binding, Dialect, Version,
    answer::{self, Public, Seen},
    reply::ReplyTo,
    shape::{Options, Shape, State},
};

const RPC_TYPE: &str =
    "200 with content type application/json (JSON-RPC over HTTP; v1.0 9.1, v0.3 3.2.1)";
const REST_TYPE: &str = "200 with content type application/json, or application/a2a+json in v1.0 (v1.0 11.1, v0.3 3.2.3)";
const ENVELOPE: &str =
    "a JSON-RPC 2.0 response: jsonrpc, id, and result or error (v1.0 9, v0.3 6.11)";
pub(super) const ID: &str = "the id of the request, as it was sent (JSON-RPC 2.0 5; v0.3 6.11.2)";
const RESULT: &str = "a task or a message (v1.0 3.1.1, v0.3 7.1)";
const WAITS: &str = "a task that has ended or waits for somebody, since the request does not ask to return at once (v1.0 3.2.2)";

/// Asks, and looks.
pub(super) async fn judge(mut draft: Draft, link: &Link, asked: &Asked) -> Draft {
    match link.ask(asked).await {
        Err(trouble) => {
            let says = trouble.says();
            draft.came.clone_from(&says);
            draft.wrong(Wrong::new(says, RESULT))
        }
        Ok(whole) => {
            draft.came = link::shown(&whole.head);
            let result = look(asked, &whole).map(|says| draft.came.push_str(&says));
            draft.judged(result)
        }
    }
}

fn look(asked: &Asked, whole: &Whole) -> Result<String, Wrong> {
    refused(asked, &whole.head, &whole.body)?;
    kind(asked, &whole.head)?;
    if asked.is_rpc() {
        envelope(asked, &whole.body)?;
    }
    let options = Options::default();
    let public = Public {
        interfaces: vec![],
        push: true,
        security: None,
    };
    let to = canonical(asked);
    let read = answer::document(&to, asked.dialect, asked.op, &whole.body, &public, &options);
    let read = read.map_err(|fault| Wrong::new(fault.to_string(), RESULT))?;
    let text: Value = serde_json::from_slice(read.body.as_deref().unwrap_or_default())
        .map_err(|e| Wrong::new(e.to_string(), RESULT))?;
    members(&text)?;
    let waits = asked.dialect.shape.version() == Version::V10; // v0.3 leaves that to the agent
    let running = read.seen.state == Some(State::Running);
    if read.seen.task && running && waits {
        return Err(Wrong::new("the task still runs", WAITS));
    }
    Ok(format!(", {}", told(&read.seen)))
}

/// Answers are looked at in v1.0.
pub(super) fn canonical(asked: &Asked) -> ReplyTo {
    let mut to = ReplyTo::new(Dialect::R10);
    to.op = Some(asked.op);
    to
}

/// What an answer says, for a person.
pub(super) fn told(seen: &Seen) -> String {
    match (seen.message, seen.word) {
        (true, _) => "a message".to_owned(),
        (false, Some(word)) => {
            let word = word.trim_start_matches("TASK_STATE_");
            format!("task {}", word.to_ascii_lowercase().replace('_', "-"))
        }
        (false, None) => "a task in a state that nobody knows".to_owned(),
    }
}

/// An error, or no answer at all.
pub(super) fn refused(asked: &Asked, head: &Parts, body: &[u8]) -> Result<(), Wrong> {
    let status = head.status.as_u16();
    let text = String::from_utf8_lossy(body);
    let error = || {
        let value: Option<Value> = serde_json::from_str(&text).ok();
        value.is_some_and(|v| v.get("error").is_some_and(|e| !e.is_null()))
    };
    if status < 300 && !(asked.is_rpc() && error()) {
        return Ok(());
    }
    if head.status.is_redirection() {
        let right = "an answer; clients of A2A follow no redirect of a POST (v1.0 5.3, v0.3 3.2)";
        return Err(Wrong::new(link::shown(head), right));
    }
    let fault = answer::read_fault(status, &text, asked.op);
    let right = match status {
        401 | 403 => "an answer; say who asks by --header or --header-file (v1.0 7, v0.3 4)",
        _ => "an answer, since the card offers this (v1.0 4.4.6, v0.3 5.6)",
    };
    Err(Wrong::refused(status, format!("refused: {fault}"), right))
}

/// The content type of a document.
pub(super) fn kind(asked: &Asked, head: &Parts) -> Result<(), Wrong> {
    let said = link::media_type(head);
    let own = asked.dialect.shape == Shape::V10 && asked.dialect.binding == Binding::Rest;
    if said == "application/json" || (own && said == "application/a2a+json") {
        return Ok(());
    }
    let right = if asked.is_rpc() { RPC_TYPE } else { REST_TYPE };
    let what = if said.is_empty() {
        "there is no content type".to_owned()
    } else {
        format!("the content type is {said}")
    };
    Err(Wrong::new(what, right))
}

/// What JSON-RPC wants, of a document or an event.
pub(super) fn envelope(asked: &Asked, text: &[u8]) -> Result<Value, Wrong> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|e| Wrong::new(format!("it is not JSON: {e}"), ENVELOPE))?;
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Wrong::new("jsonrpc is not \"2.0\"", ENVELOPE));
    }
    match value.get("id") {
        None => Err(Wrong::new("there is no id", ID)),
        Some(Value::String(id)) if *id == asked.id => Ok(value),
        Some(other) => Err(Wrong::new(format!("the id is {other}"), ID)),
    }
}

/// What a task or a message cannot be without.
pub(super) fn members(result: &Value) -> Result<(), Wrong> {
    let filled = |o: &Value, key: &str| o[key].as_str().is_some_and(|s| !s.is_empty());
    let task = &result["task"];
    let message = &result["message"];
    match (task.is_object(), message.is_object()) {
        (true, false) if !filled(task, "id") => Err(Wrong::new(
            "the task has no id",
            "a task with id and status (v1.0 4.1.1, v0.3 6.1)",
        )),
        (true, false) if !filled(&task["status"], "state") => Err(Wrong::new(
            "the task has no state",
            "a task with id and status (v1.0 4.1.1, v0.3 6.1)",
        )),
        (false, true) if !filled(message, "messageId") || !message["parts"].is_array() => {
            Err(Wrong::new(
                "the message has no id or no parts",
                "a message with messageId, role and parts (v1.0 4.1.4, v0.3 6.4)",
            ))
        }
        (true, false) | (false, true) => Ok(()),
        (true, true) | (false, false) => {
            Err(Wrong::new("it is neither a task nor a message", RESULT))
        }
    }
}
