//! A stream whose client has left. Mostly it is closed; read on where nobody else could look after its task.
use std::{
    future::poll_fn,
    task::{Poll, ready},
    time::Duration,
};

use super::Stream;
use crate::{agent, follow::Follow};

/// Where a stream goes on without a client.
#[derive(Clone)]
pub struct Onward {
    /// Who runs it.
    pub follow: Follow,
    /// To its end, for an agent that stops when nobody listens; else until its task is known.
    pub whole: bool,
    /// How long its task may take to be known.
    pub within: Duration,
}

impl Stream<agent::Body> {
    /// Its client has left.
    pub(in crate::reply) fn left(mut self: Box<Self>) {
        let Some(onward) = self.onward.clone().filter(|_| self.must_go_on()) else {
            return;
        };
        self.outlived = None; // nobody is told any more
        let whole = onward.whole;
        let within = onward.within;
        let read = poll_fn(move |cx| {
            while self.must_go_on() {
                if ready!(self.poll(cx)).is_none() {
                    break;
                }
            }
            Poll::Ready(())
        });
        let kept = (onward.follow)(Box::pin(async move {
            if whole {
                return read.await; // as long as the agent is not silent for too long
            }
            if tokio::time::timeout(within, read).await.is_err() {
                tracing::warn!(
                    "a stream whose client had left told no task within limits.send and was closed; the agent is \
                     asked about its conversation when the next message comes"
                );
            }
        }));
        if !kept {
            tracing::warn!(
                "a stream was dropped before its task was known; raise limits.followers"
            );
        }
    }

    fn must_go_on(&self) -> bool {
        let whole = self.onward.as_ref().is_some_and(|o| o.whole);
        let at_rest = self.permit.sends() && self.permit.is_settled();
        !self.ended && (!self.permit.can_be_left() || whole && !at_rest)
    }
}
