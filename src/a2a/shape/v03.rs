//! What both shapes of v0.3 have in common: how requests are opened, the send configuration, webhooks, and
//! where the things are kept that v0.3 has no place for.
use super::{Notes, v10};
use crate::{
    a2a::op::Op,
    json::{
        As::{Each, One, Text},
        Error, Form, Limits, Node, Obj, Result, write_string,
    },
};

/// Members of both shapes, since REST tells them apart by what is inside.
static FILE: Form = Form(&[]);
static PART: Form = Form(&[("file", One(&FILE))]);
static MESSAGE: Form = Form(&[("parts", Each(&PART)), ("content", Each(&PART))]);
static AUTHENTICATION: Form = Form(&[("schemes", Text), ("credentials", Text)]);
pub(super) static PUSH: Form = Form(&[
    ("id", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", One(&AUTHENTICATION)),
]);
static RESOURCE: Form = Form(&[
    ("name", Text),
    ("taskId", Text),
    ("pushNotificationConfig", One(&PUSH)),
    ("push_notification_config", One(&PUSH)),
]);
static CREATE: Form = Form(&[
    ("taskId", Text),
    ("parent", Text),
    ("configId", Text),
    ("name", Text),
    ("config", One(&RESOURCE)),
    ("pushNotificationConfig", One(&PUSH)),
    ("push_notification_config", One(&PUSH)),
    ("id", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", One(&AUTHENTICATION)),
]);
static CONFIGURATION: Form = Form(&[
    ("pushNotificationConfig", One(&PUSH)),
    ("pushNotification", One(&PUSH)),
    ("push_notification_config", One(&PUSH)),
    ("push_notification", One(&PUSH)),
]);
static SEND: Form = Form(&[
    ("message", One(&MESSAGE)),
    ("request", One(&MESSAGE)),
    ("configuration", One(&CONFIGURATION)),
    ("metadata", Text),
]);

pub(super) fn request_form(op: Op) -> &'static Form {
    match op {
        Op::Send | Op::Stream => &SEND,
        Op::CreatePush => &CREATE,
        Op::Get
        | Op::List
        | Op::Cancel
        | Op::Subscribe
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => &Form::FLAT,
    }
}

/// The members that a v0.3 request of this operation has besides a send's; what is missing on the right has no
/// place in v1.0.
pub(super) static QUERY: Form = Form(&[("id", Text), ("historyLength", Text)]);
pub(super) static CANCEL: Form = Form(&[("id", Text), ("metadata", Text)]);
pub(super) static SUBSCRIBE: Form = Form(&[("id", Text)]);
pub(super) static PUSH_ID: Form = Form(&[("taskId", Text), ("id", Text)]);
pub(super) static LIST: Form = Form(&[
    ("contextId", Text),
    ("status", Text),
    ("pageSize", Text),
    ("pageToken", Text),
    ("historyLength", Text),
    ("statusTimestampAfter", Text),
    ("includeArtifacts", Text),
]);

/// The requests without a message, from v0.3: `params` of JSON-RPC, or path and query of REST.
pub(super) fn lift_small(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    r.no_nulls("");
    match op {
        Op::Get => {
            r.camel(&QUERY)?;
            v10::integer(r, "historyLength")?;
            notes.keep(r, "task-query", &QUERY);
        }
        Op::Cancel => {
            r.take("name"); // `tasks/ID` of ProtoJSON: the path says it
            notes.keep(r, "task-id", &CANCEL);
        }
        Op::Subscribe => {
            r.take("name");
            notes.keep(r, "task-id", &SUBSCRIBE);
        }
        Op::GetPush | Op::DeletePush | Op::ListPush => {
            r.camel(&Form(&[("pushNotificationConfigId", Text)]))?;
            r.rename("id", "taskId")?;
            r.rename("pushNotificationConfigId", "id")?;
            r.no_blanks(&["id"]);
            notes.keep(r, "push-config-id", &PUSH_ID);
        }
        Op::List => {
            v10::lift_request(op, r, notes)?;
            notes.keep(r, "list-query", &LIST);
        }
        Op::ExtendedCard => notes.keep(r, "card-query", &Form::FLAT),
        Op::Send | Op::Stream | Op::CreatePush => {}
    }
    Ok(())
}

/// The other way.
pub(super) fn lower_small(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if r.take("tenant").is_some() {
        notes.lose("request", "tenant", "v0.3 has no tenants");
    }
    match op {
        Op::Get => notes.keep(r, "task-query", &QUERY),
        Op::Cancel => notes.keep(r, "task-id", &CANCEL),
        Op::Subscribe => notes.keep(r, "task-id", &SUBSCRIBE),
        Op::GetPush | Op::DeletePush => {
            r.rename("id", "pushNotificationConfigId")?;
            r.rename("taskId", "id")?;
        }
        Op::ListPush => {
            r.rename("taskId", "id")?;
            notes.keep(r, "push-config-id", &SUBSCRIBE);
        }
        Op::ExtendedCard => notes.keep(r, "card-query", &Form::FLAT),
        Op::List | Op::Send | Op::Stream | Op::CreatePush => {}
    }
    Ok(())
}

/// The configuration of a send, from either shape; `push` is the shape's name for the webhook.
pub(super) fn lift_configuration(
    c: &mut Obj<'_>,
    form: &'static Form,
    push: &'static str,
    notes: &mut Notes<'_>,
) -> Result {
    c.no_nulls("");
    notes.keep(c, "configuration", form);
    v10::invert(c, "blocking", "returnImmediately")?;
    v10::integer(c, "historyLength")?;
    c.rename(push, "taskPushNotificationConfig")?;
    c.within("taskPushNotificationConfig", |p| lift_push(p, notes))
}

/// The other way. `blocking` is left to the shapes, whose defaults differ.
pub(super) fn lower_configuration(
    c: &mut Obj<'_>,
    form: &'static Form,
    push: &'static str,
    notes: &mut Notes<'_>,
) -> Result {
    c.rename("taskPushNotificationConfig", push)?;
    c.within(push, |p| lower_push(p, notes))?;
    notes.keep(c, "configuration", form);
    Ok(())
}

/// A v0.3 webhook to the flat one of v1.0, still without its task.
pub(super) fn lift_push(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.no_nulls("");
    notes.keep(p, "push-config", &PUSH);
    p.within("authentication", |a| {
        notes.keep(a, "authentication", &AUTHENTICATION);
        a.no_nulls("");
        let schemes: Vec<Option<String>> = match a.take("schemes") {
            Some(Node::Text(list)) => serde_json::from_str(list).map_err(|_| Error::Member {
                key: "schemes",
                why: "is not a list of strings",
            })?,
            _ => vec![],
        };
        if schemes.len() > 1 {
            notes.lose(
                "authentication",
                "schemes",
                "v1.0 keeps the first scheme only",
            );
        }
        if let Some(Some(first)) = schemes.into_iter().next() {
            a.put_first("scheme", Node::string(first));
        }
        Ok(())
    })?;
    if p.inside("authentication").is_some_and(Obj::is_empty) {
        p.take("authentication"); // v1.0 requires a scheme in it
    }
    Ok(())
}

/// The flat webhook of v1.0 to that of v0.3; its task is taken out by the caller.
pub(super) fn lower_push(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.take("taskId");
    if p.take("tenant").is_some() {
        notes.lose("push-config", "tenant", "v0.3 has no tenants");
    }
    p.no_blanks(&["id", "token", "authentication"]);
    p.within("authentication", |a| {
        let scheme = a.take("scheme");
        let list = match scheme {
            Some(Node::Text(t)) if t != "\"\"" => Node::Made(format!("[{t}]")),
            _ => Node::Text("[]"),
        };
        a.put_first("schemes", list);
        a.no_blanks(&["credentials"]);
        notes.keep(a, "authentication", &AUTHENTICATION);
        Ok(())
    })?;
    notes.keep(p, "push-config", &PUSH);
    Ok(())
}

// ---- What v0.3 has no place for -------------------------------------------------------------------------

/// Keys under which it is kept in `metadata` (decision 26); `data_part_compat` is the convention of the SDKs.
const MEDIA_TYPE: &str = "a2a-gateway/mediaType";
const FILENAME: &str = "a2a-gateway/filename";
const REFERENCES: &str = "a2a-gateway/referenceTaskIds";
const WRAPPED: &str = "data_part_compat";

/// Puts a member into `metadata` without reading what else is in it. False where `metadata` is no object.
fn remember(o: &mut Obj<'_>, key: &str, value: &str) -> bool {
    let mut text = vec![b'{'];
    write_string(key, &mut text);
    text.push(b':');
    text.extend_from_slice(value.as_bytes());
    let before = match o.get("metadata") {
        None | Some(Node::Text("null")) => "{}",
        Some(Node::Text(t)) => *t,
        Some(Node::Made(t)) => t.as_str(),
        Some(Node::Word(_) | Node::Obj(_) | Node::List(_)) => return false,
    };
    let Some(rest) = before.strip_prefix('{').map(str::trim_start) else {
        return false;
    };
    if !rest.starts_with('}') {
        text.push(b',');
    }
    text.extend_from_slice(rest.as_bytes());
    // Both parts are JSON text, so they are UTF-8.
    let Ok(text) = String::from_utf8(text) else {
        return false;
    };
    o.put("metadata", Node::Made(text));
    true
}

/// Takes a member out of `metadata`, and `metadata` with it if nothing is left. Metadata that is not ours to
/// read, such as one with a key twice, stays as it is.
fn recall<'a>(o: &mut Obj<'a>, key: &str) -> Option<Node<'a>> {
    let text = o.raw("metadata")?;
    memchr::memmem::find(text.as_bytes(), key.as_bytes())?;
    let mut metadata = Obj::open(text, &Form::FLAT, Limits::CHECKED).ok()?;
    let found = metadata.take(key)?;
    if metadata.is_empty() {
        o.take("metadata");
    } else {
        // As text again, so that the next look finds text.
        let mut left = vec![];
        metadata.write(&mut left);
        match String::from_utf8(left) {
            Ok(left) => o.put("metadata", Node::Made(left)),
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Brings back what [`lower_rest`] and [`wrap_data`] kept, in the other order.
pub(super) fn restore_part(p: &mut Obj<'_>) {
    let ours = |t: &str| t.contains("a2a-gateway/") || t.contains(WRAPPED);
    if !p.raw("metadata").is_some_and(ours) {
        return;
    }
    open_metadata(p, &[(MEDIA_TYPE, "mediaType"), (FILENAME, "filename")]);
    let wrapped = |p: &Obj<'_>| p.raw("data").is_some_and(|d| d.starts_with('{'));
    if wrapped(p)
        && let Some(Node::Text("true")) = peek(p, WRAPPED)
        && let Some(text) = p.raw("data")
        && let Ok(mut data) = Obj::open(text, &Form::FLAT, Limits::CHECKED)
        && data.members().count() == 1
        && let Some(value) = data.take("value")
    {
        p.put("data", value);
        forget(p, WRAPPED);
    }
}

/// Moves kept members back to where they belong.
fn open_metadata(o: &mut Obj<'_>, pairs: &[(&str, &'static str)]) {
    for (kept, name) in pairs {
        if !o.has(name)
            && let Some(value) = recall(o, kept)
        {
            o.put(name, value);
        }
    }
}

fn peek<'a>(o: &Obj<'a>, key: &str) -> Option<Node<'a>> {
    let text = o.raw("metadata")?;
    Obj::open(text, &Form::FLAT, Limits::CHECKED)
        .ok()?
        .take(key)
}

fn forget(o: &mut Obj<'_>, key: &str) {
    let _gone = recall(o, key);
}

/// `mediaType` and `filename` of a text or data part, which only files have in v0.3.
pub(super) fn lower_rest(p: &mut Obj<'_>, obvious: &str, notes: &mut Notes<'_>) {
    for (name, kept, plain) in [
        ("mediaType", MEDIA_TYPE, obvious),
        ("filename", FILENAME, "\"\""),
    ] {
        let Some(Node::Text(value)) = p.take(name) else {
            continue;
        };
        if value == plain || value == "\"\"" || value == "null" {
            continue;
        }
        if !notes.options.preserve_lossy || !remember(p, kept, value) {
            notes.lose("part", name, "only file parts have it in v0.3");
        }
    }
}

/// v0.3 `data` is an object; anything else is wrapped and marked (decision 27).
pub(super) fn wrap_data(p: &mut Obj<'_>) {
    let Some(data) = p.raw("data") else { return };
    if data.starts_with('{') {
        return;
    }
    p.put("data", Node::Made(format!("{{\"value\":{data}}}")));
    remember(p, WRAPPED, "true");
}

/// `referenceTaskIds`, which v0.3 `ProtoJSON` does not have.
pub(super) fn lower_references(m: &mut Obj<'_>, notes: &mut Notes<'_>) {
    m.no_blanks(&["referenceTaskIds"]);
    let Some(Node::Text(list)) = m.take("referenceTaskIds") else {
        return;
    };
    if !notes.options.preserve_lossy || !remember(m, REFERENCES, list) {
        notes.lose("message", "referenceTaskIds", "v0.3 REST does not have it");
    }
}

/// The other way.
pub(super) fn restore_references(m: &mut Obj<'_>) {
    open_metadata(m, &[(REFERENCES, "referenceTaskIds")]);
}

/// A file's names on both sides.
pub(super) fn lift_file<'a>(p: &mut Obj<'a>, mut file: Obj<'a>) -> Result {
    for (old, new) in [("mimeType", "mediaType"), ("name", "filename")] {
        file.rename(old, new)?;
    }
    file.no_blanks(&["mediaType", "filename"]);
    if file.has("raw") == file.has("url") {
        return Err(Error::Member {
            key: "file",
            why: "has not exactly one of bytes and uri",
        });
    }
    p.merge(file)
}

/// The file of a part, with v0.3's names for what it holds.
pub(super) fn lower_file<'a>(p: &mut Obj<'a>, url: &'static str, raw: &'static str) -> Obj<'a> {
    let mut file = Obj::default();
    for (old, new) in [
        ("url", url),
        ("raw", raw),
        ("mediaType", "mimeType"),
        ("filename", "name"),
    ] {
        if let Some(value) = p.take(old) {
            file.put(new, value);
        }
    }
    file.no_blanks(&["mimeType", "name"]);
    file
}

/// An offset other than `Z` is normalised, and a time without one read as UTC (v1.0 5.6.1, decision in
/// objects 4). What is no time passes.
pub(super) fn lift_timestamp(o: &mut Obj<'_>, key: &'static str) {
    let Some(time) = o.string(key) else { return };
    if time.ends_with('Z') {
        return;
    }
    let utc = time.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = time.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    });
    if let Some(utc) = utc {
        let text = utc.to_string();
        o.put(key, Node::string(text));
    }
}
