//! What both shapes of v0.3 have in common: how requests are opened, the send configuration, webhooks, and
//! where the things are kept that v0.3 has no place for.
use super::{Notes, v10};
use crate::{
    a2a::op::Op,
    json::{
        As::{Each, One, Text},
        Error, Form, Node, Obj, Result,
    },
};

mod kept;

pub(super) use kept::{lower_references, lower_rest, restore_part, restore_references, wrap_data};

/// Members of both shapes, since REST tells them apart by what is inside.
static FILE: Form = Form::of(&[]);
static PART: Form = Form::of(&[("file", One(&FILE))]);
/// `ProtoJSON` wraps data, so that it would be read again to be unwrapped.
static CONTENT: Form = Form::of(&[("file", One(&FILE)), ("data", One(&Form::FLAT))]);
static MESSAGE: Form = Form::of(&[("parts", Each(&PART)), ("content", Each(&CONTENT))]);
static AUTHENTICATION: Form = Form::of(&[("schemes", Text), ("credentials", Text)]);
pub(super) static PUSH: Form = Form::of(&[
    ("id", Text),
    ("url", Text),
    ("token", Text),
    ("authentication", One(&AUTHENTICATION)),
]);
static RESOURCE: Form = Form::of(&[
    ("name", Text),
    ("taskId", Text),
    ("pushNotificationConfig", One(&PUSH)),
    ("push_notification_config", One(&PUSH)),
]);
static CREATE: Form = Form::of(&[
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
static CONFIGURATION: Form = Form::of(&[
    ("pushNotificationConfig", One(&PUSH)),
    ("pushNotification", One(&PUSH)),
    ("push_notification_config", One(&PUSH)),
    ("push_notification", One(&PUSH)),
]);
static SEND: Form = Form::of(&[
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
pub(super) static QUERY: Form = Form::of(&[("id", Text), ("historyLength", Text)]);
pub(super) static CANCEL: Form = Form::of(&[("id", Text), ("metadata", Text)]);
pub(super) static SUBSCRIBE: Form = Form::of(&[("id", Text)]);
pub(super) static PUSH_ID: Form = Form::of(&[("taskId", Text), ("id", Text)]);
static PUSH_NAME: Form = Form::of(&[("pushNotificationConfigId", Text)]);
pub(super) static LIST: Form = Form::of(&[
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
            take_name(r, "name", "id")?;
            notes.keep(r, "task-id", &CANCEL);
        }
        Op::Subscribe => {
            take_name(r, "name", "id")?;
            notes.keep(r, "task-id", &SUBSCRIBE);
        }
        Op::GetPush | Op::DeletePush | Op::ListPush => {
            r.camel(&PUSH_NAME)?;
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

/// Takes a resource name of `ProtoJSON`, which repeats what the path says: `tasks/ID`, perhaps with more behind
/// it. One of another task is refused; a name of another form says nothing.
pub(super) fn take_name(r: &mut Obj<'_>, key: &'static str, id: &str) -> Result {
    let agrees = match (r.string(key), r.string(id)) {
        (Some(name), Some(id)) => task_in(&name).is_none_or(|task| {
            task == id || percent_encoding::percent_decode_str(task).eq(id.bytes())
        }),
        _ => true,
    };
    r.take(key);
    if agrees {
        return Ok(());
    }
    Err(Error::Member {
        key,
        why: "names another task than the path",
    })
}

/// The task in `tasks/T/pushNotificationConfigs/C` or `tasks/T`, read from the right.
fn task_in(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("tasks/")?;
    let task = rest.rsplit_once("/pushNotificationConfigs/");
    Some(task.map_or(rest, |(task, _)| task))
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
    p.no_blanks(&["id", "token"]);
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
        let mut list = vec![b'['];
        a.no_blanks(&["scheme"]);
        if let Some(scheme) = a.take("scheme") {
            scheme.write(&mut list);
        }
        list.push(b']');
        let list = String::from_utf8(list).unwrap_or_default(); // JSON of ours is UTF-8
        a.put_first("schemes", Node::Made(list));
        a.no_blanks(&["credentials"]);
        notes.keep(a, "authentication", &AUTHENTICATION);
        Ok(())
    })?;
    notes.keep(p, "push-config", &PUSH);
    Ok(())
}

/// The one content that a part of v0.3 has. What an agent sends without one is of a later version and passes
/// whole (objects 2.6); a client is refused.
pub(super) fn content_of(p: &Obj<'_>, notes: &Notes<'_>) -> Result<Option<&'static str>> {
    let mut there = ["text", "file", "data"].into_iter().filter(|k| p.has(k));
    let first = there.next();
    let one = first.filter(|_| there.next().is_none());
    if one.is_none() && notes.strict {
        return Err(Error::Member {
            key: "part",
            why: "has not exactly one of text, file and data",
        });
    }
    Ok(one)
}

/// Drops a member that v1.0 does not have and v0.3 does: passed on as it is, it would say what nobody here has read.
pub(super) fn drop_old(
    o: &mut Obj<'_>,
    of: &'static str,
    member: &'static str,
    notes: &mut Notes<'_>,
) {
    if o.take(member).is_some() {
        notes.lose(of, member, "of v0.3, in an object of v1.0");
    }
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
