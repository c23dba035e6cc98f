//! The gateway over real sockets, between raw clients and an agent that does what the test says.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "gateway/adk.rs"]
mod adk;
#[path = "gateway/cards.rs"]
mod cards;
#[path = "gateway/faults.rs"]
mod faults;
#[path = "gateway/http.rs"]
mod http;
#[path = "gateway/leaving.rs"]
mod leaving;
#[path = "gateway/limits.rs"]
mod limits;
#[path = "gateway/operations.rs"]
mod operations;
#[path = "gateway/streams.rs"]
mod streams;
