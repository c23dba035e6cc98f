//! Spans as a collector gets them, and what agents are told of the trace.
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use a2a_gateway::telemetry::traces::{ATTRIBUTES, In};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};

use crate::support::{
    agent::{Agent, Asked},
    collector::{Collector, attribute},
    gateway::Gateway,
    until,
    words::{self, ALL, J03, J10, R10, Speak},
};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Traces of calls, of which this share is traced by chance.
fn traced(agent: SocketAddr, to: &str, traces: &str) -> Gateway {
    let traces = format!("traces: {{otlp: true, {traces}}}");
    let otlp = format!("otlp: {{endpoint: '{to}', delay: 10ms}}");
    Gateway::with(agent, "", &format!("telemetry: {{{traces}, {otlp}}}\n"))
}

fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn of_kind(spans: &[Span], kind: SpanKind) -> Vec<&Span> {
    spans.iter().filter(|s| s.kind == kind as i32).collect()
}

/// The span of what the agent was asked in this call, and that of the call.
fn pair<'s>(spans: &'s [Span], asked: &Asked) -> (&'s Span, &'s Span) {
    let parent = asked.head.get("traceparent").unwrap();
    let parts: Vec<_> = parent.split('-').collect();
    let client = spans.iter().find(|s| hex(&s.span_id) == parts[2]).unwrap();
    let server = |s: &&Span| s.span_id == client.parent_span_id;
    let server = spans.iter().find(server).unwrap();
    assert_eq!(parts[3], "01", "the agent is told that it is traced");
    for span in [client, server] {
        assert_eq!(hex(&span.trace_id), parts[1]);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    assert!(server.start_time_unix_nano <= client.start_time_unix_nano);
    assert!(client.end_time_unix_nano <= server.end_time_unix_nano);
    (client, server)
}

/// What a span says is of the table, at its place; and these values are in it.
fn says(span: &Span, side: In, expected: &[(&str, &str)]) {
    let names: BTreeSet<_> = span.attributes.iter().map(|a| a.key.as_str()).collect();
    for name in &names {
        let row = ATTRIBUTES.iter().find(|(known, ..)| known == name);
        let (_, place, _) = row.unwrap_or_else(|| panic!("{name} is in no table"));
        assert!(*place == side || *place == In::Both, "{name} is misplaced");
    }
    let expected: BTreeMap<_, _> = expected.iter().copied().collect();
    for (name, value) in &expected {
        let said = attribute(&span.attributes, name);
        assert_eq!(said.as_deref(), Some(*value), "{name} of {span:#?}");
    }
    let told: BTreeSet<_> = expected.keys().copied().collect();
    assert_eq!(names, told);
}

fn protocol(speak: Speak) -> (&'static str, &'static str) {
    let binding = if speak.is_rpc() {
        "JSONRPC"
    } else {
        "HTTP+JSON"
    };
    (if speak.is_old() { "0.3" } else { "1.0" }, binding)
}

#[test]
fn spans_are_those_of_the_table_in_every_dialect() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = traced(agent.addr, &collector.endpoint(), "sample: 1");
    let port = agent.addr.port().to_string();
    let mut calls = vec![];
    for speak in ALL {
        for streams in [false, true] {
            let (line, body) = if streams {
                speak.stream()
            } else {
                speak.send()
            };
            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            calls.push((speak, streams, line, call.asked.clone()));
            if streams {
                call.begin();
                call.event(&words::result(words::WORKING));
                call.event(&words::result(words::DONE));
                call.end();
            } else {
                call.json(&words::result(&words::wrapped()));
            }
            assert_eq!(client.answer().status(), 200);
        }
    }
    let spans = collector.spans_once(20);
    assert_eq!(spans.len(), 20, "two of a call");
    assert_eq!(of_kind(&spans, SpanKind::Server).len(), 10);
    for (speak, streams, line, asked) in calls {
        let (client, server) = pair(&spans, &asked);
        let method = if streams {
            "SendStreamingMessage"
        } else {
            "SendMessage"
        };
        let old = if streams {
            "message/stream"
        } else {
            "message/send"
        };
        let state = if streams {
            "TASK_STATE_COMPLETED"
        } else {
            "TASK_STATE_WORKING"
        };
        let (version, binding) = protocol(speak);
        let mut both = vec![
            ("a2a.method.name", method),
            ("a2a.task.id", "t1"),
            ("a2a.task.state", state),
            ("a2a.message.id", "m1"),
            ("gen_ai.conversation.id", "c1"),
            ("http.request.method", "POST"),
            ("http.response.status_code", "200"),
        ];
        let mut theirs = both.clone();
        theirs.extend([
            ("a2a.protocol.version", "1.0"),
            ("a2a.protocol.binding", "JSONRPC"),
            ("rpc.system", "jsonrpc"),
            ("rpc.method", method),
            ("server.address", "127.0.0.1"),
            ("server.port", &port),
        ]);
        says(client, In::Client, &theirs);
        both.extend([
            ("a2a.protocol.version", version),
            ("a2a.protocol.binding", binding),
            ("http.route", "/"),
            ("url.path", line.split_once(' ').unwrap().1),
            ("url.scheme", "http"),
            ("client.address", "127.0.0.1"),
            ("network.protocol.version", "1.1"),
        ]);
        if speak.is_rpc() {
            let called = if speak == J03 { old } else { method };
            both.extend([("rpc.system", "jsonrpc"), ("rpc.method", called)]);
        }
        says(server, In::Server, &both);
        for (span, kind) in [(client, SpanKind::Client), (server, SpanKind::Server)] {
            assert_eq!((&*span.name, span.kind), (method, kind as i32));
            assert_eq!(span.status.as_ref().map_or(0, |s| s.code), 0);
        }
        assert!(server.parent_span_id.is_empty(), "it begins the trace");
    }
    let resource = &collector.resources()[0];
    let service = attribute(resource, "service.name");
    assert_eq!(service.as_deref(), Some("a2a-gateway"));
}

#[test]
fn what_fails_is_an_error_of_both_spans_or_of_one() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = traced(agent.addr, &collector.endpoint(), "sample: 1");
    let mut client = gateway.client();
    let (line, body) = R10.send();
    client.send(line, "", &body);
    let call = agent.next();
    let asked = call.asked.clone();
    call.answer(500, "", "");
    client.answer();
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"Nonsense","params":{}}"#;
    client.ask("POST /", "", unknown);
    let spans = collector.spans_once(3);
    let (theirs, ours) = pair(&spans, &asked);
    for span in [theirs, ours] {
        let status = span.status.as_ref().unwrap();
        assert_eq!(status.code, StatusCode::Error as i32);
        let said = attribute(&span.attributes, "error.type").unwrap();
        assert_eq!(said, status.message);
    }
    let said = |of: &Span, name| attribute(&of.attributes, name).unwrap();
    assert_eq!(said(theirs, "http.response.status_code"), "500");
    let refused = of_kind(&spans, SpanKind::Server);
    let refused = refused.iter().find(|s| s.span_id != ours.span_id).unwrap();
    assert_eq!(refused.name, "POST", "nobody knows its operation");
    assert_eq!(said(refused, "error.type"), "METHOD_NOT_FOUND");
    assert_eq!(attribute(&refused.attributes, "a2a.method.name"), None);
    assert_eq!(spans.len(), 3, "the agent was not asked");
}

/// What the agent is told, for a call with these fields.
fn told(gateway: &Gateway, agent: &Agent, fields: &str) -> (Vec<String>, Vec<String>) {
    let (line, body) = J10.get();
    let mut client = gateway.client();
    client.send(line, fields, &body);
    let call = agent.next();
    let head = call.asked.head.clone();
    call.json(&words::result(words::TASK));
    client.answer();
    let all = |name| head.all(name).into_iter().map(str::to_owned).collect();
    (all("traceparent"), all("tracestate"))
}

fn fields(parent: &str) -> String {
    format!("traceparent: {parent}\r\ntracestate: vendor=1\r\n")
}

#[test]
fn a_caller_s_trace_goes_on_and_its_word_decides() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let rarely = traced(agent.addr, &collector.endpoint(), "sample: 0");
    let (parent, state) = told(&rarely, &agent, &fields(PARENT));
    assert_eq!(state, ["vendor=1"]);
    let spans = collector.spans_once(2);
    let server = of_kind(&spans, SpanKind::Server)[0];
    let client = of_kind(&spans, SpanKind::Client)[0];
    assert_eq!(hex(&server.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(parent, [format!("00-{TRACE}-{}-01", hex(&client.span_id))]);
    assert_eq!(hex(&server.trace_id), TRACE);
    assert_eq!(
        (&*server.trace_state, &*client.trace_state),
        ("vendor=1", "vendor=1")
    );

    // One that is not traced is not, whatever the share; and passes as it came.
    let always = traced(agent.addr, &collector.endpoint(), "sample: 1");
    let not = PARENT.replace("-01", "-00");
    let (parent, state) = told(&always, &agent, &fields(&not));
    assert_eq!((parent, state), (vec![not], vec!["vendor=1".to_owned()]));
    // One that cannot be read is none: a trace begins here, and the state of the other goes.
    let (parent, state) = told(&always, &agent, &fields("00-nonsense"));
    assert!(parent[0].ends_with("-01") && parent[0].len() == PARENT.len());
    assert!(state.is_empty() && parent.len() == 1);
    let spans = collector.spans_once(4);
    assert_eq!(spans.len(), 4);
}

#[test]
fn what_is_not_traced_tells_the_agent_so_and_is_not_sent() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = traced(agent.addr, &collector.endpoint(), "sample: 0");
    let (parent, _) = told(&gateway, &agent, "");
    assert!(parent[0].ends_with("-00") && parent[0].len() == PARENT.len());
    let (other, _) = told(&gateway, &agent, "");
    assert_ne!(parent, other);
    let deaf = "sample: 0, heed_callers: false";
    let deaf = traced(agent.addr, &collector.endpoint(), deaf);
    let (parent, state) = told(&deaf, &agent, &fields(PARENT));
    assert!(parent[0].ends_with("-00") && !parent[0].contains(TRACE));
    assert!(state.is_empty());
    assert!(gateway.served().telemetry.close(Duration::from_secs(5)));
    assert!(deaf.served().telemetry.close(Duration::from_secs(5)));
    assert_eq!(collector.spans(), []);
}

#[test]
fn without_traces_their_fields_pass_as_they_came() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "admin: 127.0.0.1:0\n");
    for parent in [PARENT, "nonsense"] {
        let (parents, state) = told(&gateway, &agent, &fields(parent));
        assert_eq!(
            (parents, state),
            (vec![parent.to_owned()], vec!["vendor=1".to_owned()])
        );
    }
    assert_eq!(told(&gateway, &agent, ""), (vec![], vec![]));
}

#[test]
fn no_secret_and_nothing_of_a_message_is_in_a_span() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let secret = crate::support::keys::file("Bearer of-the-gateway");
    let headers = format!(
        "headers: [{{name: x-key, file: '{}'}}]",
        secret.path().display()
    );
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!(
            "telemetry: {{traces: {{otlp: true, sample: 1}}, otlp: {{endpoint: '{}/in/here/', delay: 10ms, {headers}}}}}\n",
            collector.endpoint()
        ),
    );
    let (line, body) = R10.send();
    let body = body.replace("hi", "whisper-in-a-message");
    let mut client = gateway.client();
    let line = format!("{line}?token=whisper-in-a-query");
    let fields = "authorization: Bearer whisper-in-a-field\r\n";
    client.send(&line, fields, &body);
    agent.next().json(&words::result(&words::wrapped().replace(
        "TASK_STATE_WORKING\"",
        "TASK_STATE_WORKING\",\"note\":\"whisper-back\"",
    )));
    client.answer();
    collector.spans_once(2);
    assert!(!collector.has("whisper"));
    assert!(collector.has("SendMessage"), "it can be seen what is there");
    let head = &collector.heads()[0];
    assert_eq!(head.get("x-key"), Some("Bearer of-the-gateway"));
    assert!(head.line.starts_with("POST /in/here/v1/traces "));
}

#[test]
fn a_collector_that_is_away_holds_up_neither_calls_nor_the_end() {
    let agent = Agent::start();
    // One that is not there, and one that takes connections and says nothing.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone_at = gone.local_addr().unwrap();
    drop(gone);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    for at in [gone_at, mute.local_addr().unwrap()] {
        let gateway = Gateway::with(
            agent.addr,
            "",
            &format!(
                "telemetry: {{traces: {{otlp: true, sample: 1}}, otlp: {{endpoint: 'http://{at}', queue: 8, delay: 10ms}}}}\n"
            ),
        );
        for _ in 0..20 {
            told(&gateway, &agent, "");
        }
        let telemetry = &gateway.served().telemetry;
        until("spans are dropped and counted", || {
            telemetry.dropped().0 >= 8
        });
        let begun = tokio::time::Instant::now();
        let _not_in_time = telemetry.close(Duration::from_millis(500));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn what_waits_is_sent_at_the_end() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!(
            "telemetry: {{traces: {{otlp: true, sample: 1}}, otlp: {{endpoint: '{}', delay: 1h}}}}\n",
            collector.endpoint()
        ),
    );
    told(&gateway, &agent, "");
    gateway.served().running.drain();
    until("no connection is left", || {
        gateway.served().running.counts().connections() == 0
    });
    assert_eq!(collector.spans(), []);
    assert!(gateway.served().telemetry.close(Duration::from_secs(5)));
    assert_eq!(collector.spans().len(), 2);
}
