//! What the gateway tells of itself: metrics, traces, the log, a line for each call.
//!
//! ```text
//!   call ── account (audit::Record) ── told by every step ──► ended ──► Series (numbers of a route) ◄── /metrics, collector
//!                                                              ├──────► a line in the log
//!                                                              ├──────► two spans, if it is traced
//!                                                              └──────► audit's queue
//! ```
//! A call has one account, whoever wants it: it is made if there is a record to be written, something to be counted, a
//! line to be logged or a span to be made, and otherwise is nothing. What is counted elsewhere, as connections are, is read
//! there when somebody asks ([`Telemetry::reads`]).
//!
//! Metrics are those of [`names::METRICS`], attributes of spans those of [`traces::ATTRIBUTES`]. OTLP goes over HTTP in
//! protobuf; gRPC is not spoken.
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use http::{HeaderMap, request::Parts};
use opentelemetry::KeyValue;
use opentelemetry_sdk::{Resource, metrics::PeriodicReader};

pub mod logs;
mod meters;
pub mod names;
pub mod otlp;
mod process;
mod series;
pub mod traces;

pub use meters::Say;
pub use series::{Method, Outcome, Series};

use meters::{Meters, Sources};
use series::Counts;
use traces::{Sampled, Sent, Traces};

use crate::{
    a2a::{Dialect, fault::Blame, shape::Loss},
    config::{self, Config},
};

/// Why telemetry cannot begin with these settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadTelemetry(String);

/// What the gateway tells of itself. All clones are one.
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    counts: Arc<Counts>,
    sources: Arc<Sources>,
    meters: Option<Meters>,
    traces: Option<Arc<Traces>>,
    logs: Option<logs::Logs>,
    access_log: bool,
}

impl Telemetry {
    /// Begins to tell what the settings ask for; where they ask for nothing, this is nothing.
    pub fn start(config: &Config) -> Result<Self, BadTelemetry> {
        let settings = &config.telemetry;
        let way = if settings.sends() {
            Some(otlp::Way::start(&settings.otlp)?)
        } else {
            None
        };
        let resource = resource(settings);
        let (counts, sources) = (Arc::<Counts>::default(), Arc::<Sources>::default());
        let push = match &way {
            Some(way) if settings.metrics.otlp => {
                let reader = PeriodicReader::builder(way.metrics()?);
                Some(reader.with_interval(settings.metrics.interval).build())
            }
            Some(_) | None => None,
        };
        let prometheus = settings.metrics.prometheus && config.admin.is_some();
        let meters = if prometheus || push.is_some() {
            let (counts, sources) = (&counts, &sources);
            let resource = resource.clone();
            Some(Meters::start(resource, prometheus, push, counts, sources)?)
        } else {
            None
        };
        let traces = match &way {
            Some(way) if settings.traces.otlp => {
                Some(Arc::new(Traces::start(way, settings, &resource)?))
            }
            Some(_) | None => None,
        };
        let logs = match &way {
            Some(way) if settings.logs.otlp => {
                Some(logs::Logs::start(way, &settings.otlp, resource)?)
            }
            Some(_) | None => None,
        };
        let telemetry = Self(Arc::new(Inner {
            counts,
            sources,
            meters,
            traces,
            logs,
            access_log: config.access_log,
        }));
        telemetry.know_thyself();
        Ok(telemetry)
    }

    /// What is known without anybody's help.
    fn know_thyself(&self) {
        self.reads(names::BUILD_INFO, |say| {
            say.count(&[env!("CARGO_PKG_VERSION")], 1);
        });
        for (name, read) in [
            (names::PROCESS_CPU, process::cpu as fn() -> Option<f64>),
            (names::PROCESS_MEMORY, process::memory),
            (names::PROCESS_FDS, process::files),
            (names::PROCESS_MAX_FDS, process::most_files),
            (names::PROCESS_START, process::began),
        ] {
            self.reads(name, move |say| {
                if let Some(value) = read() {
                    say.say(&[], value);
                }
            });
        }
    }

    /// Whether anything is counted.
    pub fn has_metrics(&self) -> bool {
        self.0.meters.is_some()
    }

    /// How a metric of the table is read from now on, in place of how it was read before: `read` says each of its values,
    /// with labels in the order of the table. It is asked for every scrape, and must not wait.
    pub fn reads(&self, name: &'static str, read: impl Fn(&Say<'_>) + Send + Sync + 'static) {
        if self.has_metrics() {
            self.0.sources.put(name, Arc::new(read));
        }
    }

    /// The same for one without labels.
    pub fn gauge(&self, name: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) {
        self.reads(name, move |say| say.count(&[], read()));
    }

    /// The numbers of a route by its name in the settings, if any are kept.
    pub fn series(&self, route: &str) -> Option<Arc<Series>> {
        let meters = self.0.meters.as_ref()?;
        Some(self.0.counts.series(route, &meters.histograms))
    }

    /// Who listens to the calls of one worker, if anybody does.
    pub fn ears(&self) -> Option<Arc<Ears>> {
        let inner = &self.0;
        let metrics = self.series("/");
        if metrics.is_none() && inner.traces.is_none() && !inner.access_log {
            return None;
        }
        Some(Arc::new(Ears {
            counts: metrics.is_some().then(|| inner.counts.clone()),
            unrouted: metrics,
            traces: inner.traces.clone(),
            access_log: inner.access_log,
        }))
    }

    /// All metrics as Prometheus reads them; none where they are not to be shown to it.
    pub fn scrape(&self) -> Option<Result<String, String>> {
        self.0.meters.as_ref()?.scrape()
    }

    /// How many spans and lines of the log were not sent.
    pub fn dropped(&self) -> (u64, u64) {
        let spans = self.0.traces.as_ref().map(|t| t.waiting.dropped());
        let lines = self.0.logs.as_ref().map(|l| l.waiting.dropped());
        (spans.unwrap_or_default(), lines.unwrap_or_default())
    }

    /// Sends what waits, and sends no more. False if it could not in this time.
    pub fn close(&self, within: Duration) -> bool {
        let inner = self.0.clone();
        let (to, done) = std::sync::mpsc::channel();
        // Exporters heed no deadline of ours: they are left behind, where they do not end in time.
        let ends = std::thread::Builder::new()
            .name("telemetry-end".to_owned())
            .spawn(move || {
                inner.close(within);
                let _nobody_waits = to.send(());
            });
        let ended = ends.is_ok() && done.recv_timeout(within).is_ok();
        let (spans, lines) = self.dropped();
        if spans + lines > 0 {
            tracing::warn!(spans, lines, "telemetry was not sent");
        }
        ended
    }
}

impl Inner {
    /// All at the same time: each may wait for the collector as long as it may.
    fn close(&self, within: Duration) {
        std::thread::scope(|scope| {
            if let Some(traces) = &self.traces {
                scope.spawn(move || traces.close(within));
            }
            if let Some(logs) = &self.logs {
                logs.stop();
                scope.spawn(move || logs.provider.shutdown_with_timeout(within));
            }
            if let Some(meters) = &self.meters {
                scope.spawn(move || meters.provider.shutdown_with_timeout(within));
            }
        });
    }
}

fn resource(settings: &config::Telemetry) -> Resource {
    let more = settings.resource.iter();
    let more = more.map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    Resource::builder_empty()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_service_name(settings.service.clone())
        .with_attributes(more)
        .build()
}

/// Listens to calls, for one worker.
pub struct Ears {
    counts: Option<Arc<Counts>>,
    /// Of calls that find no route.
    unrouted: Option<Arc<Series>>,
    traces: Option<Arc<Traces>>,
    access_log: bool,
}

/// What is heard of a call that its record does not say.
#[derive(Default)]
pub struct Heard {
    /// The numbers of its route.
    pub series: Option<Arc<Series>>,
    /// What is asked for.
    pub method: Method,
    /// How the client speaks.
    pub from: Option<Dialect>,
    /// How the agent speaks.
    pub to: Option<Dialect>,
    /// Whose fault it is that it failed.
    pub blame: Option<Blame>,
    /// It has had an event.
    first_event: bool,
    /// Whether it is a live stream.
    live: Live,
    /// When its client had all that it gets, or went.
    gone: Option<u64>,
    /// It is traced.
    sampled: Option<Box<Sampled>>,
}

/// Whether a call is a stream that its client sees.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Live {
    /// Not yet, or never.
    #[default]
    No,
    /// It is counted.
    Yes,
    /// Its client has no more of it, whoever reads on.
    Over,
}

/// What is known of a call that has ended.
pub struct Told<'a> {
    /// Who called.
    pub peer: SocketAddr,
    /// By name.
    pub caller: Option<&'a str>,
    /// The route.
    pub route: Option<&'a str>,
    /// What was asked for.
    pub method: Method,
    /// How the client speaks.
    pub from: Option<Dialect>,
    /// How the agent speaks.
    pub to: Option<Dialect>,
    /// The context.
    pub context: Option<&'a str>,
    /// The task.
    pub task: Option<&'a str>,
    /// The message.
    pub message: Option<&'a str>,
    /// It was not let through.
    pub refused: bool,
    /// The rule that decided.
    pub rule: Option<&'a str>,
    /// Why it failed.
    pub fault: Option<&'static str>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// The last state of its task.
    pub state: Option<&'static str>,
    /// Its client left.
    pub left: bool,
    /// Bytes of its request and of its answer.
    pub bytes: (u64, u64),
    /// Events.
    pub events: u64,
    /// How long it took.
    pub micros: u64,
}

impl Ears {
    /// A call has come; whether it is to be traced is decided now.
    pub fn begin(&self, head: &Parts, tls: bool) -> Heard {
        let traces = self.traces.as_ref();
        Heard {
            sampled: traces.and_then(|traces| traces.begin(head, tls)),
            ..Heard::default()
        }
    }

    /// Whether an account of the call is wanted.
    pub fn listen_to(&self, heard: &Heard) -> bool {
        self.counts.is_some() || self.wants_all_of(heard)
    }

    /// Whether ids and names are of use.
    pub fn wants_all_of(&self, heard: &Heard) -> bool {
        self.access_log || heard.is_traced()
    }

    /// Fields on their way to the agent: they tell it which trace it belongs to. Without traces they pass as they are.
    pub fn propagate(&self, fields: &mut HeaderMap, heard: Option<&Heard>) {
        if let Some(traces) = &self.traces {
            traces.propagate(fields, heard.and_then(|heard| heard.sampled.as_deref()));
        }
    }

    /// So much was lost.
    pub fn lost(&self, losses: &[Loss]) {
        if let Some(counts) = &self.counts {
            counts.lost(losses);
        }
    }

    /// A call has ended.
    pub fn ended(&self, told: &Told<'_>, heard: &Heard) {
        let outcome = Outcome::of(told.left, heard.blame);
        if let Some(counts) = &self.counts
            && let Some(series) = heard.series.as_ref().or(self.unrouted.as_ref())
        {
            // What goes on without its client may take hours, which no caller waited.
            let micros = heard.gone.unwrap_or(told.micros);
            series.ended(told.method, told.from, outcome, micros);
            if told.refused
                && let Some(reason) = told.fault
            {
                counts.refused(reason, told.rule);
            }
        }
        if self.access_log {
            log(told, outcome, heard.sampled.as_deref());
        }
        if let Some(traces) = &self.traces
            && let Some(sampled) = &heard.sampled
        {
            traces.ended(told, sampled);
        }
    }
}

impl Heard {
    /// Whether spans are made of it.
    pub const fn is_traced(&self) -> bool {
        self.sampled.is_some()
    }

    /// The body of its request.
    pub fn received(&self, bytes: usize) {
        if let Some(series) = &self.series {
            add(&series.request_bytes, bytes as u64);
        }
    }

    /// A part of the body of its answer.
    pub fn answered(&self, bytes: u64) {
        if let Some(series) = &self.series {
            add(&series.response_bytes, bytes);
        }
    }

    /// An event; `micros` says when.
    pub fn event(&mut self, micros: impl FnOnce() -> u64) {
        if let Some(series) = &self.series {
            add(&series.events, 1);
            if !std::mem::replace(&mut self.first_event, true) {
                series.first_event(micros());
            }
        }
    }

    /// Its answer is a live stream from here on, if its client is still there.
    pub fn streams(&mut self) {
        if let (Live::No, Some(series)) = (self.live, &self.series) {
            series.streams.fetch_add(1, Relaxed);
            self.live = Live::Yes;
        }
    }

    /// Its client has all of its answer, or went: `micros` says when. Others may go on with it.
    pub fn gone(&mut self, micros: u64) {
        self.gone.get_or_insert(micros);
        if let (Live::Yes, Some(series)) = (self.live, &self.series) {
            series.streams.fetch_sub(1, Relaxed);
        }
        self.live = Live::Over;
    }

    /// Something was sent to the agent; the first counts.
    pub fn sent(&mut self, micros: u64, verb: &http::Method, origin: &str) {
        if let Some(sampled) = &mut self.sampled {
            sampled.sent.get_or_insert_with(|| Sent {
                at: micros,
                verb: verb.clone(),
                origin: origin.into(),
                status: None,
                ended: None,
            });
        }
    }

    /// The agent has answered with this status.
    pub fn agent_answered(&mut self, status: u16) {
        if let Some(sent) = self.sampled.as_mut().and_then(|s| s.sent.as_mut()) {
            sent.status = Some(status);
        }
    }

    /// The agent's answer has ended.
    pub fn agent_ended(&mut self, micros: u64) {
        if let Some(sent) = self.sampled.as_mut().and_then(|s| s.sent.as_mut()) {
            sent.ended = Some(micros);
        }
    }
}

fn add(to: &std::sync::atomic::AtomicU64, more: u64) {
    to.fetch_add(more, Relaxed);
}

/// The line of a call.
fn log(told: &Told<'_>, outcome: Outcome, sampled: Option<&Sampled>) {
    tracing::info!(
        target: "a2a_gateway::access",
        peer = %told.peer,
        caller = told.caller,
        route = told.route,
        method = told.method.name(),
        r#in = told.from.map(Dialect::name),
        out = told.to.map(Dialect::name),
        outcome = outcome.name(),
        status = told.status,
        fault = told.fault,
        rule = told.rule,
        context = told.context,
        task = told.task,
        state = told.state,
        bytes_in = told.bytes.0,
        bytes_out = told.bytes.1,
        events = told.events,
        micros = told.micros,
        trace = sampled.map(|s| tracing::field::display(s.trace())),
    );
}
