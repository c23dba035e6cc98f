//! v0.3 `ProtoJSON`, which most v0.3 REST speaks (R03P): `content`, `ROLE_USER`, wrapped results. A closed
//! shape: its readers fail on what the proto does not have (decision 13).
use super::{Notes, v03, v10};
use crate::json::{
    As::{Each, One, Text},
    Error, Form, Node, Obj, Result,
};

mod bytes;
mod request;
mod result;

use bytes::{lift_bytes, lower_bytes};
pub(super) use request::{lift_request, lower_request};
pub(super) use result::{lift_event, lift_result, lower_event, lower_result, result_form};

static FILE: Form = Form::of(&[
    ("fileWithUri", Text),
    ("fileWithBytes", Text),
    ("mimeType", Text),
    ("name", Text),
]);
static PART: Form = Form::of(&[
    ("text", Text),
    ("file", One(&FILE)),
    ("data", Text),
    ("metadata", Text),
]);
static MESSAGE: Form = Form::of(&[
    ("messageId", Text),
    ("contextId", Text),
    ("taskId", Text),
    ("role", Text),
    ("content", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
/// `update` is the proto's own name for `message` here.
static STATUS: Form = Form::of(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
    ("update", One(&MESSAGE)),
    ("timestamp", Text),
]);
static ARTIFACT: Form = Form::of(&[
    ("artifactId", Text),
    ("name", Text),
    ("description", Text),
    ("parts", Each(&PART)),
    ("metadata", Text),
    ("extensions", Text),
]);
static TASK: Form = Form::of(&[
    ("id", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("metadata", Text),
]);
/// A page of a2a-go's list of tasks, which v0.3 itself does not have.
static TASKS: Form = Form::of(&[
    ("tasks", Each(&TASK)),
    ("nextPageToken", Text),
    ("pageSize", Text),
    ("totalSize", Text),
]);
static STATUS_UPDATE: Form = Form::of(&[
    ("taskId", Text),
    ("contextId", Text),
    ("status", One(&STATUS)),
    ("final", Text),
    ("metadata", Text),
]);
static ARTIFACT_UPDATE: Form = Form::of(&[
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", One(&ARTIFACT)),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// A send result or an event; `msg` is the proto's own name for `message` here.
pub(super) static EVENT: Form = Form::of(&[
    ("task", One(&TASK)),
    ("message", One(&MESSAGE)),
    ("msg", One(&MESSAGE)),
    ("statusUpdate", One(&STATUS_UPDATE)),
    ("artifactUpdate", One(&ARTIFACT_UPDATE)),
    ("status_update", One(&STATUS_UPDATE)),
    ("artifact_update", One(&ARTIFACT_UPDATE)),
]);
static RESOURCE: Form = Form::of(&[
    ("name", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
    ("push_notification_config", One(&v03::PUSH)),
]);
static RESOURCES: Form = Form::of(&[("configs", Each(&RESOURCE)), ("nextPageToken", Text)]);
static CONFIGURATION: Form = Form::of(&[
    ("acceptedOutputModes", Text),
    ("pushNotification", One(&v03::PUSH)),
    ("historyLength", Text),
    ("blocking", Text),
]);
static SEND: Form = Form::of(&[
    ("message", Text),
    ("configuration", Text),
    ("metadata", Text),
]);

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
    m.each("parts", |p| {
        lower_part(p, notes);
        Ok(())
    })?;
    v03::drop_old(m, "message", "content", notes);
    m.rename("parts", "content")?;
    v03::lower_references(m, notes);
    notes.keep(m, "message", &MESSAGE);
    Ok(())
}

fn lift_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.camel(&PART)?;
    p.no_nulls("");
    if v03::content_of(p, notes)?.is_none() {
        return Ok(());
    }
    notes.keep(p, "part", &PART);
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

fn lower_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) {
    let content = v10::content_of(p);
    if content.is_some() {
        v03::drop_old(p, "part", "file", notes);
    }
    match content {
        Some("text") => v03::lower_rest(p, "\"text/plain\"", notes),
        Some("data") => {
            v03::lower_rest(p, "\"application/json\"", notes);
            v03::wrap_data(p);
            nest_data(p);
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
            nest_data(p);
        }
    }
    if notes.options.strict_030 && p.take("metadata").is_some() {
        notes.lose("part", "metadata", "the first v0.3 proto does not have it");
    }
    notes.keep(p, "part", &PART);
}

fn nest_data(p: &mut Obj<'_>) {
    if let Some(inner) = p.take("data") {
        let mut outer = Obj::default();
        outer.put("data", inner);
        p.put("data", Node::Obj(outer));
    }
}

fn lift_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    s.no_nulls("");
    s.rename("update", "message")?;
    notes.keep(s, "status", &STATUS);
    v10::lift_state(s, "state");
    v10::lift_timestamp(s, "timestamp");
    s.within("message", |m| lift_message(m, notes))
}

fn lower_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let state = s.string("state").map(|s| v10::state_proto(&s));
    if let Some(known) = state {
        if known.is_none() {
            notes.lose("status", "state", "a state that v0.3 does not have");
        }
        s.put(
            "state",
            Node::word(known.unwrap_or("TASK_STATE_UNSPECIFIED")),
        );
    }
    s.no_blanks(&["timestamp"]);
    v03::drop_old(s, "status", "update", notes);
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
    a.each("parts", |p| {
        lower_part(p, notes);
        Ok(())
    })?;
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
