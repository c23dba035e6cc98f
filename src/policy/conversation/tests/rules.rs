//! The slot's own rules, without store or agent.
use std::time::Duration;

use crate::state::slot::Times;

/// As in the default settings, without leases.
pub(super) fn times() -> Times {
    Times {
        lease: None,
        settle: Duration::from_secs(5),
        max_hold: Duration::from_hours(1),
    }
}
