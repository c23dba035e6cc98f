//! Whose tasks, contexts and webhooks are, over real sockets: two tenants before one agent, which knows neither.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "ownership/answers.rs"]
mod answers;
#[path = "ownership/attacks.rs"]
mod attacks;
#[path = "ownership/lists.rs"]
mod lists;
#[path = "ownership/people.rs"]
mod people;
#[path = "ownership/replicas.rs"]
mod replicas;
#[path = "ownership/words.rs"]
mod words;
