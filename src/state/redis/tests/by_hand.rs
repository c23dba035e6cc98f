//! A store whose task is polled by a test's own hand, over a way that the test can break between two commands.
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
};

use parking_lot::Mutex;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::sync::Notify;

use super::super::{Address, Redis, Settings, Shared, task::Task};

/// What becomes of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Line {
    #[default]
    Open,
    /// There is no connection.
    Cut,
    /// They are lost, and nobody knows.
    Deaf,
    /// They are done, and their answers are lost.
    Mute,
    /// The next one is done, and the connection breaks before its answer.
    Breaks,
}

/// The way to the server.
#[derive(Default)]
pub(crate) struct Way {
    now: Mutex<Now>,
    changed: Notify,
}

#[derive(Default)]
struct Now {
    line: Line,
    /// Connections that ended.
    cuts: u64,
    /// Commands and attempts to connect that are on their way.
    flying: usize,
    /// Those of them that wait for nothing but their deadline.
    lost: usize,
}

impl Way {
    pub(crate) fn line(&self) -> Line {
        self.now.lock().line
    }

    pub(crate) fn becomes(&self, line: Line) {
        let mut now = self.now.lock();
        now.line = line;
        now.cuts += u64::from(line == Line::Cut);
        drop(now);
        self.changed.notify_waiters();
    }

    /// Whether nothing is on its way that may still arrive.
    fn is_idle(&self) -> bool {
        let now = self.now.lock();
        now.flying == now.lost
    }

    /// The connection that is there now.
    pub(in super::super) fn cuts(&self) -> u64 {
        self.now.lock().cuts
    }

    /// What is asked over that connection.
    pub(in super::super) async fn pass<T>(
        &self,
        of: u64,
        said: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let _flies = Counted::new(self, |now| &mut now.flying);
        if self.line() == Line::Deaf {
            return self.lost(of).await;
        }
        if self.line() == Line::Cut || self.cuts() != of {
            return Err(broken());
        }
        let said = said.await;
        match self.line() {
            _ if self.cuts() != of => Err(broken()),
            Line::Cut => Err(broken()),
            Line::Mute => self.lost(of).await,
            Line::Breaks => {
                self.becomes(Line::Cut);
                Err(broken())
            }
            Line::Open | Line::Deaf => said,
        }
    }

    /// Until its deadline, or the connection's end.
    async fn lost<T>(&self, of: u64) -> RedisResult<T> {
        let _lost = Counted::new(self, |now| &mut now.lost);
        loop {
            let changed = self.changed.notified();
            if self.cuts() != of {
                return Err(broken());
            }
            changed.await;
        }
    }
}

fn broken() -> RedisError {
    (ErrorKind::Io, "the test has cut it").into()
}

/// Counts as long as it is there.
struct Counted<'w>(&'w Way, fn(&mut Now) -> &mut usize);

impl<'w> Counted<'w> {
    fn new(way: &'w Way, what: fn(&mut Now) -> &mut usize) -> Self {
        *what(&mut way.now.lock()) += 1;
        Self(way, what)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.1(&mut self.0.now.lock()) -= 1;
    }
}

/// A store's task. Dropping it is the death of its gateway.
pub(crate) struct ByHand {
    runs: Pin<Box<dyn Future<Output = ()>>>,
    shared: Arc<Shared>,
    way: Arc<Way>,
}

impl Redis {
    /// The store, and its task: nothing happens but when that is polled.
    pub(crate) fn by_hand(url: &str, way: &Arc<Way>, settings: Settings) -> (Self, ByHand) {
        let address = Address::parse(url).unwrap().over(Arc::clone(way));
        let (store, asked, _) = Self::apart(&settings, 0);
        let shared = Arc::clone(&store.shared);
        let task = Task::new(settings, address, Arc::clone(&shared), asked);
        let by_hand = ByHand {
            runs: Box::pin(task.run()),
            shared,
            way: Arc::clone(way),
        };
        (store, by_hand)
    }
}

impl ByHand {
    /// Lets it do what it can, with the store's clock so far ahead. True if it waits for nothing but time and its
    /// gateway.
    pub(crate) fn is_at_rest(&mut self, shift: u64, cx: &mut Context<'_>) -> bool {
        self.shared.shift.store(shift, Relaxed);
        assert_eq!(self.runs.as_mut().poll(cx), Poll::Pending, "its task ended");
        self.way.is_idle()
    }
    /// Until then.
    pub(in super::super) async fn rest(&mut self, shift: u64) {
        std::future::poll_fn(|cx| {
            if self.is_at_rest(shift, cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
