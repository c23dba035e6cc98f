//! Writes tasks and events, which are kept as v1.0 writes them, in the shape of each family of routes.
use serde_json::{Map, Value, json};

use super::call::Tongue;

/// Ends a task's stream.
pub const FINAL: [&str; 3] = [
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
];

/// The body that answers a send: the task in a wrapper, but for v0.3 over JSON-RPC.
pub fn sent(tongue: Tongue, id: &Value, task: &Value) -> Value {
    event(tongue, id, &json!({"task": task}))
}

/// The body that answers a question about a task, which REST does not wrap.
pub fn task(tongue: Tongue, id: &Value, task: &Value) -> Value {
    match tongue {
        Tongue::R10 => task.clone(),
        Tongue::R03 => old_rest(task),
        Tongue::J10 => enveloped(id, task),
        Tongue::J03 => enveloped(id, &with_kind("task", old_rpc(task))),
    }
}

/// One event of a stream.
pub fn event(tongue: Tongue, id: &Value, event: &Value) -> Value {
    match tongue {
        Tongue::R10 => event.clone(),
        Tongue::R03 => old_rest(event),
        Tongue::J10 => enveloped(id, event),
        Tongue::J03 => {
            let members = event.as_object().expect("an event is an object");
            let (name, what) = members.iter().next().expect("it has a name");
            let out = match name.as_str() {
                "statusUpdate" => {
                    let mut out = with_kind("status-update", old_rpc(what));
                    let state = what["status"]["state"].as_str().unwrap_or_default();
                    out["final"] = FINAL.contains(&state).into();
                    out
                }
                "artifactUpdate" => with_kind("artifact-update", old_rpc(what)),
                _ => with_kind("task", old_rpc(what)),
            };
            enveloped(id, &out)
        }
    }
}

fn enveloped(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn with_kind(kind: &str, mut value: Value) -> Value {
    value["kind"] = kind.into();
    value
}

/// v0.3 over REST: the spelling of one state, `content`, and parts in a message of their own.
fn old_rest(value: &Value) -> Value {
    walk(value, &|members| {
        let is_message = members.contains_key("messageId");
        if let Some(parts) = members.get_mut("parts") {
            let told = parts.as_array().into_iter().flatten().map(rest_part);
            let told = Value::Array(told.collect());
            members.remove("parts");
            let name = if is_message { "content" } else { "parts" };
            members.insert(name.to_owned(), told);
        }
        if members
            .get("state")
            .is_some_and(|s| s == "TASK_STATE_CANCELED")
        {
            members.insert("state".to_owned(), "TASK_STATE_CANCELLED".into());
        }
    })
}

/// v0.3 over JSON-RPC: `kind` on all, words in lowercase.
fn old_rpc(value: &Value) -> Value {
    walk(value, &|members| {
        if members.contains_key("messageId") {
            members.insert("kind".to_owned(), "message".into());
        }
        if let Some(parts) = members.get("parts") {
            let told = parts.as_array().into_iter().flatten().map(rpc_part);
            let told = Value::Array(told.collect());
            members.insert("parts".to_owned(), told);
        }
        for (name, prefix) in [("state", "TASK_STATE_"), ("role", "ROLE_")] {
            if let Some(Value::String(word)) = members.get_mut(name)
                && let Some(bare) = word.strip_prefix(prefix)
            {
                *word = bare.to_lowercase().replace('_', "-");
            }
        }
    })
}

/// All objects of our own, not what is in parts and metadata.
fn walk(value: &Value, change: &impl Fn(&mut Map<String, Value>)) -> Value {
    match value {
        Value::Object(members) => {
            let mut out: Map<_, _> = members
                .iter()
                .map(|(name, value)| {
                    let told = match name.as_str() {
                        "parts" | "metadata" => value.clone(),
                        _ => walk(value, change),
                    };
                    (name.clone(), told)
                })
                .collect();
            change(&mut out);
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| walk(item, change)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn rest_part(part: &Value) -> Value {
    let mut out = if let Some(data) = part.get("data") {
        json!({"data": {"data": data}})
    } else if part.get("text").is_some() {
        json!({"text": part["text"]})
    } else {
        json!({"file": file(part, "fileWithUri", "fileWithBytes")})
    };
    if let Some(metadata) = part.get("metadata") {
        out["metadata"] = metadata.clone();
    }
    out
}

fn rpc_part(part: &Value) -> Value {
    let mut out = if let Some(data) = part.get("data") {
        json!({"kind": "data", "data": data})
    } else if part.get("text").is_some() {
        json!({"kind": "text", "text": part["text"]})
    } else {
        json!({"kind": "file", "file": file(part, "uri", "bytes")})
    };
    if let Some(metadata) = part.get("metadata") {
        out["metadata"] = metadata.clone();
    }
    out
}

fn file(part: &Value, uri: &str, bytes: &str) -> Value {
    let mut out = json!({});
    let names = [
        ("url", uri),
        ("raw", bytes),
        ("mediaType", "mimeType"),
        ("filename", "name"),
    ];
    for (from, to) in names {
        if let Some(value) = part.get(from) {
            out[to] = value.clone();
        }
    }
    out
}
