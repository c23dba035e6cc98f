//! Two gateway processes that share one real redis-server, before a scripted agent that goes on working after a kill:
//! whatever dies, no two messages of a conversation are live at once while the store is up, and each conversation is
//! its callers' again in time.
//!
//! Here is a short run; `tests/soak/replicas` has the long ones.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "its tasks end with the runtime of the test"
)]
#![allow(unreachable_pub, reason = "nothing is outside of a test")]

#[path = "replicas/agent.rs"]
mod agent;
#[path = "replicas/dice.rs"]
mod dice;
#[path = "replicas/hand_over.rs"]
mod hand_over;
#[path = "replicas/ledger.rs"]
mod ledger;
#[path = "replicas/line.rs"]
mod line;
#[path = "replicas/load.rs"]
mod load;
#[path = "replicas/play.rs"]
mod play;
#[path = "replicas/stand.rs"]
mod stand;
#[path = "replicas/work.rs"]
mod work;

use std::time::Duration;

use play::{Plan, play};

/// Few messages, and patience enough for a machine that has other things to do.
#[test]
fn messages_stay_apart_when_a_replica_is_killed() {
    play(&Plan {
        name: "short",
        contexts: 20,
        each: 20,
        hand_overs: 50,
        on_error: "refuse",
        settle_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
        slack: Duration::from_secs(20),
        all: false,
    });
}

fn soak(on_error: &'static str) {
    play(&Plan {
        name: on_error,
        contexts: 200,
        each: 100,
        hand_overs: 1000,
        on_error,
        settle_timeout: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
        slack: Duration::from_secs(1),
        all: true,
    });
}

#[test]
#[ignore = "takes minutes, see tests/soak/replicas"]
fn soak_local() {
    soak("local");
}

#[test]
#[ignore = "takes minutes, see tests/soak/replicas"]
fn soak_refuse() {
    soak("refuse");
}
