//! What a call takes of the limits.
use super::{Inner, at_once, routes::Matched};
use crate::{
    a2a::{Call, Fault, reply::ReplyTo},
    policy::{
        caller::Caller,
        limits::{Asked, Guard},
    },
};

impl Inner {
    /// Takes what the call needs of all rules, before its conversation.
    pub(super) async fn limit(
        &self,
        caller: &Caller,
        call: &Call,
        bytes: usize,
        matched: &Matched<'_>,
        to: &ReplyTo,
    ) -> Result<Option<Box<Guard>>, Fault> {
        if !self.rules.on() {
            return Ok(None);
        }
        let parameter = |name: &str| matched.parameter(name);
        let asked = Asked {
            caller,
            op: call.op,
            dialect: to.dialect.name(),
            context: call.facts.context.as_deref(),
            parameter: &parameter,
            bytes,
        };
        if self.rules.wait() {
            // Boxed: what is off must not make every call's future large.
            return Box::pin(self.rules.take(&asked)).await;
        }
        at_once(self.rules.take(&asked))
    }
}
