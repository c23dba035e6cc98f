//! The log, on its way to a collector: what is written to stderr is sent there as well. Nothing of what sends it is: the
//! sending of a line must not make another line.
use std::sync::Arc;

use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{
    Resource,
    logs::{BatchConfigBuilder, BatchLogProcessor, SdkLogger, SdkLoggerProvider},
};
use parking_lot::RwLock;
use tracing::{Event, Subscriber};
use tracing_subscriber::{layer::Context, registry::LookupSpan};

use super::{
    BadTelemetry,
    otlp::{self, Waiting, Way},
};
use crate::config::Otlp;

/// Whose lines are not sent: those of what sends them.
const KEPT_OUT: [&str; 5] = ["hyper", "hyper_util", "h2", "tower", "rustls"];

type Bridge = OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger>;

/// The process has one log, which begins before it is known whether anything is sent.
static SENT: RwLock<Option<Arc<Sent>>> = RwLock::new(None);

struct Sent {
    bridge: Bridge,
    waiting: Arc<Waiting>,
}

/// The part of the log that is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let target = event.metadata().target();
        let library = target.split("::").next().unwrap_or(target);
        if KEPT_OUT.contains(&library) || library.starts_with("opentelemetry") || otlp::sends() {
            return;
        }
        let sent = SENT.read().clone();
        if let Some(sent) = sent
            && sent.waiting.enter()
        {
            sent.bridge.on_event(event, context);
        }
    }
}

pub(super) struct Logs {
    pub(super) provider: SdkLoggerProvider,
    pub(super) waiting: Arc<Waiting>,
}

impl Logs {
    pub(super) fn start(
        way: &Way,
        settings: &Otlp,
        resource: Resource,
    ) -> Result<Self, BadTelemetry> {
        let waiting = Waiting::new("lines of the log", settings.queue);
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(settings.queue)
            .with_max_export_batch_size(settings.queue.min(512))
            .with_scheduled_delay(settings.delay)
            .build();
        let processor = BatchLogProcessor::builder(way.logs(waiting.clone())?)
            .with_batch_config(config)
            .build();
        let provider = SdkLoggerProvider::builder()
            .with_resource(resource)
            .with_log_processor(processor)
            .build();
        *SENT.write() = Some(Arc::new(Sent {
            bridge: Bridge::new(&provider),
            waiting: waiting.clone(),
        }));
        Ok(Self { provider, waiting })
    }

    /// No more lines come.
    pub(super) fn stop(&self) {
        let mut sent = SENT.write();
        let is_ours = |sent: &Arc<Sent>| Arc::ptr_eq(&sent.waiting, &self.waiting);
        if sent.as_ref().is_some_and(is_ours) {
            *sent = None;
        }
    }
}
