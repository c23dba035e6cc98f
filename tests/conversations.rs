//! One message in flight per conversation, over real sockets. Each test says what the agent saw.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "conversations/admin.rs"]
mod admin;
#[path = "conversations/agents.rs"]
mod agents;
#[path = "conversations/at_once.rs"]
mod at_once;
#[path = "conversations/contention.rs"]
mod contention;
#[path = "conversations/evidence.rs"]
mod evidence;
#[path = "conversations/faults.rs"]
mod faults;
#[path = "conversations/keys.rs"]
mod keys;
#[path = "conversations/leaving.rs"]
mod leaving;
#[path = "conversations/pairs.rs"]
mod pairs;
#[path = "conversations/queue.rs"]
mod queue;
#[path = "conversations/strangers.rs"]
mod strangers;
#[path = "conversations/tasks.rs"]
mod tasks;
#[path = "conversations/telling.rs"]
mod telling;
#[path = "conversations/unknown.rs"]
mod unknown;
