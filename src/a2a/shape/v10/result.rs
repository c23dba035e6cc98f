//! Results and events of v1.0.
use super::{
    super::{Notes, card},
    ARTIFACT_UPDATE, PUSH, PUSHES, RESULT, STATUS_UPDATE, TASK, TASKS, lift_artifact, lift_message,
    lift_push, lift_status, lift_task,
};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, Each, One},
        Error, Form, Node, Obj, Result,
    },
};

pub(in crate::a2a::shape) fn result_form(op: Op) -> As {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => One(&RESULT),
        Op::Get | Op::Cancel => One(&TASK),
        Op::List => One(&TASKS),
        Op::CreatePush | Op::GetPush => One(&PUSH),
        Op::ListPush => One(&PUSHES),
        Op::DeletePush => One(&Form::FLAT),
        Op::ExtendedCard => One(&card::CARD),
    }
}

const NOT_ONE: Error = Error::Member {
    key: "result",
    why: "is not an object",
};

pub(in crate::a2a::shape) fn lift_result<'a>(
    op: Op,
    result: Node<'a>,
    notes: &mut Notes<'_>,
) -> Result<Obj<'a>> {
    let mut r = match (op, result) {
        (_, Node::Obj(r)) => r,
        (Op::DeletePush, Node::Text("null")) => Obj::default(), // a2a-python 1.3.0
        (Op::List, Node::Text(t)) if t.starts_with('[') => return bare_tasks(t, notes),
        (Op::ListPush, Node::Text(t)) if t.starts_with('[') => return bare_configs(t, notes),
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
fn bare_tasks<'a>(text: &'a str, notes: &mut Notes<'_>) -> Result<Obj<'a>> {
    let mut r = Obj::default();
    r.put(
        "tasks",
        Node::open(text, Each(&TASK), notes.options.limits)?,
    );
    r.each("tasks", |t| lift_task(t, notes))?;
    let count = r.list("tasks").map_or(0, <[_]>::len).to_string();
    r.put("nextPageToken", Node::word(""));
    r.put("pageSize", Node::Made(count.clone()));
    r.put("totalSize", Node::Made(count));
    Ok(r)
}

fn bare_configs<'a>(text: &'a str, notes: &Notes<'_>) -> Result<Obj<'a>> {
    let mut r = Obj::default();
    r.put(
        "configs",
        Node::open(text, Each(&PUSH), notes.options.limits)?,
    );
    r.each("configs", lift_push)?;
    Ok(r)
}

fn is_task(t: &Obj<'_>) -> Result {
    if t.has("id") {
        return Ok(());
    }
    Err(Error::Member {
        key: "task",
        why: "has no id",
    })
}

pub(in crate::a2a::shape) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
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
pub(in crate::a2a::shape) fn trim(op: Op, r: &mut Obj<'_>, notes: &Notes<'_>) -> Result {
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
