//! What the store is told of counts (`counts.lua`), and what it answers.
use std::time::Duration;

use redis::{Script, ScriptInvocation};
use smallvec::SmallVec;

use super::arg_of;
use crate::state::{
    Key,
    counters::{Micros, What},
};

/// One count, what of it, and who holds it where it is held; of a rate that is given back, its word when it was taken.
pub(in super::super) type Counted = (Key, What, u64);

/// What is done with counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Doing {
    /// Takes of all, or of none.
    Take,
    /// Gives back what was taken then.
    Give(Micros),
    /// Takes whatever is left; of what is held, holds on.
    Charge,
    /// Says what is used.
    Look,
}

/// What is to be done with some counts.
#[derive(Clone, Debug)]
pub(in super::super) struct Counting {
    pub(in super::super) doing: Doing,
    pub(in super::super) of: SmallVec<[Counted; 4]>,
}

/// The script.
pub(in super::super) struct Counts {
    script: Script,
    lease: Duration,
}

impl Counts {
    pub(in super::super) fn new(lease: Option<Duration>) -> Self {
        Self {
            script: Script::new(include_str!("../counts.lua")),
            lease: lease.unwrap_or(Duration::from_secs(30)),
        }
    }

    /// One operation on these counts, under these names. Tests shift the clock.
    pub(in super::super) fn call(
        &self,
        doing: Doing,
        of: &[Counted],
        name: impl Fn(Key) -> String,
        shift: u64,
    ) -> ScriptInvocation<'_> {
        let mut call = self.script.prepare_invoke();
        for (key, _, _) in of {
            call.key(name(*key));
        }
        let (op, at) = match doing {
            Doing::Take => ("take", 0),
            Doing::Give(at) => ("give", at),
            Doing::Charge => ("charge", 0),
            Doing::Look => ("look", 0),
        };
        let lease = arg_of(self.lease).saturating_mul(1000);
        call.arg(op).arg(shift).arg(lease).arg(at);
        for (_, what, token) in of {
            match *what {
                What::Rate {
                    interval,
                    tolerance,
                } => call.arg("r").arg(interval).arg(tolerance).arg(*token),
                What::Window { until, limit, cost } => {
                    call.arg("q").arg(until).arg(limit).arg(cost)
                }
                What::Rolling { part, limit, cost } => call.arg("w").arg(part).arg(limit).arg(cost),
                What::AtOnce { limit } => call.arg("c").arg(*token).arg(limit).arg(0),
            };
        }
        call
    }
}
