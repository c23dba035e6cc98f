//! Requests of v0.3 `ProtoJSON`, and the four bodies in which webhooks are seen.
use super::{
    super::{Notes, v03, v10},
    CONFIGURATION, SEND, decoded, lift_message, lower_message, lower_resource,
};
use crate::{
    a2a::op::Op,
    json::{As::Text, Error, Form, Node, Obj, Result},
};

pub(in crate::a2a::shape) fn lift_request(
    op: Op,
    r: &mut Obj<'_>,
    notes: &mut Notes<'_>,
) -> Result {
    match op {
        Op::Send | Op::Stream => lift_send(op, r, notes),
        Op::CreatePush => lift_create(r, notes),
        Op::Get
        | Op::List
        | Op::Cancel
        | Op::Subscribe
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => v03::lift_small(op, r, notes),
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

pub(in crate::a2a::shape) fn lower_request(
    op: Op,
    r: &mut Obj<'_>,
    notes: &mut Notes<'_>,
) -> Result {
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
        Op::Cancel => {
            v03::lower_small(op, r, notes)?;
            if r.take("metadata").is_some() {
                notes.lose("task-id", "metadata", "v0.3 REST names the task only");
            }
            Ok(())
        }
        Op::Get
        | Op::List
        | Op::Subscribe
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => v03::lower_small(op, r, notes),
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
    static OUTER: Form = Form::of(&[("configId", Text), ("pushNotificationConfig", Text)]);
    r.camel(&OUTER)?;
    r.no_nulls("");
    v03::take_name(r, "parent", "taskId")?;
    let mut named = take_id(r)?;
    if let Some(config) = r.take_obj("config")? {
        r.merge(config)?;
        r.camel(&OUTER)?;
        named = take_id(r)?.or(named);
    }
    if let Some(Node::Text(id)) = r.take("configId")
        && id != "\"\""
    {
        named = Some(Node::Text(id));
    }
    let task = r.take("taskId");
    if let Some(config) = r.take_obj("pushNotificationConfig")? {
        r.merge(config)?;
    }
    v03::lift_push(r, notes)?;
    if let Some(id) = named
        && !r.has("id")
    {
        r.put_first("id", id);
    }
    if let Some(task) = task {
        r.put_first("taskId", task);
    }
    Ok(())
}

/// Takes `name`, which must be of the task that the path has, and gives the config's id in it.
fn take_id<'a>(r: &mut Obj<'a>) -> Result<Option<Node<'a>>> {
    let id = r.string("name").and_then(|name| {
        let (_, id) = name.rsplit_once("/pushNotificationConfigs/")?;
        decoded(id).filter(|id| !id.is_empty())
    });
    v03::take_name(r, "name", "taskId")?;
    Ok(id.map(Node::string))
}
