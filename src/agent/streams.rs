//! HTTP/2: several exchanges share a connection, so hyper runs each connection as a task of its own. We keep a
//! list of them, count the streams on each, and open another when all are full.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use super::connect::Dialer;
use super::error::{self, Error};
use super::link::Failed;
use super::replica::Replica;
use super::room::{Opened, locked};
use super::{SMALLEST_BUFFER, Settings, after};

/// Streams on one connection. Servers allow a hundred at least, as a rule.
pub(super) const STREAMS: usize = 100;

/// A connection that was silent for this long is asked whether it still lives. Otherwise a peer that vanished
/// without a word would be given every request until TCP gives up, a quarter of an hour later.
const PING: Duration = Duration::from_secs(20);

/// How long the answer to that may take.
const PONG: Duration = Duration::from_secs(10);

pub(super) struct Lines {
    open: Mutex<Vec<Line>>,
    /// Held while connecting: those who come meanwhile share the new connection.
    dialling: tokio::sync::Mutex<()>,
    builder: Builder<TokioExecutor>,
    connect: Duration,
}

struct Line {
    sender: SendRequest<Full<Bytes>>,
    load: Arc<Load>,
    last_used: Instant,
}

struct Load {
    streams: AtomicUsize,
    _opened: Opened,
}

/// One stream, counted until this is dropped.
pub(super) struct Ticket(Arc<Load>);

impl Ticket {
    fn new(load: &Arc<Load>) -> Self {
        load.streams.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(load))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream to send on, and whether its connection had served before.
struct Slot {
    sender: SendRequest<Full<Bytes>>,
    ticket: Ticket,
    reused: bool,
}

impl Lines {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .max_header_list_size(u32::try_from(settings.max_head).unwrap_or(u32::MAX))
            .max_send_buf_size(settings.max_head.max(SMALLEST_BUFFER));
        Self {
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
            builder,
            connect: settings.connect,
        }
    }

    /// Sends `request` and waits for the head of the response.
    pub(super) async fn exchange(
        &self,
        dialer: &Dialer,
        replica: &Replica,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Ticket), Failed> {
        let mut slot = match self.slot(dialer, replica, deadline).await {
            Ok(slot) => slot,
            Err(error) => {
                return Err(Failed::Undialled {
                    request: Box::new(request),
                    error,
                });
            }
        };
        let sent = slot.sender.try_send_request(request);
        let Ok(outcome) = tokio::time::timeout_at(deadline, sent).await else {
            return Err(Failed::Final(Error::Timeout { sent: true }));
        };
        let mut failure = match outcome {
            Ok(response) => return Ok((response, slot.ticket)),
            Err(failure) => failure,
        };
        let message = failure.take_message();
        let error = failure.into_error();
        let Some(request) = message else {
            return Err(Failed::broken(error, slot.reused));
        };
        // It takes no more; without this, the next attempt could pick it again, and again.
        locked(&self.open).retain(|line| !Arc::ptr_eq(&line.load, &slot.ticket.0));
        Err(Failed::Unsent {
            request: Box::new(request),
            reused: slot.reused,
            cause: error::chain(&error),
        })
    }

    pub(super) fn sweep(&self, idle: Duration) {
        locked(&self.open).retain(|line| {
            let busy = line.load.streams.load(Ordering::Relaxed) > 0;
            !line.sender.is_closed() && (busy || line.last_used.elapsed() < idle)
        });
    }

    async fn slot(
        &self,
        dialer: &Dialer,
        replica: &Replica,
        deadline: Instant,
    ) -> Result<Slot, Error> {
        if let Some(slot) = self.free() {
            return Ok(slot);
        }
        // Who waits behind another's attempt gets no more time than that one: it would fail in the same way.
        let patience = after(self.connect);
        let until = patience.min(deadline);
        let Ok(_turn) = tokio::time::timeout_at(until, self.dialling.lock()).await else {
            return Err(if deadline < patience {
                Error::Timeout { sent: false }
            } else {
                Error::Unreachable(format!("no connection within {:?}", self.connect))
            });
        };
        if let Some(slot) = self.free() {
            return Ok(slot);
        }
        let opened = replica.hall.open();
        let wire = dialer.dial(&replica.ways, deadline).await?;
        let (sender, connection) = self
            .builder
            .handshake(TokioIo::new(wire))
            .await
            .map_err(|error| Error::Unreachable(error::chain(&error)))?;
        TokioExecutor::new().execute(async move {
            // Its streams are told what went wrong; there is nobody else to tell.
            let _ = connection.await;
        });
        let load = Arc::new(Load {
            streams: AtomicUsize::new(0),
            _opened: opened,
        });
        let slot = Slot {
            sender: sender.clone(),
            ticket: Ticket::new(&load),
            reused: false,
        };
        locked(&self.open).push(Line {
            sender,
            load,
            last_used: Instant::now(),
        });
        Ok(slot)
    }

    /// A stream on the least loaded connection, unless all are full.
    fn free(&self) -> Option<Slot> {
        let mut lines = locked(&self.open);
        lines.retain(|line| !line.sender.is_closed());
        let line = lines
            .iter_mut()
            .min_by_key(|line| line.load.streams.load(Ordering::Relaxed))
            .filter(|line| line.load.streams.load(Ordering::Relaxed) < STREAMS)?;
        line.last_used = Instant::now();
        Some(Slot {
            sender: line.sender.clone(),
            ticket: Ticket::new(&line.load),
            reused: true,
        })
    }
}
