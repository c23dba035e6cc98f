//! The connection to the agent. It knows HTTP and nothing of A2A.
//!
//! An HTTP/1.1 exchange owns its connection and polls it whenever it needs bytes: no task runs beside it,
//! nothing is scheduled between two chunks, and dropping the exchange closes the connection. That is also how
//! a client's hang-up ends the work at the agent. After a clean end the connection waits in a pool for the
//! next exchange. HTTP/2 shares connections between exchanges, so there (and only there) hyper runs tasks.

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

mod allowance;
mod balance;
mod body;
mod branch;
mod breaker;
mod coding;
mod connect;
mod error;
mod gate;
mod health;
mod link;
mod names;
mod origin;
mod replica;
mod room;
mod status;
mod streams;
#[cfg(test)]
mod tests;
mod trip;

pub use allowance::Settings as Repeats;
pub use body::Body;
pub use breaker::Settings as Breaking;
pub use error::{BadSettings, Error};
pub use health::Check;
pub use names::{Answer, Lookup, Place, Resolver};
pub use origin::Origin;
pub use room::{Homing, Room, Whose};
pub use status::{Address, Breaker, Status};

use body::Source;
use branch::{Branch, Branches, List};
use connect::Dialer;
use link::{Failed, Link};
use replica::Replica;

use crate::tls;

/// What hyper's parser takes on the stack; another number costs an allocation for each response.
const PARSER_HEADERS: usize = 100;

/// hyper panics below this.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// Where the agent is reached and how patiently.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Scheme, host and port of the agent.
    pub origin: Origin,
    /// Whether to speak HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
    /// Where it is, if that is not what the origin names: each is a machine of the one agent.
    pub addresses: Vec<Place>,
    /// How often names are looked up again.
    pub resolve: Duration,
    /// Who looks them up.
    pub lookup: Lookup,
    /// Whether a conversation stays with one address.
    pub affinity: bool,
    /// When an address is left alone.
    pub breaker: Breaking,
    /// How much may be sent again.
    pub retries: Repeats,
    /// How addresses are asked how they are, if they are.
    pub check: Option<Check>,
    /// How many connections all workers together keep to each address. Over HTTP/2 it bounds the streams, at a
    /// hundred each.
    pub max_connections: usize,
    /// How long a request waits for one of them.
    pub wait: Duration,
    /// How long name resolution, TCP and TLS may take together.
    pub connect: Duration,
    /// How long an unused connection stays usable.
    pub idle: Duration,
    /// The largest head of a response, in bytes.
    pub max_head: usize,
    /// The most header fields in a response.
    pub max_headers: usize,
    /// Whom to trust and what to show by TLS; without it, whom the system trusts, and nothing.
    pub tls: Option<tls::Client>,
    /// The name that its certificate has to have, where it is not its host's.
    pub server_name: Option<String>,
    /// The socket in the file system by which it is reached, whatever its host is.
    pub socket: Option<PathBuf>,
}

impl Settings {
    /// The usual patience, for the agent at `origin`.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            http2: false,
            addresses: Vec::new(),
            resolve: Duration::from_secs(30),
            lookup: Lookup::System,
            affinity: true,
            breaker: Breaking::default(),
            retries: Repeats::default(),
            check: None,
            max_connections: 1024,
            wait: Duration::from_secs(5),
            connect: Duration::from_secs(5),
            idle: Duration::from_mins(1),
            max_head: 64 * 1024,
            max_headers: PARSER_HEADERS,
            tls: None,
            server_name: None,
            socket: None,
        }
    }
}

/// One worker's way to the agent. Belongs to the runtime that it is used on.
pub struct Agent {
    settings: Settings,
    room: Room,
    dialer: Dialer,
    builder: http1::Builder,
    branches: Branches,
    /// Calls that the room has not been told of.
    calls: AtomicU32,
}

impl Agent {
    /// Prepares to reach the agent; connects only when something is sent.
    pub fn new(settings: &Settings, room: Room) -> Result<Self, BadSettings> {
        let mut builder = http1::Builder::new();
        builder
            .max_header_size(settings.max_head)
            .max_buf_size(settings.max_head.max(SMALLEST_BUFFER));
        if settings.max_headers != PARSER_HEADERS {
            builder.max_headers(settings.max_headers);
        }
        Ok(Self {
            dialer: Dialer::new(settings)?,
            branches: Branches::new(&room, settings),
            settings: settings.clone(),
            room,
            builder,
            calls: AtomicU32::new(0),
        })
    }

    /// Sends `request` and waits until `deadline` for the head of the answer.
    ///
    /// `request.uri` is path and query only; `Host` is set when absent. `again` says that nothing happens
    /// twice if this is sent twice: then it may be, on a broken connection. Anything else is sent again only when it
    /// is certain that nothing of it was written.
    pub fn send(
        &self,
        request: Request<Bytes>,
        deadline: Duration,
        again: bool,
    ) -> impl Future<Output = Result<Response<Body>, Error>> + Send {
        self.send_for(Whose::default(), request, deadline, again)
    }

    /// The same for a call of a conversation, which has one of several addresses for its own.
    pub fn send_for(
        &self,
        whose: Whose,
        request: Request<Bytes>,
        deadline: Duration,
        again: bool,
    ) -> impl Future<Output = Result<Response<Body>, Error>> + Send {
        let deadline = after(deadline);
        let request = self.address(request).map(Box::new);
        self.calls.fetch_add(1, Ordering::Relaxed);
        let trip = self.set_out(whose);
        async move {
            let (mut request, mut trip) = (request?, trip?);
            trip.enter(self.settings.wait, deadline).await?;
            let mut spare = again.then(|| request.clone());
            loop {
                let attempt = self.attempt(&trip.branch, request, trip.reuse, deadline);
                let failed = match attempt.await {
                    Ok((response, _)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                        Failed::Final(Error::broken("the agent switched protocols unasked"))
                    }
                    Ok((response, source)) => {
                        let (permit, ride) = trip.answered(response.status());
                        return Ok(response.map(|body| Body::new(body, source, permit, ride)));
                    }
                    Err(failed) => failed,
                };
                // Boxed: what is rare must not make every call's future large.
                let turn = self.turn(&mut trip, failed, &mut spare, again, deadline);
                request = Box::pin(turn).await?;
            }
        }
    }

    /// Whose call it is, by the ids that it names.
    pub fn whose(&self, context: Option<&str>, task: Option<&str>) -> Whose {
        self.room.whose(context, task)
    }

    /// Who is to be told the ids in this answer, so that its conversation stays where it is; nobody where there is but
    /// one address.
    pub fn homing(&self, answer: &Body) -> Option<Homing> {
        self.room.homing(answer.replica()?)
    }

    /// Whether it is what would be made of these.
    pub fn is(&self, settings: &Settings, room: &Room) -> bool {
        self.settings == *settings && self.room.is(room)
    }

    /// Drops connections that were idle for too long or that the agent has closed; to be called now and then.
    pub fn sweep(&self) {
        self.branches
            .sweep(&self.room, &self.settings, self.settings.idle);
        self.room.sent(self.calls.swap(0, Ordering::Relaxed));
    }

    /// What is to be done beside the calls at this moment, if anything is: names looked up, addresses asked how they
    /// are. To be called as often as `sweep`, by every worker; one of them is given the work.
    pub fn chore(self: &Arc<Self>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let look = self.room.is_to_look();
        let checks = self.to_check();
        if !look && checks.is_empty() {
            return None;
        }
        let agent = Arc::clone(self);
        Some(Box::pin(async move {
            let checks = checks.into_iter().map(|branch| agent.check(branch));
            let looks = async {
                if look {
                    agent.room.look().await;
                }
            };
            futures_util::future::join(looks, futures_util::future::join_all(checks)).await;
        }))
    }

    /// The request as it goes on the wire. Its framing is ours: a length said by someone else could differ
    /// from the body and smuggle a second request.
    fn address(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, Error> {
        let (mut head, body) = request.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        head.headers.remove(TRANSFER_ENCODING);
        if body.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(&head.method) {
            head.headers
                .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        if self.settings.http2 {
            head.version = Version::HTTP_2;
            let host = head.headers.remove(HOST);
            let mut uri = std::mem::take(&mut head.uri).into_parts();
            uri.scheme = Some(self.settings.origin.scheme());
            uri.authority = Some(match host {
                Some(host) => host.as_bytes().try_into().map_err(Error::unsendable)?,
                None => self.settings.origin.authority().clone(),
            });
            head.uri = Uri::from_parts(uri).map_err(Error::unsendable)?;
        } else {
            head.version = Version::HTTP_11;
            head.headers
                .entry(HOST)
                .or_insert_with(|| self.settings.origin.host_header().clone());
        }
        Ok(Request::from_parts(head, Full::new(body)))
    }

    fn list(&self) -> List {
        self.branches.list(&self.room, &self.settings)
    }

    async fn attempt(
        &self,
        branch: &Branch,
        request: Box<Request<Full<Bytes>>>,
        reuse: bool,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Source), Failed> {
        if self.settings.http2 {
            // Boxed, as dialling is below: what is rare must not make every call's future large.
            let lines = &branch.lines;
            let exchange = lines.exchange(&self.dialer, &branch.replica, *request, deadline);
            let (response, ticket) = Box::pin(exchange).await?;
            return Ok((response, Source::Stream(ticket)));
        }
        let pooled = if reuse {
            branch.pool.take(self.settings.idle)
        } else {
            None
        };
        let mut link = match pooled {
            Some(link) => link,
            None => match Box::pin(self.open(&branch.replica, deadline)).await {
                Ok(link) => link,
                Err(error) => return Err(Failed::Undialled { request, error }),
            },
        };
        let sent = pin!(link.send(*request));
        let response = link.response(sent, deadline).await?;
        Ok((response, Source::Link(link, Arc::clone(&branch.pool))))
    }

    async fn open(&self, replica: &Replica, deadline: Instant) -> Result<Box<Link>, Error> {
        let opened = replica.hall.open();
        let wire = self.dialer.dial(&replica.ways, deadline).await?;
        // Neither waits nor writes: it only pairs the halves.
        let (sender, connection) = self
            .builder
            .handshake(TokioIo::new(wire))
            .await
            .map_err(|error| Error::Unreachable(error::chain(&error)))?;
        Ok(Box::new(Link::new(sender, connection, opened)))
    }
}

/// That long from now. Settings may say "for ever" with a number that no clock holds.
fn after(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    Instant::now() + time.min(YEAR)
}
