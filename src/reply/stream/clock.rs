//! What a stream waits for when nothing comes: the end of a grace, time for a comment, the end of patience.
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::time::{Instant, Sleep};

use super::Speech;

/// What time asks for.
pub(super) enum Due {
    /// The event that waits has waited long enough.
    Grace,
    /// The client has heard nothing for a while.
    KeepAlive,
    /// The agent has said nothing for too long.
    Idle,
}

/// When something was last read and written, and one timer, made only when there is nothing to do.
pub(super) struct Clock {
    timer: Option<Pin<Box<Sleep>>>,
    read_at: Instant,
    wrote_at: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self {
            timer: None,
            read_at: now,
            wrote_at: now,
        }
    }

    /// The agent said something.
    pub(super) fn read(&mut self) {
        self.read_at = Instant::now();
    }

    /// The client was told something.
    pub(super) fn wrote(&mut self) {
        self.wrote_at = Instant::now();
    }

    /// What is due now. `grace` is when that of the waiting event ends.
    pub(super) fn due(
        &mut self,
        cx: &mut Context<'_>,
        speech: &Speech,
        grace: Option<Instant>,
    ) -> Poll<Due> {
        loop {
            let (at, what) = self.next(speech, grace);
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            // A timer that is early is only set again when it rings: an event costs no timer.
            if timer.deadline() > at {
                timer.as_mut().reset(at);
            }
            ready!(timer.as_mut().poll(cx));
            if at <= Instant::now() {
                self.timer = None;
                return Poll::Ready(what);
            }
            timer.as_mut().reset(at);
        }
    }

    fn next(&self, speech: &Speech, grace: Option<Instant>) -> (Instant, Due) {
        let mut next = (self.read_at + speech.idle, Due::Idle);
        if !speech.keep_alive.is_zero() {
            let at = self.wrote_at + speech.keep_alive;
            if at < next.0 {
                next = (at, Due::KeepAlive);
            }
        }
        match grace {
            Some(at) if at < next.0 => (at, Due::Grace),
            _ => next,
        }
    }
}
