//! The section about what the gateway tells of itself. As in `sections`, the comments are also the descriptions in the
//! JSON Schema.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::{SecretHeader, secret_header};
use super::mean::above_zero;
use super::tree::Tree;
use super::units::Time;
use super::url::BaseUrl;

/// Metrics, traces and logs, as OpenTelemetry has them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// What this gateway is called there: `service.name`.
    pub service: String,
    /// Further attributes of it, such as `deployment.environment.name`.
    pub resource: BTreeMap<String, String>,
    /// What is counted.
    pub metrics: Metrics,
    /// What becomes of single calls.
    pub traces: Traces,
    /// What the log says.
    pub logs: Logs,
    /// Where a collector is.
    pub otlp: Otlp,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Show metrics to Prometheus, at `/metrics` of the address `admin`, where there is one.
    pub prometheus: bool,
    /// Send metrics to the collector.
    pub otlp: bool,
    /// How often metrics are sent to the collector.
    #[serde(with = "Time")]
    pub interval: Duration,
}

/// What becomes of single calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Traces {
    /// Send traces to the collector.
    pub otlp: bool,
    /// The share of calls that are traced, of those whose caller decided nothing: 0 to 1.
    pub sample: Share,
    /// Heed what a caller's `traceparent` says: whose trace a call belongs to, and whether it is traced.
    pub heed_callers: bool,
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(#[schemars(with = "f64", range(min = 0, max = 1))] u64);

impl Share {
    const WHOLE: f64 = 1e9;

    /// As a number from 0 to 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "it is at most a thousand million"
    )]
    pub fn part(self) -> f64 {
        self.0 as f64 / Self::WHOLE
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.part()
    }
}

impl TryFrom<f64> for Share {
    type Error = &'static str;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 0 to a thousand million"
    )]
    fn try_from(part: f64) -> Result<Self, Self::Error> {
        if (0.0..=1.0).contains(&part) {
            return Ok(Self((part * Self::WHOLE).round() as u64));
        }
        Err("expected a number from 0 to 1")
    }
}

/// What the log says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logs {
    /// Send what is logged to the collector, too.
    pub otlp: bool,
}

/// Where a collector is. It is spoken to by OTLP over HTTP, in protobuf.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// Its address, without `/v1/traces` and the like. Required where something is sent there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Fields with secrets for it.
    pub headers: Vec<SecretHeader>,
    /// How long it may take to answer.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// Certificates to trust beside the system's, as PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The most spans that wait to be sent, and the most lines of the log. What is more is counted and dropped.
    #[schemars(range(min = 1))]
    pub queue: usize,
    /// How long spans and lines of the log wait for others, to be sent together.
    #[serde(with = "Time")]
    pub delay: Duration,
}

impl Telemetry {
    /// Whether anything is sent to a collector by this section.
    pub const fn sends(&self) -> bool {
        self.metrics.otlp || self.traces.otlp || self.logs.otlp
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            service: "a2a-gateway".to_owned(),
            resource: BTreeMap::new(),
            metrics: Metrics::default(),
            traces: Traces::default(),
            logs: Logs::default(),
            otlp: Otlp::default(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            prometheus: true,
            otlp: false,
            interval: Duration::from_mins(1),
        }
    }
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            otlp: false,
            sample: Share(10_000_000),
            heed_callers: true,
        }
    }
}

impl Default for Otlp {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(10),
            ca_file: None,
            queue: 4096,
            delay: Duration::from_secs(1),
        }
    }
}

/// `audit` is whether records of calls are sent there as well.
pub(super) fn check(said: &Telemetry, audit: bool, tree: &mut Tree) {
    let interval = [("interval", said.metrics.interval)];
    above_zero("telemetry.metrics", &[], &interval, tree);
    let otlp = &said.otlp;
    let times = [("timeout", otlp.timeout), ("delay", otlp.delay)];
    above_zero("telemetry.otlp", &[("queue", otlp.queue)], &times, tree);
    if said.service.is_empty() {
        tree.wrong("telemetry.service", "expected a name");
    }
    match &otlp.endpoint {
        Some(endpoint) => {
            if let Err(why) = BaseUrl::parse(endpoint) {
                tree.wrong("telemetry.otlp.endpoint", why.to_string());
            }
        }
        None if said.sends() || audit => {
            let says = "something is to be sent to a collector: expected its address, such as http://collector:4318";
            tree.missing("telemetry.otlp", "endpoint", says);
        }
        None => {}
    }
    for (index, header) in otlp.headers.iter().enumerate() {
        secret_header(&format!("telemetry.otlp.headers[{index}]"), header, tree);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Overrides};

    fn parse(rest: &str) -> Result<Config, String> {
        let text = format!("backend: {{url: 'http://agent'}}\n{rest}\n");
        let read = Config::parse(&text, Overrides::default());
        read.map_err(|e| e.to_string())
    }

    #[test]
    fn nothing_is_sent_unasked_and_what_is_needs_a_collector() {
        assert!(!parse("").unwrap().telemetry.sends());
        for on in ["metrics", "traces", "logs"] {
            let said = format!("telemetry: {{{on}: {{otlp: true}}}}");
            let told = parse(&said).unwrap_err();
            assert!(told.starts_with("telemetry.otlp.endpoint: "), "{told}");
            let said =
                format!("telemetry: {{{on}: {{otlp: true}}, otlp: {{endpoint: 'http://c:4318'}}}}");
            assert!(parse(&said).unwrap().telemetry.sends());
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (said, told) in [
            ("service: ''", "telemetry.service: line 2"),
            ("metrics: {interval: 0}", "telemetry.metrics.interval: "),
            ("traces: {sample: 1.5}", "telemetry.traces.sample: "),
            ("traces: {sample: -1}", "telemetry.traces.sample: "),
            (
                "otlp: {endpoint: 'collector:4318'}",
                "telemetry.otlp.endpoint: ",
            ),
            ("otlp: {timeout: 0}", "telemetry.otlp.timeout: "),
            ("otlp: {queue: 0}", "telemetry.otlp.queue: "),
            (
                "otlp: {headers: [{name: x-key}]}",
                "telemetry.otlp.headers[0].file: ",
            ),
            (
                "otlp: {headers: [{name: host, env: X}]}",
                "telemetry.otlp.headers[0].name: ",
            ),
        ] {
            let says = parse(&format!("telemetry: {{{said}}}")).unwrap_err();
            assert!(says.contains(told), "{said}: {says}");
        }
        let whole = parse("telemetry: {traces: {sample: 1}}").unwrap();
        assert!(whole.telemetry.traces.sample.part() >= 1.0);
    }
}
