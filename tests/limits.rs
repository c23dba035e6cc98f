//! Rates, quotas and what may be there at once, over real sockets: what clients are told, and what the agent saw.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "limits/admin.rs"]
mod admin;
#[path = "limits/at_once.rs"]
mod at_once;
#[path = "limits/free.rs"]
mod free;
#[path = "limits/restart.rs"]
mod restart;
#[path = "limits/shared.rs"]
mod shared;
#[path = "limits/telling.rs"]
mod telling;
