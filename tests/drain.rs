//! The end of a gateway that runs as a program: what it still takes, what it lets end, what it says to the rest, and how
//! long all that may take.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;

#[path = "drain/asked.rs"]
mod asked;
#[path = "drain/calls.rs"]
mod calls;
#[path = "drain/streams.rs"]
mod streams;
