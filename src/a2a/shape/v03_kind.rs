//! v0.3 JSON-schema objects: `kind` everywhere, lower-case words (J03, R03K; with keys in `snake_case` R03S).
use super::{Notes, ROLES, down, up, v03, v10};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, Each, One, Text},
        Error, Form, Node, Obj, Result,
    },
};

static FILE: Form = Form(&[
    ("uri", Text),
    ("bytes", Text),
    ("mimeType", Text),
    ("name", Text),
]);
static PART: Form = Form(&[
    ("kind", Text),
    ("text", Text),
    ("data", Text),
    ("file", One(&FILE)),
    ("metadata", Text),
]);
static MESSAGE: Form = Form(&[
    ("kind", Text),
    ("role", Text),
    ("parts", Each(&PART)),
    ("messageId", Text),
    ("contextId", Text),
    ("taskId", Text),
    ("metadata", Text),
    ("extensions", Text),
    ("referenceTaskIds", Text),
]);
static STATUS: Form = Form(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
    ("timestamp", Text),
]);
static ARTIFACT: Form = Form(&[
    ("artifactId", Text),
    ("name", Text),
    ("description", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
static TASK: Form = Form(&[
    ("kind", Text),
    ("id", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("metadata", Text),
]);
static STATUS_UPDATE: Form = Form(&[
    ("kind", Text),
    ("taskId", Text),
    ("contextId", Text),
    ("status", Text),
    ("final", Text),
    ("metadata", Text),
]);
static ARTIFACT_UPDATE: Form = Form(&[
    ("kind", Text),
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", Text),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// Any of the four, told apart by `kind`.
pub(super) static EVENT: Form = Form(&[
    ("status", One(&STATUS)),
    ("artifact", One(&ARTIFACT)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("parts", Each(&PART)),
]);
static RESOURCE: Form = Form(&[
    ("taskId", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
]);
static CONFIGURATION: Form = Form(&[
    ("acceptedOutputModes", Text),
    ("blocking", Text),
    ("historyLength", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
]);
static SEND: Form = Form(&[
    ("message", Text),
    ("configuration", Text),
    ("metadata", Text),
]);

pub(super) fn result_form(op: Op) -> As {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => One(&EVENT),
        Op::Get | Op::Cancel => One(&TASK),
        Op::CreatePush | Op::GetPush => One(&RESOURCE),
        Op::ListPush => Each(&RESOURCE),
        Op::ExtendedCard => One(&super::card::CARD),
        Op::List | Op::DeletePush => Text,
    }
}

// ---- Requests ------------------------------------------------------------------------------------------

pub(super) fn lift_request(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    match op {
        Op::Send | Op::Stream => lift_send(r, notes),
        Op::CreatePush => {
            r.no_nulls("");
            r.rename("config", "pushNotificationConfig")?; // v0.3 spec 7.5 on REST
            notes.keep(r, "push-resource", &CREATE);
            lift_resource(r, notes)
        }
        _ => v03::lift_small(op, r, notes),
    }
}

/// The resource, or the bare config of a2a-go.
static CREATE: Form = Form(&[
    ("taskId", Text),
    ("pushNotificationConfig", Text),
    ("id", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", Text),
]);

fn lift_send(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    r.no_nulls("");
    notes.keep(r, "send", &SEND);
    if !r.has("message") {
        return Err(Error::Member {
            key: "message",
            why: "is required",
        });
    }
    r.within("message", |m| {
        lift_message(m, notes)?;
        v10::with_id(m, notes);
        Ok(())
    })?;
    r.within("configuration", |c| {
        v03::lift_configuration(c, &CONFIGURATION, "pushNotificationConfig", notes)
    })
}

pub(super) fn lower_request(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    match op {
        Op::Send | Op::Stream => {
            v03::lower_small(op, r, notes)?;
            r.within("message", |m| lower_message(m, notes))?;
            r.within("configuration", |c| {
                v10::invert(c, "returnImmediately", "blocking")?;
                v03::lower_configuration(c, &CONFIGURATION, "pushNotificationConfig", notes)
            })?;
            notes.keep(r, "send", &SEND);
            Ok(())
        }
        Op::CreatePush => lower_resource(r, notes),
        _ => v03::lower_small(op, r, notes),
    }
}

/// `{taskId, pushNotificationConfig}` to the flat config, which is its own resource.
fn lift_resource(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let task = r.take("taskId");
    if let Some(config) = r.take_obj("pushNotificationConfig")? {
        r.merge(config)?;
    }
    v03::lift_push(r, notes)?;
    if let Some(task) = task {
        r.put_first("taskId", task);
    }
    Ok(())
}

fn lower_resource(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let task = r.take("taskId");
    v03::lower_push(r, notes)?;
    r.wrap("pushNotificationConfig");
    if let Some(task) = task {
        r.put_first("taskId", task);
    }
    Ok(())
}

// ---- Objects, both ways ----------------------------------------------------------------------------------

fn lift_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    m.no_nulls("");
    notes.keep(m, "message", &MESSAGE);
    kind_is(m, "message")?;
    m.word("role", |w| up(ROLES, w));
    if notes.strict {
        let role = m.string("role").is_some_and(|r| r.starts_with("ROLE_"));
        let came = m.raw("role").is_some(); // an edited word is no raw text any more
        if !role || came {
            return Err(Error::Member {
                key: "role",
                why: "is neither user nor agent",
            });
        }
        if !m.has("parts") {
            return Err(Error::Member {
                key: "parts",
                why: "is required",
            });
        }
    }
    m.each("parts", |p| lift_part(p, notes))
}

fn lower_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    m.put("kind", Node::word("message"));
    let role = m.string("role").and_then(|w| down(ROLES, &w));
    m.put("role", Node::word(role.unwrap_or("agent")));
    m.no_blanks(&["contextId", "taskId", "extensions", "referenceTaskIds"]);
    m.each("parts", |p| lower_part(p, notes))?;
    notes.keep(m, "message", &MESSAGE);
    Ok(())
}

/// Takes `kind` where it says what it must.
fn kind_is(o: &mut Obj<'_>, kind: &'static str) -> Result {
    if o.string("kind").is_some_and(|k| k != kind) {
        return Err(Error::Member {
            key: "kind",
            why: "contradicts where it stands",
        });
    }
    o.take("kind");
    Ok(())
}

fn lift_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.no_nulls("");
    notes.keep(p, "part", &PART);
    let content: Vec<_> = ["text", "file", "data"]
        .into_iter()
        .filter(|k| p.has(k))
        .collect();
    let [kind] = content[..] else {
        return Err(Error::Member {
            key: "part",
            why: "has not exactly one of text, file and data",
        });
    };
    kind_is(p, kind)?;
    if kind == "data" && !p.raw("data").is_some_and(|d| d.starts_with('{')) {
        return Err(Error::Member {
            key: "data",
            why: "is not an object",
        });
    }
    if let Some(mut file) = p.take_obj("file")? {
        file.rename("fileWithUri", "uri")?; // as 10-new writes it, wrongly
        file.rename("fileWithBytes", "bytes")?;
        notes.keep(&mut file, "file", &FILE);
        file.rename("uri", "url")?;
        file.rename("bytes", "raw")?;
        v03::lift_file(p, file)?;
        v10::standard_base64(p, "raw");
    }
    v03::restore_part(p);
    Ok(())
}

fn lower_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let kind = match v10::content_of(p) {
        Some("text") => {
            v03::lower_rest(p, "\"text/plain\"", notes);
            "text"
        }
        Some("data") => {
            v03::lower_rest(p, "\"application/json\"", notes);
            v03::wrap_data(p);
            "data"
        }
        Some(_) => {
            let file = v03::lower_file(p, "uri", "bytes");
            p.put("file", Node::Obj(file));
            "file"
        }
        None => {
            p.wrap("data"); // a part of a later version: shown whole rather than failing the stream
            "data"
        }
    };
    p.put("kind", Node::word(kind));
    notes.keep(p, "part", &PART);
    Ok(())
}

fn lift_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    s.no_nulls("");
    notes.keep(s, "status", &STATUS);
    v10::lift_state(s, "state");
    v03::lift_timestamp(s, "timestamp");
    s.within("message", |m| lift_message(m, notes))
}

fn lower_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let state = s.string("state").map_or("unknown", |s| v10::state_down(&s));
    s.put("state", Node::word(state));
    s.no_blanks(&["timestamp"]);
    s.within("message", |m| lower_message(m, notes))?;
    notes.keep(s, "status", &STATUS);
    Ok(())
}

fn lift_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.no_nulls("");
    notes.keep(a, "artifact", &ARTIFACT);
    a.each("parts", |p| lift_part(p, notes))
}

fn lower_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.no_blanks(&["name", "description", "extensions"]);
    a.each("parts", |p| lower_part(p, notes))?;
    notes.keep(a, "artifact", &ARTIFACT);
    Ok(())
}

fn lift_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.no_nulls("");
    notes.keep(t, "task", &TASK);
    kind_is(t, "task")?;
    t.within("status", |s| lift_status(s, notes))?;
    t.each("artifacts", |a| lift_artifact(a, notes))?;
    t.each("history", |m| lift_message(m, notes))
}

fn lower_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.put("kind", Node::word("task"));
    t.no_blanks(&["contextId", "artifacts", "history"]);
    fill_context(t, "id", notes);
    if !t.has("status") {
        let mut status = Obj::default();
        status.put("state", Node::word("unknown"));
        t.put("status", Node::Obj(status));
    }
    t.within("status", |s| lower_status(s, notes))?;
    t.each("artifacts", |a| lower_artifact(a, notes))?;
    t.each("history", |m| lower_message(m, notes))?;
    notes.keep(t, "task", &TASK);
    Ok(())
}

/// v0.3 requires a context: the one known, else the task's own id (decision 29).
fn fill_context(o: &mut Obj<'_>, task: &str, notes: &mut Notes<'_>) {
    if let Some(context) = o.string("contextId") {
        if notes.context.is_none() {
            notes.context = Some(context.into_owned());
        }
        return;
    }
    let own = || o.string(task).map(std::borrow::Cow::into_owned);
    if let Some(context) = notes.context.clone().or_else(own) {
        o.put("contextId", Node::string(context));
    }
}

// ---- Results and events ----------------------------------------------------------------------------------

const NOT_ONE: Error = Error::Member {
    key: "result",
    why: "is not an object",
};

pub(super) fn lift_result<'a>(op: Op, result: Node<'a>, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    match (op, result) {
        (Op::Send | Op::Stream | Op::Subscribe, Node::Obj(mut r)) => {
            lift_event(&mut r, notes)?;
            Ok(r)
        }
        (Op::Get | Op::Cancel, Node::Obj(mut t)) => {
            lift_task(&mut t, notes)?;
            v10::is_task(&t)?;
            Ok(t)
        }
        (Op::CreatePush | Op::GetPush, Node::Obj(mut r)) => {
            notes.keep(&mut r, "push-resource", &RESOURCE);
            lift_resource(&mut r, notes)?;
            Ok(r)
        }
        (Op::ListPush, Node::List(mut configs)) => {
            for r in &mut configs {
                notes.keep(r, "push-resource", &RESOURCE);
                lift_resource(r, notes)?;
            }
            let mut all = Obj::default();
            all.put("configs", Node::List(configs));
            Ok(all)
        }
        (Op::DeletePush, _) => Ok(Obj::default()),
        (Op::ExtendedCard, Node::Obj(card)) => Ok(card),
        _ => Err(NOT_ONE),
    }
}

pub(super) fn lower_result<'a>(op: Op, mut r: Obj<'a>, notes: &mut Notes<'_>) -> Result<Node<'a>> {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => lower_event(&mut r, notes)?,
        Op::Get | Op::Cancel => lower_task(&mut r, notes)?,
        Op::List => {
            // The v0.3 list of a2a-go: the same page around v0.3 tasks.
            r.each("tasks", |t| lower_task(t, notes))?;
        }
        Op::CreatePush | Op::GetPush => lower_resource(&mut r, notes)?,
        Op::ListPush => {
            let mut configs = r.take_list("configs")?.unwrap_or_default();
            for c in &mut configs {
                lower_resource(c, notes)?;
            }
            return Ok(Node::List(configs));
        }
        Op::DeletePush => return Ok(Node::Text("null")),
        Op::ExtendedCard => {}
    }
    Ok(Node::Obj(r))
}

pub(super) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let kind = e.string("kind").map(std::borrow::Cow::into_owned);
    match kind.as_deref() {
        Some("task") => {
            lift_task(e, notes)?;
            e.wrap("task");
        }
        Some("message") => {
            lift_message(e, notes)?;
            e.wrap("message");
        }
        Some("status-update") => {
            e.no_nulls("");
            notes.keep(e, "status-update", &STATUS_UPDATE);
            e.take("kind");
            e.take("final"); // gone in v1.0, where the state says it
            e.within("status", |s| lift_status(s, notes))?;
            e.wrap("statusUpdate");
        }
        Some("artifact-update") => {
            e.no_nulls("");
            notes.keep(e, "artifact-update", &ARTIFACT_UPDATE);
            e.take("kind");
            e.within("artifact", |a| lift_artifact(a, notes))?;
            e.wrap("artifactUpdate");
        }
        _ => {
            return Err(Error::Member {
                key: "kind",
                why: "is none of task, message, status-update and artifact-update",
            });
        }
    }
    Ok(())
}

pub(super) fn lower_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if let Some(mut u) = e.take_obj("statusUpdate")? {
        let last = is_last(&u, notes);
        u.put("kind", Node::word("status-update"));
        fill_context(&mut u, "taskId", notes);
        u.within("status", |s| lower_status(s, notes))?;
        u.put("final", Node::flag(last));
        notes.keep(&mut u, "status-update", &STATUS_UPDATE);
        *e = u;
    } else if let Some(mut u) = e.take_obj("artifactUpdate")? {
        u.put("kind", Node::word("artifact-update"));
        fill_context(&mut u, "taskId", notes);
        u.within("artifact", |a| lower_artifact(a, notes))?;
        notes.keep(&mut u, "artifact-update", &ARTIFACT_UPDATE);
        *e = u;
    } else if let Some(mut t) = e.take_obj("task")? {
        lower_task(&mut t, notes)?;
        *e = t;
    } else if let Some(mut m) = e.take_obj("message")? {
        lower_message(&mut m, notes)?;
        *e = m;
    }
    Ok(())
}

/// `final` (v0.3 7.2.2): terminal states are, interrupted ones where the stream ends there.
pub(super) fn is_last(update: &Obj<'_>, notes: &Notes<'_>) -> bool {
    let state = update
        .inside("status")
        .and_then(|s| s.string("state"))
        .map_or(v10::State::Running, |s| v10::state_of(&s));
    match state {
        v10::State::Terminal => true,
        v10::State::Interrupted => notes.last,
        v10::State::Running => false,
    }
}

// ---- R03S --------------------------------------------------------------------------------------------------

/// Every name that R03S spells with underscores.
const NAMES: [(&str, &str); 17] = [
    ("message_id", "messageId"),
    ("context_id", "contextId"),
    ("task_id", "taskId"),
    ("reference_task_ids", "referenceTaskIds"),
    ("artifact_id", "artifactId"),
    ("last_chunk", "lastChunk"),
    ("mime_type", "mimeType"),
    ("accepted_output_modes", "acceptedOutputModes"),
    ("history_length", "historyLength"),
    ("push_notification_config", "pushNotificationConfig"),
    ("push_notification_config_id", "pushNotificationConfigId"),
    ("next_page_token", "nextPageToken"),
    ("page_size", "pageSize"),
    ("total_size", "totalSize"),
    ("page_token", "pageToken"),
    ("status_timestamp_after", "statusTimestampAfter"),
    ("include_artifacts", "includeArtifacts"),
];
/// The members in which more of them stand. `metadata` and `data` are not ours to rename in.
const HOLDERS: [&str; 9] = [
    "message",
    "status",
    "artifact",
    "file",
    "configuration",
    "pushNotificationConfig",
    "push_notification_config",
    "authentication",
    "config",
];
const LISTS: [&str; 5] = ["parts", "artifacts", "history", "tasks", "configs"];

pub(super) fn camel(o: &mut Obj<'_>) -> Result {
    renamed(o, |name| (name.0, name.1))
}

pub(super) fn snake(o: &mut Obj<'_>) -> Result {
    renamed(o, |name| (name.1, name.0))
}

fn renamed(
    o: &mut Obj<'_>,
    way: fn(&(&'static str, &'static str)) -> (&'static str, &'static str),
) -> Result {
    for key in HOLDERS {
        if o.inside(key).is_some() || o.raw(key).is_some_and(|t| t.starts_with('{')) {
            o.within(key, |inner| renamed(inner, way))?;
        }
    }
    for key in LISTS {
        if o.list(key).is_some() {
            o.each(key, |inner| renamed(inner, way))?;
        }
    }
    for name in &NAMES {
        let (from, to) = way(name);
        o.rename(from, to)?;
    }
    Ok(())
}
