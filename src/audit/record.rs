//! The record of a call while the call goes on: what each step of the call tells it. The last clone of it that goes
//! writes it (`open`); two notice when its client leaves (`leaving`).
use std::{borrow::Cow, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Log,
    entry::{self, Call, Decision, Id, Micros, Who, bounded},
    queue::Place,
};
use crate::{
    a2a::{self, Dialect, Fault, Op, answer::Seen, reply::ReplyTo, shape::Loss},
    policy::caller::Caller,
    telemetry::{Ears, Heard, Method, Series},
};

mod leaving;
mod open;

pub use leaving::{Recorded, Waiting};
use open::Open;

/// The record of one call. When the last clone of it is dropped, it is written. Without audit it is nothing.
#[derive(Clone, Default)]
pub struct Record(Option<Arc<Open>>);

impl Record {
    /// It has a place in the queue, if there is a `log`.
    pub(super) fn begin(
        log: Option<Arc<Log>>,
        hearing: Option<(Arc<Ears>, Heard)>,
        id: Id,
        peer: SocketAddr,
        place: Place,
    ) -> Self {
        let (ears, heard) = hearing.map_or_else(Default::default, |(e, h)| (Some(e), h));
        let wants_all = ears.as_ref().is_some_and(|ears| ears.wants_all_of(&heard));
        let (all, traced) = (log.is_some() || wants_all, heard.is_traced());
        let call = Call {
            place,
            heard,
            time: Timestamp::now(),
            id,
            peer,
            caller: Who::Peer(peer.ip()),
            tenant: None,
            route: None,
            from: None,
            to: None,
            operation: None,
            context: None,
            task: None,
            message: None,
            decision: Decision::None,
            rule: None,
            fault: None,
            status: None,
            state: None,
            left: false,
            bytes: entry::Bytes { from: 0, to: 0 },
            events: 0,
            losses: 0,
            micros: Micros {
                admitted: None,
                answered: None,
                ended: 0,
            },
            digest: None,
            captured: vec![],
        };
        Self(Some(Arc::new(Open {
            log,
            ears,
            begun: Instant::now(),
            all,
            traced,
            ended: None,
            call: Mutex::new(call),
        })))
    }

    /// Whether there is anybody to tell.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether names and ids are of use.
    pub fn wants_names(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.all)
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        let lacks = |call: &Call| call.task.is_none() || call.context.is_none();
        let open = self.0.as_ref().filter(|open| open.all);
        open.is_some_and(|open| lacks(&open.call.lock()))
    }

    #[inline]
    fn tell(&self, what: impl FnOnce(&mut Call, &Open)) {
        if let Some(open) = &self.0 {
            what(&mut open.call.lock(), open);
        }
    }

    /// Who calls, as far as that is known.
    pub fn caller(&self, caller: &Caller) {
        if self.wants_names() {
            self.tell(|call, _| {
                call.caller = Who::Known(caller.name.clone());
                call.tenant.clone_from(&caller.tenant);
            });
        }
    }

    /// The route to the agent, and its numbers.
    pub fn route(&self, route: &Arc<str>, series: Option<&Arc<Series>>) {
        self.tell(|call, _| {
            call.route = Some(route.clone());
            call.heard.series = series.cloned();
        });
    }

    /// How the client seems to speak, and how the agent does.
    pub fn speaks(&self, from: Dialect, to: Dialect) {
        self.tell(|call, _| {
            call.from = Some(from.name());
            call.to = Some(to.name());
            (call.heard.from, call.heard.to) = (Some(from), Some(to));
        });
    }

    /// What is asked for, as far as a path says it.
    pub fn operation(&self, op: Op) {
        self.tell(|call, _| {
            call.operation = Some(op.name());
            call.heard.method = Method::Of(op);
        });
    }

    /// The body as it was received.
    pub fn body(&self, body: &Bytes) {
        self.tell(|call, open| {
            call.bytes.from = body.len() as u64;
            call.heard.received(body.len());
            let digests = open.log.as_ref().and_then(|log| log.digests.as_ref());
            if let Some(key) = digests.filter(|_| !body.is_empty()) {
                call.digest = Some(key.digest(body).into());
            }
        });
    }

    /// What is asked for, in which dialect, of an agent that speaks another.
    pub fn asked(&self, asked: &a2a::Call, from: Dialect, to: Dialect) {
        self.speaks(from, to);
        self.tell(|call, open| {
            call.operation = Some(asked.op.name());
            call.heard.method = Method::Of(asked.op);
            if !open.all {
                return;
            }
            let id = |id: &Option<String>| id.as_deref().map(bounded);
            call.context = id(&asked.facts.context);
            call.task = id(&asked.facts.task);
            call.message = id(&asked.facts.message);
            if let Some(log) = &open.log {
                call.captured = log.captures.of(asked.params.text());
            }
        });
    }

    /// The public card is asked for, which is no operation of the protocol.
    pub fn card(&self) {
        self.tell(|call, _| {
            call.operation = Some("AgentCard");
            call.heard.method = Method::Card;
            call.decision = Decision::Allowed;
        });
    }

    /// The rule that decides, where it is not the one that a fault names.
    pub fn rule(&self, rule: impl Into<Cow<'static, str>>) {
        self.tell(|call, _| call.rule = Some(rule.into()));
    }

    /// Nothing stands against the call.
    pub fn admitted(&self) {
        self.tell(|call, open| {
            call.decision = Decision::Allowed;
            call.micros.admitted = Some(open.micros());
        });
    }

    /// The call is answered with a fault, which says why it was refused if it was not let through: the rule of limits
    /// that it names, or else the reason.
    pub fn refused(&self, to: &ReplyTo, fault: &Fault) {
        self.tell(|call, _| {
            call.from = Some(to.dialect.name());
            call.operation = call.operation.or(to.op.map(Op::name));
            call.heard.from = Some(to.dialect);
            if let (Method::None, Some(op)) = (call.heard.method, to.op) {
                call.heard.method = Method::Of(op);
            }
            if call.decision != Decision::Allowed {
                call.decision = Decision::Refused;
                call.rule.get_or_insert_with(|| rule_of(fault));
            }
        });
        self.failed(fault);
    }

    /// The call failed, whether its client hears of it or not.
    pub fn failed(&self, fault: &Fault) {
        self.tell(|call, _| {
            call.fault = Some(fault.kind.wire().reason);
            call.heard.blame = Some(fault.blame);
        });
    }

    /// These members were lost in translation.
    pub fn lost(&self, losses: &[Loss]) {
        if !losses.is_empty() {
            self.tell(|call, open| {
                call.losses += losses.len() as u64;
                if let Some(ears) = &open.ears {
                    ears.lost(losses);
                }
            });
        }
    }

    /// Something is sent to the agent at this origin.
    pub fn sent(&self, verb: &http::Method, origin: &str) {
        if self.is_traced() {
            self.tell(|call, open| call.heard.sent(open.micros(), verb, origin));
        }
    }

    /// The agent has answered with this status.
    pub fn agent_answered(&self, status: http::StatusCode) {
        if self.is_traced() {
            self.tell(|call, _| call.heard.agent_answered(status.as_u16()));
        }
    }

    /// All of the agent's answer is there.
    pub fn agent_ended(&self) {
        if self.is_traced() {
            self.tell(|call, open| call.heard.agent_ended(open.micros()));
        }
    }

    /// The answer is a live stream from here on.
    pub fn streams(&self) {
        self.tell(|call, _| call.heard.streams());
    }

    /// The fields of a request to the agent tell it which trace it belongs to.
    pub fn propagate(&self, ears: &Ears, fields: &mut http::HeaderMap) {
        if self.is_traced() {
            self.tell(|call, _| ears.propagate(fields, Some(&call.heard)));
        } else {
            ears.propagate(fields, None);
        }
    }

    fn is_traced(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.traced)
    }

    /// What the agent's whole answer says.
    pub fn seen(&self, seen: &Seen) {
        self.tell(|call, _| of_task(call, seen));
    }

    /// What one event says.
    pub fn event(&self, seen: &Seen) {
        self.tell(|call, open| {
            call.events += 1;
            call.heard.event(|| open.micros());
            of_task(call, seen);
        });
    }
}

/// What refused a call.
fn rule_of(fault: &Fault) -> Cow<'static, str> {
    let mut said = fault.more.metadata.iter();
    match said.find(|(key, _)| *key == "rule") {
        Some((_, name)) => format!("limits.{name}").into(),
        None => fault.kind.wire().reason.into(),
    }
}

fn of_task(call: &mut Call, seen: &Seen) {
    let named = &seen.named;
    if call.task.is_none() {
        call.task = named.task.as_deref().map(bounded);
    }
    if call.context.is_none() {
        call.context = named.context.as_deref().map(bounded);
    }
    if seen.word.is_some() {
        call.state = seen.word;
    }
}
