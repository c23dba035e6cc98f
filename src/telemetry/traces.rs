//! Single calls, as spans: one for the call as its client sees it, one for what the agent was asked.
//!
//! ```text
//!   traceparent ──► door: whose trace? traced? ──► no: the call goes on, and forwards a context
//!                                          └─────► yes: ids and times are kept, and both spans are made when it has ended
//!   client's span ◄── parent ── server span (this gateway) ◄── parent ── client span (this gateway) ◄── the agent's
//! ```
//! Whether a call is traced is decided before anything of it is read: as its caller has it, else by chance. One that is
//! not costs a few random numbers, so that the agent hears that it is not.
//!
//! Names and attributes are those of the drafted semantic conventions for A2A (open-telemetry/semantic-conventions-genai,
//! pull request 195), of RPC and of HTTP: [`ATTRIBUTES`] is the table. Nothing is in a span that a record of a call does
//! not have: no message, no credential, no query.
use std::{
    fmt::Write as _,
    str::FromStr as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, Version, request::Parts};
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, IdGenerator as _, RandomIdGenerator, SpanData,
        SpanEvents, SpanLinks, SpanProcessor as _,
    },
};

use super::{
    BadTelemetry, Told,
    otlp::{Waiting, Way},
};
use crate::{
    a2a::{Binding, Dialect},
    config,
};

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");
/// Paths are kept up to so many bytes.
const LONGEST_PATH: usize = 1024;

/// In which spans an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum In {
    /// That of the call.
    Server,
    /// That of what the agent was asked.
    Client,
    /// Both.
    Both,
}

/// The attributes of spans: name, where it is, and what it is.
#[rustfmt::skip]
pub const ATTRIBUTES: &[(&str, In, &str)] = &[
    ("a2a.method.name",           In::Both,   "the operation in v1.0 spelling, whatever client and agent speak; the span's name as well"),
    ("a2a.protocol.version",      In::Both,   "what is spoken on this side: 1.0 or 0.3"),
    ("a2a.protocol.binding",      In::Both,   "what is spoken on this side: JSONRPC or HTTP+JSON"),
    ("a2a.task.id",               In::Both,   "the task that the call is about or made"),
    ("a2a.task.state",            In::Both,   "the last state of it that was told, in v1.0 spelling"),
    ("a2a.message.id",            In::Both,   "the message that was sent"),
    ("gen_ai.conversation.id",    In::Both,   "its context"),
    ("rpc.system",                In::Both,   "jsonrpc, where that is spoken on this side"),
    ("rpc.method",                In::Both,   "the method as it is called on this side, where JSON-RPC is spoken"),
    ("http.request.method",       In::Both,   "the verb"),
    ("http.response.status_code", In::Both,   "the status, where there was an answer"),
    ("http.route",                In::Server, "the route of the settings"),
    ("url.path",                  In::Server, "the path, up to 1 KiB"),
    ("url.scheme",                In::Server, "http or https"),
    ("client.address",            In::Server, "the address of the peer"),
    ("network.protocol.version",  In::Server, "the version of HTTP"),
    ("server.address",            In::Client, "the agent's host"),
    ("server.port",               In::Client, "the agent's port"),
    ("error.type",                In::Both,   "the reason of the fault; the span's status is an error then"),
];

/// What a call belongs to, and whether it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parent {
    trace: TraceId,
    span: SpanId,
    sampled: bool,
}

/// `traceparent`, if it is one (W3C Trace Context 3.2).
fn parent(fields: &HeaderMap) -> Option<Parent> {
    let mut all = fields.get_all(PARENT).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let text = only.to_str().ok()?.trim();
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let dashes = |at| matches!(at, 2 | 35 | 52);
    let plain = |(at, byte): (usize, u8)| {
        if dashes(at) {
            byte == b'-'
        } else {
            lower(byte)
        }
    };
    let head = text.as_bytes().get(..55)?;
    if !head.iter().copied().enumerate().all(plain) {
        return None;
    }
    let later = text.len() > 55;
    match &text[..2] {
        "ff" => return None,
        "00" if later => return None,
        _ if later && text.as_bytes()[55] != b'-' => return None,
        _ => {}
    }
    let trace = TraceId::from_hex(&text[3..35]).ok()?;
    let span = SpanId::from_hex(&text[36..52]).ok()?;
    let flags = u8::from_str_radix(&text[53..55], 16).ok()?;
    (trace != TraceId::INVALID && span != SpanId::INVALID).then_some(Parent {
        trace,
        span,
        sampled: flags & 1 == 1,
    })
}

fn write_parent(trace: TraceId, span: SpanId, sampled: bool) -> Option<HeaderValue> {
    let mut text = String::with_capacity(55);
    let flags = u8::from(sampled);
    let _infallible = write!(text, "00-{trace}-{span}-{flags:02x}");
    HeaderValue::try_from(text).ok()
}

/// A call that is traced.
pub struct Sampled {
    trace: TraceId,
    parent: Option<SpanId>,
    state: Option<HeaderValue>,
    server: SpanId,
    client: SpanId,
    begun: SystemTime,
    verb: http::Method,
    path: Box<str>,
    tls: bool,
    version: Version,
    /// What was sent to the agent first.
    pub(super) sent: Option<Sent>,
}

/// What the agent was asked. Times are in microseconds from the beginning of the call.
pub struct Sent {
    pub(super) at: u64,
    pub(super) verb: http::Method,
    pub(super) origin: Box<str>,
    pub(super) status: Option<u16>,
    pub(super) ended: Option<u64>,
}

impl Sampled {
    /// The id of its trace.
    pub(super) fn trace(&self) -> TraceId {
        self.trace
    }
}

/// Makes spans.
pub(super) struct Traces {
    processor: BatchSpanProcessor,
    pub(super) waiting: Arc<Waiting>,
    /// Of what the last half of a trace's id may be.
    below: u64,
    heed: bool,
    ids: RandomIdGenerator,
    scope: InstrumentationScope,
}

impl Traces {
    pub(super) fn start(
        way: &Way,
        settings: &config::Telemetry,
        resource: &Resource,
    ) -> Result<Self, BadTelemetry> {
        let queue = settings.otlp.queue;
        let waiting = Waiting::new("spans", queue);
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(queue)
            .with_max_export_batch_size(queue.min(512))
            .with_scheduled_delay(settings.otlp.delay)
            .build();
        let mut processor = BatchSpanProcessor::builder(way.traces(waiting.clone())?)
            .with_batch_config(config)
            .build();
        processor.set_resource(resource);
        Ok(Self {
            processor,
            waiting,
            below: below(settings.traces.sample.part()),
            heed: settings.traces.heed_callers,
            ids: RandomIdGenerator::default(),
            scope: InstrumentationScope::builder("a2a-gateway")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        })
    }

    /// Decides whether a call is traced.
    pub(super) fn begin(&self, head: &Parts, tls: bool) -> Option<Box<Sampled>> {
        let parent = if self.heed {
            parent(&head.headers)
        } else {
            None
        };
        let (trace, parent) = match parent {
            Some(parent) if parent.sampled => (parent.trace, Some(parent.span)),
            Some(_) => return None,
            None => {
                let trace = self.ids.new_trace_id();
                if chance(trace) >= self.below {
                    return None;
                }
                (trace, None)
            }
        };
        let path = head.uri.path();
        let mut end = path.len().min(LONGEST_PATH);
        while !path.is_char_boundary(end) {
            end -= 1;
        }
        Some(Box::new(Sampled {
            trace,
            parent,
            state: parent.and_then(|_| head.headers.get(STATE).cloned()),
            server: self.ids.new_span_id(),
            client: self.ids.new_span_id(),
            begun: SystemTime::now(),
            verb: head.method.clone(),
            path: path[..end].into(),
            tls,
            version: head.version,
            sent: None,
        }))
    }

    /// Tells the agent what it belongs to.
    pub(super) fn propagate(&self, fields: &mut HeaderMap, sampled: Option<&Sampled>) {
        let said = match sampled {
            Some(sampled) => {
                if sampled.parent.is_none() {
                    fields.remove(STATE); // of another trace
                }
                write_parent(sampled.trace, sampled.client, true)
            }
            None if self.heed && parent(fields).is_some() => return,
            None => {
                fields.remove(STATE);
                write_parent(self.ids.new_trace_id(), self.ids.new_span_id(), false)
            }
        };
        if let Some(said) = said {
            fields.insert(PARENT, said);
        }
    }

    /// Makes the spans of a call that has ended.
    pub(super) fn ended(&self, told: &Told<'_>, of: &Sampled) {
        self.hand_on(self.server(told, of));
        if let Some(sent) = &of.sent {
            self.hand_on(self.client(told, of, sent));
        }
    }

    fn hand_on(&self, span: SpanData) {
        if self.waiting.enter() {
            self.processor.on_end(span);
        }
    }

    fn server(&self, told: &Told<'_>, of: &Sampled) -> SpanData {
        let mut attributes = common(told, told.from);
        let mut put = |name: &'static str, value: opentelemetry::Value| {
            attributes.push(KeyValue::new(name, value));
        };
        put("http.request.method", of.verb.as_str().to_owned().into());
        if let Some(status) = told.status {
            put("http.response.status_code", i64::from(status).into());
        }
        if let Some(route) = told.route {
            put("http.route", route.to_owned().into());
        }
        put("url.path", of.path.to_string().into());
        put("url.scheme", if of.tls { "https" } else { "http" }.into());
        put(
            "client.address",
            told.peer.ip().to_canonical().to_string().into(),
        );
        put("network.protocol.version", version(of.version).into());
        let parent = of.parent.unwrap_or(SpanId::INVALID);
        SpanData {
            parent_span_is_remote: of.parent.is_some(),
            span_kind: SpanKind::Server,
            ..self.span(told, of, of.server, parent, (0, told.micros), attributes)
        }
    }

    fn client(&self, told: &Told<'_>, of: &Sampled, sent: &Sent) -> SpanData {
        let mut attributes = common(told, told.to);
        let mut put = |name: &'static str, value: opentelemetry::Value| {
            attributes.push(KeyValue::new(name, value));
        };
        put("http.request.method", sent.verb.as_str().to_owned().into());
        if let Some(status) = sent.status {
            put("http.response.status_code", i64::from(status).into());
        }
        if let Ok(origin) = http::Uri::from_str(&sent.origin) {
            let usual = if origin.scheme_str() == Some("https") {
                443
            } else {
                80
            };
            let host = origin.host().unwrap_or_default();
            put(
                "server.address",
                host.trim_matches(['[', ']']).to_owned().into(),
            );
            put(
                "server.port",
                i64::from(origin.port_u16().unwrap_or(usual)).into(),
            );
        }
        let times = (sent.at, sent.ended.unwrap_or(told.micros));
        self.span(told, of, of.client, of.server, times, attributes)
    }

    fn span(
        &self,
        told: &Told<'_>,
        of: &Sampled,
        id: SpanId,
        parent: SpanId,
        (from, to): (u64, u64),
        attributes: Vec<KeyValue>,
    ) -> SpanData {
        let state = of.state.as_ref().and_then(|s| s.to_str().ok());
        let state = state.and_then(|s| TraceState::from_str(s).ok());
        let at = |micros| of.begun + Duration::from_micros(micros);
        SpanData {
            span_context: SpanContext::new(
                of.trace,
                id,
                TraceFlags::SAMPLED,
                false,
                state.unwrap_or_default(),
            ),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Client,
            name: match told.method {
                super::Method::None => of.verb.as_str().to_owned().into(),
                super::Method::Card | super::Method::Of(_) => told.method.name().into(),
            },
            start_time: at(from),
            end_time: at(to.max(from)),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: match told.fault {
                Some(reason) => Status::error(reason),
                None => Status::Unset,
            },
            instrumentation_scope: self.scope.clone(),
        }
    }

    /// Sends what waits.
    pub(super) fn close(&self, within: Duration) {
        let _told_by_the_exporter = self.processor.shutdown_with_timeout(within);
    }
}

/// What both spans have; `side` is how its peer speaks.
fn common(told: &Told<'_>, side: Option<Dialect>) -> Vec<KeyValue> {
    let mut all = Vec::with_capacity(20);
    if told.method != super::Method::None {
        all.push(KeyValue::new("a2a.method.name", told.method.name()));
    }
    if let Some(side) = side {
        all.push(KeyValue::new(
            "a2a.protocol.version",
            side.shape.version().name(),
        ));
        let binding = match side.binding {
            Binding::Rpc => "JSONRPC",
            Binding::Rest => "HTTP+JSON",
        };
        all.push(KeyValue::new("a2a.protocol.binding", binding));
        if side.binding == Binding::Rpc
            && let super::Method::Of(op) = told.method
        {
            let row = op.row();
            let called = match side.shape.version() {
                crate::a2a::Version::V10 => row.v10.rpc,
                crate::a2a::Version::V03 => row.v03.rpc,
            };
            all.push(KeyValue::new("rpc.system", "jsonrpc"));
            all.push(KeyValue::new("rpc.method", called));
        }
    }
    let named = [
        ("a2a.task.id", told.task),
        ("a2a.task.state", told.state),
        ("a2a.message.id", told.message),
        ("gen_ai.conversation.id", told.context),
        ("error.type", told.fault),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            all.push(KeyValue::new(name, value.to_owned()));
        }
    }
    all
}

fn version(of: Version) -> &'static str {
    match of {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}

/// What a trace's id has of chance.
fn chance(trace: TraceId) -> u64 {
    let bytes = trace.to_bytes();
    let last = bytes.last_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(last) >> 1
}

/// The same rule as others have: a share of all ids, so that gateways that see one trace decide alike.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a whole, from 0 to 1"
)]
fn below(share: f64) -> u64 {
    (share * (1u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(texts: &[&str]) -> Option<Parent> {
        let mut fields = HeaderMap::new();
        for text in texts {
            fields.append(PARENT, HeaderValue::from_str(text).unwrap());
        }
        parent(&fields)
    }

    #[test]
    fn a_traceparent_is_read_or_is_none() {
        let good = read(&[GOOD]).unwrap();
        assert_eq!(good.trace.to_string(), &GOOD[3..35]);
        assert_eq!(good.span.to_string(), &GOOD[36..52]);
        assert!(good.sampled);
        assert!(!read(&[&GOOD.replace("-01", "-00")]).unwrap().sampled);
        assert!(read(&[&GOOD.replace("00-4", "01-4")]).is_some());
        let later = format!("{}-more", GOOD.replace("00-4", "cc-4"));
        assert!(read(&[&later]).is_some(), "later versions may say more");
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{}x", GOOD.replace("00-4", "cc-4")),
            &GOOD.replace("00-4", "ff-4"),
            &GOOD.replace("4bf9", "4BF9"),
            &GOOD.replace("4bf9", "4bfg"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(read(&[bad]), None, "{bad}");
        }
        assert_eq!(read(&[GOOD, GOOD]), None, "one of two cannot be chosen");
        assert_eq!(read(&[]), None);
        let written = write_parent(good.trace, good.span, true).unwrap();
        assert_eq!(written, GOOD);
    }

    #[test]
    fn the_share_of_ids_is_the_share_of_calls() {
        assert_eq!(below(0.0), 0);
        assert_eq!(below(1.0), 1 << 63);
        assert_eq!(below(0.5), 1 << 62);
        let ids = RandomIdGenerator::default();
        let chosen = (0..100_000)
            .filter(|_| chance(ids.new_trace_id()) < below(0.1))
            .count();
        assert!((9_000..11_000).contains(&chosen), "{chosen}");
    }
}
