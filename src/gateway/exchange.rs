//! One exchange with the agent: the request in its words, and its answer in the client's.
use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, response::Parts,
};
use std::sync::atomic::Ordering::Relaxed;

use super::{
    Inner, body, budget::Hold, forward, log_losses, losses_value, put_framing, put_version, routes,
    uri,
};
use crate::{
    a2a::{
        Binding, Call, Dialect, Fault, Kind, Op, Shape,
        answer::{self, Document, Public},
        headers,
        reply::{Framing, ReplyTo},
        request, rpc,
        shape::Loss,
    },
    agent,
    reply::{Reply, Stream},
};

/// An error's body is read up to this.
const ERROR: usize = 1024 * 1024;
/// Pages of a list of webhooks that are joined for v0.3, which has no pages.
const PAGES: usize = 10;

/// All that an exchange needs. It owns it, since it may outlive its request.
pub(super) struct Exchange {
    pub(super) gateway: Arc<Inner>,
    pub(super) route: Arc<routes::Route>,
    pub(super) base: String,
    pub(super) fields: HeaderMap,
    pub(super) call: Call,
    pub(super) to: ReplyTo,
    pub(super) lost: Vec<Loss>,
    pub(super) public: Option<Public>,
    pub(super) report: bool,
    pub(super) hold: Hold,
}

impl Exchange {
    /// Sends the call and gives the answer for the client.
    pub(super) async fn run(mut self) -> Result<Response<Reply>, Fault> {
        let op = self.call.op;
        if op == Op::GetPush && self.call.facts.config.is_none() {
            self.call.op = Op::ListPush; // decision 16: v1.0 has no get without an id
        }
        let response = self.ask().await?;
        // What was sent is not needed any more; the answer is counted from here.
        self.hold.resize(0);
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(Box::pin(self.failed(head, body)).await);
        }
        let events = is_events(&head.headers);
        match (op.streams(), events) {
            (true, true) => self.stream(head, body),
            (true, false) => Box::pin(self.lone_event(head, body)).await,
            (false, false) => self.document(head, body).await,
            (false, true) => Err(Fault::answer("events where one document was asked for")),
        }
    }

    /// Sends the call. Subscribing falls back to the other verb, and remembers it (operations 1.1).
    async fn ask(&mut self) -> Result<Response<agent::Body>, Fault> {
        let verb = self.gateway.verb();
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
            self.gateway.subscribe_by_get.store(true, Relaxed);
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
        let mut request = Request::new(outgoing.body.clone().unwrap_or_default());
        *request.method_mut() = outgoing.method;
        *request.uri_mut() = uri(routes::target(&self.base, &outgoing.path)?);
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
        let sent = self.route.agent.send(request, deadline, again).await;
        sent.map_err(|e| unanswered(&e, op))
    }

    fn stream(self, head: Parts, body: agent::Body) -> Result<Response<Reply>, Fault> {
        if let Some(coding) = head.headers.get(header::CONTENT_ENCODING)
            && coding.as_bytes() != b"identity"
        {
            return Err(Fault::answer(
                "the event stream is compressed, though identity was asked for",
            ));
        }
        log_losses(&self.lost, self.call.op.name());
        let version = self.to.dialect.shape.version();
        let stop = self.gateway.stop.clone().cancelled_owned();
        let stream = Stream::new(body, self.to, self.gateway.speech.clone(), self.hold, stop);
        let mut response = Response::new(Reply::Stream(Box::new(stream)));
        let fields = response.headers_mut();
        *fields = forward::down(head.headers, version);
        put_framing(fields, Framing::Events, "");
        put_version(fields, version);
        Ok(response)
    }

    /// A whole answer to a streaming call becomes its only event (streams 8).
    async fn lone_event(
        mut self,
        head: Parts,
        body: agent::Body,
    ) -> Result<Response<Reply>, Fault> {
        let text = self.collect(&head, body).await?;
        let mut out = vec![];
        let gateway = self.gateway.clone();
        answer::event(
            &mut self.to,
            gateway.dialect,
            &text,
            true,
            &gateway.options,
            &mut self.lost,
            &mut out,
        )?;
        log_losses(&self.lost, self.call.op.name());
        Ok(self.respond(head, Framing::Events, StatusCode::OK, Some(out.into())))
    }

    async fn document(mut self, head: Parts, body: agent::Body) -> Result<Response<Reply>, Fault> {
        let text = self.collect(&head, body).await?;
        let arrays = !matches!(self.to.dialect.shape, Shape::V10 | Shape::V03Proto);
        let mut document = if self.to.op == Some(Op::ListPush) && arrays {
            Box::pin(self.all_pages(&text)).await?
        } else {
            self.translate(&self.to, &text)?
        };
        self.lost.append(&mut document.lost);
        log_losses(&self.lost, self.call.op.name());
        let status = match document.body {
            Some(_) => StatusCode::OK,
            None => StatusCode::NO_CONTENT,
        };
        Ok(self.respond(head, Framing::Json, status, document.body))
    }

    fn translate(&self, to: &ReplyTo, text: &Bytes) -> Result<Document, Fault> {
        let none = Public {
            interfaces: vec![],
            push: false,
        };
        if to.op == Some(Op::ExtendedCard) && self.public.is_none() {
            return Err(Fault::params("the request's Host is not an address"));
        }
        let public = self.public.as_ref().unwrap_or(&none);
        let (dialect, sent) = (self.gateway.dialect, self.call.op);
        answer::document(to, dialect, sent, text, public, &self.gateway.options)
    }

    /// v0.3 lists have no pages: all are joined, up to a bound.
    async fn all_pages(&mut self, first: &Bytes) -> Result<Document, Fault> {
        let mut bare = self.to.clone();
        bare.dialect.binding = Binding::Rest;
        let mut page = self.translate(&bare, first)?;
        let mut items = inner(page.body.take());
        for _ in 1..PAGES {
            let Some(token) = page.next.take() else { break };
            self.call.params = request::next_page(&self.call, &token, &self.gateway.options)?;
            let (head, body) = self.send(&Method::GET).await?.into_parts();
            if !head.status.is_success() {
                break; // what was found is still true
            }
            let text = self.collect(&head, body).await?;
            page = self.translate(&bare, &text)?;
            let more = inner(page.body.take());
            if !items.is_empty() && !more.is_empty() {
                items.push(b',');
            }
            items.extend_from_slice(&more);
        }
        let mut out = Vec::with_capacity(items.len() + 64);
        let rpc = self.to.dialect.binding == Binding::Rpc;
        if rpc {
            rpc::write_head(&self.to.id, "result", &mut out);
        }
        out.push(b'[');
        out.extend_from_slice(&items);
        out.push(b']');
        if rpc {
            out.push(b'}');
        }
        page.body = Some(out.into());
        Ok(page)
    }

    async fn collect(&mut self, head: &Parts, body: agent::Body) -> Result<Bytes, Fault> {
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
        whole.map_err(|e| unanswered(&e, self.call.op))
    }

    fn respond(
        self,
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
        let body = self.hold.keep(body.unwrap_or_default());
        let mut response = Response::new(Reply::whole(body));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        *fields = forward::down(head.headers, version);
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

    /// What an answer means that is no success.
    async fn failed(&mut self, head: Parts, body: agent::Body) -> Fault {
        let (status, op) = (head.status.as_u16(), self.call.op);
        let json = is_json(&head.headers);
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let hold = &mut self.hold;
        let text = body
            .collect(coding, ERROR, self.gateway.limits.first_byte, |more| {
                hold.grow(more)
            })
            .await;
        let text = text.ok().and_then(|t| String::from_utf8(t.to_vec()).ok());
        let mut fault = match text {
            Some(text) if json || text.trim_start().starts_with('{') => {
                answer::read_fault(status, &text, op)
            }
            _ => answer::from_status(status, op, None),
        };
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

/// What is between the brackets of a JSON list.
fn inner(list: Option<Bytes>) -> Vec<u8> {
    let list = list.unwrap_or_default();
    match list.as_ref() {
        [b'[', items @ .., b']'] => items.to_vec(),
        _ => vec![],
    }
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

/// The one place that knows both a connection's errors and the protocol's.
fn unanswered(error: &agent::Error, op: Op) -> Fault {
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
