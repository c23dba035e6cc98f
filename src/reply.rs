//! The body of every answer. A stream is translated as it comes, inside the polling of its client: no task and
//! no channel, so that a slow client slows the agent, and one that goes away ends the agent's stream with it.
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

mod replay;
mod stream;

pub use replay::Reading;
pub use stream::{AskTask, Onward, Outlived, Speech, Stream};

use crate::agent;

/// The body of an answer.
#[derive(Default)]
pub enum Reply {
    /// Nothing (more).
    #[default]
    Empty,
    /// One document.
    Whole(Bytes),
    /// Events.
    Stream(Live),
}

impl Reply {
    /// One document; nothing if it is empty.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Self::Empty;
        }
        Self::Whole(bytes)
    }

    /// Events.
    pub fn stream(stream: Stream<agent::Body>) -> Self {
        Self::Stream(Live(Some(Box::new(stream))))
    }
}

/// A stream with its client. Dropped, it is left.
pub struct Live(Option<Box<Stream<agent::Body>>>);

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.left();
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Stream(Live(stream)) => match stream {
                Some(stream) => stream
                    .poll(cx)
                    .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
                None => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
