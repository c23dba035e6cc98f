//! The log as a collector gets it, with the line of each call.
use a2a_gateway::{
    config::{Level, LogFormat},
    log,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;

use crate::support::{
    agent::Agent,
    collector::{Collector, attribute, text},
    gateway::Gateway,
    until,
    words::{self, J03},
};

/// One test, since a process has one log.
#[test]
fn lines_are_sent_with_their_fields_and_those_of_the_sender_are_not() {
    log::start(Level::Info, LogFormat::Text);
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!(
            "access_log: true\ntelemetry: {{logs: {{otlp: true}}, otlp: {{endpoint: '{}', delay: 10ms}}}}\n",
            collector.endpoint()
        ),
    );
    let mut client = gateway.client();
    let (line, body) = J03.send();
    let body = body.replace("hi", "whisper-in-a-message");
    client.send(line, "authorization: Bearer whisper-in-a-field\r\n", &body);
    agent.next().json(&words::result(&words::wrapped()));
    client.answer();
    for target in ["hyper", "h2", "tower", "opentelemetry_sdk"] {
        match target {
            "hyper" => tracing::warn!(target: "hyper::proto", "of the sender"),
            "h2" => tracing::warn!(target: "h2", "of the sender"),
            "tower" => tracing::warn!(target: "tower::buffer", "of the sender"),
            _ => tracing::warn!(target: "opentelemetry_sdk", "of the sender"),
        }
    }
    tracing::warn!(target: "a2a_gateway::run", answer = 42, "the last line");
    tracing::debug!(target: "a2a_gateway::run", "below the level");
    let last = |record: &LogRecord| text(record.body.as_ref()) == "the last line";
    until("the last line comes", || collector.logs().iter().any(last));
    let logs = collector.logs();
    let warned = logs.iter().find(|r| last(r)).unwrap();
    assert_eq!(warned.severity_text, "WARN");
    let said = attribute(&warned.attributes, "answer");
    assert_eq!(said.as_deref(), Some("42"));
    let call = |r: &&LogRecord| attribute(&r.attributes, "method").is_some();
    until("the line of the call comes", || {
        collector.logs().iter().any(|r| call(&r))
    });
    let logs = collector.logs();
    let call = logs.iter().find(call).unwrap();
    for (name, value) in [
        ("method", "SendMessage"),
        ("caller", "peer:127.0.0.1"),
        ("route", "/"),
        ("in", "J03"),
        ("out", "J10"),
        ("outcome", "ok"),
        ("status", "200"),
        ("task", "t1"),
        ("context", "c1"),
        ("state", "TASK_STATE_WORKING"),
        ("events", "0"),
    ] {
        let said = attribute(&call.attributes, name);
        assert_eq!(said.as_deref(), Some(value), "{name}");
    }
    assert!(attribute(&call.attributes, "micros").is_some());
    for unwanted in ["of the sender", "below the level", "whisper"] {
        assert!(!collector.has(unwanted), "{unwanted}");
    }
}
