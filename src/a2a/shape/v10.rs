//! v1.0, which is canonical. Its lift mends what `ProtoJSON` readers must take: proto names, numbers for enums,
//! `null`, base64 of the other alphabet; a stray `kind`. Nothing to mend means that the bytes pass as they came.
use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Notes, ROLES, up};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, Each, One, Text},
        Error, Form, Node, Obj, Result,
    },
};

pub(super) static PART: Form = Form(&[
    ("text", Text),
    ("raw", Text),
    ("url", Text),
    ("data", Text),
    ("metadata", Text),
    ("filename", Text),
    ("mediaType", Text),
]);
pub(super) static MESSAGE: Form = Form(&[
    ("messageId", Text),
    ("contextId", Text),
    ("taskId", Text),
    ("role", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
    ("referenceTaskIds", Text),
]);
pub(super) static STATUS: Form = Form(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
    ("timestamp", Text),
]);
pub(super) static ARTIFACT: Form = Form(&[
    ("artifactId", Text),
    ("name", Text),
    ("description", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
pub(super) static TASK: Form = Form(&[
    ("id", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("metadata", Text),
]);
pub(super) static STATUS_UPDATE: Form = Form(&[
    ("taskId", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("metadata", Text),
]);
pub(super) static ARTIFACT_UPDATE: Form = Form(&[
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", One(&ARTIFACT)),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// A send result or an event, also with names that 10-new made up, and the bare task of ADK.
pub(super) static RESULT: Form = Form(&[
    ("statusUpdate", One(&STATUS_UPDATE)),
    ("artifactUpdate", One(&ARTIFACT_UPDATE)),
    ("task", One(&TASK)),
    ("message", One(&MESSAGE)),
    ("status_update", One(&STATUS_UPDATE)),
    ("artifact_update", One(&ARTIFACT_UPDATE)),
    ("taskStatusUpdate", One(&STATUS_UPDATE)),
    ("taskArtifactUpdate", One(&ARTIFACT_UPDATE)),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
]);
static AUTHENTICATION: Form = Form(&[("scheme", Text), ("credentials", Text)]);
pub(super) static PUSH: Form = Form(&[
    ("tenant", Text),
    ("id", Text),
    ("taskId", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", One(&AUTHENTICATION)),
]);
static PUSHES: Form = Form(&[("configs", Each(&PUSH)), ("nextPageToken", Text)]);
static TASKS: Form = Form(&[
    ("tasks", Each(&TASK)),
    ("nextPageToken", Text),
    ("pageSize", Text),
    ("totalSize", Text),
]);
static CONFIGURATION: Form = Form(&[
    ("acceptedOutputModes", Text),
    ("taskPushNotificationConfig", One(&PUSH)),
    ("historyLength", Text),
    ("returnImmediately", Text),
    // v1.0.0's example text has this name; the alias in snake_case needs its own line to be opened.
    ("pushNotificationConfig", One(&PUSH)),
    ("task_push_notification_config", One(&PUSH)),
]);
static SEND: Form = Form(&[
    ("tenant", Text),
    ("message", One(&MESSAGE)),
    ("configuration", One(&CONFIGURATION)),
    ("metadata", Text),
]);
static TASK_QUERY: Form = Form(&[("tenant", Text), ("id", Text), ("historyLength", Text)]);
static TASK_ID: Form = Form(&[("tenant", Text), ("id", Text), ("metadata", Text)]);
static LIST: Form = Form(&[
    ("tenant", Text),
    ("contextId", Text),
    ("status", Text),
    ("pageSize", Text),
    ("pageToken", Text),
    ("historyLength", Text),
    ("statusTimestampAfter", Text),
    ("includeArtifacts", Text),
]);
static PUSH_ID: Form = Form(&[("tenant", Text), ("taskId", Text), ("id", Text)]);
static PUSH_PAGE: Form = Form(&[
    ("tenant", Text),
    ("taskId", Text),
    ("pageSize", Text),
    ("pageToken", Text),
]);
static TENANT: Form = Form(&[("tenant", Text)]);

pub(super) fn request_form(op: Op) -> &'static Form {
    match op {
        Op::Send | Op::Stream => &SEND,
        Op::Get => &TASK_QUERY,
        Op::List => &LIST,
        Op::Cancel | Op::Subscribe => &TASK_ID,
        Op::CreatePush => &PUSH,
        Op::GetPush | Op::DeletePush => &PUSH_ID,
        Op::ListPush => &PUSH_PAGE,
        Op::ExtendedCard => &TENANT,
    }
}

pub(super) fn result_form(op: Op) -> As {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => One(&RESULT),
        Op::Get | Op::Cancel => One(&TASK),
        Op::List => One(&TASKS),
        Op::CreatePush | Op::GetPush => One(&PUSH),
        Op::ListPush => One(&PUSHES),
        Op::DeletePush => One(&Form::FLAT),
        Op::ExtendedCard => One(&super::card::CARD),
    }
}

/// A task's state (v1.0 4.1.3), as far as policy and streams need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Submitted, working, unspecified or unknown to us.
    Running,
    /// Waits for input or authentication.
    Interrupted,
    /// Will not change any more.
    Terminal,
}

/// Canonical names by number.
const STATES: [&str; 9] = [
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
/// The same in v0.3 with `kind`.
const STATES_KIND: [&str; 9] = [
    "unknown",
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "rejected",
    "auth-required",
];

/// What a canonical state means.
pub fn state_of(name: &str) -> State {
    match STATES.iter().position(|s| *s == name) {
        Some(3 | 4 | 5 | 7) => State::Terminal,
        Some(6 | 8) => State::Interrupted,
        _ => State::Running,
    }
}

/// The canonical name for any spelling of a state, if it is one.
pub(super) fn state_up(word: &str) -> Option<&'static str> {
    let by = |names: &[&str; 9]| {
        names
            .iter()
            .position(|n| n.eq_ignore_ascii_case(word))
            .map(|i| STATES[i])
    };
    by(&STATES)
        .or_else(|| by(&STATES_KIND))
        .or(match word.to_ascii_lowercase().as_str() {
            "cancelled" | "task_state_cancelled" => Some(STATES[5]),
            "input_required" => Some(STATES[6]),
            "auth_required" => Some(STATES[8]),
            "unspecified" => Some(STATES[0]),
            _ => None,
        })
}

/// The word of v0.3 with `kind`; an unknown state is `unknown`.
pub(super) fn state_down(name: &str) -> &'static str {
    let at = STATES.iter().position(|s| *s == name);
    STATES_KIND[at.unwrap_or(0)]
}

/// The name of v0.3 `ProtoJSON`, which has two L in canceled and knows no later states.
pub(super) fn state_proto(name: &str) -> &'static str {
    match STATES.iter().position(|s| *s == name) {
        Some(5) => "TASK_STATE_CANCELLED",
        at => STATES[at.unwrap_or(0)],
    }
}

/// Gives a state member its canonical name, also from a number.
pub(super) fn lift_state(o: &mut Obj<'_>, key: &'static str) {
    let number = o.raw(key).and_then(|t| t.parse::<usize>().ok());
    if let Some(name) = number.and_then(|n| STATES.get(n)) {
        o.put(key, Node::word(name));
        return;
    }
    o.word(key, state_up);
}

// ---- Requests ------------------------------------------------------------------------------------------

pub(super) fn lift_request(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let form = request_form(op);
    r.camel(form)?;
    r.no_nulls("");
    match op {
        Op::Send | Op::Stream => lift_send(r, notes),
        Op::Get => integer(r, "historyLength"),
        Op::List => lift_list(r),
        Op::CreatePush => lift_push(r),
        Op::ListPush => integer(r, "pageSize"),
        Op::Cancel | Op::Subscribe | Op::GetPush | Op::DeletePush | Op::ExtendedCard => Ok(()),
    }
}

fn lift_send(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if !r.has("message") {
        return Err(Error::Member {
            key: "message",
            why: "is required",
        });
    }
    r.within("message", |m| {
        lift_message(m, notes)?;
        with_id(m, notes);
        Ok(())
    })?;
    r.within("configuration", |c| {
        c.camel(&CONFIGURATION)?;
        c.rename("pushNotificationConfig", "taskPushNotificationConfig")?;
        c.no_nulls("");
        if notes.options.v10_accept_blocking && !c.has("returnImmediately") {
            invert(c, "blocking", "returnImmediately")?;
        }
        boolean(c, "returnImmediately")?;
        integer(c, "historyLength")?;
        c.within("taskPushNotificationConfig", lift_push)
    })
}

/// Renames a boolean and turns it round.
pub(super) fn invert(o: &mut Obj<'_>, from: &'static str, to: &'static str) -> Result {
    boolean(o, from)?;
    if let Some(Node::Text(t)) = o.take(from) {
        o.put(to, Node::flag(t == "false"));
    }
    Ok(())
}

/// Gives a message without an id one: other agents than the caller's own may be strict (10-proto REQUIRED).
pub(super) fn with_id(m: &mut Obj<'_>, notes: &Notes<'_>) {
    let missing = m.raw("messageId").is_none_or(|id| id == "\"\"");
    if missing && notes.options.generate_message_id {
        m.put("messageId", Node::string(uuid::Uuid::new_v4().to_string()));
    }
}

fn lift_list(r: &mut Obj<'_>) -> Result {
    r.rename("lastUpdatedAfter", "statusTimestampAfter")?; // a2a-go 2 writes this
    lift_state(r, "status");
    integer(r, "pageSize")?;
    integer(r, "historyLength")?;
    boolean(r, "includeArtifacts")
}

fn lift_push(p: &mut Obj<'_>) -> Result {
    p.camel(&PUSH)?;
    p.no_nulls("");
    p.within("authentication", |a| {
        a.no_nulls("");
        Ok(())
    })
}

/// A whole number that is not negative, as a number, an integral float or a decimal string.
pub(super) fn integer(o: &mut Obj<'_>, key: &'static str) -> Result {
    let raw = match o.get(key) {
        Some(Node::Text(text)) => *text,
        Some(Node::Word(word)) => word, // from a query
        None | Some(Node::Made(_) | Node::Obj(_) | Node::List(_)) => return Ok(()),
    };
    let bare = raw.trim_matches('"');
    let whole = bare.split_once('.').map_or(bare, |(whole, rest)| {
        if rest.bytes().all(|c| c == b'0') {
            whole
        } else {
            bare
        }
    });
    if whole.is_empty() || whole.len() > 10 || !whole.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Error::Member {
            key,
            why: "is not a whole number of 0 or more",
        });
    }
    if whole.len() != raw.len() || matches!(o.get(key), Some(Node::Word(_))) {
        let number = Node::Made(whole.to_owned());
        o.put(key, number);
    }
    Ok(())
}

pub(super) fn boolean(o: &Obj<'_>, key: &'static str) -> Result {
    match o.get(key) {
        None | Some(Node::Text("true" | "false")) => Ok(()),
        Some(_) => Err(Error::Member {
            key,
            why: "is not true or false",
        }),
    }
}

// ---- Objects -------------------------------------------------------------------------------------------

pub(super) fn lift_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if notes.strict && m.has("content") {
        return Err(Error::Member {
            key: "content",
            why: "is of v0.3; a v1.0 message has `parts`",
        });
    }
    m.camel(&MESSAGE)?;
    m.take("kind");
    m.no_nulls("");
    lift_role(m, notes)?;
    if notes.strict && !m.has("parts") {
        return Err(Error::Member {
            key: "parts",
            why: "is required",
        });
    }
    m.each("parts", |p| lift_part(p, notes))
}

fn lift_role(m: &mut Obj<'_>, notes: &Notes<'_>) -> Result {
    match m.raw("role") {
        Some("1") => m.put("role", Node::word("ROLE_USER")),
        Some("2") => m.put("role", Node::word("ROLE_AGENT")),
        _ => {}
    }
    if !notes.strict {
        m.word("role", |w| up(ROLES, w));
        return Ok(());
    }
    match m.string("role").as_deref() {
        Some("ROLE_USER" | "ROLE_AGENT") => Ok(()),
        Some("user" | "agent") => Err(Error::Member {
            key: "role",
            why: "is of v0.3; v1.0 has ROLE_USER and ROLE_AGENT",
        }),
        _ => Err(Error::Member {
            key: "role",
            why: "is neither ROLE_USER nor ROLE_AGENT",
        }),
    }
}

/// The members of a part of which there is one.
pub(super) const CONTENT: [&str; 4] = ["text", "raw", "url", "data"];

pub(super) fn content_of(p: &Obj<'_>) -> Option<&'static str> {
    CONTENT.into_iter().find(|k| p.has(k))
}

fn lift_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.camel(&PART)?;
    p.no_nulls("data");
    if notes.strict {
        one_content(p)?;
    }
    if let Some(kind) = p.string("kind").map(Cow::into_owned) {
        let agrees = match content_of(p) {
            Some("raw" | "url") => kind == "file",
            Some(content) => kind == content,
            None => false,
        };
        if agrees {
            p.take("kind");
        } else if notes.strict {
            return Err(Error::Member {
                key: "kind",
                why: "contradicts what the part has",
            });
        }
    }
    standard_base64(p, "raw");
    Ok(())
}

fn one_content(p: &Obj<'_>) -> Result {
    let why = match CONTENT.iter().filter(|k| p.has(k)).count() {
        1 => return Ok(()),
        0 if p.has("file") => "is of v0.3; a v1.0 part has `raw` or `url`",
        0 => "is none of text, raw, url and data",
        _ => "is more than one of text, raw, url and data",
    };
    let key = if p.has("file") { "file" } else { "part" };
    Err(Error::Member { key, why })
}

/// `ProtoJSON` reads both alphabets with and without padding, and writes the standard one with it.
pub(super) fn standard_base64(o: &mut Obj<'_>, key: &'static str) {
    let Some(raw) = o.raw(key) else { return };
    let inner = raw.trim_matches('"').as_bytes();
    if inner.len().is_multiple_of(4) && memchr::memchr2(b'-', b'_', inner).is_none() {
        return;
    }
    if let Some(bytes) = o.string(key).as_deref().and_then(decode) {
        o.put(key, Node::Made(format!("\"{}\"", STANDARD.encode(bytes))));
    }
}

/// Base64 of either alphabet, padded or not.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const ANY: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const BOTH: [GeneralPurpose; 2] = [
        GeneralPurpose::new(&base64::alphabet::STANDARD, ANY),
        GeneralPurpose::new(&base64::alphabet::URL_SAFE, ANY),
    ];
    BOTH.iter().find_map(|engine| engine.decode(text).ok())
}

pub(super) fn lift_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.camel(&TASK)?;
    t.take("kind");
    t.no_nulls("");
    t.within("status", |s| lift_status(s, notes))?;
    t.each("artifacts", |a| lift_artifact(a, notes))?;
    t.each("history", |m| lift_message(m, notes))
}

fn lift_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    s.no_nulls("");
    lift_state(s, "state");
    s.within("message", |m| lift_message(m, notes))
}

fn lift_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.camel(&ARTIFACT)?;
    a.no_nulls("");
    a.each("parts", |p| lift_part(p, notes))
}

// ---- Results and events --------------------------------------------------------------------------------

const NOT_ONE: Error = Error::Member {
    key: "result",
    why: "is not an object",
};

pub(super) fn lift_result<'a>(op: Op, result: Node<'a>, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    let mut r = match (op, result) {
        (_, Node::Obj(r)) => r,
        (Op::DeletePush, Node::Text("null")) => Obj::default(), // a2a-python 1.3.0
        (Op::List | Op::ListPush, Node::Text(t)) if t.starts_with('[') => {
            return bare_list(op, t, notes);
        }
        _ => return Err(NOT_ONE),
    };
    match op {
        Op::Send | Op::Stream | Op::Subscribe => lift_event(&mut r, notes)?,
        Op::Get | Op::Cancel => {
            lift_task(&mut r, notes)?;
            is_task(&r)?;
        }
        Op::List => {
            r.camel(&TASKS)?;
            r.each("tasks", |t| lift_task(t, notes))?;
        }
        Op::CreatePush | Op::GetPush => lift_push(&mut r)?,
        Op::ListPush => {
            r.camel(&PUSHES)?;
            r.each("configs", lift_push)?;
        }
        Op::DeletePush => r = Obj::default(),
        Op::ExtendedCard => {}
    }
    Ok(r)
}

/// ADK answers lists as bare arrays.
fn bare_list<'a>(op: Op, text: &'a str, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    let mut r = Obj::default();
    let (key, form): (_, &'static Form) = match op {
        Op::List => ("tasks", &TASK),
        _ => ("configs", &PUSH),
    };
    r.put(key, Node::open(text, Each(form), notes.options.limits)?);
    let count = r.list(key).map_or(0, <[_]>::len).to_string();
    if op == Op::List {
        r.each(key, |t| lift_task(t, notes))?;
        r.put("nextPageToken", Node::word(""));
        r.put("pageSize", Node::Made(count.clone()));
        r.put("totalSize", Node::Made(count));
    } else {
        r.each(key, lift_push)?;
    }
    Ok(r)
}

pub(super) fn is_task(t: &Obj<'_>) -> Result {
    if t.has("id") {
        return Ok(());
    }
    Err(Error::Member {
        key: "task",
        why: "has no id",
    })
}

pub(super) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    e.take("kind");
    e.rename("taskStatusUpdate", "statusUpdate")?;
    e.rename("taskArtifactUpdate", "artifactUpdate")?;
    e.rename("status_update", "statusUpdate")?;
    e.rename("artifact_update", "artifactUpdate")?;
    e.no_nulls("");
    if e.has("id") && e.has("status") && !e.has("task") {
        e.wrap("task"); // ADK answers a send with the bare task
    }
    if let Some(u) = e.inside("statusUpdate").map(|_| "statusUpdate") {
        return e.within(u, |u| {
            u.camel(&STATUS_UPDATE)?;
            u.take("kind");
            u.no_nulls("");
            u.within("status", |s| lift_status(s, notes))
        });
    }
    if e.has("artifactUpdate") {
        return e.within("artifactUpdate", |u| {
            u.camel(&ARTIFACT_UPDATE)?;
            u.take("kind");
            u.no_nulls("");
            u.within("artifact", |a| lift_artifact(a, notes))
        });
    }
    if e.has("task") {
        return e.within("task", |t| {
            lift_task(t, notes)?;
            is_task(t)
        });
    }
    if e.has("message") {
        return e.within("message", |m| lift_message(m, notes));
    }
    Err(Error::Member {
        key: "result",
        why: "is none of task, message, statusUpdate and artifactUpdate",
    })
}

/// Keeps the last messages of a task's history, as many as the caller asked for: some agents do not.
pub(super) fn trim(op: Op, r: &mut Obj<'_>, notes: &Notes<'_>) -> Result {
    let Some(most) = notes.history else {
        return Ok(());
    };
    match op {
        Op::Get => trim_task(r, most),
        Op::List => r.each("tasks", |t| trim_task(t, most)),
        Op::Send | Op::Stream | Op::Subscribe => r.within("task", |t| trim_task(t, most)),
        Op::Cancel
        | Op::CreatePush
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => Ok(()),
    }
}

fn trim_task(t: &mut Obj<'_>, most: u64) -> Result {
    let len = t.list("history").map_or(0, <[_]>::len);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if len <= most {
        return Ok(());
    }
    if let Some(mut history) = t.take_list("history")?
        && most > 0
    {
        t.put("history", Node::List(history.split_off(len - most)));
    }
    Ok(())
}
