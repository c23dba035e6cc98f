//! What is right for one conversation: each rule by itself, then all of them against a simulated agent.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#![allow(
    clippy::similar_names,
    clippy::struct_excessive_bools,
    clippy::option_option,
    clippy::wildcard_enum_match_arm,
    clippy::needless_for_each,
    clippy::unnecessary_wraps,
    reason = "a model says many small things of one message"
)]

mod model;
mod rules;
mod slots;
mod waiting;
