//! v1.0, which is canonical. Its lift mends what `ProtoJSON` readers must take: proto names, numbers for enums,
//! `null`, base64 of the other alphabet; a stray `kind`. Nothing to mend means that the bytes pass as they came.
use std::borrow::Cow;

use super::{Notes, ROLES, old::Old, up};
use crate::{
    a2a::op::Op,
    json::{
        As::{Each, One, Text},
        Error, Form, Node, Obj, Result,
    },
};

mod request;
mod result;
mod values;

pub(super) use request::{lift_request, with_id};
pub(super) use result::{is_task, lift_event, lift_result, result_form, trim};
pub use values::{State, state_and_word, state_of};
pub(super) use values::{
    boolean, decode, integer, invert, lift_state, lift_timestamp, standard_base64, state_down,
    state_proto,
};

pub(super) static PART: Form = Form::of(&[
    ("text", Text),
    ("raw", Text),
    ("url", Text),
    ("data", Text),
    ("metadata", Text),
    ("filename", Text),
    ("mediaType", Text),
]);
pub(super) static MESSAGE: Form = Form::of(&[
    ("messageId", Text),
    ("contextId", Text),
    ("taskId", Text),
    ("role", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
    ("referenceTaskIds", Text),
]);
pub(super) static STATUS: Form = Form::of(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
    ("timestamp", Text),
]);
pub(super) static ARTIFACT: Form = Form::of(&[
    ("artifactId", Text),
    ("name", Text),
    ("description", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
pub(super) static TASK: Form = Form::of(&[
    ("id", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("metadata", Text),
]);
pub(super) static STATUS_UPDATE: Form = Form::of(&[
    ("taskId", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("metadata", Text),
]);
pub(super) static ARTIFACT_UPDATE: Form = Form::of(&[
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", One(&ARTIFACT)),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// A send result or an event, also with names that 10-new made up, and the bare task of ADK.
pub(super) static RESULT: Form = Form::of(&[
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
static AUTHENTICATION: Form = Form::of(&[("scheme", Text), ("credentials", Text)]);
pub(super) static PUSH: Form = Form::of(&[
    ("tenant", Text),
    ("id", Text),
    ("taskId", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", One(&AUTHENTICATION)),
]);
static PUSHES: Form = Form::of(&[("configs", Each(&PUSH)), ("nextPageToken", Text)]);
static TASKS: Form = Form::of(&[
    ("tasks", Each(&TASK)),
    ("nextPageToken", Text),
    ("pageSize", Text),
    ("totalSize", Text),
]);
static CONFIGURATION: Form = Form::of(&[
    ("acceptedOutputModes", Text),
    ("taskPushNotificationConfig", One(&PUSH)),
    ("historyLength", Text),
    ("returnImmediately", Text),
    // v1.0.0's example text has this name; the alias in snake_case needs its own line to be opened.
    ("pushNotificationConfig", One(&PUSH)),
    ("task_push_notification_config", One(&PUSH)),
]);
static SEND: Form = Form::of(&[
    ("tenant", Text),
    ("message", One(&MESSAGE)),
    ("configuration", One(&CONFIGURATION)),
    ("metadata", Text),
]);
static TASK_QUERY: Form = Form::of(&[("tenant", Text), ("id", Text), ("historyLength", Text)]);
static TASK_ID: Form = Form::of(&[("tenant", Text), ("id", Text), ("metadata", Text)]);
static LIST: Form = Form::of(&[
    ("tenant", Text),
    ("contextId", Text),
    ("status", Text),
    ("pageSize", Text),
    ("pageToken", Text),
    ("historyLength", Text),
    ("statusTimestampAfter", Text),
    ("includeArtifacts", Text),
]);
static PUSH_ID: Form = Form::of(&[("tenant", Text), ("taskId", Text), ("id", Text)]);
static PUSH_PAGE: Form = Form::of(&[
    ("tenant", Text),
    ("taskId", Text),
    ("pageSize", Text),
    ("pageToken", Text),
]);
static TENANT: Form = Form::of(&[("tenant", Text)]);

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

// ---- Objects -------------------------------------------------------------------------------------------

pub(super) fn lift_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if notes.strict && m.has("content") {
        return Err(Error::Member {
            key: "content",
            why: "is of v0.3; a v1.0 message has `parts`",
        });
    }
    m.camel(&MESSAGE)?;
    if m.take("kind").is_some() {
        notes.old.add(Old::MESSAGE_KIND);
    }
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
        Some("\"ROLE_USER\"" | "\"ROLE_AGENT\"") => return Ok(()), // as most are
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

/// The one that a part has; one with two of them is none that we know.
pub(super) fn content_of(p: &Obj<'_>) -> Option<&'static str> {
    let there = CONTENT.map(|k| p.has(k));
    let mut there = CONTENT.into_iter().zip(there).filter(|(_, has)| *has);
    let (first, _) = there.next()?;
    there.next().is_none().then_some(first)
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
            notes.old.add(Old::PART_KIND);
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
    lift_timestamp(s, "timestamp");
    s.within("message", |m| lift_message(m, notes))
}

fn lift_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.camel(&ARTIFACT)?;
    a.no_nulls("");
    a.each("parts", |p| lift_part(p, notes))
}

fn lift_push(p: &mut Obj<'_>) -> Result {
    p.camel(&PUSH)?;
    p.no_nulls("");
    p.within("authentication", |a| {
        a.no_nulls("");
        Ok(())
    })
}
