//! One address of the agent, as all workers see it: its room for connections, what is under way there, and whether it is
//! well. The agent behind all addresses is one; its replicas are told apart here and nowhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Settings;
use super::balance::{self, View};
use super::breaker::{Breaker, Change, Stand, Ticket};
use super::health::{Check, Checked};
use super::names::Ways;
use super::room::Hall;

/// How fast what was measured loses weight.
const MEMORY: f64 = 10.0;

/// One address.
pub(super) struct Replica {
    /// What places of conversations name it by.
    pub(super) id: u64,
    /// Its address, as records and gauges have it.
    pub(super) label: String,
    name: u64,
    pub(super) ways: Ways,
    pub(super) hall: Arc<Hall>,
    busy: AtomicUsize,
    /// Whether there is anything to forgive or to look at: false where all is well, and nobody needs the lock.
    uneasy: AtomicBool,
    health: Mutex<Health>,
}

struct Health {
    breaker: Breaker,
    checked: Checked,
    time: Time,
    /// What was logged last.
    up: bool,
}

impl Replica {
    pub(super) fn new(id: u64, ways: Ways, settings: &Settings) -> Self {
        let label = ways.to_string();
        Self {
            id,
            name: balance::hash("address", &label),
            label,
            ways,
            hall: Arc::new(Hall::new(settings)),
            busy: AtomicUsize::new(0),
            uneasy: AtomicBool::new(false),
            health: Mutex::new(Health {
                breaker: Breaker::new(settings.breaker),
                checked: Checked::default(),
                time: Time::default(),
                up: true,
            }),
        }
    }

    /// As it looks to who chooses.
    pub(super) fn view(&self, now: Instant) -> View {
        let health = self.health.lock();
        View {
            name: self.name,
            stand: health.stand(now),
            tried: false,
            busy: self.busy.load(Ordering::Relaxed),
            time: health.time.lately(now),
        }
    }

    /// A call goes there, one of several addresses.
    pub(super) fn begin(&self, now: Instant) -> Ticket {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.health.lock().breaker.begin(now)
    }

    /// That call has ended.
    pub(super) fn end(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// It answered, after so long.
    pub(super) fn answered(&self, ticket: Ticket, took: Duration, now: Instant) {
        let mut health = self.health.lock();
        health.time.measured(took, now);
        let change = health.breaker.succeeded(ticket, now);
        self.settle(&mut health, change, "");
    }

    /// The only address answered.
    pub(super) fn answered_alone(&self) {
        if self.uneasy.load(Ordering::Relaxed) {
            let mut health = self.health.lock();
            let ticket = health.breaker.present();
            let change = health.breaker.succeeded(ticket, Instant::now());
            self.settle(&mut health, change, "");
        }
    }

    /// A call failed in a way that says that something is wrong there. `None` is the ticket of the only address.
    pub(super) fn failed(&self, ticket: Option<Ticket>, cause: &str) {
        let mut health = self.health.lock();
        let now = Instant::now();
        // Nobody begins trials at an only address: this was one if one was due.
        let ticket = ticket.unwrap_or_else(|| health.breaker.begin(now));
        let change = health.breaker.failed(ticket, now);
        self.settle(&mut health, change, cause);
    }

    /// A call ended and says nothing of it.
    pub(super) fn given_up(&self, ticket: Ticket) {
        self.health.lock().breaker.given_up(ticket, Instant::now());
    }

    /// Whether it is to be asked how it is; if so, again after `interval`.
    pub(super) fn is_check_due(&self, now: Instant, interval: Duration) -> bool {
        self.health.lock().checked.is_due(now, interval)
    }

    /// It is about to be asked how it is.
    pub(super) fn is_asked(&self) -> Ticket {
        self.health.lock().breaker.present()
    }

    /// It was asked how it is.
    pub(super) fn checked(&self, asked: Ticket, outcome: Result<(), String>, check: &Check) {
        let mut health = self.health.lock();
        health.checked.count(outcome.is_ok(), check);
        let change = match &outcome {
            Ok(()) => health.breaker.answered(asked, Instant::now()),
            Err(_) => None,
        };
        let cause = outcome.err().unwrap_or_default();
        self.settle(&mut health, change, &cause);
    }

    /// Whether it is up as far as is known, and how its breaker stands.
    pub(super) fn told(&self, now: Instant) -> (bool, super::status::Breaker) {
        let health = self.health.lock();
        let breaker = match health.breaker.stand(now) {
            Stand::Closed => super::status::Breaker::Closed,
            _ if health.breaker.is_tried() => super::status::Breaker::HalfOpen,
            Stand::Due | Stand::Out => super::status::Breaker::Open,
        };
        (health.is_up(now), breaker)
    }

    /// Tells the log, once for each change.
    fn settle(&self, health: &mut Health, change: Option<Change>, cause: &str) {
        let well = health.breaker.is_calm() && !health.checked.down;
        self.uneasy.store(!well, Ordering::Relaxed);
        let up = health.is_well(Instant::now());
        let address = &self.label;
        match (std::mem::replace(&mut health.up, up), up) {
            (true, false) => {
                let tried_again = match change {
                    Some(Change::Opened(after)) => Some(after),
                    Some(Change::Closed) | None => None,
                };
                tracing::warn!(
                    %address,
                    %cause,
                    ?tried_again,
                    "the agent is down at this address: look whether it runs there, and whether backend.url, \
                     backend.addresses or what the name resolves to is right; calls go to its other addresses \
                     while it has any"
                );
            }
            (false, true) => tracing::info!(%address, "the agent is back at this address"),
            (true, true) | (false, false) => {}
        }
    }
}

impl Health {
    fn stand(&self, now: Instant) -> Stand {
        if self.checked.down {
            return Stand::Out;
        }
        self.breaker.stand(now)
    }

    fn is_up(&self, now: Instant) -> bool {
        !self.checked.down && !self.breaker.is_shut(now)
    }

    /// Whether that is known for sure.
    fn is_well(&self, now: Instant) -> bool {
        !self.checked.down && self.breaker.stand(now) == Stand::Closed
    }
}

/// How long answers take lately: a mean in which what is older weighs less (EWMA). Unasked, an address is thought to
/// become faster, so that one slow answer does not keep calls away for ever.
#[derive(Default)]
struct Time {
    mean: f64,
    at: Option<Instant>,
}

impl Time {
    fn measured(&mut self, took: Duration, now: Instant) {
        let took = took.as_secs_f64();
        self.mean = match self.at {
            // At the very least a tenth, since many answers come in the same moment.
            Some(at) => {
                let weight = faded(at, now).min(0.9);
                self.mean * weight + took * (1.0 - weight)
            }
            None => took,
        };
        self.at = Some(now);
    }

    fn lately(&self, now: Instant) -> Option<f64> {
        self.at.map(|at| self.mean * faded(at, now))
    }
}

/// What is left of the weight of something that was measured at `at`.
fn faded(at: Instant, now: Instant) -> f64 {
    let age = now.saturating_duration_since(at).as_secs_f64();
    (-age / MEMORY).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_follows_what_is_measured_and_fades() {
        let start = Instant::now();
        let mut time = Time::default();
        assert_eq!(time.lately(start), None);
        time.measured(SECOND, start);
        let near = |time: &Time, at, wanted: f64| {
            let is = time.lately(at).unwrap();
            assert!((is - wanted).abs() < 0.05, "{is}, not {wanted}");
        };
        near(&time, start, 1.0);
        for _ in 0..50 {
            time.measured(SECOND * 3, start);
        }
        near(&time, start, 3.0);
        near(&time, start + SECOND * 10, 3.0 / std::f64::consts::E);
        near(&time, start + SECOND * 1000, 0.0);
    }
}
