//! What it means when the agent answers with an error, or not at all.
use http::{StatusCode, header, response::Parts};

use super::{Exchange, is_json};
use crate::{
    a2a::{Binding, Fault, Kind, Op, answer},
    agent,
    gateway::body,
};

/// An error's body is read up to this.
const ERROR: usize = 1024 * 1024;

impl Exchange {
    /// What an answer means that is no success.
    pub(super) async fn failed(&mut self, head: Parts, body: agent::Body) -> Fault {
        let (status, op) = (head.status.as_u16(), self.call.op);
        let json = is_json(&head.headers);
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let hold = &mut self.hold;
        let text = body
            .collect(coding, ERROR, self.gateway.limits.first_byte, |more| {
                hold.grow(more)
            })
            .await;
        self.record.agent_ended();
        let text = text.ok().and_then(|t| String::from_utf8(t.into()).ok());
        let text = text.filter(|t| json || t.trim_start().starts_with('{'));
        let mut fault = match &text {
            Some(text) => answer::read_fault(status, text, op),
            None => answer::from_status(status, op, None),
        };
        let of_access = matches!(
            head.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        if of_access && self.gateway.credentials.on() {
            return self.refused(status, &fault);
        }
        if of_access && json && fault.more.product.is_none() {
            // As it was received, if it is what it says it is (errors 3).
            fault.kind = match head.status {
                StatusCode::FORBIDDEN => Kind::AccessDenied,
                _ => Kind::Unauthenticated,
            };
            fault.more.received = text.filter(|t| crate::json::is_json(t));
        }
        if self.gateway.dialect.binding == Binding::Rest
            && let Some(product) = &mut fault.more.product
        {
            // The product's REST has one form for all; of tasks it is the agent who tells.
            product.before_agent = !matches!(
                fault.kind,
                Kind::TaskNotFound | Kind::TaskNotCancelable | Kind::UnsupportedOperation
            );
        }
        fault.more.cause = Some(format!("HTTP status {status}"));
        fault.retry_after = head
            .headers
            .get(header::RETRY_AFTER)
            .and_then(|v| v.to_str().ok()?.parse().ok());
        fault.more.challenges = head
            .headers
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .cloned()
            .collect();
        fault
    }
}

impl Exchange {
    /// The agent refuses the gateway's own credentials: its caller has no part in that, and cannot mend it.
    fn refused(&mut self, status: u16, told: &Fault) -> Fault {
        let cause = format!("HTTP status {status}");
        if status == StatusCode::FORBIDDEN.as_u16() {
            let mut fault = Fault::new(Kind::AccessDenied, "the agent does not allow this");
            fault.retry_after = told.retry_after;
            return fault.because(cause);
        }
        self.gateway.credentials.refused();
        self.answered = false; // nothing was begun, and it is not the caller's credential that is wrong
        tracing::warn!(
            "the agent refuses the gateway's own credential; look at backend.credentials"
        );
        Fault::new(
            Kind::BackendUnreachable,
            "the gateway cannot log in at the agent",
        )
        .because(cause)
    }
}

/// The one place that knows both a connection's errors and the protocol's.
pub(super) fn unanswered(error: &agent::Error, op: Op) -> Fault {
    use agent::Error as E;
    let (kind, words) = match error {
        E::Unreachable(_) | E::Broken { sent: false, .. } => {
            (Kind::BackendUnreachable, "the agent cannot be reached")
        }
        E::Overloaded(_) => (Kind::Overloaded, "all connections to the agent are busy"),
        E::NoRoom => return body::no_room().because(error.to_string()),
        E::Timeout { .. } if op.sends() => (
            Kind::BackendTimeout,
            "the agent did not answer in time; its task may go on, ask for it with GetTask",
        ),
        E::Timeout { .. } => (Kind::BackendTimeout, "the agent did not answer in time"),
        E::Broken { .. } => (Kind::BackendBroken, "the agent's answer broke off"),
        E::TooLarge(_) | E::Undecodable(_) => (
            Kind::InvalidAgentResponse,
            "the agent's answer cannot be read",
        ),
    };
    let mut fault = Fault::new(kind, words).because(error.to_string());
    if matches!(error, E::Overloaded(_)) {
        fault.retry_after = Some(1);
    }
    fault
}
