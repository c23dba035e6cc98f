//! Results and events of v0.3 `ProtoJSON`.
use super::{
    super::{Notes, card, v03_kind},
    ARTIFACT_UPDATE, EVENT, RESOURCE, RESOURCES, STATUS_UPDATE, TASK, TASKS, lift_artifact,
    lift_message, lift_resource, lift_status, lift_task, lower_artifact, lower_message,
    lower_resource, lower_status, lower_task,
};
use crate::{
    a2a::op::Op,
    json::{
        As::{self, One},
        Error, Form, Node, Obj, Result,
    },
};

pub(in crate::a2a::shape) fn result_form(op: Op) -> As {
    match op {
        Op::Send | Op::Stream | Op::Subscribe => One(&EVENT),
        Op::Get | Op::Cancel => One(&TASK),
        Op::CreatePush | Op::GetPush => One(&RESOURCE),
        Op::ListPush => One(&RESOURCES),
        Op::ExtendedCard => One(&card::CARD),
        Op::List => One(&TASKS),
        Op::DeletePush => One(&Form::FLAT),
    }
}

pub(in crate::a2a::shape) fn lift_result<'a>(
    op: Op,
    result: Node<'a>,
    notes: &mut Notes<'_>,
) -> Result<Obj<'a>> {
    if op == Op::DeletePush {
        return Ok(Obj::default()); // `{}` or nothing
    }
    let Node::Obj(mut r) = result else {
        return Err(Error::Member {
            key: "result",
            why: "is not an object",
        });
    };
    match op {
        Op::Send | Op::Stream | Op::Subscribe => lift_event(&mut r, notes)?,
        Op::Get | Op::Cancel => {
            lift_task(&mut r, notes)?;
            super::v10::is_task(&r)?;
        }
        Op::CreatePush | Op::GetPush => lift_resource(&mut r, notes)?,
        Op::ListPush => r.each("configs", |c| lift_resource(c, notes))?,
        Op::List => r.each("tasks", |t| lift_task(t, notes))?,
        Op::DeletePush | Op::ExtendedCard => {}
    }
    Ok(r)
}

pub(in crate::a2a::shape) fn lower_result<'a>(
    op: Op,
    mut r: Obj<'a>,
    notes: &mut Notes<'_>,
) -> Result<Obj<'a>> {
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

pub(in crate::a2a::shape) fn lift_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
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
        e.within("task", |t| {
            lift_task(t, notes)?;
            super::v10::is_task(t)
        })
    } else if e.has("message") {
        e.within("message", |m| lift_message(m, notes))
    } else {
        Err(Error::Member {
            key: "result",
            why: "is none of task, message, statusUpdate and artifactUpdate",
        })
    }
}

pub(in crate::a2a::shape) fn lower_event(e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
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
