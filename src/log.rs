//! The log: lines on stderr, for people or for machines. Fields, not prose; never a token, never a message's
//! content.
use std::{io::IsTerminal as _, sync::OnceLock};

use tracing_subscriber::{EnvFilter, Registry, fmt, prelude::*, reload};

use crate::{
    config::{Level, LogFormat},
    telemetry::logs::Layer,
};

/// What is logged, once a log has begun.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Whether this process logs at all, if perhaps nothing at first: one that only uses this as a library does not.
static STARTED: OnceLock<()> = OnceLock::new();

/// Logs this and all that is worse from now on. A log that was off begins.
pub fn set(level: Level, format: LogFormat) {
    if STARTED.get().is_none() {
        return;
    }
    let Some(known) = FILTER.get() else {
        return start(level, format);
    };
    if let Err(error) = known.reload(filter(level)) {
        tracing::warn!(%error, "what is logged could not be changed");
    }
}

fn filter(level: Level) -> EnvFilter {
    let ours = match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        // Libraries speak up only when something is wrong, unless all is wanted.
        Level::Trace => return EnvFilter::new("trace"),
        Level::Off => return EnvFilter::new("off"),
    };
    EnvFilter::new(format!("warn,a2a_gateway={ours}"))
}

/// Starts logging; the first call in a process counts.
pub fn start(level: Level, format: LogFormat) {
    STARTED.get_or_init(|| ());
    if level == Level::Off {
        return;
    }
    let (filter, handle) = reload::Layer::new(filter(level));
    let registry = tracing_subscriber::registry().with(filter).with(Layer);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start, as in a test that runs two gateways, changes nothing.
    let started = match format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry
            .with(lines.json().flatten_event(true).with_current_span(false))
            .try_init(),
    };
    if started.is_ok() {
        let _first = FILTER.set(handle);
    }
}
