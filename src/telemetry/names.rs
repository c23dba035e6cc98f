//! What is measured, by name: the one table that instruments are made from. Dashboards and alert rules go by these names;
//! a test holds the scrape against them.
//!
//! Labels have their values from tables: of operations, dialects, faults, of routes and rules as settings name them, of
//! addresses of agents. Nothing that a caller says is ever one.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It grows and shrinks by what comes and goes.
    UpDown,
    /// It is what it is now.
    Gauge,
    /// How values are spread, in these buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name of the instrument.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// Its unit, as UCUM has it.
    pub unit: &'static str,
    /// What its series are told apart by.
    pub labels: &'static [&'static str],
    /// What Prometheus sees.
    pub scrape: &'static str,
    /// What it says.
    pub help: &'static str,
}

/// Seconds of a whole call, which may be a short question or a long task.
const CALL: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    300.0, 1800.0,
];
/// Seconds until an agent has something to say.
const FIRST: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Calls that have ended.
pub const CALLS: &str = "a2a.gateway.calls";
/// How long they took.
pub const DURATION: &str = "a2a.gateway.call.duration";
/// How long a stream's first event took.
pub const FIRST_EVENT: &str = "a2a.gateway.time_to_first_event";
/// Events of streams.
pub const EVENTS: &str = "a2a.gateway.events";
/// Bytes of requests.
pub const REQUEST_SIZE: &str = "a2a.gateway.request.size";
/// Bytes of answers.
pub const RESPONSE_SIZE: &str = "a2a.gateway.response.size";
/// Streams that are open.
pub const STREAMS: &str = "a2a.gateway.streams";
/// Conversations that are held.
pub const HELD: &str = "a2a.gateway.conversations.held";
/// Calls that were not let through.
pub const REFUSALS: &str = "a2a.gateway.refusals";
/// What was lost in translation.
pub const LOSSES: &str = "a2a.gateway.losses";
/// Connections of clients.
pub const CONNECTIONS: &str = "a2a.gateway.connections";
/// Connections that were one too many.
pub const CONNECTIONS_REFUSED: &str = "a2a.gateway.connections.refused";
/// Whether the gateway is leaving.
pub const DRAINING: &str = "a2a.gateway.draining";
/// Bytes of bodies in memory.
pub const BUFFERED: &str = "a2a.gateway.buffered";
/// Calls that go on without their client.
pub const FOLLOWERS: &str = "a2a.gateway.followers";
/// Whether an agent's address is used.
pub const BACKEND_UP: &str = "a2a.gateway.backend.up";
/// Connections to agents.
pub const BACKEND_CONNECTIONS: &str = "a2a.gateway.backend.connections";
/// Calls that wait for one.
pub const BACKEND_WAITING: &str = "a2a.gateway.backend.waiting";
/// Whether an address is left alone for a while.
pub const BACKEND_BREAKER: &str = "a2a.gateway.backend.breaker_open";
/// Calls that were sent to an agent again.
pub const BACKEND_RETRIES: &str = "a2a.gateway.backend.retries";
/// Whether the state store answers.
pub const STORE_UP: &str = "a2a.gateway.store.up";
/// What became of records of calls.
pub const AUDIT_RECORDS: &str = "a2a.gateway.audit.records";
/// Records that are not written yet.
pub const AUDIT_QUEUE: &str = "a2a.gateway.audit.queue";
/// Times that settings were read again.
pub const RELOADS: &str = "a2a.gateway.reloads";
/// When that was done last.
pub const LAST_RELOAD: &str = "a2a.gateway.config.last_reload_time";
/// Whether the settings' file could be used.
pub const CONFIG_VALID: &str = "a2a.gateway.config.valid";
/// How clients came to terms with the gateway on TLS.
pub const HANDSHAKES: &str = "a2a.gateway.tls.handshakes";
/// When certificates end.
pub const CERTIFICATE_EXPIRY: &str = "a2a.gateway.certificate.expiry";
/// Which gateway this is.
pub const BUILD_INFO: &str = "a2a.gateway.build.info";
/// Time of processors.
pub const PROCESS_CPU: &str = "process.cpu";
/// Memory.
pub const PROCESS_MEMORY: &str = "process.resident_memory";
/// Open files.
pub const PROCESS_FDS: &str = "process.open_fds";
/// The most of them.
pub const PROCESS_MAX_FDS: &str = "process.max_fds";
/// When the process began.
pub const PROCESS_START: &str = "process.start_time";

/// The table.
#[rustfmt::skip]
pub const METRICS: &[Metric] = {
    use Kind::{Counter, Gauge, Histogram, UpDown};
    const fn m(name: &'static str, kind: Kind, unit: &'static str, labels: &'static [&'static str], scrape: &'static str, help: &'static str) -> Metric {
        Metric { name, kind, unit, labels, scrape, help }
    }
    &[
        m(CALLS,               Counter,          "{call}",   &["route", "method", "client", "outcome"], "a2a_gateway_calls_total", "Calls that have ended, by what came of them: ok, caller (refused, or failed by the caller's fault), gateway, agent, left (the client went)."),
        m(DURATION,            Histogram(CALL),  "s",        &["route", "method"], "a2a_gateway_call_duration_seconds", "Whole calls, to the end of the answer."),
        m(FIRST_EVENT,         Histogram(FIRST), "s",        &["route"],  "a2a_gateway_time_to_first_event_seconds", "From the beginning of a call to the first event of its stream."),
        m(EVENTS,              Counter,          "{event}",  &["route"],  "a2a_gateway_events_total", "Events of streams."),
        m(REQUEST_SIZE,        Counter,          "By",       &["route"],  "a2a_gateway_request_size_bytes_total", "Bodies of requests."),
        m(RESPONSE_SIZE,       Counter,          "By",       &["route"],  "a2a_gateway_response_size_bytes_total", "Bodies of answers."),
        m(STREAMS,             UpDown,           "{stream}", &["route"],  "a2a_gateway_streams", "Streams that are open."),
        m(HELD,                Gauge,            "",         &[],         "a2a_gateway_conversations_held", "Conversations that are held by a message or a task, as far as this gateway keeps them."),
        m(REFUSALS,            Counter,          "",         &["reason", "rule"], "a2a_gateway_refusals_total", "Calls that were not let through, by fault and rule of limits."),
        m(LOSSES,              Counter,          "",         &["path"],   "a2a_gateway_losses_total", "Members that were lost in translation."),
        m(CONNECTIONS,         Gauge,            "",         &[],         "a2a_gateway_connections", "Connections of clients."),
        m(CONNECTIONS_REFUSED, Counter,          "",         &[],         "a2a_gateway_connections_refused_total", "Connections that were closed at once, since there were too many."),
        m(HANDSHAKES,          Counter,          "",         &["result"], "a2a_gateway_tls_handshakes_total", "Handshakes of clients that ended: ok, or failed."),
        m(DRAINING,            Gauge,            "",         &[],         "a2a_gateway_draining", "1 while the gateway stops."),
        m(BUFFERED,            Gauge,            "By",       &[],         "a2a_gateway_buffered_bytes", "Bodies that are held in memory."),
        m(FOLLOWERS,           Gauge,            "",         &[],         "a2a_gateway_followers", "Calls that go on though their client has gone."),
        m(BACKEND_UP,          Gauge,            "",         &["address"], "a2a_gateway_backend_up", "1 while calls are sent to this address of an agent."),
        m(BACKEND_CONNECTIONS, Gauge,            "",         &["address"], "a2a_gateway_backend_connections", "Connections to this address."),
        m(BACKEND_WAITING,     Gauge,            "",         &["address"], "a2a_gateway_backend_waiting", "Calls that wait for a connection."),
        m(BACKEND_BREAKER,     Gauge,            "",         &["address"], "a2a_gateway_backend_breaker_open", "1 while this address is left alone since it failed."),
        m(BACKEND_RETRIES,     Counter,          "",         &[],         "a2a_gateway_backend_retries_total", "Calls that were sent to an agent again."),
        m(STORE_UP,            Gauge,            "",         &[],         "a2a_gateway_store_up", "1 while the state store answers."),
        m(AUDIT_RECORDS,       Counter,          "",         &["result"], "a2a_gateway_audit_records_total", "Records of calls: written, dropped (the call was served without one), refused (the call was)."),
        m(AUDIT_QUEUE,         Gauge,            "",         &[],         "a2a_gateway_audit_queue", "Calls that are under way or whose record is not written yet."),
        m(RELOADS,             Counter,          "",         &["result"], "a2a_gateway_reloads_total", "Times that the settings were read again."),
        m(LAST_RELOAD,         Gauge,            "s",        &[],         "a2a_gateway_config_last_reload_time_seconds", "When settings were last taken, in Unix time."),
        m(CONFIG_VALID,        Gauge,            "",         &[],         "a2a_gateway_config_valid", "0 while the settings' file cannot be used and the old settings run."),
        m(CERTIFICATE_EXPIRY,  Gauge,            "s",        &["file"],   "a2a_gateway_certificate_expiry_seconds", "When the first certificate of a file ends, in Unix time, by the setting that names the file."),
        m(BUILD_INFO,          Gauge,            "",         &["version"], "a2a_gateway_build_info", "1, with what runs."),
        m(PROCESS_CPU,         Counter,          "s",        &[],         "process_cpu_seconds_total", "Time of processors that this process has used."),
        m(PROCESS_MEMORY,      Gauge,            "By",       &[],         "process_resident_memory_bytes", "Memory that this process has."),
        m(PROCESS_FDS,         Gauge,            "",         &[],         "process_open_fds", "Files and connections that are open."),
        m(PROCESS_MAX_FDS,     Gauge,            "",         &[],         "process_max_fds", "The most files and connections that can be open."),
        m(PROCESS_START,       Gauge,            "s",        &[],         "process_start_time_seconds", "When this process began, in Unix time."),
    ]
};
