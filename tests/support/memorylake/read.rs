//! Reads a message in the shape of its route, into v1.0: `parts` without `kind` there, `content` on v0.3 REST, `parts`
//! with `kind` and a role in lowercase on v0.3 JSON-RPC. What has the shape of another route is refused.
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    call::Tongue,
    extension::{boolean, string},
    refusal::Refusal,
    rules::Rules,
};

/// What is sent, with its wishes for the answer.
#[derive(Clone, Debug)]
pub struct Sent {
    /// As v1.0 writes it, without context and task.
    pub message: Value,
    pub context: Option<String>,
    /// A task that it is to go on with.
    pub task: Option<String>,
    pub waits: bool,
    /// How many messages of the history are told, all when `None`.
    pub history: Option<usize>,
    pub callback: Option<String>,
}

pub fn sent(tongue: Tongue, params: &Value, rules: &Rules) -> Result<Sent, Refusal> {
    let message = message(tongue, &params["message"])?;
    let configuration = &params["configuration"];
    if !configuration.is_null() && !configuration.is_object() {
        return Err(Refusal::invalid("configuration is no object"));
    }
    let context = string(&params["message"], "contextId")?;
    let task = string(&params["message"], "taskId")?;
    let callback = &configuration["pushNotificationConfig"]["url"];
    Ok(Sent {
        message,
        context: context.filter(|c| !c.is_empty()),
        task: task.filter(|t| !t.is_empty()),
        waits: waits(tongue, configuration, rules)?,
        history: history(tongue, configuration)?,
        callback: callback.as_str().map(str::to_owned),
    })
}

fn waits(tongue: Tongue, configuration: &Value, rules: &Rules) -> Result<bool, Refusal> {
    let switch = |name: &str| boolean(configuration, name);
    Ok(match tongue {
        Tongue::R10 | Tongue::J10 if rules.v10_returns_immediately => {
            !switch("returnImmediately")?.unwrap_or(false)
        }
        Tongue::R10 | Tongue::J10 | Tongue::J03 => switch("blocking")?.unwrap_or(true),
        Tongue::R03 => switch("blocking")?.unwrap_or(false),
    })
}

fn history(tongue: Tongue, configuration: &Value) -> Result<Option<usize>, Refusal> {
    match (&configuration["historyLength"], tongue) {
        (Value::Null, Tongue::R03) => Ok(Some(0)),
        (Value::Null, _) => Ok(None),
        (given, _) => {
            let count = given.as_u64().and_then(|n| usize::try_from(n).ok());
            let why = "configuration.historyLength is no count";
            count.map(Some).ok_or_else(|| Refusal::invalid(why))
        }
    }
}

/// A wrong shape is found by the routes of REST, and by the agent's methods over JSON-RPC: it is their parameter. Only
/// that REST refuses `content` and `parts` of the other version is told.
fn message(tongue: Tongue, given: &Value) -> Result<Value, Refusal> {
    let no = |why: String| {
        let no = Refusal::invalid(why);
        if tongue.is_rpc() {
            no.of_agent(-32602)
        } else {
            no
        }
    };
    let Some(given) = given.as_object() else {
        return Err(no("message is missing".to_owned()));
    };
    let (list, role) = match tongue {
        Tongue::R10 | Tongue::J10 => ("parts", "ROLE_USER"),
        Tongue::R03 => ("content", "ROLE_USER"),
        Tongue::J03 => ("parts", "user"),
    };
    if given.get("role").and_then(Value::as_str) != Some(role) {
        return Err(no(format!("message.role has to be {role}")));
    }
    let parts = given.get(list).and_then(Value::as_array);
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        return Err(no(format!("message.{list} is missing")));
    };
    let parts: Option<Vec<_>> = parts.iter().map(|part| part_of(tongue, part)).collect();
    let Some(parts) = parts else {
        return Err(no(format!(
            "a part of message.{list} has not the shape of this route"
        )));
    };
    let id = given.get("messageId").and_then(Value::as_str);
    let id = id.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    if let Some(metadata) = given.get("metadata") {
        message["metadata"] = metadata.clone();
    }
    Ok(message)
}

fn part_of(tongue: Tongue, part: &Value) -> Option<Value> {
    let part = part.as_object()?;
    let mut out = match tongue {
        Tongue::R10 | Tongue::J10 => v10(part),
        Tongue::R03 => r03(part),
        Tongue::J03 => j03(part),
    }?;
    if let Some(metadata) = part.get("metadata") {
        out["metadata"] = metadata.clone();
    }
    Some(out)
}

fn v10(part: &Map<String, Value>) -> Option<Value> {
    if part.contains_key("kind") || part.contains_key("file") {
        return None;
    }
    let what = ["text", "data", "url", "raw"];
    let mut there = what.into_iter().filter(|name| part.contains_key(*name));
    let name = there.next().filter(|_| there.next().is_none())?;
    let value = match name {
        "data" => floats(&part[name]),
        _ => Value::from(part[name].as_str()?),
    };
    let mut out = json!({name: value});
    for name in ["mediaType", "filename"] {
        if let Some(value) = part.get(name) {
            out[name] = value.clone();
        }
    }
    Some(out)
}

fn r03(part: &Map<String, Value>) -> Option<Value> {
    if part.contains_key("kind") {
        return None;
    }
    if let Some(text) = part.get("text") {
        return Some(json!({"text": text.as_str()?}));
    }
    if let Some(data) = part.get("data") {
        return Some(json!({"data": floats(data.get("data")?)}));
    }
    file(part.get("file")?, "fileWithUri", "fileWithBytes")
}

fn j03(part: &Map<String, Value>) -> Option<Value> {
    match part.get("kind")?.as_str()? {
        "text" => Some(json!({"text": part.get("text")?.as_str()?})),
        "data" => Some(json!({"data": floats(part.get("data")?)})),
        "file" => file(part.get("file")?, "uri", "bytes"),
        _ => None,
    }
}

fn file(file: &Value, uri: &str, bytes: &str) -> Option<Value> {
    let mut out = match (&file[uri], &file[bytes]) {
        (Value::String(uri), Value::Null) => json!({"url": uri}),
        (Value::Null, Value::String(bytes)) => json!({"raw": bytes}),
        _ => return None,
    };
    for (from, to) in [("mimeType", "mediaType"), ("name", "filename")] {
        if let Some(value) = file.get(from) {
            out[to] = value.clone();
        }
    }
    Some(out)
}

/// Numbers inside data parts come back as floating point.
pub fn floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(floats).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(k, v)| (k.clone(), floats(v)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
