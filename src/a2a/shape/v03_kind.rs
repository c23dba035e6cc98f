//! v0.3 JSON-schema objects: `kind` everywhere, lower-case words (J03, R03K; with keys in `snake_case` R03S).
use super::{Notes, ROLES, down, up, v03, v10};
use crate::json::{
    As::{Each, One, Text},
    Error, Form, Node, Obj, Result,
};

mod request;
mod result;
mod snake;

pub(super) use request::{lift_request, lower_request};
pub(super) use result::{is_last, lift_event, lift_result, lower_event, lower_result, result_form};
pub(super) use snake::{camel, snake};

static FILE: Form = Form::of(&[
    ("uri", Text),
    ("bytes", Text),
    ("mimeType", Text),
    ("name", Text),
]);
static PART: Form = Form::of(&[
    ("kind", Text),
    ("text", Text),
    ("data", Text),
    ("file", One(&FILE)),
    ("metadata", Text),
]);
static MESSAGE: Form = Form::of(&[
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
static STATUS: Form = Form::of(&[
    ("state", Text),
    ("message", One(&MESSAGE)),
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
    ("kind", Text),
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
    ("kind", Text),
    ("taskId", Text),
    ("contextId", Text),
    ("status", Text),
    ("final", Text),
    ("metadata", Text),
]);
static ARTIFACT_UPDATE: Form = Form::of(&[
    ("kind", Text),
    ("taskId", Text),
    ("contextId", Text),
    ("artifact", Text),
    ("append", Text),
    ("lastChunk", Text),
    ("metadata", Text),
]);
/// Any of the four, told apart by `kind`.
pub(super) static EVENT: Form = Form::of(&[
    ("status", One(&STATUS)),
    ("artifact", One(&ARTIFACT)),
    ("artifacts", Each(&ARTIFACT)),
    ("history", Each(&MESSAGE)),
    ("parts", Each(&PART)),
]);
static RESOURCE: Form = Form::of(&[
    ("taskId", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
]);
static CONFIGURATION: Form = Form::of(&[
    ("acceptedOutputModes", Text),
    ("blocking", Text),
    ("historyLength", Text),
    ("pushNotificationConfig", One(&v03::PUSH)),
]);
static SEND: Form = Form::of(&[
    ("message", Text),
    ("configuration", Text),
    ("metadata", Text),
]);

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
    m.no_blanks(&["contextId", "taskId", "extensions", "referenceTaskIds"]);
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
    m.each("parts", |p| {
        lower_part(p, notes);
        Ok(())
    })?;
    notes.keep(m, "message", &MESSAGE);
    Ok(())
}

/// Takes `kind` where it says what it must.
fn kind_is(o: &mut Obj<'_>, kind: &'static str) -> Result {
    let said = o.take("kind");
    if said.is_some_and(|k| k.said().is_some_and(|k| k != kind)) {
        return Err(Error::Member {
            key: "kind",
            why: "contradicts where it stands",
        });
    }
    Ok(())
}

fn lift_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    p.no_nulls("");
    let Some(kind) = v03::content_of(p, notes)? else {
        return Ok(());
    };
    notes.keep(p, "part", &PART);
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

fn lower_part(p: &mut Obj<'_>, notes: &mut Notes<'_>) {
    let content = v10::content_of(p);
    if content.is_some() {
        v03::drop_old(p, "part", "file", notes);
    }
    let kind = match content {
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
}

fn lift_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    s.no_nulls("");
    notes.keep(s, "status", &STATUS);
    v10::lift_state(s, "state");
    v10::lift_timestamp(s, "timestamp");
    s.within("message", |m| lift_message(m, notes))
}

fn lower_status(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let known = match s.string("state") {
        Some(state) => v10::state_down(&state),
        None => Some("unknown"),
    };
    if known.is_none() {
        notes.lose("status", "state", "a state that v0.3 does not have");
    }
    s.put("state", Node::word(known.unwrap_or("unknown")));
    s.no_blanks(&["timestamp"]);
    s.within("message", |m| lower_message(m, notes))?;
    notes.keep(s, "status", &STATUS);
    Ok(())
}

fn lift_artifact(a: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
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
    t.no_nulls("");
    notes.keep(t, "task", &TASK);
    kind_is(t, "task")?;
    t.no_blanks(&["contextId", "artifacts", "history"]);
    t.within("status", |s| lift_status(s, notes))?;
    t.each("artifacts", |a| lift_artifact(a, notes))?;
    t.each("history", |m| lift_message(m, notes))
}

fn lower_task(t: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    t.put("kind", Node::word("task"));
    t.no_blanks(&["contextId", "artifacts", "history"]);
    fill_context(t, "id", notes);
    if !t.has("status") {
        t.put("status", Node::Obj(Obj::default()));
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
