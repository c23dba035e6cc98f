//! Who is let in, what they may do, and what the agent is shown, over real sockets.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

use support::issuer;

#[path = "identity/callers.rs"]
mod callers;
#[path = "identity/cards.rs"]
mod cards;
#[path = "identity/door.rs"]
mod door;
#[path = "identity/house.rs"]
mod house;
#[path = "identity/own.rs"]
mod own;
#[path = "identity/realms.rs"]
mod realms;
#[path = "identity/renewed.rs"]
mod renewed;
#[path = "identity/replicas.rs"]
mod replicas;
#[path = "identity/staying.rs"]
mod staying;
