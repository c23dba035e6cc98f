//! What calls count: numbers that are added to where a call learns something, and read when somebody asks.
//!
//! A route has its series once, found when the gateway is made: a call adds to a number that is there, and no label is
//! built or looked up for it. Only histograms are the SDK's own, bound to their labels at the first call that needs them.
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, Histogram},
};
use parking_lot::Mutex;

use super::{meters::Say, names};
use crate::a2a::{Binding, Dialect, Op, Version, fault::Blame, op::OPS, shape::Loss};

/// The label of calls that belong to no route, and to the only one of a gateway without routes.
const DEFAULT: &str = "default";
/// The label of what is not known.
const NONE: &str = "none";
/// The card is no operation of the protocol.
const CARD: &str = "AgentCard";

/// What is asked for, as labels have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Nobody knows.
    #[default]
    None,
    /// The public card.
    Card,
    /// An operation.
    Of(Op),
}

impl Method {
    const COUNT: usize = OPS.len() + 2;

    fn index(self) -> usize {
        match self {
            Self::None => 0,
            Self::Card => 1,
            Self::Of(op) => 2 + OPS.iter().position(|row| row.op == op).unwrap_or_default(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let ops = OPS.iter().map(|row| Self::Of(row.op));
        [Self::None, Self::Card].into_iter().chain(ops)
    }

    /// In v1.0 spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => NONE,
            Self::Card => CARD,
            Self::Of(op) => op.name(),
        }
    }
}

/// What clients speak, as labels have it.
const CLIENTS: [&str; 5] = [
    NONE,
    "v0.3-jsonrpc",
    "v0.3-rest",
    "v1.0-jsonrpc",
    "v1.0-rest",
];

const fn client(dialect: Option<Dialect>) -> usize {
    match dialect {
        None => 0,
        Some(Dialect { binding, shape }) => match (shape.version(), binding) {
            (Version::V03, Binding::Rpc) => 1,
            (Version::V03, Binding::Rest) => 2,
            (Version::V10, Binding::Rpc) => 3,
            (Version::V10, Binding::Rest) => 4,
        },
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Ok,
    /// It was refused, or failed by its caller's fault.
    Caller,
    /// It failed by the gateway's.
    Gateway,
    /// It failed by the agent's.
    Agent,
    /// Its client went before it ended.
    Left,
}

impl Outcome {
    const ALL: [Self; 5] = [
        Self::Ok,
        Self::Caller,
        Self::Gateway,
        Self::Agent,
        Self::Left,
    ];

    /// What failed, unless the client went.
    pub const fn of(left: bool, blame: Option<Blame>) -> Self {
        match (left, blame) {
            (true, _) => Self::Left,
            (false, None) => Self::Ok,
            (false, Some(Blame::Caller)) => Self::Caller,
            (false, Some(Blame::Gateway)) => Self::Gateway,
            (false, Some(Blame::Agent)) => Self::Agent,
        }
    }

    /// As labels have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Caller => "caller",
            Self::Gateway => "gateway",
            Self::Agent => "agent",
            Self::Left => "left",
        }
    }
}

/// The numbers of one route.
pub struct Series {
    route: Arc<str>,
    histograms: Histograms,
    /// By method, client and outcome.
    calls: Box<[[[AtomicU64; Outcome::ALL.len()]; CLIENTS.len()]; Method::COUNT]>,
    durations: [OnceLock<BoundHistogram<f64>>; Method::COUNT],
    first_event: OnceLock<BoundHistogram<f64>>,
    pub(super) events: AtomicU64,
    pub(super) request_bytes: AtomicU64,
    pub(super) response_bytes: AtomicU64,
    pub(super) streams: AtomicI64,
}

/// Those that the SDK keeps.
#[derive(Clone)]
pub(super) struct Histograms {
    pub(super) duration: Histogram<f64>,
    pub(super) first_event: Histogram<f64>,
}

/// Seconds, of microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "who waits for so long does not count microseconds"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl Series {
    fn new(route: Arc<str>, histograms: Histograms) -> Self {
        Self {
            route,
            histograms,
            calls: Box::default(),
            durations: Default::default(),
            first_event: OnceLock::new(),
            events: AtomicU64::new(0),
            request_bytes: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            streams: AtomicI64::new(0),
        }
    }

    pub(super) fn ended(
        &self,
        method: Method,
        from: Option<Dialect>,
        outcome: Outcome,
        micros: u64,
    ) {
        let index = method.index();
        self.calls[index][client(from)][outcome as usize].fetch_add(1, Relaxed);
        let duration = self.durations[index].get_or_init(|| {
            let route = KeyValue::new("route", self.route.clone());
            let labels = [route, KeyValue::new("method", method.name())];
            self.histograms.duration.bind(&labels)
        });
        duration.record(seconds(micros));
    }

    pub(super) fn first_event(&self, micros: u64) {
        let first = self.first_event.get_or_init(|| {
            let route = KeyValue::new("route", self.route.clone());
            self.histograms.first_event.bind(&[route])
        });
        first.record(seconds(micros));
    }
}

/// All that calls count.
#[derive(Default)]
pub(super) struct Counts {
    routes: Mutex<BTreeMap<Arc<str>, Arc<Series>>>,
    /// By reason and rule.
    refusals: Mutex<HashMap<(&'static str, Cow<'static, str>), u64>>,
    /// By object and member.
    losses: Mutex<HashMap<(&'static str, &'static str), u64>>,
}

impl Counts {
    /// The series of a route, made if it is new: a route that comes back after a reload goes on counting.
    pub(super) fn series(&self, route: &str, histograms: &Histograms) -> Arc<Series> {
        let label = if route == "/" { DEFAULT } else { route };
        let mut routes = self.routes.lock();
        if let Some(series) = routes.get(label) {
            return series.clone();
        }
        let label: Arc<str> = label.into();
        let series = Arc::new(Series::new(label.clone(), histograms.clone()));
        routes.insert(label, series.clone());
        series
    }

    /// `rule` is of limits, if any of those refused.
    pub(super) fn refused(&self, reason: &'static str, rule: Option<&str>) {
        let rule = rule.and_then(|rule| rule.strip_prefix("limits."));
        let rule = rule.map_or(Cow::Borrowed(""), |rule| Cow::Owned(rule.to_owned()));
        *self.refusals.lock().entry((reason, rule)).or_default() += 1;
    }

    pub(super) fn lost(&self, losses: &[Loss]) {
        let mut counted = self.losses.lock();
        for loss in losses {
            let key = match &loss.member {
                Cow::Borrowed(member) => (loss.of, *member),
                Cow::Owned(_) => ("", ""), // its name came from outside
            };
            *counted.entry(key).or_default() += 1;
        }
    }

    /// Says what is counted here. False if it is not.
    pub(super) fn say(&self, say: &Say<'_>) -> bool {
        match say.name() {
            names::CALLS => self.each(|series| series.say_calls(say)),
            names::EVENTS => self.each(|s| say.count(&[&s.route], s.events.load(Relaxed))),
            names::REQUEST_SIZE => {
                self.each(|s| say.count(&[&s.route], s.request_bytes.load(Relaxed)));
            }
            names::RESPONSE_SIZE => {
                self.each(|s| say.count(&[&s.route], s.response_bytes.load(Relaxed)));
            }
            names::STREAMS => self.each(|s| {
                let streams = s.streams.load(Relaxed);
                say.count(&[&s.route], u64::try_from(streams).unwrap_or_default());
            }),
            names::REFUSALS => {
                for ((reason, rule), count) in &*self.refusals.lock() {
                    say.count(&[reason, rule], *count);
                }
            }
            names::LOSSES => {
                for ((of, member), count) in &*self.losses.lock() {
                    let path = match *of {
                        "" => "unknown".to_owned(),
                        of => format!("{of}.{member}"),
                    };
                    say.count(&[&path], *count);
                }
            }
            _ => return false,
        }
        true
    }

    fn each(&self, what: impl Fn(&Series)) {
        let all: Vec<_> = self.routes.lock().values().cloned().collect();
        for series in all {
            what(&series);
        }
    }
}

impl Series {
    fn say_calls(&self, say: &Say<'_>) {
        for (method, of_method) in Method::all().zip(&*self.calls) {
            for (client, of_client) in CLIENTS.iter().zip(of_method) {
                for (outcome, count) in Outcome::ALL.iter().zip(of_client) {
                    let count = count.load(Relaxed);
                    if count > 0 {
                        let labels = [&self.route, method.name(), client, outcome.name()];
                        say.count(&labels, count);
                    }
                }
            }
        }
    }
}
