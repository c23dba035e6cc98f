//! How many calls a worker has under way, and how they take turns.
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

/// The calls that a worker has under way.
#[derive(Default)]
pub(super) struct UnderWay(AtomicUsize);

/// One of them, until it is dropped.
pub(super) struct One<'u>(&'u UnderWay);

impl UnderWay {
    pub(super) fn begin(&self) -> One<'_> {
        self.0.fetch_add(1, Relaxed);
        One(self)
    }

    /// Lets the calls that are ready now go before this one writes. So what many calls write leaves in one go: the
    /// first write wakes a sleeping peer, which costs as much as translating a kilobyte, and the others find it
    /// awake. A call that is alone has nobody to wait for.
    pub(super) async fn turn(&self) {
        let mut waited = self.0.load(Relaxed) < 2;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    #[test]
    fn only_a_call_that_has_company_waits_for_a_turn() {
        let mut cx = Context::from_waker(Waker::noop());
        let calls = UnderWay::default();
        let _first = calls.begin();
        assert!(pin!(calls.turn()).poll(&mut cx).is_ready());
        let second = calls.begin();
        let mut turn = pin!(calls.turn());
        assert!(turn.as_mut().poll(&mut cx).is_pending());
        assert!(turn.as_mut().poll(&mut cx).is_ready());
        drop(second);
        assert!(pin!(calls.turn()).poll(&mut cx).is_ready());
    }
}
