//! The log: lines on stderr, for people or for machines. Fields, not prose; never a token, never a message's
//! content.
use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt, prelude::*};

use crate::{
    config::{Level, LogFormat},
    telemetry::logs::Layer,
};

/// Starts logging; the first call in a process counts.
pub fn start(level: Level, format: LogFormat) {
    let filter = match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
        Level::Off => return,
    };
    // Libraries speak up only when something is wrong, unless all is wanted.
    let filter = match level {
        Level::Trace => EnvFilter::new("trace"),
        Level::Error | Level::Warn | Level::Info | Level::Debug | Level::Off => {
            EnvFilter::new(format!("warn,a2a_gateway={filter}"))
        }
    };
    let registry = tracing_subscriber::registry().with(filter).with(Layer);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start, as in a test that runs two gateways, changes nothing.
    let _already_started = match format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry
            .with(lines.json().flatten_event(true).with_current_span(false))
            .try_init(),
    };
}
