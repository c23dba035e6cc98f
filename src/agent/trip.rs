//! The way of one call among the addresses: where it sets out to, and where it turns when that fails. Only what the
//! agent cannot have begun is sent again: nothing of it was written, or it is a question that may be asked twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use smallvec::SmallVec;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Agent;
use super::balance::{Dice, View, choose};
use super::branch::{Branch, List};
use super::breaker::Ticket;
use super::error::Error;
use super::link::Failed;
use super::replica::Replica;
use super::room::Whose;

/// So many times may a call turn elsewhere: more would take longer than its caller waits.
const TURNS: u8 = 2;

type Sent = Box<Request<Full<Bytes>>>;

/// A call on its way.
pub(super) struct Trip {
    pub(super) branch: Arc<Branch>,
    /// Its place at that address, once it has one.
    permit: Option<OwnedSemaphorePermit>,
    /// How it goes there; nobody counts where there is but one address.
    ride: Option<Box<Ride>>,
    /// Whether a connection that was used before will do.
    pub(super) reuse: bool,
    turns: u8,
}

impl Trip {
    /// Waits for a place at the address.
    pub(super) async fn enter(&mut self, wait: Duration, deadline: Instant) -> Result<(), Error> {
        let entered = self.branch.replica.hall.enter(wait, deadline).await?;
        self.permit = Some(entered);
        Ok(())
    }

    /// The head of an answer is here.
    pub(super) fn answered(
        mut self,
        status: StatusCode,
    ) -> (Option<OwnedSemaphorePermit>, Option<Box<Ride>>) {
        // What a proxy says of an agent that is away, and an agent that is about to go. Any other error is its own.
        let unwell = matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        );
        if unwell {
            self.failed(&format!("HTTP status {}", status.as_u16()));
        } else if let Some(ride) = &mut self.ride {
            ride.answered();
        } else {
            self.branch.replica.answered_alone();
        }
        (self.permit, self.ride)
    }

    /// It failed in a way that says that something is wrong with the address.
    pub(super) fn failed(&mut self, cause: &str) {
        match &mut self.ride {
            Some(ride) => {
                ride.told = true;
                ride.replica.failed(Some(ride.ticket), cause);
            }
            None => self.branch.replica.failed(None, cause),
        }
    }

    /// Whether it was at this address before.
    fn has_tried(&self, replica: &Replica) -> bool {
        match &self.ride {
            Some(ride) => ride.tried.contains(&replica.id),
            None => self.branch.replica.id == replica.id,
        }
    }
}

impl Agent {
    /// Sets out for the address that is the best for a call of that one.
    pub(super) fn set_out(&self, whose: Whose) -> Result<Trip, Error> {
        match self.branches.alone(&self.room, &self.settings) {
            Ok(branch) => Ok(Trip {
                branch,
                permit: None,
                ride: None,
                reuse: true,
                turns: 0,
            }),
            Err(list) => {
                let found = self.choose(&list, whose, |_| false);
                let (branch, ride) = found
                    .ok_or_else(|| Error::Unreachable("no address of it is known".to_owned()))?;
                Ok(Trip {
                    branch,
                    permit: None,
                    ride: Some(ride),
                    reuse: true,
                    turns: 0,
                })
            }
        }
    }

    fn choose(
        &self,
        list: &List,
        whose: Whose,
        tried: impl Fn(&Replica) -> bool,
    ) -> Option<(Arc<Branch>, Box<Ride>)> {
        let now = Instant::now();
        let views: SmallVec<[View; 8]> = list
            .iter()
            .map(|branch| View {
                tried: tried(&branch.replica),
                ..branch.replica.view(now)
            })
            .collect();
        let at = |id| list.iter().position(|branch| branch.replica.id == id);
        let wish = self.room.wish(whose, at);
        let branch = &list[choose(&views, wish, &mut Dice(self.room.roll()))?];
        let ride = Ride::new(&branch.replica, whose, now);
        Some((Arc::clone(branch), Box::new(ride)))
    }

    /// What to do about a failure: the request once more, for where `trip` leads now, or the error that ends it. `read`
    /// says that the request may be asked twice.
    pub(super) async fn turn(
        &self,
        trip: &mut Trip,
        failed: Failed,
        spare: &mut Option<Sent>,
        read: bool,
        deadline: Instant,
    ) -> Result<Sent, Error> {
        let (request, error, elsewhere) = match failed {
            // Its connection had been closed while idle: another has not been asked yet.
            Failed::Unsent {
                request,
                reused: true,
                ..
            } => return Ok(request),
            Failed::Unsent { request, cause, .. } => {
                trip.failed(&cause);
                // One that accepts and closes at once will do so again.
                let once = Some(request).filter(|_| trip.turns == 0);
                (once, Error::Broken { sent: false, cause }, false)
            }
            Failed::Undialled { request, error } => {
                if let Error::Unreachable(cause) = &error {
                    trip.failed(cause);
                    (Some(request), error, true)
                } else {
                    (None, error, true)
                }
            }
            Failed::Broken { error, reused } => {
                if !reused {
                    trip.failed(&error.to_string());
                }
                // Where one idle connection broke, its neighbours have likely gone as well.
                trip.reuse = false;
                (spare.take(), error, false)
            }
            Failed::Final(error) => {
                let late = matches!(error, Error::Timeout { sent: true }) && read;
                if late || matches!(error, Error::Broken { .. }) {
                    trip.failed(&error.to_string());
                }
                (None, error, false)
            }
        };
        let Some(request) = request.filter(|_| trip.turns < TURNS) else {
            return Err(error);
        };
        let other = self.other(trip, elsewhere, deadline).await;
        if elsewhere && other.is_none() || !self.may_repeat() {
            return Err(error);
        }
        trip.turns += 1;
        if let Some((branch, ride)) = other {
            trip.permit = None;
            trip.branch = branch;
            trip.ride = Some(ride);
            trip.reuse = true;
            trip.enter(self.settings.wait, deadline).await?;
        }
        Ok(request)
    }

    /// Another address for the same call; looked up anew where none is left and `look` says so.
    async fn other(
        &self,
        trip: &Trip,
        look: bool,
        deadline: Instant,
    ) -> Option<(Arc<Branch>, Box<Ride>)> {
        let (whose, mut tried) = match &trip.ride {
            Some(ride) => (ride.whose, ride.tried.clone()),
            None => (Whose::default(), SmallVec::new()),
        };
        let list = || self.branches.list(&self.room, &self.settings);
        let mut found = self.choose(&list(), whose, |other| trip.has_tried(other));
        if found.is_none() && look && self.room.moves() {
            // Late or failed, it finds what was found before.
            let _ = tokio::time::timeout_at(deadline, self.room.look()).await;
            found = self.choose(&list(), whose, |other| trip.has_tried(other));
        }
        let (_, ride) = found.as_mut()?;
        tried.push(trip.branch.replica.id);
        ride.tried.extend(tried);
        found
    }

    /// Whether something may be sent again; then it counts.
    fn may_repeat(&self) -> bool {
        self.room.may_repeat(self.calls.swap(0, Ordering::Relaxed))
    }
}

/// A call at one of several addresses, counted there until it has ended.
pub(super) struct Ride {
    replica: Arc<Replica>,
    ticket: Ticket,
    began: Instant,
    whose: Whose,
    /// Where the same call was before, and is now.
    tried: SmallVec<[u64; 4]>,
    told: bool,
    ended: bool,
}

impl Ride {
    fn new(replica: &Arc<Replica>, whose: Whose, now: Instant) -> Self {
        Self {
            ticket: replica.begin(now),
            replica: Arc::clone(replica),
            began: now,
            whose,
            tried: SmallVec::from_slice(&[replica.id]),
            told: false,
            ended: false,
        }
    }

    fn answered(&mut self) {
        self.told = true;
        let now = Instant::now();
        let took = now.saturating_duration_since(self.began);
        self.replica.answered(self.ticket, took, now);
    }

    /// Where it goes.
    pub(super) fn replica(&self) -> u64 {
        self.replica.id
    }

    /// The call has ended.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.replica.end();
        }
    }
}

impl Drop for Ride {
    fn drop(&mut self) {
        self.end();
        if !self.told {
            self.replica.given_up(self.ticket);
        }
    }
}
