//! The gateway in front of agents that fail in every way that a network has: behind a proxy that refuses, resets, stalls
//! and dribbles as it is told. Every wait has a deadline; every message is counted where the agent could have seen it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "faults/cuts.rs"]
mod cuts;
#[path = "faults/health.rs"]
mod health;
#[path = "faults/homes.rs"]
mod homes;
#[path = "faults/names.rs"]
mod names;
#[path = "faults/proxy.rs"]
mod proxy;
#[path = "faults/replicas.rs"]
mod replicas;
#[path = "faults/scene.rs"]
mod scene;
#[path = "faults/stalls.rs"]
mod stalls;
