//! The body of an answer as hyper sees it: the service's own, and while it lives its call counts as in flight.

use std::io::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::state::{InFlight, Stream};

pin_project! {
    /// A body that is being served.
    #[derive(Debug)]
    pub(super) struct Served<B> {
        #[pin]
        body: B,
        call: InFlight,
        stream: Option<Arc<Stream>>,
        bare: bool,
    }
}

impl<B> Served<B> {
    /// `bare` answers have a head only, whatever their body holds.
    pub(super) fn new(body: B, call: InFlight, stream: Option<Arc<Stream>>, bare: bool) -> Self {
        Self {
            body,
            call,
            stream,
            bare,
        }
    }
}

impl<B: Body<Data = Bytes, Error = Error>> Body for Served<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.project();
        if *this.bare {
            return Poll::Ready(None);
        }
        let Some(stream) = this.stream else {
            return this.body.poll_frame(cx);
        };
        stream.asked();
        let frame = ready!(this.body.poll_frame(cx));
        if frame.is_some() {
            stream.gave();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.bare || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
