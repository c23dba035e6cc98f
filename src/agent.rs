//! The connection to the agent. It knows HTTP and nothing of A2A.
//!
//! An HTTP/1.1 exchange owns its connection and polls it whenever it needs bytes: no task runs beside it,
//! nothing is scheduled between two chunks, and dropping the exchange closes the connection. That is also how
//! a client's hang-up ends the work at the agent. After a clean end the connection waits in a pool for the
//! next exchange. HTTP/2 shares connections between exchanges, so there (and only there) hyper runs tasks.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

mod body;
mod coding;
mod connect;
mod error;
mod gate;
mod link;
mod origin;
mod room;
mod streams;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use error::{BadSettings, Error};
pub use origin::Origin;
pub use room::Room;

use body::Source;
use connect::Dialer;
use link::{Failed, Link};
use room::Pool;
use streams::Lines;

/// Fresh connections that may turn out closed before anything was written, in one exchange. An agent that
/// accepts and closes at once would otherwise keep us dialling until the deadline.
const FRESH_TRIES: usize = 2;

/// What hyper's parser takes on the stack; another number costs an allocation for each response.
const PARSER_HEADERS: usize = 100;

/// hyper panics below this.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// Where the agent is reached and how patiently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Scheme, host and port of the agent.
    pub origin: Origin,
    /// Whether to speak HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
    /// How many connections all workers together keep. Over HTTP/2 it bounds the streams, at a hundred each.
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
    /// More certificates to trust, in PEM, besides the system's.
    pub ca_file: Option<PathBuf>,
}

impl Settings {
    /// The usual patience, for the agent at `origin`.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            http2: false,
            max_connections: 1024,
            wait: Duration::from_secs(5),
            connect: Duration::from_secs(5),
            idle: Duration::from_mins(1),
            max_head: 64 * 1024,
            max_headers: PARSER_HEADERS,
            ca_file: None,
        }
    }
}

/// One worker's way to the agent. Belongs to the runtime that it is used on.
pub struct Agent {
    settings: Settings,
    room: Room,
    dialer: Dialer,
    builder: http1::Builder,
    pool: Arc<Pool>,
    lines: Lines,
}

impl Agent {
    /// Prepares to reach the agent; connects only when something is sent.
    pub fn new(settings: &Settings, room: Room) -> Result<Self, BadSettings> {
        let pool = Arc::new(Pool::default());
        room.join(&pool);
        let mut builder = http1::Builder::new();
        builder
            .max_header_size(settings.max_head)
            .max_buf_size(settings.max_head.max(SMALLEST_BUFFER));
        if settings.max_headers != PARSER_HEADERS {
            builder.max_headers(settings.max_headers);
        }
        Ok(Self {
            dialer: Dialer::new(settings)?,
            lines: Lines::new(settings),
            settings: settings.clone(),
            room,
            builder,
            pool,
        })
    }

    /// Sends `request` and waits until `deadline` for the head of the answer.
    ///
    /// `request.uri` is path and query only; `Host` is set when absent. `again` says that nothing happens
    /// twice if this is sent twice: then one retry on a broken connection is allowed. Anything else is sent
    /// again only when it is certain that nothing of it was written.
    pub fn send(
        &self,
        request: Request<Bytes>,
        deadline: Duration,
        again: bool,
    ) -> impl Future<Output = Result<Response<Body>, Error>> + Send {
        let deadline = after(deadline);
        let request = self.address(request).map(Box::new);
        async move {
            let mut request = request?;
            let permit = self.room.enter(self.settings.wait, deadline).await?;
            let mut spare = again.then(|| request.clone());
            let mut reuse = true;
            let mut fresh = 0;
            loop {
                let failed = match self.attempt(request, reuse, deadline).await {
                    Ok((response, _)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                        return Err(Error::broken("the agent switched protocols unasked"));
                    }
                    Ok((response, source)) => {
                        return Ok(response.map(|incoming| Body::new(incoming, source, permit)));
                    }
                    Err(failed) => failed,
                };
                request = match failed {
                    Failed::Unsent {
                        request, reused, ..
                    } if reused || fresh + 1 < FRESH_TRIES => {
                        fresh += usize::from(!reused);
                        request
                    }
                    Failed::Unsent { cause, .. } => {
                        return Err(Error::Broken { sent: false, cause });
                    }
                    Failed::Broken(error) => match spare.take() {
                        // Where one idle connection broke, its neighbours have likely gone as well.
                        Some(copy) => {
                            reuse = false;
                            copy
                        }
                        None => return Err(error),
                    },
                    Failed::Final(error) => return Err(error),
                };
            }
        }
    }

    /// Whether it is what would be made of these.
    pub fn is(&self, settings: &Settings, room: &Room) -> bool {
        self.settings == *settings && self.room.is(room)
    }

    /// Drops connections that were idle for too long or that the agent has closed; to be called now and then.
    pub fn sweep(&self) {
        self.pool.sweep(self.settings.idle);
        self.lines.sweep(self.settings.idle);
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

    async fn attempt(
        &self,
        request: Box<Request<Full<Bytes>>>,
        reuse: bool,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Source), Failed> {
        if self.settings.http2 {
            // Boxed, as dialling is below: what is rare must not make every call's future large.
            let exchange = self
                .lines
                .exchange(&self.dialer, &self.room, *request, deadline);
            let (response, ticket) = Box::pin(exchange).await?;
            return Ok((response, Source::Stream(ticket)));
        }
        let pooled = if reuse {
            self.pool.take(self.settings.idle)
        } else {
            None
        };
        let mut link = match pooled {
            Some(link) => link,
            None => Box::pin(self.open(deadline)).await.map_err(Failed::Final)?,
        };
        let sent = pin!(link.send(*request));
        let response = link.response(sent, deadline).await?;
        Ok((response, Source::Link(link, Arc::clone(&self.pool))))
    }

    async fn open(&self, deadline: Instant) -> Result<Box<Link>, Error> {
        let opened = self.room.open();
        let wire = self.dialer.dial(deadline).await?;
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
