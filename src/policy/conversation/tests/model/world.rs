//! The real server of the plays over Redis, and its time.
use std::{
    cell::RefCell,
    sync::{Arc, mpsc},
    task::{Context, Poll},
    time::SystemTime,
};

use futures_util::task::AtomicWaker;
use redis::Connection;
use tokio::time::{Duration, Instant};

use crate::state::redis::tests::{by_hand::ByHand, server::RedisServer};

/// How far ahead the server's clock is at first, so that it can also be held back.
const AHEAD: Duration = Duration::from_hours(1);
/// How long stores may take to come to rest, in real time, before something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(1);

pub(super) struct World {
    server: RedisServer,
    connection: RefCell<Connection>,
    /// When it began, by the paused clock and by the server's.
    began: (Instant, SystemTime),
    looks: Arc<AtomicWaker>,
    _ends: mpsc::Sender<()>,
}

impl World {
    /// While this is there, the paused clock goes on only where a test lets it: a thread that is busy forbids the
    /// runtime to pass idle time by itself, as it would also while a command is on its way.
    pub(super) fn new() -> Self {
        let (ends, ended) = mpsc::channel::<()>();
        let looks = Arc::new(AtomicWaker::new());
        let waker = Arc::clone(&looks);
        tokio::task::spawn_blocking(move || {
            while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                waker.wake();
            }
        });
        let server = RedisServer::start();
        Self {
            connection: RefCell::new(server.connection()),
            server,
            began: (Instant::now(), SystemTime::now()),
            looks,
            _ends: ends,
        }
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Its data are gone.
    pub(super) fn loses(&self) {
        let mut connection = self.connection.borrow_mut();
        redis::cmd("FLUSHALL").exec(&mut *connection).unwrap();
    }

    /// By how much its clock is to be ahead: of its own time nothing is left, but of the paused clock all.
    fn shift(&self) -> u64 {
        let (paused, real) = self.began;
        let ahead = AHEAD + paused.elapsed();
        u64::try_from(ahead.saturating_sub(real.elapsed().unwrap()).as_millis()).unwrap()
    }

    /// Lets these store tasks go on until only time can move them; how long that took.
    pub(super) async fn rest(&self, hands: &mut [ByHand]) -> Duration {
        let began = SystemTime::now();
        std::future::poll_fn(|cx: &mut Context<'_>| {
            self.looks.register(cx.waker());
            let mut rest = true;
            // Twice: what the first let go of may be for the second.
            for _ in 0..2 {
                for hand in &mut *hands {
                    rest &= hand.is_at_rest(self.shift(), cx);
                }
            }
            let took = began.elapsed().unwrap_or_default();
            assert!(took < PATIENCE, "a store never comes to rest");
            if rest {
                Poll::Ready(took)
            } else {
                Poll::Pending
            }
        })
        .await
    }
}
