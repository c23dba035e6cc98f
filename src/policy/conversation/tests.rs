//! What is right for one conversation: each rule by itself, then all of them against a simulated agent.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]

mod model;
mod permits;
mod rules;
mod waiting;
