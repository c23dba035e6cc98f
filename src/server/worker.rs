//! One worker: accept, serve, sweep, and in the end drain. It runs on one thread, so what it spawns stays there.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::TaskTracker;

use super::connection::{Protocols, serve};
use super::handshake::{Handshakes, shake};
use super::listen::{Listener, Socket};
use super::state::{Clock, Limits, State, lock};
use super::wire::Wire;
use super::{Counts, Followers, Outcome, Peer, Service, Shared};

/// How long to wait when there are no descriptors or no memory for a connection.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How often the same trouble is logged.
const SAY_AGAIN: Duration = Duration::from_secs(1);
/// How far a worker may be ahead of its share of the connections before it lets the others accept first.
const AHEAD: usize = 4;
/// How long it lets them: they need one turn, and if they are busy it accepts all the same.
const LET_OTHERS: Duration = Duration::from_millis(1);
/// How long streams have to say goodbye once they were told to stop.
pub(super) const GOODBYE: Duration = Duration::from_secs(1);

/// Serves until drained. Fails only if it cannot listen.
pub(super) async fn run<S: Service>(
    listener: Socket,
    service: S,
    shared: Arc<Shared>,
    followers: Followers,
) -> Result<Outcome> {
    let listener = Listener::new(listener)?;
    let live = Arc::new(Live::new());
    #[expect(
        clippy::disallowed_methods,
        reason = "the sweep must go on beside the drain, and ends with this function"
    )]
    let sweeper = tokio::spawn(sweep(
        Arc::clone(&live),
        Arc::clone(&shared),
        service.clone(),
    ));
    let changes = shared.changes.load(Relaxed);
    let mut worker = Worker {
        protocols: Arc::new(Protocols::new(&shared.settings(), TaskTracker::new())),
        handshakes: Handshakes::new(shared.settings().workers),
        tls: shared.settings().tls.clone(),
        changes,
        live,
        service,
        shared,
        followers,
        said: None,
    };
    worker.accept(&listener).await;
    let outcome = worker.drain(listener).await;
    sweeper.abort();
    Ok(outcome)
}

async fn sweep<S: Service>(live: Arc<Live>, shared: Arc<Shared>, service: S) {
    let start = Instant::now();
    let mut changes = shared.changes.load(Relaxed);
    let mut limits = Limits::new(&shared.settings());
    let mut beat = beats(&limits);
    loop {
        beat.tick().await;
        live.clock.set(start.elapsed());
        live.each(|state| state.sweep(&limits));
        if shared.is_refusing() {
            live.each(State::leave_if_quiet);
        }
        service.tick();
        let now = shared.changes.load(Relaxed);
        if now != changes {
            changes = now;
            limits = Limits::new(&shared.settings());
            beat = beats(&limits);
            beat.tick().await; // the first is at once
        }
    }
}

fn beats(limits: &Limits) -> Interval {
    let mut beat = interval(limits.period());
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat
}

struct Worker<S> {
    protocols: Arc<Protocols>,
    handshakes: Arc<Handshakes>,
    tls: Option<crate::tls::Server>,
    /// As many changes of the settings are known.
    changes: usize,
    live: Arc<Live>,
    service: S,
    shared: Arc<Shared>,
    followers: Followers,
    said: Option<Instant>,
}

impl<S: Service> Worker<S> {
    /// Accepts until a drain has begun and its delay is over.
    async fn accept(&mut self, listener: &Listener) {
        let shared = Arc::clone(&self.shared);
        let mut left = pin!(shared.left());
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut left => return,
                accepted = self.next(listener) => accepted,
            };
            self.came(accepted).await;
        }
    }

    async fn came(&mut self, accepted: Result<(Wire, SocketAddr)>) {
        match accepted {
            Ok((io, addr)) => self.welcome(io, addr),
            Err(error) if is_of_peer(&error) => {}
            Err(error) => {
                self.say(|| tracing::warn!(%error, "cannot accept"));
                sleep(BACK_OFF).await;
            }
        }
    }

    async fn next(&self, listener: &Listener) -> Result<(Wire, SocketAddr)> {
        let settings = self.shared.settings.read().workers;
        let share = self.shared.counts.connections() / settings;
        if self.live.len() > share + AHEAD {
            sleep(LET_OTHERS).await;
        }
        listener.accept().await
    }

    fn welcome(&mut self, io: Wire, addr: SocketAddr) {
        let changes = self.shared.changes.load(Relaxed);
        if changes != self.changes {
            self.changes = changes;
            self.renew(self.protocols.tracker.clone());
        }
        let Some(place) = Place::take(&self.shared, &self.live) else {
            let limit = self.shared.settings().max_connections;
            self.say(|| tracing::warn!(limit, "too many connections"));
            return;
        };
        let mut peer = Peer {
            addr,
            tls: false,
            certificate: None,
        };
        let state = Arc::clone(&place.state);
        let (service, protocols) = (self.service.clone(), Arc::clone(&self.protocols));
        let refusing = Arc::clone(&self.shared.refusing);
        match (io, &self.tls) {
            (Wire::Tcp(io), Some(tls)) => {
                let (tls, all) = (tls.clone(), Arc::clone(&self.handshakes));
                self.protocols.tracker.spawn(async move {
                    let shaken = shake(io, &mut peer, &tls, &state, &all, &place.counts);
                    // Boxed: it is over when the long life of the connection begins.
                    if let Some((io, http2)) = Box::pin(shaken).await {
                        serve(io, Some(http2), peer, service, protocols, state, refusing).await;
                    }
                    drop(place);
                });
            }
            (io, _) => {
                self.protocols.tracker.spawn(async move {
                    serve(io, None, peer, service, protocols, state, refusing).await;
                    drop(place);
                });
            }
        }
    }

    fn renew(&mut self, tracker: TaskTracker) {
        self.protocols = Arc::new(Protocols::new(&self.shared.settings(), tracker));
    }

    /// Logs, but not the same thing all the time.
    fn say(&mut self, log: impl FnOnce()) {
        if self.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            self.said = Some(Instant::now());
            log();
        }
    }

    /// Lets go what was there, and meanwhile accepts who comes late, to be refused.
    async fn drain(&mut self, listener: Listener) -> Outcome {
        self.live.each(State::leave);
        let late = TaskTracker::new();
        let early = self.protocols.tracker.clone();
        self.renew(late.clone());
        let finish = finish(early, self.followers.clone(), Arc::clone(&self.shared));
        let mut finish = pin!(finish);
        let outcome = loop {
            let accepted = tokio::select! {
                biased;
                outcome = &mut finish => break outcome,
                accepted = listener.accept() => accepted,
            };
            self.came(accepted).await;
        };
        drop(listener);
        // Refusals that are being written; nobody loses a call by their end.
        self.live.each(State::leave);
        late.close();
        let _nobody_s_call = timeout(GOODBYE, late.wait()).await;
        outcome
    }
}

/// Waits for what still runs: for the grace, then for a short goodbye.
async fn finish(tracker: TaskTracker, followers: Followers, shared: Arc<Shared>) -> Outcome {
    tracker.close();
    let mut ended = pin!(async {
        // In this order: a call becomes a follower when its connection ends.
        tracker.wait().await;
        followers.ended().await;
    });
    let grace = shared.settings().drain_grace;
    tokio::select! {
        biased;
        () = shared.cut.cancelled() => {}
        () = &mut ended => return Outcome::default(),
        () = sleep(grace) => {
            shared.stop.cancel();
            tokio::select! {
                biased;
                () = shared.cut.cancelled() => {}
                () = &mut ended => return Outcome::default(),
                () = sleep(GOODBYE) => {}
            }
        }
    }
    Outcome {
        connections: tracker.len(),
        followers: followers.len(),
        workers: 0,
    }
}

/// Whether the peer spoiled this one connection, so that the next may be accepted at once.
fn is_of_peer(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

/// The connections of a worker.
#[derive(Debug)]
struct Live {
    clock: Arc<Clock>,
    states: Mutex<HashMap<usize, Arc<State>>>,
}

impl Live {
    fn new() -> Self {
        Self {
            clock: Arc::new(Clock::new()),
            states: Mutex::default(),
        }
    }

    fn len(&self) -> usize {
        lock(&self.states).len()
    }

    fn each(&self, visit: impl Fn(&State)) {
        lock(&self.states).values().for_each(|state| visit(state));
    }
}

/// The place of one connection; given back when dropped.
struct Place {
    state: Arc<State>,
    live: Arc<Live>,
    counts: Arc<Counts>,
}

impl Place {
    fn take(shared: &Shared, live: &Arc<Live>) -> Option<Self> {
        let counts = Arc::clone(&shared.counts);
        if counts.connections.fetch_add(1, Relaxed) >= shared.settings.read().max_connections {
            counts.connections.fetch_sub(1, Relaxed);
            counts.refused.fetch_add(1, Relaxed);
            return None;
        }
        counts.accepted.fetch_add(1, Relaxed);
        let state = State::new(Arc::clone(&live.clock));
        lock(&live.states).insert(key(&state), Arc::clone(&state));
        Some(Self {
            state,
            live: Arc::clone(live),
            counts,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.live.states).remove(&key(&self.state));
        self.counts.connections.fetch_sub(1, Relaxed);
    }
}

/// Where a state lives is its name as long as it lives.
fn key(state: &Arc<State>) -> usize {
    Arc::as_ptr(state).addr()
}
