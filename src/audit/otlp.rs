//! A collector, told each line of the log by OTLP: the body of a log record is the line as it stands in a file, so that
//! what the collector kept can be verified like one.
//!
//! ```text
//!   writer ── push: lines and the places of their calls ──► waiting ──► thread ──► collector
//!                                                                         └── once it has them: places are given back
//! ```
//! Files and stdout do not wait for it. Places do: a collector that is away ends in a full queue, as a full disk does, and
//! there `audit.on_full` decides. A line may be sent twice, where an answer was lost; its `seq` tells.
//!
//! What a collector refuses for what is in it would be refused for ever, and hold up all that comes after. So it is sent in
//! halves, down to the lines that alone are refused: these are given up, and said to be.
use std::{
    collections::VecDeque,
    io,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use opentelemetry_proto::tonic::{
    collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse},
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber},
    resource::v1::Resource,
};
use parking_lot::{Condvar, Mutex};
use prost::Message as _;
use serde::Deserialize;

use super::queue::{Place, Queue};
use crate::telemetry::otlp::{Client, Trouble};

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// So many bytes of lines are sent at once, about.
const CHUNK: usize = 256 * 1024;
/// With so many pushes waiting, lines that have no place must wait as well.
const BEHIND: usize = 1024;
/// How long to wait before what failed is sent again, at first and at last.
const RETRY: Duration = Duration::from_millis(200);
const SELDOM: Duration = Duration::from_secs(5);
/// How long the last lines may take.
const LAST: Duration = Duration::from_secs(3);

/// Lines, and the places of the calls among them.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Batch>,
    /// No more is to come.
    closing: bool,
    /// The thread has ended.
    ended: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    work: Condvar,
    /// Wakes who waits for its end.
    ended: Condvar,
}

/// Where lines are pushed.
pub(super) struct Sink(Arc<Shared>);

/// Who sends, and what it says of itself.
pub(super) struct Sender {
    client: Client,
    resource: Resource,
}

impl Sender {
    pub(super) fn new<'a>(
        client: Client,
        resource: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let attributes = resource.map(|(key, value)| text(key, value)).collect();
        let resource = Resource {
            attributes,
            ..Resource::default()
        };
        Self { client, resource }
    }
}

impl Sink {
    /// Starts the thread.
    pub(super) fn start(sender: Sender, queue: Arc<Queue>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let to = shared.clone();
        let thread = thread::Builder::new().name("audit-otlp".to_owned());
        thread.spawn(move || {
            run(&to, &sender, &runtime, &queue);
            to.state.lock().ended = true;
            to.ended.notify_all();
        })?;
        Ok(Self(shared))
    }

    /// Lines that are to be sent.
    pub(super) fn push(&self, lines: Vec<u8>, places: Vec<Place>) {
        if lines.is_empty() && places.is_empty() {
            return;
        }
        self.0
            .state
            .lock()
            .waiting
            .push_back(Batch { lines, places });
        self.0.work.notify_one();
    }

    /// Whether so much waits that what can wait should.
    pub(super) fn is_behind(&self) -> bool {
        self.0.state.lock().waiting.len() >= BEHIND
    }

    /// No more is to come: waits for what is under way, for a while.
    pub(super) fn end(&self) {
        let mut state = self.0.state.lock();
        state.closing = true;
        self.0.work.notify_one();
        let still = |state: &mut State| !state.ended;
        self.0.ended.wait_while_for(&mut state, still, LAST);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.0.state.lock().closing = true;
        self.0.work.notify_one();
    }
}

fn run(shared: &Shared, sender: &Sender, runtime: &tokio::runtime::Runtime, queue: &Queue) {
    let mut away = false;
    let mut refused = 0;
    while let Some(batch) = next(shared) {
        let mut parts = vec![&*batch.lines];
        let before = refused;
        let mut last = None;
        while let Some(lines) = parts.pop() {
            match deliver(shared, sender, runtime, lines, &mut away) {
                Delivered::Yes => {}
                Delivered::Never(trouble) => {
                    if let Some((first, rest)) = halves(lines) {
                        parts.extend([rest, first]);
                    } else {
                        refused += 1;
                        last = Some(trouble);
                    }
                }
                Delivered::NoMore => return, // the writer says how many are lost
            }
        }
        if let Some(trouble) = last {
            tracing::error!(
                %trouble,
                lines = refused - before,
                since_start = refused,
                "the collector refuses lines of the audit log for what they are; they are given up there, and are missing \
                 in what it keeps"
            );
        }
        queue.give_back(&batch.places);
    }
}

/// What became of lines.
enum Delivered {
    Yes,
    /// They are refused, and always would be.
    Never(Trouble),
    /// Nobody waits for it any more.
    NoMore,
}

/// Sends lines, however often that has to be tried.
fn deliver(
    shared: &Shared,
    sender: &Sender,
    runtime: &tokio::runtime::Runtime,
    lines: &[u8],
    away: &mut bool,
) -> Delivered {
    let body = Bytes::from(sender.request(lines).encode_to_vec());
    let mut pause = RETRY;
    let mut never = None;
    while let Err(trouble) = sender.send(runtime, body.clone()) {
        if is_for_what_it_is(&trouble) {
            never = Some(trouble);
            break;
        }
        if !std::mem::replace(away, true) {
            tracing::error!(
                %trouble,
                "the audit log cannot be sent to the collector; it is tried again until audit.queue is full"
            );
        }
        if !wait(shared, pause) {
            return Delivered::NoMore;
        }
        pause = (pause * 2).min(SELDOM);
    }
    if std::mem::take(away) {
        tracing::info!("the audit log is sent to the collector again");
    }
    never.map_or(Delivered::Yes, Delivered::Never)
}

/// Whether the lines are to blame, and not who sends them or where to, which somebody may mend.
fn is_for_what_it_is(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Refused(status) => [
            StatusCode::BAD_REQUEST,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ]
        .contains(status),
        Trouble::Away(_) | Trouble::Busy(_) => false,
    }
}

/// Lines in two parts of about the same length, where there is more than one.
fn halves(lines: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = lines.len().saturating_sub(1); // the end of the last line parts nothing
    let middle = last / 2;
    let before = memchr::memrchr(b'\n', &lines[..middle]);
    let after = || memchr::memchr(b'\n', &lines[middle..last]).map(|at| middle + at);
    let end = before.or_else(after)?;
    Some(lines.split_at(end + 1))
}

/// What waits, as much as is sent at once; none once nothing more comes.
fn next(shared: &Shared) -> Option<Batch> {
    let mut state = shared.state.lock();
    let idle = |state: &mut State| state.waiting.is_empty() && !state.closing;
    shared.work.wait_while(&mut state, idle);
    let mut all = state.waiting.pop_front()?;
    while let Some(more) = state.waiting.front()
        && all.lines.len() + more.lines.len() <= CHUNK
    {
        let mut more = state.waiting.pop_front().unwrap_or_default();
        all.lines.append(&mut more.lines);
        all.places.append(&mut more.places);
    }
    Some(all)
}

/// Waits before another try. False once nobody waits for it any more.
fn wait(shared: &Shared, pause: Duration) -> bool {
    let mut state = shared.state.lock();
    let still = |state: &mut State| !state.closing;
    shared.work.wait_while_for(&mut state, still, pause);
    !state.closing
}

impl Sender {
    fn send(&self, runtime: &tokio::runtime::Runtime, body: Bytes) -> Result<(), Trouble> {
        let said = runtime.block_on(self.client.post("logs", PROTOBUF, body))?;
        let said = ExportLogsServiceResponse::decode(said).unwrap_or_default();
        if let Some(part) = said.partial_success
            && part.rejected_log_records > 0
        {
            // It may not be sent again (OTLP, partial success).
            tracing::error!(
                records = part.rejected_log_records,
                "the collector has taken records of calls and kept some of them out; look at its log"
            );
        }
        Ok(())
    }

    fn request(&self, lines: &[u8]) -> ExportLogsServiceRequest {
        let lines = lines.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let scope = InstrumentationScope {
            name: "a2a-gateway.audit".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(self.resource.clone()),
                scope_logs: vec![ScopeLogs {
                    scope: Some(scope),
                    log_records: lines.map(record).collect(),
                    ..ScopeLogs::default()
                }],
                ..ResourceLogs::default()
            }],
        }
    }
}

/// What of a line is told beside it.
#[derive(Deserialize)]
struct Beside<'a> {
    kind: &'a str,
    seq: i64,
    time: Timestamp,
}

fn record(line: &[u8]) -> LogRecord {
    let body = String::from_utf8_lossy(line).into_owned();
    let mut record = LogRecord {
        observed_time_unix_nano: nanos(Timestamp::now()),
        severity_number: SeverityNumber::Info.into(),
        severity_text: "INFO".to_owned(),
        ..LogRecord::default()
    };
    if let Ok(beside) = serde_json::from_slice::<Beside<'_>>(line) {
        record.time_unix_nano = nanos(beside.time);
        record.event_name = format!("a2a.audit.{}", beside.kind);
        record.attributes = vec![KeyValue {
            key: "a2a.audit.seq".to_owned(),
            value: Some(AnyValue {
                value: Some(Value::IntValue(beside.seq)),
            }),
            ..KeyValue::default()
        }];
    }
    record.body = Some(AnyValue {
        value: Some(Value::StringValue(body)),
    });
    record
}

fn nanos(time: Timestamp) -> u64 {
    let since = SystemTime::from(time).duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or_default()
    })
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}
