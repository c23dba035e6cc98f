//! The life of a call, straight through: head, body, the agent's words, its answer, the client's words.
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response, StatusCode, Version as Http, header, request::Parts,
};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

mod admit;
mod again;
mod body;
mod chores;
mod cors;
mod credentials;
mod earlier;
mod exchange;
mod fetch;
mod followed;
mod forward;
mod greet;
mod hydrate;
mod limited;
mod making;
mod owned;
mod recorded;
mod routes;
mod suited;
mod telling;
mod tls;
mod under_way;
mod well_known;

pub use earlier::Earlier;
pub use making::{Backends, BadSetup, Life, Setup};

use chores::Chores;
use followed::{Followed, Work};
use routes::{Matched, Routes};
use under_way::UnderWay;

use crate::{
    a2a::{
        Binding, Dialect, Face, Fault, Kind, Op, Version,
        detect::{self, Accepts, Target},
        headers,
        reply::ReplyTo,
        request::{self, Read, Reading},
        shape::Options,
    },
    audit::{Audit, Record, Recorded},
    budget::{Budget, Hold},
    card::Cards,
    config,
    follow::Follow,
    policy::{
        caller::Caller, callers::Callers, conversation::Conversations, limits, owner::Owners,
        retry::Retries,
    },
    reply::{Reply, Speech},
    telemetry::Ears,
    tls::Certificate,
};

/// Who is on the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The certificate that it has shown.
    pub certificate: Option<Arc<Certificate>>,
}

/// Answers calls. One for each worker; cloning it is cheap.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    routes: Routes,
    /// How the agents speak.
    dialect: Dialect,
    accepts: Accepts,
    /// The same, with nothing but `ProtoJSON` of v0.3 over REST.
    proto_only: Accepts,
    /// What clients see who have not found an agent yet.
    face: Face,
    options: Arc<Options>,
    speech: Arc<Speech>,
    limits: config::Limits,
    http: config::Http,
    backend: config::Backend,
    /// What callers lose by `backend.ignores_configuration`.
    ignored: Arc<suited::Seldom>,
    /// Whether subscriptions begin with the task.
    task_first: bool,
    push: bool,
    rest_content_type: &'static str,
    public_url: Option<String>,
    rpc_path: String,
    cards: Cards,
    last_peer: forward::Last,
    budget: Budget,
    audit: Audit,
    ears: Option<Arc<Ears>>,
    conversations: Conversations,
    retries: Retries,
    owners: Owners,
    rules: limits::Limits,
    peers: limits::Peers,
    auth: greet::Auth,
    callers: Callers,
    credentials: credentials::Credentials,
    hydrated: hydrate::Hydrated,
    follow: Follow,
    stop: CancellationToken,
    /// New calls are to be refused: this gateway is about to end.
    leaving: Arc<AtomicBool>,
    chores: Arc<Chores>,
    under_way: UnderWay,
    /// Whoever has this goes by its settings.
    _life: Arc<making::Life>,
}

/// A request that found its agent.
struct Asked<'p> {
    matched: Matched<'p>,
    said: Option<Version>,
    record: Record,
}

impl Gateway {
    /// Answers one request. There is no other way to answer: what fails becomes a response here.
    pub fn answer(
        self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Recorded<Reply>>> + Send + use<> {
        // Taken apart out here, and lent from then on: a future keeps what it is given beside what it makes of it.
        let (mut head, mut body) = request.into_parts();
        async move {
            let gateway = &self.0;
            let _one = gateway.under_way.begin();
            let cors = &gateway.http.cors;
            let origin = cors::allowed(cors, &head.headers);
            let (waiting, answer) = gateway.door(&head, &peer);
            let mut response = if let Some(answer) = answer {
                *answer
            } else {
                let record = waiting.record();
                gateway.dispatch(&mut head, &mut body, &peer, record).await
            };
            cors::mark(cors, response.headers_mut(), origin);
            waiting.answered(response, head.method == Method::HEAD)
        }
    }

    /// Once in a while: closes connections to agents that nobody uses, and begins what is to be done beside calls.
    pub fn tick(&self) {
        for agent in self.0.routes.agents() {
            agent.sweep();
        }
        if !self.0.leaving.load(Relaxed) {
            self.0.chores.begin(self.0.routes.agents());
        }
        self.0.conversations.tick();
        self.0.retries.tick();
        self.0.rules.tick();
        self.0.peers.tick();
        self.0.auth.sweep();
        self.0.credentials.sweep();
    }
}

impl Inner {
    async fn dispatch(
        self: &Arc<Self>,
        head: &mut Parts,
        body: &mut Incoming,
        peer: &Peer,
        record: &Record,
    ) -> Response<Reply> {
        let refuse = |to: &ReplyTo, fault: &Fault| {
            record.refused(to, fault);
            telling::refuse(to, fault)
        };
        let uri = head.uri.clone();
        let path = uri.path();
        let mut to = ReplyTo::new(detect::likely(path, None));
        to.face = self.face;
        if let Err(fault) = host_is_one(head) {
            // No dialect wraps what is wrong with HTTP itself (RFC 9112 3.2).
            let mut response = refuse(&to, &fault);
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return response;
        }
        let asked = match self.look(head, path, record, &mut to) {
            Ok(asked) => asked,
            Err(fault) => return refuse(&to, &fault),
        };
        let target = match detect::target(&head.method, asked.matched.rest, &self.accepts) {
            Ok(target) => target,
            Err(fault) => return refuse(&to, &fault),
        };
        match target {
            // Boxed: what is rare must not make every call's future large.
            Target::Card => {
                record.card();
                Box::pin(self.card(head, &asked, peer)).await
            }
            Target::Rpc | Target::Rest(_) => {
                if let Target::Rest(found) = &target {
                    record.operation(found.op);
                }
                let done = self.call(head, body, &asked, &target, peer, &mut to).await;
                done.unwrap_or_else(|fault| refuse(&to, &fault))
            }
        }
    }

    /// What the head says, before anything is read.
    fn look<'p>(
        &self,
        head: &Parts,
        path: &'p str,
        record: &Record,
        to: &mut ReplyTo,
    ) -> Result<Asked<'p>, Fault> {
        let matched = self.routes.find(path)?;
        record.route(&matched.route.name, matched.route.series.as_ref());
        to.face = matched.route.face;
        let said = headers::version(&head.headers, head.uri.query(), &self.accepts.versions);
        to.dialect = detect::likely(matched.rest, said.as_ref().ok().copied().flatten());
        record.speaks(to.dialect, self.dialect);
        Ok(Asked {
            matched,
            said: said?,
            record: record.clone(),
        })
    }

    /// A call, from its body to the head of its answer.
    async fn call(
        self: &Arc<Self>,
        head: &mut Parts,
        body: &mut Incoming,
        asked: &Asked<'_>,
        target: &Target,
        peer: &Peer,
        to: &mut ReplyTo,
    ) -> Result<Response<Reply>, Fault> {
        let met = self.auth.greet(&head.headers, peer).await?;
        asked.record.caller(&met.caller);
        let mut hold = self.budget.hold();
        let body = self.read_body(head, body, target, &mut hold).await?;
        asked.record.body(&body);
        let mut read = self.read(head, &body, target, asked, &met.caller, to)?;
        let sent = body.len();
        drop(body); // what is still needed of it is in the call
        asked.record.asked(&read.call, to.dialect, self.dialect);
        greet::Auth::may(&met, read.call.op, &asked.matched.route.name)?;
        self.notice(&met, &mut read, &head.headers, to);
        self.allowed(&mut read)?;
        self.suit(&mut read.call)?;
        let owner = self.mind(&mut read, &asked.matched, &met.caller).await?;
        let report = telling::wants_report(&head.headers);
        let public = self.public_for(read.call.op, head, &asked.matched, peer);
        let limited = self
            .limit(&met.caller, &read.call, sent, &asked.matched, to)
            .await?;
        let sender = {
            let (call, owner) = (&read.call, owner.as_deref());
            self.sender(call, &asked.matched, owner, &met, &head.headers, peer)
        };
        let op = read.call.op; // a message that was sent before becomes a question
        let mut fields = self.up(&read, head, to, peer);
        if let Some(ears) = &self.ears {
            asked.record.propagate(ears, &mut fields);
        }
        let written = self.credentials.writes();
        self.auth.keep_back(&met, &mut fields, written);
        self.credentials.put(&mut fields).await?;
        let admitted = self
            .admit_for(owner, &mut read, &asked.matched, &fields, sender, to)
            .await?;
        asked.record.admitted();
        if to.streams() && !read.call.op.streams() {
            exchange::one_document(&mut fields);
        }
        let mut permit = admitted.permit;
        permit.limits = limited;
        let followed = read.call.op == Op::Send
            || permit.first.is_some()
            || !permit.can_be_left_at_once()
            || self.follows_stream(op);
        to.learn = permit.learns() || asked.record.learns();
        let exchange = exchange::Exchange {
            gateway: self.clone(),
            route: asked.matched.route.clone(),
            base: asked.matched.base.clone(),
            fields,
            call: read.call,
            to: to.clone(),
            lost: read.lost,
            public,
            report,
            permit,
            said: admitted.said,
            look: admitted.look,
            answered: false,
            hold,
            record: asked.record.clone(),
            met,
        };
        let work: Work = Box::pin(exchange.run());
        if followed {
            return Followed::new(work, &self.follow).await;
        }
        work.await
    }

    /// What is asked for. `to` learns how.
    fn read(
        &self,
        head: &Parts,
        body: &Bytes,
        target: &Target,
        asked: &Asked<'_>,
        caller: &Caller,
        to: &mut ReplyTo,
    ) -> Result<Read, Fault> {
        let matched = &asked.matched;
        let accepts = if matched.route.proto_only {
            &self.proto_only
        } else {
            &self.accepts
        };
        let mut reading = Reading::new(asked.said, accepts, &self.options);
        let edits;
        if let Some(rules) = &matched.route.metadata {
            edits = move || rules.edits(caller, |name| matched.parameter(name));
            reading.edits = Some(&edits);
        }
        let read = match target {
            Target::Rest(found) => request::read_rest(found, head.uri.query(), body, &reading, to),
            Target::Rpc | Target::Card => request::read_rpc(body, &reading, to),
        }?;
        if to.twice.is_none() && headers::is_javascript(&head.headers) {
            to.twice = Some(false);
        }
        Ok(read)
    }

    async fn read_body(
        &self,
        head: &Parts,
        body: &mut Incoming,
        target: &Target,
        hold: &mut Hold,
    ) -> Result<Bytes, Fault> {
        let coding = head.headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|c| c.as_bytes() != b"identity") {
            return Err(unsupported("a request's body must not be compressed"));
        }
        let takes_body = match target {
            Target::Rest(found) => found.op.sends() || found.op == Op::CreatePush,
            Target::Rpc | Target::Card => true,
        };
        if takes_body && !headers::is_json(&head.headers) {
            return Err(unsupported(
                "the body's content type is not application/json",
            ));
        }
        body::read(body, self.limits.body, self.limits.body_time, hold).await
    }

    /// What settings forbid.
    fn allowed(&self, read: &mut Read) -> Result<(), Fault> {
        let webhook = read.call.op.is_push() || read.call.facts.webhook;
        if webhook && !self.push {
            return Err(Fault::new(
                Kind::PushNotSupported,
                "push notifications are switched off here",
            ));
        }
        if read.call.op.is_push() && !self.backend.push_notifications {
            return Err(Fault::new(
                Kind::PushNotSupported,
                "the agent has no push notifications",
            ));
        }
        let strips = read.call.facts.webhook && !self.backend.push_notifications;
        let says = read.call.op == Op::Send && self.backend.explicit_wait;
        if strips || says {
            request::configure(read, strips, says, &self.options)?;
        }
        Ok(())
    }

    fn up(&self, read: &Read, head: &mut Parts, to: &ReplyTo, peer: &Peer) -> HeaderMap {
        let content = match self.dialect.binding {
            Binding::Rest => self.backend.rest_content_type.as_str(),
            Binding::Rpc => "application/json",
        };
        forward::Up {
            version: self.dialect.shape.version(),
            content,
            events: read.call.op.streams(),
            trusted: &self.http.trusted_proxies,
            peer,
            authority: head.uri.authority(),
            last: &self.last_peer,
        }
        .fields(
            std::mem::take(&mut head.headers),
            to.dialect.shape.version(),
        )
    }
}

impl Inner {
    /// What an agent's answer may tell the client. A session that it opened for the gateway is not the client's.
    fn down(&self, fields: HeaderMap, version: Version) -> HeaderMap {
        let mut fields = forward::down(fields, version);
        if self.credentials.on() {
            fields.remove(header::SET_COOKIE);
            fields.remove(header::WWW_AUTHENTICATE);
        }
        fields
    }
}

/// A request names one host: more could mean one thing to us and another to whoever stands before us.
fn host_is_one(head: &Parts) -> Result<(), Fault> {
    let hosts = head.headers.get_all(header::HOST).iter().count();
    let told = hosts == 1 || head.version != Http::HTTP_11;
    if hosts > 1 || !told {
        return Err(Fault::new(
            Kind::InvalidRequest,
            "a request has just one Host",
        ));
    }
    Ok(())
}

/// What never waits, as what a store of this process is asked: it needs no box, nor room in the future of a call.
#[expect(
    clippy::inline_always,
    reason = "a future that is given to a function is copied, which costs more than what it does"
)]
#[inline(always)]
fn at_once<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let work = std::pin::pin!(work);
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => {
            let words = "what should be known is waited for";
            Err(Fault::new(Kind::Internal, words))
        }
    }
}

fn unsupported(message: &'static str) -> Fault {
    Fault::new(Kind::ContentTypeNotSupported, message)
}
