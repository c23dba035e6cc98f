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
//! serving ── drain ──► leaving ── all ended ───────────────────────────► out
//!                        │ idle connections close, calls go on             ▲
//!                        └─ grace over ──► stopping ── ended, or 1 s over ─┤
//!                        │                  streams told to end            │
//!                        └─ cut (a second signal) ─────────────────────────┘
//! ```

mod connection;
mod followers;
mod io;
mod served;
mod state;
#[cfg(test)]
mod tests;
mod worker;

use std::io::Result;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use followers::Followers;

/// Connections that may wait to be accepted; a burst beyond it waits for its clients to try again.
const BACKLOG: u32 = 1024;

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
}

/// How to listen, and how long to wait.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What its threads are called, before their number.
    pub name: &'static str,
    /// Where to listen; port 0 takes any free port.
    pub listen: SocketAddr,
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
    /// How long a drain lets calls run before it tells them to stop.
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
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            workers: thread::available_parallelism().map_or(1, usize::from),
            max_connections: 10_000,
            silence: Duration::from_secs(30),
            header: Duration::from_secs(30),
            write_stall: Duration::from_mins(1),
            max_head: 64 * 1024,
            max_headers: 100,
            max_followers: 1_024,
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
    /// What the server counts.
    pub counts: Arc<Counts>,
}

/// What the server counts, over all workers.
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
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
    settings: Settings,
    counts: Arc<Counts>,
    draining: CancellationToken,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Shared {
    fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            counts: Arc::default(),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
        })
    }

    fn worker(&self, index: usize, room: &followers::Room) -> Worker {
        Worker {
            index,
            followers: Followers::new(room),
            stop: self.stop.clone(),
            draining: self.draining.clone(),
            counts: Arc::clone(&self.counts),
        }
    }
}

/// A server at work.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub local_addr: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Outcome>>,
    ended: TaskTracker,
}

impl Running {
    /// Begins the drain: no new connections, idle ones close, calls may end.
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

    /// What the server counts.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.shared.counts)
    }

    /// Waits, blocking, until the workers have ended; so somebody must drain.
    pub fn wait(self) -> Outcome {
        let ends = self.threads.into_iter().map(JoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|_| Outcome::of_panic()))
            .fold(Outcome::default(), Outcome::add)
    }
}

/// Listens, and serves with what `make` returns on each worker.
pub fn start<S: Service>(
    mut settings: Settings,
    make: impl Fn(Worker) -> S + Send + Sync + 'static,
) -> Result<Running> {
    settings.workers = settings.workers.max(1);
    let listener = bind(settings.listen)?;
    let room = followers::Room::new(settings.max_followers);
    // All that can fail comes first, so that hardly anything is left behind when it does.
    let seats = (0..settings.workers)
        .map(|_| Ok((runtime()?, listener.try_clone()?)))
        .collect::<Result<Vec<_>>>()?;
    let mut running = Running {
        local_addr: listener.local_addr()?,
        shared: Shared::new(settings),
        threads: Vec::with_capacity(seats.len()),
        ended: TaskTracker::new(),
    };
    let make = Arc::new(make);
    for (index, (runtime, listener)) in seats.into_iter().enumerate() {
        let shared = Arc::clone(&running.shared);
        let worker = shared.worker(index, &room);
        let (make, ended) = (Arc::clone(&make), running.ended.token());
        let work = move || {
            let _ended = ended;
            work(runtime, listener, shared, worker, make.as_ref())
        };
        let thread =
            thread::Builder::new().name(format!("{}-{index}", running.shared.settings.name));
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

fn bind(addr: SocketAddr) -> Result<TcpListener> {
    // Only for the time of this function: tokio sets the backlog, the standard library does not.
    let runtime = runtime()?;
    let listener = {
        let _inside = runtime.enter();
        listen(addr)
    };
    // Not dropped, which a caller inside another runtime could not do.
    runtime.shutdown_background();
    listener
}

fn listen(addr: SocketAddr) -> Result<TcpListener> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart need not wait for the last connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)?.into_std()
}

/// The whole life of a worker's thread.
fn work<S: Service>(
    runtime: Runtime,
    listener: TcpListener,
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
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        for step in [Running::drain, Running::cut] {
            tokio::select! {
                _ = terminate.recv() => step(&running),
                _ = interrupt.recv() => step(&running),
                () = running.ended.wait() => break,
            }
            tracing::info!(connections = running.shared.counts.connections(), "leaving");
        }
        Result::Ok(())
    })?;
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
