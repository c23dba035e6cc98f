//! What the gateway tells of itself, as those hear it who listen: Prometheus by its scrape, a collector by OTLP over real
//! sockets.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[allow(dead_code, reason = "some of it is for tests of TLS alone")]
#[path = "tls/pki.rs"]
mod pki;
#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;
#[allow(dead_code, reason = "some of it is for tests of TLS alone")]
#[path = "tls/client.rs"]
mod tls_client;

#[path = "telemetry/audit.rs"]
mod audit;
#[path = "telemetry/certificates.rs"]
mod certificates;
#[path = "telemetry/logs.rs"]
mod logs;
#[path = "telemetry/metrics.rs"]
mod metrics;
#[path = "telemetry/pushed.rs"]
mod pushed;
#[path = "telemetry/reload.rs"]
mod reload;
#[path = "telemetry/scrape.rs"]
mod scrape;
#[path = "telemetry/traces.rs"]
mod traces;
