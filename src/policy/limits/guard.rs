//! What a call took of the rules, until its answer has ended.
use smallvec::SmallVec;
use tokio::time::Instant;

use super::{Limits, rule::Rule};
use crate::{
    a2a::{Fault, Op},
    config::Of,
    state::counters::Taken,
};

/// Bytes are charged when they have come to this, and at the end.
const BYTES: u64 = 64 * 1024;
const SECOND: u128 = 1_000_000;

/// What a call took. Dropped before it went out, it gives all back; afterwards what it held at once.
pub struct Guard {
    limits: Limits,
    taken: Taken,
    rules: SmallVec<[u8; 4]>,
    /// Its own name.
    call: u64,
    /// Since when it streams, where that is charged.
    streams: Option<Instant>,
    /// Seconds that are charged already.
    seconds: u64,
    /// Bytes that are not charged yet.
    bytes: u64,
    out: bool,
    done: bool,
}

impl Guard {
    pub(super) fn new(
        limits: &Limits,
        taken: Taken,
        rules: SmallVec<[u8; 4]>,
        call: u64,
        op: Op,
    ) -> Self {
        Self {
            limits: limits.clone(),
            taken,
            rules,
            call,
            streams: op.streams().then(Instant::now),
            seconds: 0,
            bytes: 0,
            out: false,
            done: false,
        }
    }

    /// The call is about to go out.
    pub const fn goes_out(&mut self) {
        self.out = true;
    }

    /// It failed. What never reached the agent is free; where somebody answered, it did.
    pub fn failed(&mut self, fault: &Fault, answered: bool) {
        if !answered && !fault.may_have_started(false) {
            self.give_back();
        }
    }

    /// So many bytes go to the client, now.
    pub fn told(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.bytes >= BYTES {
            self.charge(Of::ResponseBytes, self.bytes);
            self.bytes = 0;
        }
        self.pass();
    }

    /// Charges the seconds that have passed.
    fn pass(&mut self) {
        let Some(since) = self.streams else {
            return;
        };
        let passed = since.elapsed().as_micros();
        // A second that has begun counts, so that no stream is free.
        let passed = u64::try_from(passed.div_ceil(SECOND)).unwrap_or(u64::MAX);
        if passed > self.seconds {
            self.charge(Of::StreamSeconds, passed - self.seconds);
            self.seconds = passed;
        }
    }

    fn charge(&self, of: Of, cost: u64) {
        let Some(inner) = &self.limits.0 else {
            return;
        };
        let now = inner.clock.now();
        for (one, rule) in self.taken.of.iter().zip(&self.rules) {
            let rule: &Rule = &inner.rules[usize::from(*rule)];
            if let Some(what) = rule.later(of, cost, now) {
                inner.counters.charge(&self.taken, one, what, now);
            }
        }
    }

    fn give_back(&mut self) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        if let Some(inner) = &self.limits.0 {
            let now = inner.clock.now();
            inner.counters.give_back(&self.taken, self.call, now);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.out {
            self.give_back();
        }
        if self.done {
            return;
        }
        if self.bytes > 0 {
            self.charge(Of::ResponseBytes, self.bytes);
        }
        self.pass();
        let Some(inner) = &self.limits.0 else {
            return;
        };
        inner.counters.release(&self.taken, self.call);
    }
}
