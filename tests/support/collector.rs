//! A collector: it takes OTLP over HTTP in protobuf, as any does, and keeps what it got.
use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    metrics::v1::Metric,
    trace::v1::Span,
};
use prost::Message;

use super::{Head, Wire, until};

#[derive(Default)]
struct Got {
    heads: Vec<Head>,
    spans: Vec<Span>,
    logs: Vec<LogRecord>,
    metrics: Vec<Metric>,
    resources: Vec<Vec<KeyValue>>,
    /// All bodies as they came.
    bytes: Vec<u8>,
    /// What it answers, where that is not 200.
    says: Option<u16>,
    /// What it answers where this is in a body.
    refuses: Option<(&'static str, u16)>,
}

#[derive(Clone)]
pub struct Collector {
    pub addr: SocketAddr,
    got: Arc<Mutex<Got>>,
}

impl Collector {
    pub fn start() -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn at(listener: TcpListener) -> Self {
        let this = Self {
            addr: listener.local_addr().unwrap(),
            got: Arc::default(),
        };
        let got = this.got.clone();
        thread::spawn(move || {
            for io in listener.incoming() {
                let (mut wire, got) = (Wire::new(io.unwrap()), got.clone());
                wire.io.set_read_timeout(None).unwrap();
                thread::spawn(move || while take(&mut wire, &got).is_some() {});
            }
        });
        this
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// It answers so from now on; 200 is as always.
    pub fn says(&self, status: u16) {
        self.got.lock().unwrap().says = Some(status).filter(|s| *s != 200);
    }

    /// From now on it answers so what has this in it.
    pub fn refuses(&self, text: &'static str, status: u16) {
        self.got.lock().unwrap().refuses = Some((text, status));
    }

    pub fn heads(&self) -> Vec<Head> {
        self.got.lock().unwrap().heads.clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        self.got.lock().unwrap().spans.clone()
    }

    /// Waits for so many spans.
    pub fn spans_once(&self, count: usize) -> Vec<Span> {
        until("so many spans come", || self.spans().len() >= count);
        self.spans()
    }

    pub fn logs(&self) -> Vec<LogRecord> {
        self.got.lock().unwrap().logs.clone()
    }

    pub fn metrics(&self) -> Vec<Metric> {
        self.got.lock().unwrap().metrics.clone()
    }

    pub fn resources(&self) -> Vec<Vec<KeyValue>> {
        self.got.lock().unwrap().resources.clone()
    }

    /// Whether this is anywhere in what came.
    pub fn has(&self, text: &str) -> bool {
        let got = self.got.lock().unwrap();
        got.bytes.windows(text.len()).any(|w| w == text.as_bytes())
    }
}

fn take(wire: &mut Wire, got: &Mutex<Got>) -> Option<()> {
    let head = wire.head()?;
    let length = head.get("content-length")?.parse().unwrap();
    let body = wire.exactly(length)?;
    assert_eq!(head.get("content-type"), Some("application/x-protobuf"));
    let mut got = got.lock().unwrap();
    let has = |text: &str| body.windows(text.len()).any(|w| w == text.as_bytes());
    let refused = got.refuses.filter(|(text, _)| has(text));
    let status = got.says.or(refused.map(|(_, status)| status));
    let status = status.unwrap_or(200);
    let path = head.line.split(' ').nth(1).unwrap().to_owned();
    got.heads.push(head);
    if status == 200 {
        got.keep(&path, &body);
    }
    drop(got);
    let text = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n\r\n");
    wire.write(text).then_some(())
}

impl Got {
    fn keep(&mut self, path: &str, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        if path.ends_with("/v1/traces") {
            let said = ExportTraceServiceRequest::decode(body).unwrap();
            for of in said.resource_spans {
                self.resources.push(of.resource.unwrap().attributes);
                self.spans
                    .extend(of.scope_spans.into_iter().flat_map(|s| s.spans));
            }
        } else if path.ends_with("/v1/logs") {
            let said = ExportLogsServiceRequest::decode(body).unwrap();
            for of in said.resource_logs {
                self.resources.push(of.resource.unwrap().attributes);
                self.logs
                    .extend(of.scope_logs.into_iter().flat_map(|s| s.log_records));
            }
        } else {
            assert!(path.ends_with("/v1/metrics"), "{path}");
            let said = ExportMetricsServiceRequest::decode(body).unwrap();
            for of in said.resource_metrics {
                self.resources.push(of.resource.unwrap().attributes);
                self.metrics
                    .extend(of.scope_metrics.into_iter().flat_map(|s| s.metrics));
            }
        }
    }
}

/// A value as text.
pub fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|v| v.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// An attribute as text.
pub fn attribute(of: &[KeyValue], name: &str) -> Option<String> {
    let all: Vec<_> = of.iter().filter(|a| a.key == name).collect();
    assert!(all.len() <= 1, "{name} is there twice");
    all.first().map(|a| text(a.value.as_ref()))
}
