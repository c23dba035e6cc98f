//! Edits of a message's `configuration`, for agents that take other things for granted than v1.0 does.
use std::borrow::Cow;

use super::{Read, written};
use crate::{
    a2a::{
        Canonical,
        fault::{Fault, Kind},
        shape::{Loss, Options, Shape},
    },
    json::{Node, Obj},
};

const WEBHOOK: &str = "taskPushNotificationConfig";

/// Takes a webhook out that the agent could not call (`strips`), and says whether the send waits where it does not say so
/// itself (`says`).
pub fn configure(
    read: &mut Read,
    strips: bool,
    says: bool,
    options: &Options,
) -> Result<(), Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the configuration cannot be edited").because(e);
    let call = &mut read.call;
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    if says && !r.has("configuration") {
        r.put("configuration", Node::Obj(Obj::default()));
    }
    let mut stripped = false;
    r.within("configuration", |c| {
        stripped = strips && c.take(WEBHOOK).is_some();
        if says && !c.has("returnImmediately") {
            c.put("returnImmediately", Node::flag(false));
        }
        Ok(())
    })
    .map_err(|e| inner(e.to_string()))?;
    if stripped {
        call.facts.webhook = false;
        read.lost.push(Loss {
            of: "configuration",
            member: Cow::Borrowed(WEBHOOK),
            why: "the agent has no push notifications",
        });
    }
    if r.changed() {
        call.params = Canonical(written(&r, text.len()).into());
    }
    Ok(())
}
