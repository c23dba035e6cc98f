//! v0.3 `ProtoJSON`, which most v0.3 REST speaks (R03P): `content`, `ROLE_USER`, wrapped results. A closed
//! shape: its readers fail on what the proto does not have (decision 13).
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{FileBytes, Notes, v03, v03_kind, v10};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, Each, One, Text},
        Error, Form, Node, Obj, Result,
    },
};

static FILE: Form = Form(&[
    ("fileWithUri", Text),
    ("fileWithBytes", Text),
    ("mimeType", Text),
    ("name", Text),
]);
static PART: Form = Form(&[
    ("text", Text),
    ("file", One(&FILE)),
    ("data", Text),
    ("metadata", Text),
]);
static MESSAGE: Form = Form(&[
    ("messageId", Text),
    ("contextId", Text),
    ("taskId", Text),
    ("role", Text),
    ("content", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
/// `update` is the proto's own name for `message` here.
static STATUS: Form = Form(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
    ("update", One(&MESSAGE)),
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
    ("id", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("metadata", Text),
]);
static STATUS_UPDATE: Form = Form(&[
    ("taskId", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("final", Text),
    ("metadata", Text),
]);
static ARTIFACT_UPDATE: Form = Form(&[
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", One(&ARTIFACT)),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// A send result or an event; `msg` is the proto's own name for `message` here.
pub(super) static EVENT: Form = Form(&[
    ("task", One(&TASK)),
    ("message", One(&MESSAGE)),
    ("msg", One(&MESSAGE)),
    ("statusUpdate", One(&STATUS_UPDATE)),
    ("artifactUpdate", One(&ARTIFACT_UPDATE)),
    ("status_update", One(&STATUS_UPDATE)),
    ("artifact_update", One(&ARTIFACT_UPDATE)),
]);
static RESOURCE: Form = Form(&[
    ("name", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
    ("push_notification_config", One(&v03::PUSH)),
]);
static RESOURCES: Form = Form(&[("configs", Each(&RESOURCE)), ("nextPageToken", Text)]);
static CONFIGURATION: Form = Form(&[
    ("acceptedOutputModes", Text),
    ("pushNotification", One(&v03::PUSH)),
    ("historyLength", Text),
    ("blocking", Text),
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
        Op::ListPush => One(&RESOURCES),
        Op::ExtendedCard => One(&super::card::CARD),
        Op::List | Op::DeletePush => One(&Form::FLAT),
    }
}

// ---- Requests ------------------------------------------------------------------------------------------

pub(super) fn lift_request(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    match op {
        Op::Send | Op::Stream => lift_send(op, r, notes),
        Op::CreatePush => lift_create(r, notes),
        _ => v03::lift_small(op, r, notes),
    }
}

fn lift_send(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    r.no_nulls("");
    r.rename("request", "message")?; // the proto's own name, which a2a-python 1 writes in v0.3 mode
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
        c.camel(&CONFIGURATION)?;
        v03::lift_configuration(c, &CONFIGURATION, "pushNotification", notes)
    })?;
    if op == Op::Send && !notes.options.v03_rest_blocking {
        at_once_unless_told(r)?;
    }
    Ok(())
}

/// A send without `blocking` returns at once here, and waits in v1.0 (decision 9).
fn at_once_unless_told(r: &mut Obj<'_>) -> Result {
    if !r.has("configuration") {
        r.put("configuration", Node::Obj(Obj::default()));
    }
    r.within("configuration", |c| {
        if !c.has("returnImmediately") {
            c.put("returnImmediately", Node::flag(true));
        }
        Ok(())
    })
}

pub(super) fn lower_request(op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    match op {
        Op::Send | Op::Stream => {
            v03::lower_small(op, r, notes)?;
            r.within("message", |m| lower_message(m, notes))?;
            lower_waiting(op, r)?;
            r.within("configuration", |c| {
                v03::lower_configuration(c, &CONFIGURATION, "pushNotification", notes)
            })?;
            if r.inside("configuration").is_some_and(Obj::is_empty) {
                r.take("configuration");
            }
            notes.keep(r, "send", &SEND);
            Ok(())
        }
        Op::CreatePush => lower_resource(r, notes),
        _ => v03::lower_small(op, r, notes),
    }
}

/// The proto leaves out `false`, so only waiting is said.
fn lower_waiting(op: Op, r: &mut Obj<'_>) -> Result {
    let at_once = r
        .inside("configuration")
        .and_then(|c| c.raw("returnImmediately"))
        == Some("true");
    if !r.has("configuration") {
        if op != Op::Send {
            return Ok(());
        }
        r.put("configuration", Node::Obj(Obj::default()));
    }
    r.within("configuration", |c| {
        let said = c.take("returnImmediately").is_some();
        if !at_once && (said || op == Op::Send) {
            c.put("blocking", Node::flag(true));
        }
        Ok(())
    })
}

/// The request shapes that are seen: `{parent, configId, config: {name, pushNotificationConfig}}` (Python),
/// the resource alone (JS), `{config}` with a bare config, and the bare config (Go). The path has the task.
fn lift_create(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    static OUTER: Form = Form(&[("configId", Text), ("pushNotificationConfig", Text)]);
    r.camel(&OUTER)?;
    r.no_nulls("");
    let task = r.take("taskId");
    let id = r.take("configId");
    let name = r.take("name");
    r.take("parent");
    if let Some(config) = r.take_obj("config")? {
        r.merge(config)?;
        r.camel(&OUTER)?;
        r.take("name");
    }
    if let Some(config) = r.take_obj("pushNotificationConfig")? {
        r.merge(config)?;
    }
    v03::lift_push(r, notes)?;
    r.no_blanks(&["id"]);
    let named = || match &name {
        Some(Node::Text(t)) => id_in(t),
        _ => None,
    };
    if !r.has("id") {
        match id {
            Some(id @ Node::Text(t)) if t != "\"\"" => r.put_first("id", id),
            _ => {
                if let Some(id) = named() {
                    r.put_first("id", Node::string(id));
                }
            }
        }
    }
    if let Some(task) = task {
        r.put_first("taskId", task);
    }
    Ok(())
}

/// The config's id in `tasks/T/pushNotificationConfigs/C`, read from the right.
fn id_in(name: &str) -> Option<String> {
    let name = crate::json::unquote(name)?;
    let (_, id) = name.rsplit_once("/pushNotificationConfigs/")?;
    decoded(id).filter(|id| !id.is_empty())
}

fn decoded(segment: &str) -> Option<String> {
    let text = percent_encoding::percent_decode_str(segment).decode_utf8();
    text.ok().map(std::borrow::Cow::into_owned)
}

fn lift_resource(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    r.camel(&RESOURCE)?;
    let name = r.string("name").map(std::borrow::Cow::into_owned);
    r.take("name");
    notes.keep(r, "push-resource", &RESOURCE);
    if let Some(config) = r.take_obj("pushNotificationConfig")? {
        r.merge(config)?;
    }
    v03::lift_push(r, notes)?;
    r.no_blanks(&["id"]);
    let parts = name.as_deref().and_then(|n| {
        let (task, id) = n
            .strip_prefix("tasks/")?
            .rsplit_once("/pushNotificationConfigs/")?;
        Some((decoded(task)?, decoded(id)?))
    });
    if let Some((task, id)) = parts {
        if !r.has("id") && !id.is_empty() {
            r.put_first("id", Node::string(id));
        }
        r.put_first("taskId", Node::string(task));
    }
    Ok(())
}

fn lower_resource(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let encoded = |o: &Obj<'_>, key| {
        o.string(key)
            .map(|s| crate::a2a::rest::segment(&s).to_string())
            .unwrap_or_default()
    };
    let name = format!(
        "tasks/{}/pushNotificationConfigs/{}",
        encoded(r, "taskId"),
        encoded(r, "id")
    );
    v03::lower_push(r, notes)?;
    r.wrap("pushNotificationConfig");
    r.put_first("name", Node::string(name));
    Ok(())
}

// ---- Objects, both ways ----------------------------------------------------------------------------------

fn lift_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    m.camel(&MESSAGE)?;
    m.no_nulls("");
    notes.keep(m, "message", &MESSAGE);
    match m.raw("role") {
        Some("1") => m.put("role", Node::word("ROLE_USER")),
        Some("2") => m.put("role", Node::word("ROLE_AGENT")),
        _ => {}
    }
    if notes.strict
        && !matches!(
            m.string("role").as_deref(),
            Some("ROLE_USER" | "ROLE_AGENT")
        )
    {
        return Err(Error::Member {
            key: "role",
            why: "is neither ROLE_USER nor ROLE_AGENT",
        });
    }
    if notes.strict && !m.has("content") {
        return Err(Error::Member {
            key: "content",
            why: "is required",
        });
    }
    m.no_blanks(&["contextId", "taskId", "extensions"]);
    m.rename("content", "parts")?;
    m.each("parts", |p| lift_part(p, notes))?;
    v03::restore_references(m);
    Ok(())
}

fn lower_message(m: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    m.no_blanks(&["contextId", "taskId", "extensions"]);
    if !matches!(
        m.string("role").as_deref(),
        Some("ROLE_USER" | "ROLE_AGENT")
    ) {
        m.put("role", Node::word("ROLE_UNSPECIFIED"));
    }
    m.each("parts", |p| lower_part(p, notes))?;
    m.rename("parts", "content")?;
    v03::lower_references(m, notes);
    notes.keep(m, "message", &MESSAGE);
    Ok(())
}

fn lift_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.camel(&PART)?;
    p.no_nulls("");
    notes.keep(p, "part", &PART);
    if ["text", "file", "data"].iter().filter(|k| p.has(k)).count() != 1 {
        return Err(Error::Member {
            key: "part",
            why: "has not exactly one of text, file and data",
        });
    }
    if let Some(mut file) = p.take_obj("file")? {
        file.camel(&FILE)?;
        file.no_nulls("");
        notes.keep(&mut file, "file", &FILE);
        lift_bytes(&mut file, notes)?;
        file.rename("fileWithUri", "url")?;
        file.rename("fileWithBytes", "raw")?;
        v03::lift_file(p, file)?;
    }
    if let Some(mut data) = p.take_obj("data")? {
        let inner = data.take("data").ok_or(Error::Member {
            key: "data",
            why: "has no `data` in it",
        })?;
        p.put("data", inner);
    }
    v03::restore_part(p);
    Ok(())
}

fn lower_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    match v10::content_of(p) {
        Some("text") => v03::lower_rest(p, "\"text/plain\"", notes),
        Some("data") => {
            v03::lower_rest(p, "\"application/json\"", notes);
            v03::wrap_data(p);
            nest_data(p)?;
        }
        Some(_) => {
            let mut file = v03::lower_file(p, "fileWithUri", "fileWithBytes");
            lower_bytes(&mut file, notes);
            if notes.options.strict_030 && file.take("name").is_some() {
                notes.lose("file", "name", "the first v0.3 proto does not have it");
            }
            p.put("file", Node::Obj(file));
        }
        None => {
            p.wrap("data");
            nest_data(p)?;
        }
    }
    if notes.options.strict_030 && p.take("metadata").is_some() {
        notes.lose("part", "metadata", "the first v0.3 proto does not have it");
    }
    notes.keep(p, "part", &PART);
    Ok(())
}

fn nest_data(p: &mut Obj<'_>) -> Result {
    if let Some(inner) = p.take("data") {
        let mut outer = Obj::default();
        outer.put("data", inner);
        p.put("data", Node::Obj(outer));
    }
    Ok(())
}

/// `fileWithBytes` as it is meant: Python and Java put base64 text into a field that is encoded again
/// (decision 6).
fn lift_bytes(file: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let Some(text) = file.string("fileWithBytes") else {
        return Ok(());
    };
    let once = v10::decode(&text).ok_or(Error::Member {
        key: "fileWithBytes",
        why: "is not base64",
    })?;
    let inner = std::str::from_utf8(&once).ok().filter(|t| {
        let pure = !t.is_empty() && t.len().is_multiple_of(4);
        pure && STANDARD.decode(t).is_ok()
    });
    let twice = match notes.options.file_bytes {
        FileBytes::Auto => inner.is_some(),
        FileBytes::Single => false,
        FileBytes::Double => true,
    };
    if twice {
        let Some(inner) = inner else {
            return Err(Error::Member {
                key: "fileWithBytes",
                why: "is not base64 of base64",
            });
        };
        let made = Node::Made(format!("\"{inner}\""));
        notes.twice = Some(true);
        file.put("fileWithBytes", made);
        return Ok(());
    }
    if !once.is_empty() {
        notes.twice = Some(false);
    }
    v10::standard_base64(file, "fileWithBytes");
    Ok(())
}

/// Written as this caller writes it, else twice: a Python client breaks on bytes encoded once, a JS client
/// merely sees base64 text.
fn lower_bytes(file: &mut Obj<'_>, notes: &Notes<'_>) {
    let twice = match notes.options.file_bytes {
        FileBytes::Auto => notes.twice.unwrap_or(true),
        FileBytes::Single => false,
        FileBytes::Double => true,
    };
    if !twice {
        return;
    }
    let encoded = file.string("fileWithBytes").map(|t| STANDARD.encode(&*t));
    if let Some(encoded) = encoded {
        file.put("fileWithBytes", Node::Made(format!("\"{encoded}\"")));
    }
}

fn lift_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    s.no_nulls("");
    s.rename("update", "message")?;
    notes.keep(s, "status", &STATUS);
    v10::lift_state(s, "state");
    v03::lift_timestamp(s, "timestamp");
    s.within("message", |m| lift_message(m, notes))
}

fn lower_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let state = s.string("state").map(|s| v10::state_proto(&s));
    if let Some(state) = state {
        s.put("state", Node::word(state));
    }
    s.no_blanks(&["timestamp"]);
    s.within("message", |m| lower_message(m, notes))?;
    notes.keep(s, "status", &STATUS);
    Ok(())
}

fn lift_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.camel(&ARTIFACT)?;
    a.no_nulls("");
    notes.keep(a, "artifact", &ARTIFACT);
    a.no_blanks(&["name", "description", "extensions"]);
    a.each("parts", |p| lift_part(p, notes))
}

fn lower_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    a.no_blanks(&["name", "description", "extensions"]);
    a.each("parts", |p| lower_part(p, notes))?;
    notes.keep(a, "artifact", &ARTIFACT);
    Ok(())
}

fn lift_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.camel(&TASK)?;
    t.no_nulls("");
    notes.keep(t, "task", &TASK);
    t.no_blanks(&["contextId", "artifacts", "history"]);
    t.within("status", |s| lift_status(s, notes))?;
    t.each("artifacts", |a| lift_artifact(a, notes))?;
    t.each("history", |m| lift_message(m, notes))
}

fn lower_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.no_blanks(&["contextId", "artifacts", "history"]);
    t.within("status", |s| lower_status(s, notes))?;
    t.each("artifacts", |a| lower_artifact(a, notes))?;
    t.each("history", |m| lower_message(m, notes))?;
    notes.keep(t, "task", &TASK);
    Ok(())
}

// ---- Results and events ----------------------------------------------------------------------------------

pub(super) fn lift_result<'a>(op: Op, result: Node<'a>, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    let Node::Obj(mut r) = result else {
        return match op {
            Op::DeletePush => Ok(Obj::default()),
            _ => Err(Error::Member {
                key: "result",
                why: "is not an object",
            }),
        };
    };
    match op {
        Op::Send | Op::Stream | Op::Subscribe => lift_event(&mut r, notes)?,
        Op::Get | Op::Cancel => {
            lift_task(&mut r, notes)?;
            v10::is_task(&r)?;
        }
        Op::CreatePush | Op::GetPush => lift_resource(&mut r, notes)?,
        Op::ListPush => r.each("configs", |c| lift_resource(c, notes))?,
        Op::DeletePush => r = Obj::default(),
        Op::List | Op::ExtendedCard => {}
    }
    Ok(r)
}

pub(super) fn lower_result<'a>(op: Op, mut r: Obj<'a>, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => lower_event(&mut r, notes)?,
        Op::Get | Op::Cancel => lower_task(&mut r, notes)?,
        Op::List => r.each("tasks", |t| lower_task(t, notes))?,
        Op::CreatePush | Op::GetPush => lower_resource(&mut r, notes)?,
        Op::ListPush => {
            r.no_blanks(&["nextPageToken"]);
            r.each("configs", |c| lower_resource(c, notes))?;
            notes.keep(&mut r, "push-configs", &RESOURCES);
        }
        Op::DeletePush => r = Obj::default(),
        Op::ExtendedCard => {}
    }
    Ok(r)
}

pub(super) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    e.no_nulls("");
    e.rename("msg", "message")?;
    e.rename("status_update", "statusUpdate")?;
    e.rename("artifact_update", "artifactUpdate")?;
    notes.keep(e, "event", &EVENT);
    if e.has("statusUpdate") {
        e.within("statusUpdate", |u| {
            u.camel(&STATUS_UPDATE)?;
            notes.keep(u, "status-update", &STATUS_UPDATE);
            u.take("final");
            u.within("status", |s| lift_status(s, notes))
        })
    } else if e.has("artifactUpdate") {
        e.within("artifactUpdate", |u| {
            u.camel(&ARTIFACT_UPDATE)?;
            notes.keep(u, "artifact-update", &ARTIFACT_UPDATE);
            u.within("artifact", |a| lift_artifact(a, notes))
        })
    } else if e.has("task") {
        e.within("task", |t| lift_task(t, notes))
    } else if e.has("message") {
        e.within("message", |m| lift_message(m, notes))
    } else {
        Err(Error::Member {
            key: "result",
            why: "is none of task, message, statusUpdate and artifactUpdate",
        })
    }
}

pub(super) fn lower_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    e.within("statusUpdate", |u| {
        let last = v03_kind::is_last(u, notes);
        u.within("status", |s| lower_status(s, notes))?;
        if last {
            u.put("final", Node::flag(true)); // the proto leaves out false
        }
        notes.keep(u, "status-update", &STATUS_UPDATE);
        Ok(())
    })?;
    e.within("artifactUpdate", |u| {
        u.within("artifact", |a| lower_artifact(a, notes))?;
        notes.keep(u, "artifact-update", &ARTIFACT_UPDATE);
        Ok(())
    })?;
    e.within("task", |t| lower_task(t, notes))?;
    e.within("message", |m| lower_message(m, notes))?;
    notes.keep(e, "event", &EVENT);
    Ok(())
}
