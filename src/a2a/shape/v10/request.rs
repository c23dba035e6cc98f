//! Requests of v1.0.
use super::{
    super::{Notes, old::Old},
    CONFIGURATION, boolean, integer, invert, lift_message, lift_push, lift_state, lift_timestamp,
    request_form,
};
use crate::{
    a2a::op::Op,
    json::{Error, Node, Obj, Result},
};

pub(in crate::a2a::shape) fn lift_request(
    op: Op,
    r: &mut Obj<'_>,
    notes: &mut Notes<'_>,
) -> Result {
    let form = request_form(op);
    r.camel(form)?;
    r.no_nulls("");
    match op {
        Op::Send | Op::Stream => lift_send(r, notes),
        Op::Get => integer(r, "historyLength"),
        Op::List => lift_list(r),
        Op::CreatePush => lift_push(r),
        Op::ListPush => integer(r, "pageSize"),
        Op::Cancel | Op::Subscribe | Op::GetPush | Op::DeletePush | Op::ExtendedCard => Ok(()),
    }
}

fn lift_send(r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    if !r.has("message") {
        return Err(Error::Member {
            key: "message",
            why: "is required",
        });
    }
    r.within("message", |m| {
        lift_message(m, notes)?;
        with_id(m, notes);
        Ok(())
    })?;
    r.within("configuration", |c| {
        c.camel(&CONFIGURATION)?;
        c.rename("pushNotificationConfig", "taskPushNotificationConfig")?;
        c.no_nulls("");
        if notes.options.v10_accept_blocking && !c.has("returnImmediately") {
            if c.has("blocking") {
                notes.old.add(Old::BLOCKING);
            }
            invert(c, "blocking", "returnImmediately")?;
        }
        boolean(c, "returnImmediately")?;
        integer(c, "historyLength")?;
        c.within("taskPushNotificationConfig", lift_push)
    })
}

/// Gives a message without an id one: other agents than the caller's own may be strict (10-proto REQUIRED).
pub(in crate::a2a::shape) fn with_id(m: &mut Obj<'_>, notes: &mut Notes<'_>) {
    let missing = m.raw("messageId").is_none_or(|id| id == "\"\"");
    if missing && notes.options.generate_message_id {
        notes.made_id = true;
        m.put("messageId", Node::string(uuid::Uuid::new_v4().to_string()));
    }
}

fn lift_list(r: &mut Obj<'_>) -> Result {
    r.rename("lastUpdatedAfter", "statusTimestampAfter")?; // a2a-go 2 writes this
    lift_state(r, "status");
    lift_timestamp(r, "statusTimestampAfter");
    integer(r, "pageSize")?;
    integer(r, "historyLength")?;
    boolean(r, "includeArtifacts")
}
