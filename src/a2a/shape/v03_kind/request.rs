//! Requests of v0.3 with `kind`.
use super::{
    super::{Notes, v03, v10},
    CONFIGURATION, SEND, lift_message, lift_resource, lower_message, lower_resource,
};
use crate::{
    a2a::op::Op,
    json::{As::Text, Error, Form, Obj, Result},
};

pub(in crate::a2a::shape) fn lift_request(
    op: Op,
    r: &mut Obj<'_>,
    notes: &mut Notes<'_>,
) -> Result {
    match op {
        Op::Send | Op::Stream => lift_send(r, notes),
        Op::CreatePush => {
            r.no_nulls("");
            r.rename("config", "pushNotificationConfig")?; // v0.3 spec 7.5 on REST
            notes.keep(r, "push-resource", &CREATE);
            lift_resource(r, notes)
        }
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

/// The resource, or the bare config of a2a-go.
static CREATE: Form = Form::of(&[
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

pub(in crate::a2a::shape) fn lower_request(
    op: Op,
    r: &mut Obj<'_>,
    notes: &mut Notes<'_>,
) -> Result {
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
        Op::Get
        | Op::List
        | Op::Cancel
        | Op::Subscribe
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => v03::lower_small(op, r, notes),
    }
}
