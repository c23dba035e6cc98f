//! One exchange with the agent: the request in its words, and its answer in the client's.
use std::sync::{Arc, atomic::Ordering::Relaxed};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, response::Parts,
};

mod events;
mod pages;
mod trouble;

use events::is_plain;
use trouble::unanswered;

use super::{
    Inner, forward,
    greet::Met,
    routes,
    telling::{log_losses, losses_value, put_framing, put_version},
};
use crate::{
    a2a::{
        Binding, Call, Dialect, Fault, Kind, Op, Shape,
        answer::{self, Document, Public, Seen},
        fault::Blame,
        headers,
        reply::{Framing, ReplyTo},
        request,
        shape::Loss,
    },
    agent,
    audit::Record,
    budget::Hold,
    policy::{Permit, retry::Said},
    reply::{AskTask, Onward, Reply, Stream},
};

/// All that an exchange needs. It owns it, since it may outlive its request.
pub(super) struct Exchange {
    pub(super) gateway: Arc<Inner>,
    pub(super) route: Arc<routes::Route>,
    pub(super) base: Arc<str>,
    pub(super) fields: HeaderMap,
    pub(super) call: Call,
    pub(super) to: ReplyTo,
    pub(super) lost: Vec<Loss>,
    /// For cards only.
    pub(super) public: Option<Box<Public>>,
    pub(super) report: bool,
    /// What it owes news of its answer.
    pub(super) permit: Permit,
    /// What it is answered with instead: its message was sent before.
    pub(super) said: Option<Arc<Said>>,
    /// Its task goes before what is still to come of it.
    pub(super) look: bool,
    /// The agent has answered: what fails from now on says nothing about whether it began.
    pub(super) answered: bool,
    pub(super) hold: Hold,
    /// What it tells of itself.
    pub(super) record: Record,
    /// Who called.
    pub(super) met: Met,
}

impl Exchange {
    /// Sends the call and gives the answer for the client.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would hold the exchange twice: as it was given and as it is used"
    )]
    pub(super) fn run(mut self) -> impl Future<Output = Result<Response<Reply>, Fault>> + Send {
        async move {
            if let Some(said) = self.said.take() {
                self.record.rule("retry.message_id");
                let told = self.say(&said);
                self.record.lost(&self.lost);
                return told;
            }
            let done = self.exchange().await;
            self.record.lost(&self.lost);
            if self.met.waits_for_answer() {
                match &done {
                    Ok(_) => self.gateway.auth.answered(&mut self.met, true),
                    Err(fault) if fault.kind == Kind::Unauthenticated => {
                        self.gateway.auth.answered(&mut self.met, false);
                    }
                    Err(_) => {}
                }
            }
            if let Err(fault) = &done {
                self.record.failed(fault);
                let ours = fault.blame == Blame::Gateway;
                if !(self.answered && ours) {
                    self.permit.failed(fault, self.answered).done().await;
                }
            }
            done
        }
    }

    pub(super) async fn exchange(&mut self) -> Result<Response<Reply>, Fault> {
        let op = self.call.op;
        if op == Op::List
            && let Some(claims) = self.permit.owner.take()
        {
            return Box::pin(self.owned_list(claims.owner().clone())).await;
        }
        if op == Op::GetPush && self.call.facts.config.is_none() {
            self.call.op = Op::ListPush; // decision 16: v1.0 has no get without an id
        }
        let response = self.ask().await?;
        self.answered = true;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(Box::pin(self.failed(head, body)).await);
        }
        let events = is_events(&head.headers);
        match (op.streams(), events) {
            (true, true) => self.stream(head, body),
            (true, false) => Box::pin(self.lone_event(head, body)).await,
            (false, false) if self.to.streams() => Box::pin(self.task_alone(head, body)).await,
            (false, false) => self.document(head, body).await,
            (false, true) => Err(Fault::answer("events where one document was asked for")),
        }
    }

    /// A question of our own, asked as the caller of these fields: its answer is one document, and nobody else's.
    pub(super) fn ours(
        gateway: &Arc<Inner>,
        route: &Arc<routes::Route>,
        base: &Arc<str>,
        fields: &HeaderMap,
        call: Call,
    ) -> Self {
        let mut fields = fields.clone();
        one_document(&mut fields);
        Self {
            gateway: gateway.clone(),
            route: route.clone(),
            base: base.clone(),
            fields,
            call,
            to: ReplyTo::new(Dialect::R10),
            lost: vec![],
            public: None,
            report: false,
            permit: Permit::default(),
            said: None,
            look: false,
            answered: false,
            hold: gateway.budget.hold(),
            record: Record::default(),
            met: gateway.auth.nobody(),
        }
    }

    /// Sends the call for our own sake, and gives the whole answer.
    pub(super) async fn ask_only(&mut self) -> Result<Bytes, Fault> {
        let (head, body) = self.send(&Method::GET).await?.into_parts();
        self.answered = true;
        if !head.status.is_success() {
            return Err(self.failed(head, body).await);
        }
        self.collect(&head, body).await
    }

    /// Sends the call. Subscribing falls back to the other verb, and remembers it (operations 1.1).
    async fn ask(&mut self) -> Result<Response<agent::Body>, Fault> {
        let by_get = self.route.subscribe_by_get.load(Relaxed);
        let verb = if by_get { Method::GET } else { Method::POST };
        let response = self.send(&verb).await?;
        let status = response.status();
        let retry = self.call.op == Op::Subscribe
            && self.gateway.dialect.binding == Binding::Rest
            && verb == Method::POST
            && (status == StatusCode::METHOD_NOT_ALLOWED
                || (status == StatusCode::NOT_FOUND && !is_json(response.headers())));
        if !retry {
            return Ok(response);
        }
        let second = Box::pin(self.send(&Method::GET)).await?;
        if second.status().is_success() {
            self.route.subscribe_by_get.store(true, Relaxed);
            tracing::info!(
                "the agent is subscribed to by GET from now on; set backend.subscribe_verb to save a request"
            );
        }
        Ok(second)
    }

    async fn send(&mut self, verb: &Method) -> Result<Response<agent::Body>, Fault> {
        let gateway = &self.gateway;
        let op = self.call.op;
        let outgoing = request::write(
            &self.call,
            gateway.dialect,
            verb,
            &gateway.options,
            &mut self.lost,
        )?;
        self.gateway.under_way.turn().await;
        let mut request = Request::new(outgoing.body.clone().unwrap_or_default());
        *request.method_mut() = outgoing.method;
        *request.uri_mut() = Uri::from(self.route.place(&self.base, &outgoing.path)?);
        let again = op.may_repeat();
        *request.headers_mut() = if again {
            self.fields.clone() // there may be a second request
        } else {
            std::mem::take(&mut self.fields)
        };
        if outgoing.body.is_none() {
            request.headers_mut().remove(header::CONTENT_TYPE);
        }
        let deadline = if op.sends() {
            gateway.limits.send
        } else {
            gateway.limits.first_byte
        };
        self.permit.goes_out()?;
        self.record.sent(request.method(), &self.route.origin);
        let agent = &self.route.agent;
        let facts = &self.call.facts;
        let whose = agent.whose(facts.context.as_deref(), facts.task.as_deref());
        let sent = agent.send_for(whose, request, deadline, again).await;
        let answer = sent.map_err(|e| unanswered(&e, op))?;
        self.record.agent_answered(answer.status());
        if let Some(mut homing) = agent.homing(answer.body()) {
            self.to.learn = true;
            self.permit
                .tells_ids(move |ids| homing.learn(ids.context.as_deref(), ids.task.as_deref()));
        }
        Ok(answer)
    }

    fn stream(&mut self, head: Parts, body: agent::Body) -> Result<Response<Reply>, Fault> {
        is_plain(&head.headers)?;
        self.hold.resize(0); // what was sent goes with this exchange
        log_losses(&self.lost, self.call.op.name());
        let version = self.to.dialect.shape.version();
        let stop = self.gateway.stop.clone().cancelled_owned();
        let task = (self.call.op == Op::Subscribe && self.gateway.task_first).then(|| self.task());
        let to = self.to.clone();
        let hold = self.hold.another();
        let mut stream = Stream::new(body, to, self.gateway.speech.clone(), hold, stop);
        let (follow, limits) = (self.gateway.follow.clone(), &self.gateway.limits);
        let whole = self.gateway.follows_stream(self.call.op);
        let within = if whole { limits.followed } else { limits.send };
        let onward = Onward {
            follow,
            whole,
            within,
        };
        stream.owes(std::mem::take(&mut self.permit), onward);
        self.record.streams();
        stream.tells(self.record.clone());
        if let Some(outlived) = self.met.outlived(&self.gateway.auth) {
            stream.ends_with(outlived);
        }
        if let Some(proof) = self.gateway.auth.proof(&mut self.met) {
            stream.proves(proof);
        }
        if let Some(task) = task {
            stream = stream.task_first(task);
        }
        let mut response = Response::new(Reply::stream(stream));
        let fields = response.headers_mut();
        *fields = self.gateway.down(head.headers, version);
        put_framing(fields, Framing::Events, "");
        put_version(fields, version);
        Ok(response)
    }

    /// Asks for the task that a subscription is to begin with (streams 7).
    fn task(&self) -> AskTask {
        let mut exchange = Self::ours(
            &self.gateway,
            &self.route,
            &self.base,
            &self.fields,
            request::get_task(&self.call),
        );
        Box::pin(async move { exchange.ask_only().await })
    }

    /// A whole answer to a streaming call becomes its only event (streams 8).
    async fn lone_event(
        &mut self,
        head: Parts,
        body: agent::Body,
    ) -> Result<Response<Reply>, Fault> {
        let text = self.collect(&head, body).await?;
        let (seen, out) = self.as_event(&text)?;
        self.settle(&seen, &head.headers, &text).await?;
        log_losses(&self.lost, self.call.op.name());
        Ok(self.respond(head, Framing::Events, StatusCode::OK, Some(out)))
    }

    async fn document(&mut self, head: Parts, body: agent::Body) -> Result<Response<Reply>, Fault> {
        let text = self.collect(&head, body).await?;
        let arrays = !matches!(self.to.dialect.shape, Shape::V10 | Shape::V03Proto);
        let mut document = if self.to.op == Some(Op::ListPush) && arrays {
            Box::pin(self.all_pages(&text)).await?
        } else {
            self.translate(&self.to, &text)?
        };
        self.gateway.under_way.turn().await;
        self.settle(&document.seen, &head.headers, &text).await?;
        // After what the agent showed has settled: its conversation is free, and the task is the caller's to know.
        if self.hydrates()
            && let Some(whole) = Box::pin(self.hydrated(&text)).await
        {
            document = whole;
        }
        self.lost.append(&mut document.lost);
        log_losses(&self.lost, self.call.op.name());
        let status = match document.body {
            Some(_) => StatusCode::OK,
            None => StatusCode::NO_CONTENT,
        };
        Ok(self.respond(head, Framing::Json, status, document.body))
    }

    /// A whole answer of the agent as the client's only event.
    pub(super) fn as_event(&mut self, text: &[u8]) -> Result<(Seen, Bytes), Fault> {
        let mut out = vec![];
        let gateway = self.gateway.clone();
        let (from, options) = (gateway.dialect, &gateway.options);
        let (to, lost) = (&mut self.to, &mut self.lost);
        let seen = answer::event(to, from, text, true, options, lost, &mut out)?;
        Ok((seen, out.into()))
    }

    /// Free before telling: the client's next message finds what this answer says.
    pub(super) async fn settle(
        &mut self,
        seen: &Seen,
        fields: &HeaderMap,
        text: &Bytes,
    ) -> Result<(), Fault> {
        if self.to.streams() {
            self.record.event(seen);
        } else {
            self.record.seen(seen);
        }
        self.permit.answered(seen, fields, text).await
    }

    pub(super) fn translate(&self, to: &ReplyTo, text: &Bytes) -> Result<Document, Fault> {
        self.translate_from(self.gateway.dialect, to, text)
    }

    pub(super) fn translate_from(
        &self,
        dialect: Dialect,
        to: &ReplyTo,
        text: &Bytes,
    ) -> Result<Document, Fault> {
        let none = Public {
            interfaces: vec![],
            push: false,
            security: None,
        };
        if to.op == Some(Op::ExtendedCard) && self.public.is_none() {
            return Err(Fault::params("the request's Host is not an address"));
        }
        let public = self.public.as_deref().unwrap_or(&none);
        let sent = self.call.op;
        answer::document(to, dialect, sent, text, public, &self.gateway.options)
    }

    pub(super) async fn collect(
        &mut self,
        head: &Parts,
        body: agent::Body,
    ) -> Result<Bytes, Fault> {
        let limits = &self.gateway.limits;
        let deadline = if self.call.op.sends() {
            limits.send
        } else {
            limits.first_byte
        };
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let hold = &mut self.hold;
        let whole = body
            .collect(coding, limits.response, deadline, |more| hold.grow(more))
            .await;
        self.record.agent_ended();
        whole.map_err(|e| unanswered(&e, self.call.op))
    }

    pub(super) fn respond(
        &mut self,
        head: Parts,
        framing: Framing,
        status: StatusCode,
        body: Option<Bytes>,
    ) -> Response<Reply> {
        let version = self.to.dialect.shape.version();
        let v10_rest = self.to.dialect == Dialect::R10;
        let json = if v10_rest {
            self.gateway.rest_content_type
        } else {
            "application/json"
        };
        let hold = self.hold.another();
        let hold = std::mem::replace(&mut self.hold, hold);
        let body = hold.keep(body.unwrap_or_default());
        self.permit.told(body.len());
        let mut response = Response::new(Reply::whole(body));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        *fields = self.gateway.down(head.headers, version);
        if status != StatusCode::NO_CONTENT {
            put_framing(fields, framing, json);
        }
        put_version(fields, version);
        if self.report
            && let Some(losses) = losses_value(&self.lost)
        {
            fields.insert(forward::LOSSES, losses);
        }
        response
    }
}

/// Asks for one document, where the client waits for events.
pub(super) fn one_document(fields: &mut HeaderMap) {
    fields.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
}

fn is_events(fields: &HeaderMap) -> bool {
    media(fields).eq_ignore_ascii_case("text/event-stream")
}

fn is_json(fields: &HeaderMap) -> bool {
    let media = media(fields);
    media.eq_ignore_ascii_case("application/json") || media.ends_with("+json")
}

fn media(fields: &HeaderMap) -> &str {
    fields
        .get(header::CONTENT_TYPE)
        .map_or("", headers::media_type)
}
