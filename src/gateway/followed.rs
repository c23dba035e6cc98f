//! A call whose caller may leave before its answer: what is out is followed to its end (decision 53).
use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::Response;

use crate::{a2a::Fault, follow::Follow, reply::Reply};

pub(super) type Work = Pin<Box<dyn Future<Output = Result<Response<Reply>, Fault>> + Send>>;

/// A call whose caller may leave: then it goes on among the followers of the server.
pub(super) struct Followed<'f> {
    work: Option<Work>,
    follow: &'f Follow,
}

impl<'f> Followed<'f> {
    pub(super) fn new(work: Work, follow: &'f Follow) -> Self {
        Self {
            work: Some(work),
            follow,
        }
    }
}

impl Future for Followed<'_> {
    type Output = Result<Response<Reply>, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending; // never polled after its end
        };
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        let kept = (self.follow)(Box::pin(async move {
            if let Err(fault) = work.await {
                tracing::debug!(%fault, "a send failed after its caller had left");
            }
        }));
        if !kept {
            tracing::warn!("a send was dropped after its caller left; raise limits.followers");
        }
    }
}
