//! The body of the agent's answer. It drives the connection that it comes over, and gives it back at a clean
//! end. Dropped before that, it closes the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::error::Error;
use super::link::Link;
use super::room::Pool;
use super::streams::Ticket;
use super::trip::Ride;
use super::{after, coding};

/// What the body comes over.
pub(super) enum Source {
    /// A connection of its own, and where that goes afterwards.
    Link(Box<Link>, Arc<Pool>),
    /// A stream of a shared one.
    Stream(#[expect(dead_code, reason = "held for its drop")] Ticket),
    /// Nothing more: it has ended or broken.
    Done,
}

/// The body of an answer, as it arrives.
pub struct Body {
    source: Source,
    incoming: Incoming,
    /// Given back after the connection, so that who waits for it finds the connection.
    permit: Option<OwnedSemaphorePermit>,
    /// Where it comes from, of several addresses: given back with the permit.
    ride: Option<Box<Ride>>,
}

impl Body {
    pub(super) fn new(
        incoming: Incoming,
        source: Source,
        permit: Option<OwnedSemaphorePermit>,
        ride: Option<Box<Ride>>,
    ) -> Self {
        let mut body = Self {
            source,
            incoming,
            permit,
            ride,
        };
        if body.incoming.is_end_stream() {
            body.finish();
        }
        body
    }

    /// The whole body, at most `limit` bytes before and after decoding, within `deadline` from now.
    /// `encoding` is the answer's `Content-Encoding`; `room` is asked before more bytes are held.
    pub async fn collect(
        mut self,
        encoding: Option<&HeaderValue>,
        limit: usize,
        deadline: Duration,
        mut room: impl FnMut(usize) -> bool,
    ) -> Result<Bytes, Error> {
        let announced = self.size_hint().lower();
        if usize::try_from(announced).is_ok_and(|announced| announced > limit) {
            return Err(Error::TooLarge("answer"));
        }
        let mut gathered = Gathered::default();
        // Mostly the body came together with the head: then no timer is needed.
        let at_once = std::future::poll_fn(|cx| {
            Poll::Ready(self.poll_gather(cx, &mut gathered, limit, &mut room))
        });
        let whole = match at_once.await {
            Poll::Ready(whole) => whole,
            Poll::Pending => {
                let rest = std::future::poll_fn(|cx| {
                    self.poll_gather(cx, &mut gathered, limit, &mut room)
                });
                tokio::time::timeout_at(after(deadline), rest)
                    .await
                    .map_err(|_| Error::Timeout { sent: true })?
            }
        };
        whole?;
        coding::decode(gathered.whole(), encoding, limit)
    }

    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        gathered: &mut Gathered,
        limit: usize,
        room: &mut impl FnMut(usize) -> bool,
    ) -> Poll<Result<(), Error>> {
        while let Some(frame) = ready!(Pin::new(&mut *self).poll_frame(cx)?) {
            // Trailers say nothing that anybody here wants to know.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if gathered.len() + data.len() > limit {
                return Poll::Ready(Err(Error::TooLarge("answer")));
            }
            if !room(data.len()) {
                return Poll::Ready(Err(Error::NoRoom));
            }
            gathered.add(data, self.size_hint().lower());
        }
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self) {
        match std::mem::replace(&mut self.source, Source::Done) {
            Source::Link(link, pool) => pool.put(link),
            Source::Stream(_) | Source::Done => {}
        }
        self.leave();
    }

    fn leave(&mut self) {
        self.permit = None;
        if let Some(ride) = &mut self.ride {
            ride.end();
        }
    }

    /// The address that it comes from, where there are several.
    pub(super) fn replica(&self) -> Option<u64> {
        self.ride.as_ref().map(|ride| ride.replica())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let frame = match &mut this.source {
            Source::Link(link, _) => ready!(link.poll_frame(&mut this.incoming, cx)),
            Source::Stream(_) => ready!(Pin::new(&mut this.incoming).poll_frame(cx))
                .map(|frame| frame.map_err(Error::from)),
            Source::Done => return Poll::Ready(None),
        };
        match &frame {
            Some(Ok(_)) if !this.incoming.is_end_stream() => {}
            Some(Ok(_)) | None => this.finish(),
            Some(Err(_)) => {
                this.source = Source::Done;
                this.leave();
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.source, Source::Done)
    }

    fn size_hint(&self) -> SizeHint {
        match self.source {
            Source::Done => SizeHint::with_exact(0),
            Source::Link(..) | Source::Stream(_) => self.incoming.size_hint(),
        }
    }
}

/// The parts of a body; a single part is handed on as it is.
#[derive(Default)]
struct Gathered {
    first: Bytes,
    joined: BytesMut,
}

impl Gathered {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    /// `rest` is how much is known to follow. The caller has compared the announced length with its limit.
    fn add(&mut self, data: Bytes, rest: u64) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.joined.is_empty() {
            let rest = usize::try_from(rest).unwrap_or(0);
            self.joined = BytesMut::with_capacity(self.first.len() + data.len() + rest);
            self.joined
                .extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&data);
    }

    fn whole(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}
