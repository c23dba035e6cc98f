//! The two that notice when a client leaves: [`Waiting`] before its answer is there, [`Recorded`] while the body is
//! handed out.
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};

use super::Record;

/// A call whose answer is not there yet. Dropped, its client has left.
#[derive(Default)]
pub struct Waiting(Record);

impl Waiting {
    pub(in crate::audit) const fn new(record: Record) -> Self {
        Self(record)
    }

    /// The record of the call.
    pub const fn record(&self) -> &Record {
        &self.0
    }

    /// The answer is there; `no_body` if none of its body is sent.
    pub fn answered<B: Body>(
        mut self,
        answer: Response<B>,
        no_body: bool,
    ) -> Response<Recorded<B>> {
        let record = std::mem::take(&mut self.0);
        let status = answer.status().as_u16();
        record.tell(|call, open| {
            call.status = Some(status);
            call.micros.answered = Some(open.micros());
        });
        answer.map(|body| Recorded {
            ended: no_body || body.is_end_stream(),
            body,
            record,
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.tell(|call, open| {
            call.left = true;
            call.heard.gone(open.micros());
        });
    }
}

/// The body of an answer, counted.
pub struct Recorded<B> {
    body: B,
    record: Record,
    /// All of it was handed out.
    ended: bool,
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> Body for Recorded<B> {
    type Data = Bytes;
    type Error = io::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        if this.record.is_on()
            && let Poll::Ready(frame) = &frame
        {
            if let Some(Ok(frame)) = frame
                && let Some(data) = frame.data_ref()
            {
                let bytes = data.len() as u64;
                this.record.tell(|call, _| {
                    call.bytes.to += bytes;
                    call.heard.answered(bytes);
                });
            }
            this.ended |= frame.is_none() || this.body.is_end_stream();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Recorded<B> {
    fn drop(&mut self) {
        let Some(open) = &mut self.record.0 else {
            return;
        };
        let now = open.micros();
        // Mostly it is the last that knows of the call, and looks at the clock for all.
        if let Some(only) = Arc::get_mut(open) {
            only.ended = Some(now);
        }
        self.record.tell(|call, _| {
            call.left |= !self.ended;
            call.heard.gone(now); // a follower may go on for long
        });
    }
}
