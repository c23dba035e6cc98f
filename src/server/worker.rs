//! One worker: accept, serve, sweep, and in the end drain. It runs on one thread, so what it spawns stays there.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

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
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves until drained. Fails only if it cannot listen.
pub(super) async fn run<S: Service>(
    listener: Socket,
    service: S,
    shared: Arc<Shared>,
    followers: Followers,
) -> Result<Outcome> {
    let listener = Listener::new(listener)?;
    let limits = Limits::new(&shared.settings);
    let live = Arc::new(Live::new());
    #[expect(
        clippy::disallowed_methods,
        reason = "the sweep must go on beside the drain, and ends with this function"
    )]
    let sweeper = tokio::spawn(sweep(Arc::clone(&live), limits, service.clone()));
    let mut worker = Worker {
        protocols: Arc::new(Protocols::new(&shared.settings)),
        handshakes: Handshakes::new(shared.settings.workers),
        live,
        service,
        shared,
        followers,
        said: None,
    };
    worker.accept(listener).await;
    worker.live.each(State::leave);
    let outcome = worker.finish().await;
    sweeper.abort();
    Ok(outcome)
}

async fn sweep<S: Service>(live: Arc<Live>, limits: Limits, service: S) {
    let start = Instant::now();
    let mut beat = interval(limits.period());
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        live.clock.set(start.elapsed());
        live.each(|state| state.sweep(&limits));
        service.tick();
    }
}

struct Worker<S> {
    protocols: Arc<Protocols>,
    handshakes: Arc<Handshakes>,
    live: Arc<Live>,
    service: S,
    shared: Arc<Shared>,
    followers: Followers,
    said: Option<Instant>,
}

impl<S: Service> Worker<S> {
    /// Accepts until the drain begins; then the listener closes.
    async fn accept(&mut self, listener: Listener) {
        let draining = self.shared.draining.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = draining.cancelled() => return,
                accepted = self.next(&listener) => accepted,
            };
            match accepted {
                Ok((io, addr)) => self.welcome(io, addr),
                Err(error) if is_of_peer(&error) => {}
                Err(error) => {
                    self.say(|| tracing::warn!(%error, "cannot accept"));
                    sleep(BACK_OFF).await;
                }
            }
        }
    }

    async fn next(&self, listener: &Listener) -> Result<(Wire, SocketAddr)> {
        let share = self.shared.counts.connections() / self.shared.settings.workers;
        if self.live.len() > share + AHEAD {
            sleep(LET_OTHERS).await;
        }
        listener.accept().await
    }

    fn welcome(&mut self, io: Wire, addr: SocketAddr) {
        let Some(place) = Place::take(&self.shared, &self.live) else {
            let limit = self.shared.settings.max_connections;
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
        match (io, &self.shared.settings.tls) {
            (Wire::Tcp(io), Some(tls)) => {
                let (tls, all) = (tls.clone(), Arc::clone(&self.handshakes));
                self.protocols.tracker.spawn(async move {
                    let shaken = shake(io, &mut peer, &tls, &state, &all, &place.counts);
                    // Boxed: it is over when the long life of the connection begins.
                    if let Some((io, http2)) = Box::pin(shaken).await {
                        serve(io, Some(http2), peer, service, protocols, state).await;
                    }
                    drop(place);
                });
            }
            (io, _) => {
                self.protocols.tracker.spawn(async move {
                    serve(io, None, peer, service, protocols, state).await;
                    drop(place);
                });
            }
        }
    }

    /// Logs, but not the same thing all the time.
    fn say(&mut self, log: impl FnOnce()) {
        if self.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            self.said = Some(Instant::now());
            log();
        }
    }

    /// Waits for what still runs: for the grace, then for a short goodbye.
    async fn finish(&self) -> Outcome {
        self.protocols.tracker.close();
        let grace = self.shared.settings.drain_grace;
        let cut = self.shared.cut.cancelled();
        tokio::select! {
            () = self.ended() => return Outcome::default(),
            () = cut => {}
            () = sleep(grace) => {
                self.shared.stop.cancel();
                if timeout(GOODBYE, self.ended()).await.is_ok() {
                    return Outcome::default();
                }
            }
        }
        Outcome {
            connections: self.protocols.tracker.len(),
            followers: self.followers.len(),
            workers: 0,
        }
    }

    async fn ended(&self) {
        // In this order: a call becomes a follower when its connection ends.
        self.protocols.tracker.wait().await;
        self.followers.ended().await;
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
        if counts.connections.fetch_add(1, Relaxed) >= shared.settings.max_connections {
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
