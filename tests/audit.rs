//! The record of calls, over real sockets: what stands in it, that it is there, and that nobody can change it unseen.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

use support::place;

#[path = "audit/calls.rs"]
mod calls;
#[path = "audit/full.rs"]
mod full;
#[path = "audit/kill.rs"]
mod kill;
#[path = "audit/leaving.rs"]
mod leaving;
#[path = "audit/secrets.rs"]
mod secrets;
#[path = "audit/table.rs"]
mod table;
