//! The instruments, made from the table of names, and who reads them: Prometheus, a collector, or both.
use std::{collections::HashMap, sync::Arc};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Histogram, Meter, MeterProvider as _},
};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream},
};
use parking_lot::RwLock;
use prometheus::{Registry, TextEncoder};

use super::{
    BadTelemetry,
    names::{self, Kind, METRICS, Metric},
    otlp,
    series::{Counts, Histograms},
};

/// More series of one metric are not told apart. The SDK makes room for so many at once, so this stays near what settings
/// with hundreds of routes, rules and addresses come to.
const SERIES: usize = 10_000;
/// The same for calls, of which a route alone may have 325.
const SERIES_OF_CALLS: usize = 100_000;

/// Where what is read at one time is said.
pub struct Say<'a> {
    metric: &'static Metric,
    to: &'a dyn Fn(f64, &[KeyValue]),
}

impl Say<'_> {
    pub(super) const fn name(&self) -> &'static str {
        self.metric.name
    }

    /// A value; `labels` in the order of the table.
    pub fn say(&self, labels: &[&str], value: f64) {
        let names = self.metric.labels.iter();
        let labels: Vec<_> = names
            .zip(labels)
            .map(|(name, value)| KeyValue::new(*name, (*value).to_owned()))
            .collect();
        (self.to)(value, &labels);
    }

    /// The same for a time, which may be before 1970.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact for more years than there are"
    )]
    pub fn seconds(&self, labels: &[&str], at: i64) {
        self.say(labels, at as f64);
    }

    /// The same for what is counted.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to nine thousand million million"
    )]
    pub fn count(&self, labels: &[&str], value: u64) {
        self.say(labels, value as f64);
    }
}

type Read = Arc<dyn Fn(&Say<'_>) + Send + Sync>;

/// What is read where it is kept, by the name of the metric.
#[derive(Default)]
pub(super) struct Sources(RwLock<HashMap<&'static str, Read>>);

impl Sources {
    /// Reads it so from now on.
    pub(super) fn put(&self, name: &'static str, read: Read) {
        debug_assert!(METRICS.iter().any(|m| m.name == name), "{name}");
        self.0.write().insert(name, read);
    }

    fn say(&self, say: &Say<'_>) {
        let read = self.0.read().get(say.name()).cloned();
        if let Some(read) = read {
            read(say);
        }
    }
}

pub(super) struct Meters {
    pub(super) provider: SdkMeterProvider,
    pub(super) histograms: Histograms,
    /// What Prometheus is shown.
    registry: Option<Registry>,
}

impl Meters {
    pub(super) fn start(
        resource: Resource,
        prometheus: bool,
        push: Option<PeriodicReader<otlp::Metrics>>,
        counts: &Arc<Counts>,
        sources: &Arc<Sources>,
    ) -> Result<Self, BadTelemetry> {
        let mut builder = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_view(|of: &Instrument| {
                let stream = Stream::builder().with_cardinality_limit(most(of.name()));
                stream.build().ok()
            });
        let registry = prometheus.then(Registry::new);
        if let Some(registry) = &registry {
            let exporter = opentelemetry_prometheus::exporter()
                .with_registry(registry.clone())
                .scope_info_enabled(false)
                .without_target_info()
                .build();
            builder = builder.with_reader(exporter.map_err(|e| BadTelemetry(e.to_string()))?);
        }
        if let Some(push) = push {
            builder = builder.with_reader(push);
        }
        let provider = builder.build();
        let meter = provider.meter("a2a-gateway");
        for metric in METRICS {
            instrument(&meter, metric, counts, sources);
        }
        Ok(Self {
            histograms: Histograms {
                duration: histogram(&meter, names::DURATION),
                first_event: histogram(&meter, names::FIRST_EVENT),
            },
            provider,
            registry,
        })
    }

    /// What Prometheus is shown.
    pub(super) fn scrape(&self) -> Option<Result<String, String>> {
        let families = self.registry.as_ref()?.gather();
        let text = TextEncoder::new().encode_to_string(&families);
        Some(text.map_err(|e| e.to_string()))
    }
}

/// How many series of a metric are told apart.
fn most(name: &str) -> usize {
    let metric = METRICS.iter().find(|m| m.name == name);
    match metric {
        Some(metric) if metric.labels.is_empty() => 1,
        Some(metric) if metric.name == names::CALLS => SERIES_OF_CALLS,
        Some(_) | None => SERIES,
    }
}

/// An instrument that is read when somebody asks.
fn instrument(
    meter: &Meter,
    metric: &'static Metric,
    counts: &Arc<Counts>,
    sources: &Arc<Sources>,
) {
    let (counts, sources) = (counts.clone(), sources.clone());
    let read = move |observer: &dyn AsyncInstrument<f64>| {
        let say = Say {
            metric,
            to: &|value, labels| observer.observe(value, labels),
        };
        if !counts.say(&say) {
            sources.say(&say);
        }
    };
    match metric.kind {
        Kind::Counter => drop(
            meter
                .f64_observable_counter(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.help)
                .with_callback(read)
                .build(),
        ),
        Kind::UpDown => drop(
            meter
                .f64_observable_up_down_counter(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.help)
                .with_callback(read)
                .build(),
        ),
        Kind::Gauge => drop(
            meter
                .f64_observable_gauge(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.help)
                .with_callback(read)
                .build(),
        ),
        Kind::Histogram(_) => {}
    }
}

fn histogram(meter: &Meter, name: &'static str) -> Histogram<f64> {
    let metric = METRICS.iter().find(|m| m.name == name);
    let (buckets, metric) = metric
        .and_then(|m| match m.kind {
            Kind::Histogram(buckets) => Some((buckets, m)),
            Kind::Counter | Kind::UpDown | Kind::Gauge => None,
        })
        .expect("a histogram of the table");
    meter
        .f64_histogram(name)
        .with_unit(metric.unit)
        .with_description(metric.help)
        .with_boundaries(buckets.to_vec())
        .build()
}
