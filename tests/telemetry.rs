//! What the gateway tells of itself, as those hear it who listen: Prometheus by its scrape, a collector by OTLP over real
//! sockets.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;

#[path = "telemetry/audit.rs"]
mod audit;
#[path = "telemetry/logs.rs"]
mod logs;
#[path = "telemetry/metrics.rs"]
mod metrics;
#[path = "telemetry/pushed.rs"]
mod pushed;
#[path = "telemetry/scrape.rs"]
mod scrape;
#[path = "telemetry/traces.rs"]
mod traces;
