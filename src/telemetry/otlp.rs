//! The way to a collector: OTLP over HTTP, in protobuf, by the same HTTP client as agents are spoken to with.
//!
//! ```text
//!   the SDK's threads (they know no runtime) ──► HttpClient ──► one small runtime ──► Client ──► collector
//!   the audit log's own thread ─────────────── with a runtime of its own ────────────► Client ──► collector
//! ```
//! What waits is bounded here and not by the SDK, which would only count what it drops: see `Waiting`.
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Relaxed},
        },
    },
    thread,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter},
};
use tokio::{runtime::Handle, sync::oneshot};

use super::BadTelemetry;
use crate::{
    agent::{self, Agent, Origin, Room},
    config::{self, BaseUrl, SecretHeader},
    tls::{self, Roots},
    watch::{Watch, Watched},
};

/// A collector's answer is short.
const ANSWER: usize = 64 * 1024;
/// No more connections are opened to it.
const CONNECTIONS: usize = 4;

/// Speaks with a collector. It belongs to the runtime that it is used on.
pub struct Client {
    agent: Agent,
    /// The path of its address, without a slash at the end.
    base: String,
    headers: Vec<(HeaderName, Secret)>,
    timeout: Duration,
    _watch: Watch,
}

enum Secret {
    Fixed(HeaderValue),
    File(Watched<HeaderValue>),
}

/// What a collector said, or why it said nothing.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It could not be asked.
    #[error("{0}")]
    Away(agent::Error),
    /// It refused, and would again.
    #[error("it answers {0}")]
    Refused(StatusCode),
    /// It asks to be left alone for a while.
    #[error("it answers {0}")]
    Busy(StatusCode),
}

impl Client {
    /// Reads what is needed; connects only when something is sent.
    pub fn new(settings: &config::Otlp) -> Result<Self, BadTelemetry> {
        let wrong =
            |why: &dyn fmt::Display| BadTelemetry(format!("telemetry.otlp.endpoint: {why}"));
        let endpoint = settings.endpoint.as_deref().unwrap_or_default(); // asked for by `config`
        let url = BaseUrl::parse(endpoint).map_err(|e| wrong(&e))?;
        let origin = format!("{}://{}", url.scheme(), url.authority());
        let (origin, _) = Origin::parse(&origin).map_err(|e| wrong(&e))?;
        let mut files: Vec<Box<dyn crate::watch::Look>> = vec![];
        let tls = url.is_https().then(|| {
            let roots = Roots {
                ca_file: settings.ca_file.clone(),
                ..Roots::default()
            };
            let client = tls::Client::read("telemetry.otlp", &roots)?;
            files.push(client.files());
            Ok::<_, String>(client)
        });
        let tls = tls
            .transpose()
            .map_err(|why| BadTelemetry(format!("telemetry.otlp.{why}")))?;
        let way = agent::Settings {
            max_connections: CONNECTIONS,
            connect: settings.timeout,
            wait: settings.timeout,
            tls,
            breaker: agent::Breaking::OFF, // it is no agent, and who sends says what is wrong
            ..agent::Settings::new(origin)
        };
        let agent = Agent::new(&way, Room::new(&way)).map_err(|e| wrong(&e))?;
        let mut headers = vec![];
        for said in &settings.headers {
            let (name, secret) = secret(said)
                .map_err(|why| BadTelemetry(format!("telemetry.otlp.headers: {why}")))?;
            if let Secret::File(file) = &secret {
                files.push(Box::new(file.clone()));
            }
            headers.push((name, secret));
        }
        let watch = Watch::start(files).map_err(|e| BadTelemetry(e.to_string()))?;
        Ok(Self {
            agent,
            base: url.path().trim_end_matches('/').to_owned(),
            headers,
            timeout: settings.timeout,
            _watch: watch,
        })
    }

    /// Sends what is below `/v1/` of the collector, such as `logs`.
    pub async fn post(
        &self,
        what: &str,
        content: HeaderValue,
        body: Bytes,
    ) -> Result<Bytes, Trouble> {
        let (status, text) = self
            .send(what, content, body)
            .await
            .map_err(Trouble::Away)?;
        match status {
            _ if status.is_success() => Ok(text),
            // What the specification of OTLP has tried again.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Trouble::Busy(status)),
            _ => Err(Trouble::Refused(status)),
        }
    }

    async fn send(
        &self,
        what: &str,
        content: HeaderValue,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), agent::Error> {
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = format!("{}/v1/{what}", self.base)
            .parse()
            .unwrap_or_default();
        let fields = request.headers_mut();
        for (name, secret) in &self.headers {
            let value = match secret {
                Secret::Fixed(value) => value.clone(),
                Secret::File(file) => HeaderValue::clone(&file.now()),
            };
            fields.insert(name.clone(), value);
        }
        fields.insert(header::CONTENT_TYPE, content);
        fields.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("a2a-gateway/", env!("CARGO_PKG_VERSION"))),
        );
        let response = self.agent.send(request, self.timeout, true).await?;
        let (head, body) = response.into_parts();
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let text = body
            .collect(coding, ANSWER, self.timeout, |_| true)
            .await
            .unwrap_or_default(); // its status says all
        Ok((head.status, text))
    }
}

fn secret(said: &SecretHeader) -> Result<(HeaderName, Secret), String> {
    let name = HeaderName::try_from(&said.name).map_err(|_| "no name of a field".to_owned())?;
    let secret = match (&said.file, &said.env) {
        (Some(file), _) => Secret::File(Watched::read(file, value)?),
        (None, Some(variable)) => Secret::Fixed(value(&config::variable(variable)?)?),
        (None, None) => return Err("neither file nor env".to_owned()),
    };
    Ok((name, secret))
}

/// What is wrong with a secret is told without it.
fn value(text: &str) -> Result<HeaderValue, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "it cannot be the value of a field".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The SDK's way to the collector, over a small runtime of its own that ends when this is dropped.
#[derive(Clone)]
pub(super) struct Way {
    handle: Handle,
    client: Arc<Client>,
    away: Arc<AtomicBool>,
    /// Its end ends the runtime's thread.
    _lives: Arc<oneshot::Sender<()>>,
}

thread_local! {
    /// What is logged while something is sent must not be sent in its turn.
    static SENDS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether this thread sends telemetry.
pub(super) fn sends() -> bool {
    SENDS.get()
}

impl Way {
    pub(super) fn start(settings: &config::Otlp) -> Result<Self, BadTelemetry> {
        let client = Arc::new(Client::new(settings)?);
        let bad = |e: std::io::Error| BadTelemetry(format!("telemetry cannot begin: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(bad)?;
        let handle = runtime.handle().clone();
        let (lives, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || {
                SENDS.set(true);
                let _ended = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(bad)?;
        Ok(Self {
            handle,
            client,
            away: Arc::default(),
            _lives: Arc::new(lives),
        })
    }

    pub(super) fn traces(&self, of: Arc<Waiting>) -> Result<Traces, BadTelemetry> {
        let built = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(self.to("traces"))
            .with_endpoint("http://collector/v1/traces")
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(self.client.timeout)
            .build();
        let inner = built.map_err(|e| BadTelemetry(e.to_string()))?;
        Ok(Traces { inner, of })
    }

    pub(super) fn logs(&self, of: Arc<Waiting>) -> Result<Logs, BadTelemetry> {
        let built = opentelemetry_otlp::LogExporter::builder()
            .with_http()
            .with_http_client(self.to("logs"))
            .with_endpoint("http://collector/v1/logs")
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(self.client.timeout)
            .build();
        let inner = built.map_err(|e| BadTelemetry(e.to_string()))?;
        Ok(Logs { inner, of })
    }

    pub(super) fn metrics(&self) -> Result<Metrics, BadTelemetry> {
        let built = opentelemetry_otlp::MetricExporter::builder()
            .with_http()
            .with_http_client(self.to("metrics"))
            .with_endpoint("http://collector/v1/metrics")
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(self.client.timeout)
            .build();
        built.map(Metrics).map_err(|e| BadTelemetry(e.to_string()))
    }

    fn to(&self, what: &'static str) -> To {
        To {
            way: self.clone(),
            what,
        }
    }

    /// Says once that nothing can be sent, and once that it can again.
    fn heard(&self, trouble: Option<&dyn fmt::Display>) {
        match trouble {
            Some(why) => {
                if !self.away.swap(true, Relaxed) {
                    tracing::warn!(
                        %why,
                        "telemetry cannot be sent; look at telemetry.otlp and at the collector"
                    );
                }
            }
            None => {
                if self.away.load(Relaxed) && self.away.swap(false, Relaxed) {
                    tracing::info!("telemetry is sent again");
                }
            }
        }
    }
}

/// One kind of telemetry on its way. The exporters' own endpoint and fields, which the environment might change, do not
/// count.
struct To {
    way: Way,
    what: &'static str,
}

impl fmt::Debug for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

#[async_trait]
impl HttpClient for To {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
        let (to, said) = oneshot::channel();
        let (client, what) = (self.way.client.clone(), self.what);
        let body = request.into_body();
        // Not awaited here: the SDK's threads have no runtime.
        self.way.handle.spawn(async move {
            let _nobody_waits = to.send(client.send(what, PROTOBUF, body).await);
        });
        match said.await {
            Ok(Ok((status, text))) => {
                let trouble = format!("the collector answers {status}");
                let bad = !status.is_success();
                self.way.heard(bad.then_some(&trouble));
                let mut response = Response::new(text);
                *response.status_mut() = status;
                Ok(response)
            }
            Ok(Err(error)) => {
                self.way.heard(Some(&error));
                Err(error.to_string().into())
            }
            Err(_) => Err("telemetry has ended".into()),
        }
    }
}

/// So much waits to be sent. What finds no place is counted.
pub(super) struct Waiting {
    what: &'static str,
    most: usize,
    now: AtomicUsize,
    dropped: AtomicU64,
    said: AtomicBool,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Waiting {
    pub(super) fn new(what: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            most,
            now: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            said: AtomicBool::new(false),
        })
    }

    /// Takes a place.
    pub(super) fn enter(&self) -> bool {
        if self.now.fetch_add(1, AcqRel) < self.most {
            return true;
        }
        self.now.fetch_sub(1, AcqRel);
        self.lost(1);
        false
    }

    fn sent(&self, items: usize, result: &OTelSdkResult) {
        self.now.fetch_sub(items, AcqRel);
        if result.is_err() {
            self.lost(items);
        }
    }

    fn lost(&self, items: usize) {
        self.dropped.fetch_add(items as u64, Relaxed);
        if !self.said.swap(true, Relaxed) && !sends() {
            tracing::warn!(
                what = self.what,
                "telemetry is dropped: the collector does not take it in time; how much is told at the end"
            );
        }
    }

    /// So many found no place, or were not taken.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

/// Sends spans.
#[derive(Debug)]
pub(super) struct Traces {
    inner: opentelemetry_otlp::SpanExporter,
    of: Arc<Waiting>,
}

impl SpanExporter for Traces {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        SENDS.set(true); // this is the SDK's thread for it
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        self.of.sent(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Sends lines of the log.
#[derive(Debug)]
pub(super) struct Logs {
    inner: opentelemetry_otlp::LogExporter,
    of: Arc<Waiting>,
}

impl LogExporter for Logs {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        SENDS.set(true);
        let lines = batch.iter().count();
        let result = self.inner.export(batch).await;
        self.of.sent(lines, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Sends metrics.
pub(super) struct Metrics(opentelemetry_otlp::MetricExporter);

impl PushMetricExporter for Metrics {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        SENDS.set(true);
        self.0.export(metrics).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.0.temporality()
    }
}
