//! Streams: one event in, one event out, at once; and no end that looks better than it was.
use crate::support::{
    agent::Agent,
    gateway::Gateway,
    words::{self, ALL, DONE, J03, J10, R03K, R03P, R10, Speak, TASK, WORKING, data},
};

fn gateways(agent: &Agent) -> [(bool, Gateway); 2] {
    let rest = Gateway::before_rest(agent.addr);
    [(false, Gateway::before(agent.addr)), (true, rest)]
}

/// An event as the agent writes it.
fn event(rest: bool, canonical: &str) -> String {
    if rest {
        canonical.to_owned()
    } else {
        words::result(canonical)
    }
}

#[test]
fn each_event_arrives_before_the_next_is_written() {
    let agent = Agent::start();
    for (rest, gateway) in gateways(&agent) {
        for speak in ALL {
            let (line, body) = speak.stream();
            let mut client = gateway.client();
            client.send(line, "content-type: application/json\r\n", &body);
            let mut call = agent.next();
            assert_eq!(call.asked.head.get("accept"), Some("text/event-stream"));
            call.begin();
            let head = client.head();
            assert_eq!(head.status(), 200);
            assert_eq!(head.get("content-type"), Some("text/event-stream"));
            assert_eq!(head.get("cache-control"), Some("no-cache"));
            assert_eq!(head.get("x-accel-buffering"), Some("no"));
            assert_eq!(head.get("content-length"), None);
            for canonical in [&words::wrapped(), WORKING, DONE] {
                call.event(&event(rest, canonical));
                let (value, error) = data(&client.event().unwrap());
                assert!(!error);
                if speak.is_rpc() {
                    assert_eq!(value["id"], "q1");
                }
            }
            call.end();
            assert_eq!(client.event(), None, "{speak:?}");
        }
    }
}

#[test]
fn events_that_arrived_together_share_a_write() {
    let agent = Agent::start();
    let gateway = Gateway::before_rest(agent.addr);
    let mut client = gateway.client();
    let (line, body) = R10.stream();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    client.head();
    let two = format!("data: {WORKING}\r\n\r\ndata: {DONE}\r\n\r\n");
    call.chunk(two);
    let chunk = client.wire.chunk().unwrap();
    let wanted = format!("data: {WORKING}\n\ndata: {DONE}\n\n");
    assert_eq!(String::from_utf8(chunk).unwrap(), wanted);
    call.end();
    assert_eq!(client.wire.chunk(), Some(vec![]));
}

/// Begins a stream and reads its first event.
fn streaming(
    agent: &Agent,
    gateway: &Gateway,
    speak: Speak,
) -> (crate::support::agent::Call, crate::support::client::Client) {
    let mut client = gateway.client();
    let (line, body) = speak.stream();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(&words::wrapped()));
    client.head();
    client.event().unwrap();
    (call, client)
}

fn ends_in_one_error(speak: Speak, events: &[String], code: (i64, i64)) {
    assert_eq!(events.len(), 1, "{speak:?}: {events:?}");
    let (error, labelled) = data(&events[0]);
    assert_eq!(labelled, !speak.is_rpc());
    let wanted = if speak == R10 { code.1 } else { code.0 };
    assert_eq!(speak.code(&error), wanted, "{speak:?}: {error}");
}

#[test]
fn a_stream_that_breaks_ends_in_one_error_frame() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        let (call, mut client) = streaming(&agent, &gateway, speak);
        call.reset();
        ends_in_one_error(speak, &client.rest(), (-32603, 502));

        let (mut call, mut client) = streaming(&agent, &gateway, speak);
        call.write("ff\r\ndata: {\"half");
        drop(call);
        ends_in_one_error(speak, &client.rest(), (-32603, 502));

        // The body ends well, the last event does not.
        let (mut call, mut client) = streaming(&agent, &gateway, speak);
        call.chunk("data: {\"half");
        call.end();
        ends_in_one_error(speak, &client.rest(), (-32603, 502));
    }
}

#[test]
fn an_event_over_the_limit_ends_the_stream() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {event: 64KiB}");
    for speak in ALL {
        let (mut call, mut client) = streaming(&agent, &gateway, speak);
        while call.chunk(format!("data: {}\n", "x".repeat(8000))) {}
        ends_in_one_error(speak, &client.rest(), (-32006, 500));
        call.closed();
    }
}

#[test]
fn a_silent_agent_is_given_up() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {stream_idle: 50ms}");
    for speak in ALL {
        let (mut call, mut client) = streaming(&agent, &gateway, speak);
        ends_in_one_error(speak, &client.rest(), (-32603, 504));
        call.closed();
    }
}

#[test]
fn a_stop_ends_streams_with_a_word() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "drain: {grace: 50ms}");
    let mut open: Vec<_> = ALL
        .into_iter()
        .map(|speak| (speak, streaming(&agent, &gateway, speak)))
        .collect();
    let ended = std::thread::spawn(move || gateway.end());
    for (speak, (call, client)) in &mut open {
        ends_in_one_error(*speak, &client.rest(), (-32603, 503));
        call.closed();
    }
    drop(open);
    assert!(ended.join().unwrap(), "nothing was cut");
}

#[test]
fn a_document_in_place_of_a_stream_is_its_only_event() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        let mut client = gateway.client();
        let (line, body) = speak.stream();
        client.send(line, "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        let head = client.head();
        assert_eq!(head.get("content-type"), Some("text/event-stream"));
        let body = client
            .wire
            .exactly(head.get("content-length").unwrap().parse().unwrap())
            .unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(body.ends_with("\n\n"));
        let (value, error) = data(body.trim_end());
        assert!(!error && value.to_string().contains("c1"), "{value}");
    }
}

#[test]
fn a_stream_in_place_of_a_document_is_no_answer() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for (speak, status) in [(J03, 200), (R03P, 502), (R03K, 502), (J10, 200), (R10, 500)] {
        let mut client = gateway.client();
        let (line, body) = speak.send();
        client.send(line, "", &body);
        let mut call = agent.next();
        call.begin();
        let answer = client.answer();
        assert_eq!(answer.status(), status);
        let wanted = if speak == R10 { 500 } else { -32006 };
        assert_eq!(speak.code(&answer.json()), wanted);
        call.closed();
    }
}

#[test]
fn a_stream_refused_before_it_begins_is_refused_as_its_client_reads_it() {
    let refusal =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"not so","data":[]}}"#;
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for (speak, status, events) in [
        (J03, 200, true),
        (R03P, 400, false),
        (R03K, 400, false),
        (J10, 200, false),
        (R10, 400, false),
    ] {
        let mut client = gateway.client();
        let (line, body) = speak.stream();
        client.send(line, "", &body);
        agent.next().json(refusal);
        let answer = client.answer();
        assert_eq!(answer.status(), status, "{speak:?}");
        let kind = answer.head.get("content-type").unwrap();
        assert_eq!(kind == "text/event-stream", events, "{speak:?}: {kind}");
        let error = if events {
            data(answer.body.trim_end()).0
        } else {
            answer.json()
        };
        assert_eq!(speak.message_of(&error), "not so");
    }
}

#[test]
fn a_subscription_begins_with_the_task_if_that_is_asked_for() {
    let agent = Agent::start();
    for (on, rest) in [(true, false), (true, true), (false, false)] {
        let binding = if rest { "binding: rest" } else { "" };
        let setting = format!("compat: {{synthesize_task_first: {on}}}");
        let gateway = Gateway::with(agent.addr, binding, &setting);
        let mut client = gateway.client();
        let (line, body) = J10.subscribe();
        client.send(line, "authorization: Bearer x\r\n", &body);
        let mut call = agent.next();
        call.begin();
        call.event(&event(rest, WORKING));
        client.head();
        if on {
            let get = agent.next();
            assert_eq!(get.asked.head.get("authorization"), Some("Bearer x"));
            assert_eq!(get.asked.head.get("accept"), Some("application/json"));
            if rest {
                assert!(get.asked.is("GET /tasks/t1 "), "{}", get.asked.head.line);
                get.json(TASK);
            } else {
                assert_eq!(get.asked.json()["method"], "GetTask");
                assert_eq!(get.asked.json()["params"]["id"], "t1");
                get.json(&words::result(TASK));
            }
            let (first, _) = data(&client.event().unwrap());
            assert_eq!(first["result"]["task"]["id"], "t1");
        }
        let (next, _) = data(&client.event().unwrap());
        assert_eq!(next["result"]["statusUpdate"]["taskId"], "t1");
        call.end();
        assert_eq!(client.event(), None);
    }
}
