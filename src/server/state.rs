//! What a connection waits for, as a few numbers that the sweep of its worker reads.
//!
//! Marks hold the time of the worker's clock, which moves only when it sweeps: a call then reads no clock at all, and
//! a mark is at most one sweep older than it should be. Limits are longer by that much, so nobody is closed early.
//!
//! ```text
//! accepted ──► quiet ── first byte ──► head ── parsed ──► call(s) ── last answer ended ──► quiet ──► …
//!                │                       │                    │
//!          > silence: cut         > header: cut      output waits > write_stall: cut
//! ```
//!
//! HTTP/2 has no `head`: pings and settings are bytes too, so only calls and the data of answers count there. A quiet
//! HTTP/2 connection is first told to go away, and cut when it is quiet for as long again.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures_util::task::AtomicWaker;

/// Writes shorter than this are control frames (a ping is 17 bytes); they say nothing about the peer taking an answer.
const DATA: usize = 64;

/// So many milliseconds of the clock say that a peer is not just about to ask.
const MOMENT: u64 = 500;

/// Milliseconds since the worker began, from 1, as of the last sweep.
#[derive(Debug)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    pub(super) fn set(&self, since_start: Duration) {
        self.0.store(millis(since_start).saturating_add(1), Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How long each wait may take, in milliseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    silence: u64,
    header: u64,
    write_stall: u64,
    age: u64,
    period: Duration,
}

impl Limits {
    pub(super) fn new(settings: &super::Settings) -> Self {
        let shortest = settings
            .silence
            .min(settings.header)
            .min(settings.write_stall)
            .min(settings.max_age.unwrap_or(Duration::MAX));
        let period = settings
            .sweep
            .min(shortest / 4)
            .max(Duration::from_millis(1));
        let limit = |limit: Duration| millis(limit + period);
        Self {
            silence: limit(settings.silence),
            header: limit(settings.header),
            write_stall: limit(settings.write_stall),
            age: settings.max_age.map_or(u64::MAX, millis),
            period,
        }
    }

    /// How often to sweep.
    pub(super) fn period(&self) -> Duration {
        self.period
    }
}

/// Since when something is so; 0 when it is not.
#[derive(Debug, Default)]
struct Since(AtomicU64);

impl Since {
    fn begin(&self, now: u64) {
        if self.0.load(Relaxed) == 0 {
            self.0.store(now, Relaxed);
        }
    }

    fn restart(&self, now: u64) {
        self.0.store(now, Relaxed);
    }

    fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    fn holds(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    fn longer_than(&self, limit: u64, now: u64) -> bool {
        let since = self.0.load(Relaxed);
        since != 0 && now.saturating_sub(since) > limit
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct State {
    clock: Arc<Clock>,
    waker: AtomicWaker,
    born: u64,
    cut: AtomicBool,
    leave: AtomicBool,
    http2: AtomicBool,
    calls: AtomicUsize,
    quiet: Since,
    head: Since,
    stuck: Since,
    streams: Mutex<Vec<Arc<Stream>>>,
    fresh: Mutex<Option<Arc<Stream>>>,
}

impl State {
    pub(super) fn new(clock: Arc<Clock>) -> Arc<Self> {
        let state = Self {
            born: clock.now(),
            clock,
            waker: AtomicWaker::new(),
            cut: AtomicBool::new(false),
            leave: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            quiet: Since::default(),
            head: Since::default(),
            stuck: Since::default(),
            streams: Mutex::default(),
            fresh: Mutex::default(),
        };
        state.quiet.restart(state.clock.now());
        Arc::new(state)
    }

    /// Has the connection's task woken when there is something to tell it.
    pub(super) fn listen(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leave.load(Relaxed)
    }

    /// Tells the connection to end when its calls have.
    pub(super) fn leave(&self) {
        self.leave.store(true, Relaxed);
        self.waker.wake();
    }

    /// Tells a connection to end that has no call and has said nothing for a moment: while new calls are refused, who
    /// has just come is to hear so.
    pub(super) fn leave_if_quiet(&self) {
        let quiet = self.quiet.longer_than(MOMENT, self.clock.now());
        if quiet && self.calls.load(Relaxed) == 0 && !self.is_leaving() {
            self.leave();
        }
    }

    /// Ends the connection now.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
        self.waker.wake();
    }

    pub(super) fn speaks_http2(&self) {
        self.http2.store(true, Relaxed);
    }

    /// The peer begins to agree with us on how to encrypt, which takes no longer than a head.
    pub(super) fn shakes(&self) {
        self.head.restart(self.clock.now());
    }

    /// They have agreed.
    pub(super) fn has_shaken(&self) {
        self.head.clear();
        self.quiet.restart(self.clock.now());
    }

    /// Bytes came in.
    pub(super) fn read(&self) {
        if self.calls.load(Relaxed) == 0 {
            self.head.begin(self.clock.now());
        }
    }

    /// The peer took bytes.
    pub(super) fn wrote(&self, bytes: usize) {
        self.stuck.clear();
        if bytes >= DATA {
            self.quiet.restart(self.clock.now());
        }
    }

    /// Bytes wait for the peer.
    pub(super) fn blocked(&self) {
        self.stuck.begin(self.clock.now());
    }

    /// Looks whether the connection, or a stream of it, has waited too long.
    pub(super) fn sweep(&self, limits: &Limits) {
        let now = self.clock.now();
        if now.saturating_sub(self.born) > limits.age && !self.is_leaving() {
            self.leave();
        }
        for stream in lock(&self.streams).iter() {
            if stream.unread.longer_than(limits.write_stall, now) {
                stream.cut();
            }
        }
        if self.stuck.longer_than(limits.write_stall, now) {
            return self.cut();
        }
        if self.stuck.holds() || self.calls.load(Relaxed) > 0 {
            return;
        }
        if self.http2.load(Relaxed) {
            if self.quiet.longer_than(2 * limits.silence, now) {
                self.cut();
            } else if self.quiet.longer_than(limits.silence, now) && !self.is_leaving() {
                self.leave();
            }
        } else if self.head.holds() {
            if self.head.longer_than(limits.header, now) {
                self.cut();
            }
        } else if self.quiet.longer_than(limits.silence, now) {
            self.cut();
        }
    }
}

/// A call counts from here until its answer has ended or was dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<State>);

impl InFlight {
    pub(super) fn begin(state: &Arc<State>) -> Self {
        state.calls.fetch_add(1, Relaxed);
        state.head.clear();
        Self(Arc::clone(state))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.quiet.restart(self.0.clock.now());
        self.0.calls.fetch_sub(1, Relaxed);
    }
}

/// One HTTP/2 stream. The socket says nothing about a stream whose window the peer does not open, while its neighbours
/// may flow; so each has a mark and can be cut alone.
#[derive(Debug)]
pub(super) struct Stream {
    clock: Arc<Clock>,
    waker: AtomicWaker,
    cut: AtomicBool,
    unread: Since,
}

impl Stream {
    /// Begins a stream, and leaves it for the executor: hyper calls the service and then hands over the task of the
    /// stream, one after the other.
    pub(super) fn begin(state: &State) -> Arc<Self> {
        let stream = Arc::new(Self {
            clock: Arc::clone(&state.clock),
            waker: AtomicWaker::new(),
            cut: AtomicBool::new(false),
            unread: Since::default(),
        });
        *lock(&state.fresh) = Some(Arc::clone(&stream));
        stream
    }

    /// The body gave a frame, and nobody has asked for the next.
    pub(super) fn gave(&self) {
        self.unread.restart(self.clock.now());
    }

    /// Somebody asked for a frame.
    pub(super) fn asked(&self) {
        self.unread.clear();
    }

    fn cut(&self) {
        self.cut.store(true, Relaxed);
        self.waker.wake();
    }
}

/// The place of a stream among those that are swept, held by its task.
#[derive(Debug)]
pub(super) struct Swept {
    state: Arc<State>,
    stream: Arc<Stream>,
}

impl Swept {
    /// Takes the stream that [`Stream::begin`] left.
    pub(super) fn enter(state: &Arc<State>) -> Option<Self> {
        let stream = lock(&state.fresh).take()?;
        lock(&state.streams).push(Arc::clone(&stream));
        Some(Self {
            state: Arc::clone(state),
            stream,
        })
    }

    /// Whether the stream was cut; if not, the task is woken when it is.
    pub(super) fn is_cut(&self, waker: &Waker) -> bool {
        self.stream.waker.register(waker);
        self.stream.cut.load(Relaxed)
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        let mut streams = lock(&self.state.streams);
        // Linear, but a connection has no more than 128 streams.
        if let Some(at) = streams.iter().position(|s| Arc::ptr_eq(s, &self.stream)) {
            streams.swap_remove(at);
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a panic left behind is still a list of streams.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
