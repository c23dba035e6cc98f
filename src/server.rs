//! Listeners, connections, deadlines and drain.
//!
//! The server knows HTTP and nothing else: what answers a request is a [`Service`]. Each worker is a thread with a
//! runtime of its own that accepts from the one shared listener, so a call stays on the thread that read it.
//!
//! No call starts a timer. Connections note what they wait for (`state`), and once a second a sweep looks for those
//! that waited too long: silent ones, half heads, and peers that do not take their answer. Work outlives its request
//! only here, as a [`Followers`] future or a connection, and both are what a drain waits for:
//!
//! ```text
//! serving ── drain ──► delay ──► leaving ── all ended ───────────────────────────► out
//!              not ready, but      │ idle connections close, calls go on,            ▲
//!              calls are taken     │ new ones are refused                            │
//!                                  └─ grace over ──► stopping ── ended, or 1 s over ─┤
//!                                  │                  streams told to end            │
//!                                  └─ cut (a second signal) ─────────────────────────┘
//! ```
//! The listener is open as long as anything runs, so that whoever has not heard of the drain is told in words, not by a
//! reset: a refused call closes its connection, or has the peer go away (HTTP/2).

mod connection;
mod followers;
mod handle;
mod handshake;
mod io;
mod listen;
mod served;
mod signals;
mod state;
#[cfg(test)]
mod tests;
mod wire;
mod worker;

use std::io::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::RwLock;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use followers::Followers;
pub use handle::Handle;
pub use listen::Listen;
use listen::Socket;
pub use signals::{Ended, Signals};

use crate::tls;

/// What answers requests. Each worker has one, each connection a clone of it.
pub trait Service: Clone + Send + 'static {
    /// The body of an answer. Its error cuts the answer, so that nobody takes half of one for the whole.
    type Body: http_body::Body<Data = Bytes, Error = std::io::Error> + Send + 'static;

    /// Answers one request. The future is dropped when the client goes; it owns what it needs (`use<Self>`), so an
    /// implementation clones its parts first and returns an `async move` block.
    fn call(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static + use<Self>;

    /// Called by each worker once a sweep, for work that has no call to do it.
    fn tick(&self) {}
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address the connection came from.
    pub addr: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The certificate that it has shown.
    pub certificate: Option<Arc<tls::Certificate>>,
}

/// How to listen, and how long to wait.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What its threads are called, before their number.
    pub name: &'static str,
    /// Where to listen.
    pub listen: Listen,
    /// How to encrypt what goes over an address, if at all.
    pub tls: Option<tls::Server>,
    /// How old a connection becomes before it is told to go, whatever it does.
    pub max_age: Option<Duration>,
    /// Threads that accept and serve.
    pub workers: usize,
    /// Connections open at once, over all workers; more are closed as soon as they are accepted.
    pub max_connections: usize,
    /// How long a connection may say nothing, before its first request or between two.
    pub silence: Duration,
    /// How long a request head may take once it began.
    pub header: Duration,
    /// How long output may wait without the peer taking any of it.
    pub write_stall: Duration,
    /// Bytes in an HTTP/1 request head.
    pub max_head: usize,
    /// Fields in an HTTP/1 request head.
    pub max_headers: usize,
    /// Calls that go on at once after their clients have gone, over all workers.
    pub max_followers: usize,
    /// How long calls are still taken when a drain has begun.
    pub drain_delay: Duration,
    /// How long a drain then lets calls run before it tells them to stop.
    pub drain_grace: Duration,
    /// How often to look at waiting connections; never less often than four times in the shortest limit.
    pub sweep: Duration,
    /// Whether to speak HTTP/2 with peers that begin with its preface.
    pub http2: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "worker",
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)).into(),
            tls: None,
            max_age: None,
            workers: thread::available_parallelism().map_or(1, usize::from),
            max_connections: 10_000,
            silence: Duration::from_secs(30),
            header: Duration::from_secs(30),
            write_stall: Duration::from_mins(1),
            max_head: 64 * 1024,
            max_headers: 100,
            max_followers: 1_024,
            drain_delay: Duration::ZERO,
            drain_grace: Duration::from_secs(30),
            sweep: Duration::from_secs(1),
            http2: true,
        }
    }
}

/// What a worker hands to the service it makes.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Which worker, from 0.
    pub index: usize,
    /// Where a call goes on when its client has gone.
    pub followers: Followers,
    /// Cancelled when the grace of a drain is over: streams say so and end.
    pub stop: CancellationToken,
    /// Cancelled when a drain begins.
    pub draining: CancellationToken,
    /// Set when the delay of a drain is over: what begins now is to be refused.
    pub refusing: Arc<AtomicBool>,
    /// What the server counts.
    pub counts: Arc<Counts>,
}

/// What the server counts, over all workers.
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    handshakes: AtomicU64,
    handshakes_failed: AtomicU64,
}

impl Counts {
    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections accepted so far, refused ones not among them.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Connections closed at once because there were too many.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Handshakes of TLS that were done.
    pub fn handshakes(&self) -> u64 {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// Handshakes of TLS that came to nothing.
    pub fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    fn shaken(&self) {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
    }

    fn not_shaken(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a drain had to cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Connections and HTTP/2 streams that were still open.
    pub connections: usize,
    /// Calls without a client that had not ended.
    pub followers: usize,
    /// Workers that ended in a panic, or could not begin.
    pub workers: usize,
}

impl Outcome {
    /// Whether everything ended by itself.
    pub fn clean(&self) -> bool {
        *self == Self::default()
    }

    fn of_panic() -> Self {
        Self {
            workers: 1,
            ..Self::default()
        }
    }

    fn add(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            followers: self.followers + other.followers,
            workers: self.workers + other.workers,
        }
    }
}

/// What all workers share.
#[derive(Debug)]
struct Shared {
    /// Those of now; where it listens, its threads and its HTTP stay as they were.
    settings: RwLock<Arc<Settings>>,
    /// How often they changed.
    changes: AtomicUsize,
    counts: Arc<Counts>,
    draining: CancellationToken,
    refusing: Arc<AtomicBool>,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Shared {
    fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            settings: RwLock::new(Arc::new(settings)),
            changes: AtomicUsize::new(0),
            counts: Arc::default(),
            draining: CancellationToken::new(),
            refusing: Arc::default(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
        })
    }

    fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    /// Resolves when new calls are refused.
    #[cfg(test)]
    async fn refused(&self) {
        while !self.is_refusing() {
            tokio::task::yield_now().await;
        }
    }

    /// Resolves when new calls are to be refused: the delay after a drain began, or when all is cut.
    async fn left(&self) {
        self.draining.cancelled().await;
        tokio::select! {
            () = self.cut.cancelled() => {}
            () = tokio::time::sleep(self.settings().drain_delay) => {}
        }
        self.refusing.store(true, Ordering::Relaxed);
    }

    fn worker(&self, index: usize, room: &followers::Room) -> Worker {
        Worker {
            index,
            followers: Followers::new(room),
            stop: self.stop.clone(),
            draining: self.draining.clone(),
            refusing: Arc::clone(&self.refusing),
            counts: Arc::clone(&self.counts),
        }
    }
}

/// A server at work.
#[derive(Debug)]
pub struct Running {
    /// The address where it listens; that of this machine itself for a socket in the file system.
    pub local_addr: SocketAddr,
    /// The file of that socket; gone when nobody listens any more.
    file: Option<listen::File>,
    shared: Arc<Shared>,
    room: followers::Room,
    threads: Vec<JoinHandle<Outcome>>,
    ended: TaskTracker,
}

impl Running {
    /// Begins the drain: after its delay no new calls, idle connections close, calls may end.
    pub fn drain(&self) {
        self.shared.draining.cancel();
    }

    /// Ends at once, whatever runs.
    pub fn cut(&self) {
        self.drain();
        self.shared.stop.cancel();
        self.shared.cut.cancel();
    }

    /// Cancelled when a drain begins, for whoever reports readiness.
    pub fn draining(&self) -> CancellationToken {
        self.shared.draining.clone()
    }

    /// Where it listens, for people.
    pub fn place(&self) -> Listen {
        match &self.shared.settings().listen {
            Listen::Tcp(_) => Listen::Tcp(self.local_addr),
            Listen::Unix(path) => Listen::Unix(path.clone()),
        }
    }

    /// What the server counts.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.shared.counts)
    }

    /// How many calls go on though their clients have gone, for whoever asks.
    pub fn followers(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let room = self.room.clone();
        move || room.taken()
    }

    /// Waits, blocking, until the workers have ended; so somebody must drain.
    pub fn wait(self) -> Outcome {
        let ends = self.threads.into_iter().map(JoinHandle::join);
        let ended = ends
            .map(|end| end.unwrap_or_else(|_| Outcome::of_panic()))
            .fold(Outcome::default(), Outcome::add);
        drop(self.file);
        ended
    }
}

/// Listens, and serves with what `make` returns on each worker.
pub fn start<S: Service>(
    mut settings: Settings,
    make: impl Fn(Worker) -> S + Send + Sync + 'static,
) -> Result<Running> {
    settings.workers = settings.workers.max(1);
    let (listener, file) = bind(&settings.listen)?;
    let room = followers::Room::new(settings.max_followers);
    // All that can fail comes first, so that hardly anything is left behind when it does.
    let seats = (0..settings.workers)
        .map(|_| Ok((runtime()?, listener.try_clone()?)))
        .collect::<Result<Vec<_>>>()?;
    let mut running = Running {
        local_addr: listener.local_addr()?,
        file,
        shared: Shared::new(settings.clone()),
        room,
        threads: Vec::with_capacity(seats.len()),
        ended: TaskTracker::new(),
    };
    let make = Arc::new(make);
    for (index, (runtime, listener)) in seats.into_iter().enumerate() {
        let shared = Arc::clone(&running.shared);
        let worker = shared.worker(index, &running.room);
        let (make, ended) = (Arc::clone(&make), running.ended.token());
        let work = move || {
            let _ended = ended;
            work(runtime, listener, shared, worker, make.as_ref())
        };
        let thread = thread::Builder::new().name(format!("{}-{index}", settings.name));
        match thread.spawn(work) {
            Ok(thread) => running.threads.push(thread),
            Err(error) => {
                running.cut();
                running.wait();
                return Err(error);
            }
        }
    }
    running.ended.close();
    Ok(running)
}

fn bind(at: &Listen) -> Result<(Socket, Option<listen::File>)> {
    // Only for the time of this function: tokio sets the backlog, the standard library does not.
    let runtime = runtime()?;
    let bound = {
        let _inside = runtime.enter();
        Socket::bind(at)
    };
    // Not dropped, which a caller inside another runtime could not do.
    runtime.shutdown_background();
    bound
}

/// The whole life of a worker's thread.
fn work<S: Service>(
    runtime: Runtime,
    listener: Socket,
    shared: Arc<Shared>,
    worker: Worker,
    make: &impl Fn(Worker) -> S,
) -> Outcome {
    // A worker that panics takes the others with it, in order: half a gateway is hard to notice.
    let _alive = shared.draining.clone().drop_guard();
    let followers = worker.followers.clone();
    let outcome = runtime.block_on(async {
        let service = make(worker);
        worker::run(listener, service, shared, followers).await
    });
    // A blocking thread may still look up a name; nobody waits for the answer any more.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| {
        tracing::error!(%error, "worker cannot listen");
        Outcome::of_panic()
    })
}

/// Waits for SIGTERM or SIGINT, drains, and cuts at the second signal.
pub fn run_until_signal(running: Running) -> Result<Outcome> {
    let mut signals = Signals::new()?;
    signals.until_ended(&running, || {});
    Ok(running.wait())
}

/// Waits for SIGTERM or SIGINT, for what is no server of this kind.
pub fn wait_for_signal() -> Result<()> {
    use tokio::signal::unix;
    runtime()?.block_on(async {
        let mut terminate = unix::signal(unix::SignalKind::terminate())?;
        let mut interrupt = unix::signal(unix::SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
