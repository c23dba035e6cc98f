//! Results and events of v0.3 with `kind`.
use super::{
    super::{Notes, card, v10},
    ARTIFACT_UPDATE, EVENT, RESOURCE, STATUS_UPDATE, TASK, TASKS, fill_context, lift_artifact,
    lift_message, lift_resource, lift_status, lift_task, lower_artifact, lower_message,
    lower_resource, lower_status, lower_task,
};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, Each, One, Text},
        Error, Node, Obj, Result,
    },
};

pub(in crate::a2a::shape) fn result_form(op: Op) -> As {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => One(&EVENT),
        Op::Get | Op::Cancel => One(&TASK),
        Op::CreatePush | Op::GetPush => One(&RESOURCE),
        Op::ListPush => Each(&RESOURCE),
        Op::ExtendedCard => One(&card::CARD),
        Op::List => One(&TASKS),
        Op::DeletePush => Text,
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
        (Op::List, Node::Obj(mut r)) => {
            r.each("tasks", |t| lift_task(t, notes))?;
            Ok(r)
        }
        (Op::DeletePush, _) => Ok(Obj::default()),
        (Op::ExtendedCard, Node::Obj(card)) => Ok(card),
        _ => Err(NOT_ONE),
    }
}

pub(in crate::a2a::shape) fn lower_result<'a>(
    op: Op,
    mut r: Obj<'a>,
    notes: &mut Notes<'_>,
) -> Result<Node<'a>> {
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

pub(in crate::a2a::shape) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let kind = e.string("kind").map(std::borrow::Cow::into_owned);
    match kind.as_deref() {
        Some("task") => {
            lift_task(e, notes)?;
            v10::is_task(e)?;
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

pub(in crate::a2a::shape) fn lower_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
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
pub(in crate::a2a::shape) fn is_last(update: &Obj<'_>, notes: &Notes<'_>) -> bool {
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
