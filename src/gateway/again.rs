//! Whether a message was sent before, and how it is answered then: the agent is not sent it twice.
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header, response::Parts};

use super::{Inner, body, exchange::Exchange, routes::Matched};
use crate::{
    a2a::{
        Call, Fault, answer, digest,
        reply::{Framing, ReplyTo},
        request::{self, Read},
        shape::State,
    },
    agent,
    policy::{
        Permit,
        conversation::Care,
        retry::{Again, Known, Message, Said},
    },
    reply::Reply,
    state::slot::Asker,
};

/// A call that may go on.
pub(super) struct Admitted {
    pub(super) permit: Permit,
    /// What it is answered with; the agent is not asked.
    pub(super) said: Option<Arc<Said>>,
    /// Its task goes before what is still to come of it.
    pub(super) look: bool,
}

impl Inner {
    /// What the call owes, once it may go on; `scope` is the agent, as its caller's conversations have it. A message that
    /// was sent before becomes a question for its task: before the slot, so that it is not refused because it is itself
    /// what the conversation is busy with.
    pub(super) async fn admit(
        self: &Arc<Self>,
        read: &mut Read,
        matched: &Matched<'_>,
        scope: &Arc<str>,
        fields: &HeaderMap,
        asker: Asker,
        to: &mut ReplyTo,
    ) -> Result<Admitted, Fault> {
        let mut admitted = Admitted {
            permit: Permit::default(),
            said: None,
            look: false,
        };
        let call = &mut read.call;
        let named = call.facts.message.is_some() && !read.made_id;
        if self.retries.on() && call.op.sends() && named {
            match Box::pin(self.meet(call, matched, asker)).await? {
                Known::New(first) => admitted.permit.first = Some(first),
                Known::Again(Again::Said(said)) => {
                    admitted.said = Some(said);
                    return Ok(admitted);
                }
                Known::Again(again) => admitted.look = ask_instead(call, &again),
            }
        }
        match self
            .take_slot(call, matched, scope, fields, asker, to)
            .await
        {
            Ok(slot) => admitted.permit.slot = slot,
            Err(fault) => {
                admitted.permit.failed(&fault, false).done().await;
                return Err(fault);
            }
        }
        Ok(admitted)
    }

    async fn meet(&self, call: &Call, matched: &Matched<'_>, asker: Asker) -> Result<Known, Fault> {
        let digest = digest::message(call, self.options.limits)?;
        let message = Message {
            asker,
            scope: &matched.scope,
            agent: matched.one.as_deref(),
            tenant: call.facts.tenant.as_deref(),
            id: call.facts.message.as_deref().unwrap_or_default(),
        };
        self.retries.meet(message, digest, call.op.streams()).await
    }
}

/// Makes the message a question for its task. True if it is to be asked for what is still to come afterwards.
fn ask_instead(call: &mut Call, again: &Again) -> bool {
    let tenant = call.facts.tenant.take();
    let (tenant, history) = (tenant.as_deref(), call.facts.history);
    match again {
        Again::Said(_) => {}
        Again::Task(task) | Again::Look(task) => *call = request::ask_now(task, tenant, history),
        Again::Subscribe(task) => *call = request::subscribe(task, tenant),
    }
    matches!(again, Again::Look(_))
}

impl Exchange {
    /// The answer that the agent gave before, for this client.
    pub(super) fn say(&mut self, said: &Said) -> Result<Response<Reply>, Fault> {
        if !self.hold.grow(said.text.len()) {
            return Err(body::no_room());
        }
        let (mut head, ()) = Response::new(()).into_parts();
        head.headers.clone_from(&said.fields);
        if self.to.streams() {
            let (_, out) = self.as_event(&said.text)?;
            return Ok(self.respond(head, Framing::Events, StatusCode::OK, Some(out)));
        }
        let mut document = self.translate(&self.to, &said.text)?;
        self.lost.append(&mut document.lost);
        Ok(self.respond(head, Framing::Json, StatusCode::OK, document.body))
    }

    /// A stream's task as it is now; with what is still to come of it where that was asked for.
    pub(super) async fn task_alone(
        &mut self,
        head: Parts,
        body: agent::Body,
    ) -> Result<Response<Reply>, Fault> {
        let text = self.collect(&head, body).await?;
        let mut out = vec![];
        let gateway = self.gateway.clone();
        let (from, options) = (gateway.dialect, &gateway.options);
        let seen = answer::task_event(&self.to, from, &text, options, &mut out)?;
        self.settle(&seen, &head.headers, &text).await?;
        if self.look && seen.state == Some(State::Running) {
            return self.subscribe().await;
        }
        Ok(self.respond(head, Framing::Events, StatusCode::OK, Some(out.into())))
    }

    async fn subscribe(&mut self) -> Result<Response<Reply>, Fault> {
        let task = self.call.facts.task.take().unwrap_or_default();
        self.call = request::subscribe(&task, self.call.facts.tenant.as_deref());
        self.permit.slot = Care::Nothing; // a subscription tells the past, too: it frees nothing
        self.answered = false;
        let events = HeaderValue::from_static("text/event-stream");
        self.fields.insert(header::ACCEPT, events);
        self.look = false;
        Box::pin(self.exchange()).await
    }
}
