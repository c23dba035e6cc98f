//! One HTTP/1.1 connection with both of its ends: what sends a request, and what moves bytes. Nothing moves
//! unless somebody polls; who waits for an answer or for a chunk polls the connection meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep};

use super::connect::Wire;
use super::error::{self, Error};
use super::gate::Gate;
use super::room::Opened;
use crate::tls;

/// Why an exchange gave no response, by what may be done about it.
pub(super) enum Failed {
    /// Nothing was written; here is the request back.
    Unsent {
        request: Box<Request<Full<Bytes>>>,
        /// Whether the connection had served before.
        reused: bool,
        cause: String,
    },
    /// No connection came about; here is the request back.
    Undialled {
        request: Box<Request<Full<Bytes>>>,
        error: Error,
    },
    /// The connection broke with the request on its way.
    Broken {
        error: Error,
        /// Whether it had served before.
        reused: bool,
    },
    /// Trying again would not help.
    Final(Error),
}

impl Failed {
    /// The connection broke while an answer was waited for. An agent that has refused our certificate has read nothing.
    pub(super) fn broken(by: hyper::Error, reused: bool) -> Self {
        match tls::refusal(&by) {
            Some(advice) => Self::Final(Error::Unreachable(format!(
                "{}; {advice}",
                error::chain(&by)
            ))),
            None => Self::Broken {
                error: by.into(),
                reused,
            },
        }
    }
}

/// The head of a response, or why there is none, perhaps with the request.
type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has finished, whatever the reason: a finished future must not be polled, and dropping
    /// it makes hyper hand back what it still held.
    connection: Option<Connection<TokioIo<Wire>, Full<Bytes>>>,
    gate: Arc<Gate>,
    waker: Waker,
    /// Rings at the deadline of this exchange or of an earlier one. Deadlines mostly move onwards, so it is
    /// set again when it rings too early, not for each exchange.
    timer: Option<Pin<Box<Sleep>>>,
    used: bool,
    idle_since: Instant,
    _opened: Opened,
}

impl Link {
    pub(super) fn new(
        sender: SendRequest<Full<Bytes>>,
        connection: Connection<TokioIo<Wire>, Full<Bytes>>,
        opened: Opened,
    ) -> Self {
        let gate = Arc::new(Gate::default());
        Self {
            sender,
            connection: Some(connection),
            waker: Waker::from(Arc::clone(&gate)),
            gate,
            timer: None,
            used: false,
            idle_since: Instant::now(),
            _opened: opened,
        }
    }

    /// Hands `request` over; what comes of it is for `response`. Apart, so that no future holds the request twice.
    pub(super) fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Sent> + use<> {
        self.sender.try_send_request(request)
    }

    /// Waits for the head of the response.
    pub(super) async fn response(
        &mut self,
        mut sent: Pin<&mut impl Future<Output = Sent>>,
        deadline: Instant,
    ) -> Result<Response<Incoming>, Failed> {
        let reused = std::mem::replace(&mut self.used, true);
        let outcome =
            std::future::poll_fn(|cx| self.drive(cx, Some(deadline), |cx| sent.as_mut().poll(cx)))
                .await;
        let mut failure = match outcome {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(failure)) => failure,
            Err(error) => return Err(Failed::Final(error)),
        };
        let message = failure.take_message();
        let error = failure.into_error();
        Err(match message {
            Some(request) => Failed::Unsent {
                request: Box::new(request),
                reused,
                cause: error::chain(&error),
            },
            // It came whole, but it was not HTTP: the next answer would be no better.
            None if error.is_parse() => Failed::Final(error.into()),
            None => Failed::broken(error, reused),
        })
    }

    /// The next part of the response body.
    pub(super) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Error>>> {
        self.drive(cx, None, |cx| {
            http_body::Body::poll_frame(Pin::new(&mut *incoming), cx)
        })
        .map(|outcome| match outcome {
            Ok(frame) => frame.map(|frame| frame.map_err(Error::from)),
            Err(error) => Some(Err(error)),
        })
    }

    /// Polls `end`, a receiving end inside hyper, and when nothing is there yet the connection, unless that has
    /// nothing to do either.
    fn drive<T>(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Option<Instant>,
        mut end: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Error>> {
        // Only the connection feeds that end, and only we poll the connection: it needs no waker.
        let mut still = Context::from_waker(Waker::noop());
        self.gate.enter(cx.waker());
        let mut outcome = end(&mut still);
        if outcome.is_pending() && self.connection.is_some() && self.gate.stirred() {
            self.gate.hush();
            self.advance();
            outcome = end(&mut still);
        }
        if let Poll::Ready(outcome) = outcome {
            self.gate.leave();
            return Poll::Ready(Ok(outcome));
        }
        let late = deadline.is_some_and(|deadline| self.expired(deadline));
        let rung = self.gate.leave();
        if late {
            return Poll::Ready(Err(Error::Timeout { sent: true }));
        }
        if self.connection.is_none() {
            // hyper resolves all ends when a connection goes; were it not so, nothing would wake us.
            return Poll::Ready(Err(Error::broken("it ended without a word")));
        }
        if rung {
            // The connection asked for another turn: it yields after much work.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn advance(&mut self) {
        let mut cx = Context::from_waker(&self.waker);
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(&mut cx).is_ready()
        {
            // Its error, if any, goes to the waiting end.
            self.connection = None;
        }
    }

    fn expired(&mut self, deadline: Instant) -> bool {
        let mut cx = Context::from_waker(&self.waker);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(&mut cx).is_ready() {
            if Instant::now() >= deadline {
                return true;
            }
            timer.as_mut().reset(deadline);
        }
        false
    }

    /// Whether it can serve another exchange at once. Called after a response has ended: the connection may
    /// need one more turn to see that.
    pub(super) fn settle(&mut self) -> bool {
        self.gate.rest();
        if !self.sender.is_ready() {
            self.advance();
        }
        self.idle_since = Instant::now();
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Whether an idle link is still good: the agent may have closed it, or said something unasked.
    pub(super) fn alive(&mut self) -> bool {
        self.advance();
        self.connection.is_some() && self.sender.is_ready()
    }

    pub(super) fn idle_since(&self) -> Instant {
        self.idle_since
    }
}
