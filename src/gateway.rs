//! The life of a call, straight through: head, body, the agent's words, its answer, the client's words.
use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
    request::Parts,
};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

mod body;
pub mod budget;
mod cors;
mod exchange;
mod forward;
mod making;
mod routes;

pub use making::{BadSetup, Setup};

use budget::{Budget, Hold};
use routes::{Matched, Routes};

use crate::{
    a2a::{
        Dialect, Fault, Kind, Op, Version,
        answer::{self, Public},
        detect::{self, Accepts, Target},
        headers,
        reply::{Framing, ReplyTo, Told},
        request::{self, Read},
        shape::{Loss, Options, View, card::Interface},
    },
    card::{self, Cards, Follow},
    config,
    reply::{Reply, Speech},
};

/// Who is on the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// Answers calls. One for each worker; cloning it is cheap.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    routes: Routes,
    /// How the agents speak.
    dialect: Dialect,
    /// Whether subscribing by GET proved to be the agent's way.
    subscribe_by_get: AtomicBool,
    accepts: Accepts,
    options: Arc<Options>,
    speech: Arc<Speech>,
    limits: config::Limits,
    http: config::Http,
    backend: config::Backend,
    push: bool,
    rest_content_type: &'static str,
    public_url: Option<String>,
    rpc_path: String,
    cards: Cards,
    budget: Budget,
    follow: Follow,
    stop: CancellationToken,
}

/// A request that found its agent.
struct Asked<'p> {
    matched: Matched<'p>,
    said: Option<Version>,
}

impl Gateway {
    /// Answers one request. There is no other way to answer: what fails becomes a response here.
    pub async fn answer(self, request: Request<Incoming>, peer: Peer) -> Response<Reply> {
        let (head, body) = request.into_parts();
        let gateway = &self.0;
        let origin = cors::allowed(&gateway.http.cors, &head.headers);
        let mut response = if head.method == Method::OPTIONS {
            cors::options(&gateway.http.cors, &head.headers)
        } else {
            gateway.dispatch(head, body, &peer).await
        };
        if let Some(origin) = origin
            && !response
                .headers()
                .contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
        {
            cors::mark(response.headers_mut(), origin);
        }
        response
    }

    /// Once in a while: closes connections to agents that nobody uses.
    pub fn tick(&self) {
        for agent in self.0.routes.agents() {
            agent.sweep();
        }
    }
}

impl Inner {
    async fn dispatch(
        self: &Arc<Self>,
        head: Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Response<Reply> {
        let path = head.uri.path().to_owned();
        let mut to = ReplyTo::new(detect::likely(&path, None));
        let asked = match self.look(&head, &path, &mut to) {
            Ok(asked) => asked,
            Err(fault) => return self.refuse(&to, &fault),
        };
        let target = match detect::target(&head.method, asked.matched.rest, &self.accepts) {
            Ok(target) => target,
            Err(fault) => return self.refuse(&to, &fault),
        };
        match target {
            // Boxed: what is rare must not make every call's future large.
            Target::Card => Box::pin(self.card(&head, &asked, peer)).await,
            Target::Rpc | Target::Rest(_) => {
                let done = self.call(head, body, asked, target, peer, &mut to).await;
                done.unwrap_or_else(|fault| self.refuse(&to, &fault))
            }
        }
    }

    /// What the head says, before anything is read.
    fn look<'p>(&self, head: &Parts, path: &'p str, to: &mut ReplyTo) -> Result<Asked<'p>, Fault> {
        if head.headers.get_all(header::HOST).iter().count() > 1 {
            return Err(Fault::new(
                Kind::InvalidRequest,
                "there is more than one Host",
            ));
        }
        let matched = self.routes.find(path)?;
        let said = headers::version(&head.headers, head.uri.query(), &self.accepts.versions);
        to.dialect = detect::likely(matched.rest, said.as_ref().ok().copied().flatten());
        Ok(Asked {
            matched,
            said: said?,
        })
    }

    /// A call, from its body to the head of its answer.
    async fn call(
        self: &Arc<Self>,
        head: Parts,
        body: Incoming,
        asked: Asked<'_>,
        target: Target,
        peer: &Peer,
        to: &mut ReplyTo,
    ) -> Result<Response<Reply>, Fault> {
        let mut hold = self.budget.hold();
        let body = self.read_body(&head, body, &target, &mut hold).await?;
        let read = match &target {
            Target::Rest(found) => request::read_rest(
                found,
                head.uri.query(),
                &body,
                asked.said,
                &self.accepts,
                &self.options,
                to,
            )?,
            Target::Rpc | Target::Card => {
                request::read_rpc(&body, asked.said, &self.accepts, &self.options, to)?
            }
        };
        self.allowed(&read)?;
        let report = wants_report(&head.headers);
        let card = read.call.op == Op::ExtendedCard;
        let public = card.then(|| self.public(&head, &asked.matched, peer)).flatten();
        let exchange = exchange::Exchange {
            gateway: self.clone(),
            route: asked.matched.route,
            base: asked.matched.base,
            fields: self.up(&read, head.headers, to, peer),
            call: read.call,
            to: to.clone(),
            lost: read.lost,
            public,
            report,
            hold,
        };
        let work: Work = Box::pin(exchange.run());
        if to.op == Some(Op::Send) {
            // What is out is followed to its end, also when its caller has left (decision 53).
            return Followed {
                work: Some(work),
                follow: &self.follow,
            }
            .await;
        }
        work.await
    }

    async fn read_body(
        &self,
        head: &Parts,
        body: Incoming,
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
    fn allowed(&self, read: &Read) -> Result<(), Fault> {
        let webhook = read.call.op.is_push() || read.call.facts.webhook;
        if webhook && !self.push {
            return Err(Fault::new(
                Kind::PushNotSupported,
                "push notifications are switched off here",
            ));
        }
        Ok(())
    }

    fn up(&self, read: &Read, fields: HeaderMap, to: &ReplyTo, peer: &Peer) -> HeaderMap {
        let rest = self.dialect.binding == crate::a2a::Binding::Rest;
        let content = if rest {
            self.backend.rest_content_type.as_str()
        } else {
            "application/json"
        };
        forward::Up {
            version: self.dialect.shape.version(),
            content: Some(content),
            events: read.call.op.streams(),
            trusted: &self.http.trusted_proxies,
            peer,
        }
        .fields(fields, to.dialect.shape.version())
    }

    /// What a card says of us. Without a public URL our address is what the client used.
    fn public(&self, head: &Parts, matched: &Matched<'_>, peer: &Peer) -> Option<Public> {
        let base = match &self.public_url {
            Some(url) => url.clone(),
            None => forward::own_address(
                &head.headers,
                head.uri.authority(),
                peer,
                &self.http.trusted_proxies,
            )?,
        };
        let base = format!("{base}{}", matched.public);
        let mut interfaces = vec![];
        for (on, version) in [(self.accepts.v10, "1.0"), (self.accepts.v03, "0.3")] {
            if on && self.accepts.rpc {
                interfaces.push(Interface {
                    url: format!("{base}{}", self.rpc_path),
                    binding: "JSONRPC",
                    version,
                });
            }
            if on && self.accepts.rest {
                interfaces.push(Interface {
                    url: base.clone(),
                    binding: "HTTP+JSON",
                    version,
                });
            }
        }
        Some(Public {
            interfaces,
            push: self.push,
        })
    }

    /// The public card (v1.0 8.2, 8.6).
    async fn card(&self, head: &Parts, asked: &Asked<'_>, peer: &Peer) -> Response<Reply> {
        let to = ReplyTo::new(match asked.said {
            Some(Version::V03) => Dialect::R03P,
            Some(Version::V10) | None => Dialect::R10,
        });
        let view = match (asked.said, self.accepts.v03, self.accepts.v10) {
            (_, true, false) => View::V03,
            (_, false, _) | (Some(Version::V10), ..) => View::V10,
            (Some(Version::V03) | None, ..) => View::Superset,
        };
        let rendered = self.render(head, asked, peer, view).await;
        let (text, max_age) = match rendered {
            Ok(rendered) => rendered,
            Err(fault) => return self.refuse(&to, &fault),
        };
        let mut response = Response::new(Reply::Empty);
        let fields = response.headers_mut();
        fields.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        fields.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
        let caching = match &self.public_url {
            Some(_) => format!("public, max-age={}", max_age.as_secs()),
            None => "no-store".to_owned(), // it names the host that this client used
        };
        if let Ok(caching) = HeaderValue::try_from(caching) {
            fields.insert(header::CACHE_CONTROL, caching);
        }
        let etag = etag_of(&text);
        let known = head.headers.get(header::IF_NONE_MATCH);
        let unchanged = known.is_some_and(|k| same_etag(k, &etag));
        fields.insert(header::ETAG, etag);
        if unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = Reply::whole(text);
        }
        response
    }

    async fn render(
        &self,
        head: &Parts,
        asked: &Asked<'_>,
        peer: &Peer,
        view: View,
    ) -> Result<(Vec<u8>, std::time::Duration), Fault> {
        let matched = &asked.matched;
        let public = self.public(head, matched, peer);
        let public = public.ok_or_else(|| Fault::params("the request's Host is not an address"))?;
        let mut paths = vec![routes::target(&matched.base, &self.backend.card_path)?];
        if !matches!(matched.base.as_str(), "" | "/") {
            paths.push(routes::target("", &self.backend.card_path)?); // by the rule of well-known paths
        }
        let place = card::Place {
            agent: matched.route.agent.clone(),
            key: format!("{:p} {}", Arc::as_ptr(&matched.route), matched.base),
            paths,
        };
        let card = self.cards.get(&place, &self.follow).await?;
        let text = std::str::from_utf8(&card.text).map_err(|e| Fault::answer(e.to_string()))?;
        let (text, lost) = answer::card(text, Some(&public), view, &self.options)?;
        log_losses(&lost, "card");
        Ok((text, card.max_age))
    }

    /// A fault in the client's words, and a line in the log for those that are not the client's own.
    fn refuse(&self, to: &ReplyTo, fault: &Fault) -> Response<Reply> {
        log_fault(to, fault);
        let Told {
            status,
            framing,
            body,
        } = to.fault(fault);
        let mut response = Response::new(Reply::whole(body));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        put_framing(fields, framing, "application/json");
        put_version(fields, to.dialect.shape.version());
        if let Some(seconds) = fault.retry_after {
            fields.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        for challenge in &fault.more.challenges {
            fields.append(header::WWW_AUTHENTICATE, challenge.clone());
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            fields.insert(
                header::ALLOW,
                HeaderValue::from_static("GET, HEAD, POST, DELETE, OPTIONS"),
            );
        }
        response
    }
}

fn unsupported(message: &'static str) -> Fault {
    Fault::new(Kind::ContentTypeNotSupported, message)
}

fn put_framing(fields: &mut HeaderMap, framing: Framing, json: &'static str) {
    match framing {
        Framing::Json => {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(json));
        }
        Framing::Events => {
            fields.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/event-stream"),
            );
            fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            fields.insert(
                HeaderName::from_static("x-accel-buffering"),
                HeaderValue::from_static("no"),
            );
        }
    }
}

fn put_version(fields: &mut HeaderMap, version: Version) {
    fields.insert(headers::VERSION, HeaderValue::from_static(version.name()));
}

fn wants_report(fields: &HeaderMap) -> bool {
    fields
        .get(forward::REPORT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"losses"))
}

/// Losses as one header value: percent-encoded paths, at most 2 KiB.
fn losses_value(lost: &[Loss]) -> Option<HeaderValue> {
    const LONGEST: usize = 2048;
    let mut text = String::new();
    for loss in lost {
        let path = crate::a2a::rest::segment(&loss.path()).to_string();
        if text.len() + path.len() + 1 > LONGEST {
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&path);
    }
    HeaderValue::try_from(text).ok().filter(|v| !v.is_empty())
}

fn log_losses(lost: &[Loss], of: &str) {
    for loss in lost {
        tracing::debug!(
            path = loss.label(),
            why = loss.why,
            of,
            "lost in translation"
        );
    }
}

fn log_fault(to: &ReplyTo, fault: &Fault) {
    use crate::a2a::fault::Blame;
    let op = to.op.map_or("unknown", Op::name);
    let (dialect, reason) = (to.dialect.name(), fault.kind.wire().reason);
    match fault.kind.wire().blame {
        Blame::Caller => tracing::debug!(op, dialect, reason, %fault, "refused"),
        Blame::Agent => {
            tracing::warn!(op, dialect, reason, %fault, "the agent failed a call; look at its log for this time");
        }
        Blame::Gateway => {
            tracing::warn!(op, dialect, reason, %fault, "the gateway could not serve a call; see limits and backend settings");
        }
    }
}

/// A strong tag of what is served, which differs from what the agent sent.
fn etag_of(text: &[u8]) -> HeaderValue {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    let tag = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"card\""))
}

fn same_etag(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(known), Ok(etag)) = (known.to_str(), etag.to_str()) else {
        return false;
    };
    known
        .split(',')
        .map(|k| k.trim().trim_start_matches("W/"))
        .any(|k| k == "*" || k == etag)
}

/// The agent's address of a request.
fn uri(path: http::uri::PathAndQuery) -> Uri {
    Uri::from(path)
}

type Work = Pin<Box<dyn Future<Output = Result<Response<Reply>, Fault>> + Send>>;

/// A call whose caller may leave: then it goes on among the followers of the server.
struct Followed<'f> {
    work: Option<Work>,
    follow: &'f Follow,
}

impl Future for Followed<'_> {
    type Output = Result<Response<Reply>, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending; // never polled after its end
        };
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        let kept = (self.follow)(Box::pin(async move {
            if let Err(fault) = work.await {
                tracing::debug!(%fault, "a send failed after its caller had left");
            }
        }));
        if !kept {
            tracing::warn!("a send was dropped after its caller left; raise limits.followers");
        }
    }
}

impl Inner {
    fn verb(&self) -> Method {
        if self.subscribe_by_get.load(Relaxed) {
            Method::GET
        } else {
            Method::POST
        }
    }
}
