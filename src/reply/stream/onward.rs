//! A stream whose client has left. Mostly it is closed; read on where nobody else could look after its task, and no longer
//! than the operator says: an agent that never ends must not keep a follower's room.
use std::{
    fmt::Display,
    future::poll_fn,
    task::{Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;

use super::Stream;
use crate::{
    a2a::{Fault, Kind},
    follow::Follow,
};

/// Where a stream goes on without a client.
#[derive(Clone)]
pub struct Onward {
    /// Who runs it.
    pub follow: Follow,
    /// To its end, for an agent that stops when nobody listens; else until its task is known.
    pub whole: bool,
    /// How long that may take.
    pub within: Duration,
}

impl<B> Stream<B>
where
    B: Body<Data = Bytes, Error: Display> + Unpin + Send + 'static,
{
    /// Its client has left.
    pub(in crate::reply) fn left(mut self: Box<Self>) {
        let Some(onward) = self.onward.clone().filter(|_| self.must_go_on()) else {
            return;
        };
        self.outlived = None; // nobody is told any more
        let (whole, within) = (onward.whole, onward.within);
        let kept = (onward.follow)(Box::pin(async move {
            if tokio::time::timeout(within, self.read_on()).await.is_err() {
                self.give_up(whole).await;
            }
        }));
        if !kept {
            tracing::warn!(
                "a stream was dropped before its task was known; raise limits.followers"
            );
        }
    }

    async fn read_on(&mut self) {
        poll_fn(|cx| {
            while self.must_go_on() {
                if ready!(self.poll(cx)).is_none() {
                    break;
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// It took too long. Its task may run on, and keeps its conversation.
    async fn give_up(&mut self, whole: bool) {
        if whole {
            tracing::warn!(
                "a stream whose client had left did not end within limits.followed and was closed; the agent is asked \
                 about its conversation when the next message comes"
            );
        } else {
            tracing::warn!(
                "a stream whose client had left told no task within limits.send and was closed; the agent is asked \
                 about its conversation when the next message comes"
            );
        }
        let words = "the agent did not end a stream whose client had left";
        let fault = Fault::new(Kind::BackendTimeout, words);
        self.record.failed(&fault);
        self.permit.failed(&fault, true).done().await;
    }

    fn must_go_on(&self) -> bool {
        let whole = self.onward.as_ref().is_some_and(|o| o.whole);
        let at_rest = self.permit.sends() && self.permit.is_settled();
        !self.ended && (!self.permit.can_be_left() || whole && !at_rest)
    }
}
