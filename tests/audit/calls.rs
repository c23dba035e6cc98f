//! What the record of a call says.
use serde_json::{Value, json};

use crate::{
    place::Place,
    support::{
        agent::Agent,
        message::Message,
        words::{self, ALL, J10, R10},
    },
};

fn has(record: &Value, expected: &Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&record[key], value, "{key} of {record:#}");
    }
}

fn answering(body: &'static str) -> std::net::SocketAddr {
    let answer = move |_: &_| {
        let json = "content-type: application/json\r\n";
        crate::support::agent::answer(200, json, words::result(body))
    };
    Agent::always(answer).0
}

#[test]
fn a_send_is_recorded_in_every_dialect() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    let mut expected = vec![];
    for speak in ALL {
        let (line, body) = speak.send();
        let mut client = gateway.client();
        client.send(line, "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        let answer = client.answer();
        assert_eq!(answer.status(), 200);
        expected.push(json!({
            "peer": client.wire.io.local_addr().unwrap().to_string(),
            "caller": "peer:127.0.0.1", "route": "/",
            "in": format!("{speak:?}"), "out": "J10", "operation": "SendMessage",
            "message": "m1", "task": "t1", "context": "c1", "state": "TASK_STATE_WORKING",
            "decision": "allowed", "status": 200, "events": 0, "losses": 0,
            "bytes": {"in": body.len(), "out": answer.body.len()},
            "tenant": null, "rule": null, "fault": null, "left": null, "digest": null, "captured": null,
        }));
    }
    let calls = place.ends(gateway);
    assert_eq!(calls.len(), expected.len());
    let mut ids = vec![];
    for (call, expected) in calls.iter().zip(&expected) {
        has(call, expected);
        let micros = |name: &str| call["micros"][name].as_u64().unwrap();
        assert!(micros("admitted") <= micros("answered") && micros("answered") <= micros("ended"));
        ids.push(call["id"].as_str().unwrap());
        assert!(call["time"].as_str().unwrap().ends_with('Z'));
    }
    ids.dedup();
    assert_eq!(ids.len(), calls.len(), "each has an id of its own");
}

#[test]
fn a_stream_s_events_and_bytes_are_counted() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    let mut out = vec![];
    for speak in ALL {
        let (line, body) = speak.stream();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let mut call = agent.next();
        call.begin();
        for event in [&*words::wrapped(), words::WORKING, words::DONE] {
            call.event(&words::result(event));
        }
        call.end();
        let answer = client.answer();
        assert_eq!(answer.body.matches("data: ").count(), 3);
        out.push(answer.body.len());
    }
    // One whose agent answers with one document, and one that breaks.
    let (line, body) = J10.stream();
    let mut client = gateway.client();
    client.send(line, "", &body);
    agent.next().json(&words::result(&words::wrapped()));
    out.push(client.answer().body.len());
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(words::WORKING));
    client.head();
    client.event().unwrap();
    call.reset();
    let last = client.rest();
    assert!(last[0].contains("BACKEND_BROKEN"), "{last:?}");
    drop(client);
    let calls = place.ends(gateway);
    assert_eq!(calls.len(), 7);
    for (call, out) in calls.iter().zip(out) {
        assert_eq!(call["bytes"]["out"], out, "{call:#}");
    }
    for (call, speak) in calls.iter().zip(ALL) {
        has(
            call,
            &json!({
                "operation": "SendStreamingMessage", "in": format!("{speak:?}"), "events": 3,
                "state": "TASK_STATE_COMPLETED", "task": "t1", "status": 200, "left": null, "fault": null,
            }),
        );
    }
    has(
        &calls[5],
        &json!({"events": 1, "state": "TASK_STATE_WORKING", "left": null}),
    );
    has(
        &calls[6],
        &json!({"events": 1, "fault": "BACKEND_BROKEN", "decision": "allowed", "left": null, "status": 200}),
    );
}

#[test]
fn what_is_refused_is_recorded_with_the_reason() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "push: {mode: \"off\"}");
    let no_json = "content-type: text/plain\r\n";
    for (line, fields, body) in [
        ("GET /nowhere/at/all", "", ""),
        ("PUT /tasks/t1", "", ""),
        ("POST /", "", "{"),
        ("POST /message:send", no_json, "hello"),
        (
            "POST /",
            "",
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
        ),
        ("GET /tasks/t7/pushNotificationConfigs/p1", "", ""),
    ] {
        let answer = gateway.ask(line, fields, body);
        assert!(answer.body.contains("error"), "{answer:?}");
    }
    // A conversation that is busy.
    let (line, body) = Message::send("m1").of("c1").words(J10);
    let mut first = gateway.client();
    first.send(line, "", &body);
    let call = agent.next();
    let (line, body) = Message::send("m2").of("c1").words(R10);
    assert_eq!(gateway.ask(line, "", &body).status(), 400);
    call.json(&words::result(&words::wrapped()));
    first.answer();
    drop(first);
    // What an agent refuses, and one that is not there, are no decisions of ours.
    let (line, body) = R10.get();
    let mut client = gateway.client();
    client.send(line, "", &body);
    let error =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"the words of the agent"}}"#;
    agent.next().json(error);
    assert_eq!(client.answer().status(), 404);
    client.send(line, "", &body);
    agent.next().answer(503, "", "");
    let last = client.answer().status();
    drop(client);

    let calls = place.ends(gateway);
    let refused = |rule: &str| json!({"decision": "refused", "rule": rule, "fault": rule});
    let expected = [
        refused("METHOD_NOT_FOUND"),
        refused("METHOD_NOT_FOUND"),
        refused("PARSE_ERROR"),
        refused("CONTENT_TYPE_NOT_SUPPORTED"),
        refused("INVALID_PARAMS"),
        refused("PUSH_NOTIFICATION_NOT_SUPPORTED"),
        refused("CONVERSATION_BUSY"),
        json!({"decision": "allowed", "fault": null, "message": "m1"}),
        json!({"decision": "allowed", "rule": null, "fault": "TASK_NOT_FOUND", "status": 404}),
        json!({"decision": "allowed", "rule": null, "status": last}),
    ];
    assert_eq!(calls.len(), expected.len());
    for (call, expected) in calls.iter().zip(&expected) {
        has(call, expected);
    }
    has(&calls[0], &json!({"status": 404, "operation": null}));
    has(
        &calls[4],
        &json!({"status": 200, "operation": "GetTask", "in": "J10"}),
    );
    has(
        &calls[5],
        &json!({"operation": "GetTaskPushNotificationConfig", "task": "t7"}),
    );
    has(
        &calls[6],
        &json!({"context": "c1", "message": "m2", "in": "R10", "status": 400}),
    );
}

#[test]
fn routes_cards_and_heads_are_named_and_preflights_are_no_calls() {
    let place = Place::new();
    let section = place.section("flush: 10ms, checkpoint: 0");
    let agent = answering(words::TASK);
    let gateway = crate::support::gateway::Gateway::of(&format!(
        "workers: 1\nhttp: {{cors: {{origins: '*'}}}}\nroutes: [{{path: '/agents/{{id}}', backend: 'http://{agent}/x/{{id}}'}}]\n{section}"
    ));
    let origin = "origin: https://app.example\r\naccess-control-request-method: POST\r\n";
    gateway.ask("OPTIONS /agents/a7/tasks/t1", origin, "");
    assert_eq!(gateway.ask("GET /agents/a7/tasks/t1", "", "").status(), 200);
    // Its answer here is no card.
    let card = "GET /agents/a7/.well-known/agent-card.json";
    assert_ne!(gateway.ask(card, "", "").status(), 404);
    let mut client = gateway.client();
    client.send("HEAD /agents/a7/tasks/t1", "", "");
    client.head();
    drop(client);
    let calls = place.ends(gateway);
    assert_eq!(calls.len(), 3, "{calls:#?}");
    has(
        &calls[0],
        &json!({"route": "/agents/{id}", "operation": "GetTask", "status": 200}),
    );
    has(
        &calls[1],
        &json!({"route": "/agents/{id}", "operation": "AgentCard"}),
    );
    has(&calls[2], &json!({"left": null}));
}

#[test]
fn a_message_that_is_sent_again_names_the_rule_that_answers_it() {
    let place = Place::new();
    let agent = answering(r#"{"message":{"messageId":"r","role":"ROLE_AGENT","parts":[]}}"#);
    let gateway = place.gateway(agent, "", "retry: {message_id: \"on\"}");
    let (line, body) = J10.send();
    for _ in 0..2 {
        assert_eq!(gateway.ask(line, "", &body).status(), 200);
    }
    let calls = place.ends(gateway);
    has(&calls[0], &json!({"decision": "allowed", "rule": null}));
    has(
        &calls[1],
        &json!({"decision": "allowed", "rule": "retry.message_id"}),
    );
}

#[test]
fn losses_are_counted() {
    let place = Place::new();
    let agent = answering(
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"},"hue":1}}"#,
    );
    let gateway = place.gateway(agent, "", "");
    let (line, body) = words::J03.send();
    let body = body.replace("\"role\"", "\"color\":\"red\",\"size\":1,\"role\"");
    assert_eq!(gateway.ask(line, "", &body).status(), 200);
    let calls = place.ends(gateway);
    has(&calls[0], &json!({"losses": 3}));
}

#[test]
fn losses_of_a_stream_s_events_are_counted_once_also_of_its_last() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    let more = |event: &str| event.replace("\"taskId\"", "\"hue\":1,\"taskId\"");
    let [working, asks, done] = [words::WORKING, words::ASKS, words::DONE].map(more);
    let mut expected = vec![];
    for (events, whole) in [
        (vec![&working, &done], true),
        (vec![&working, &done], false),
        (vec![&working, &asks], true),
        (vec![&working, &asks], false),
        (vec![&working, &asks, &done], true),
        (vec![&working, &asks, &done], false),
    ] {
        let (line, body) = words::J03.stream();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let mut call = agent.next();
        call.begin();
        let (last, first) = events.split_last().unwrap();
        for event in first {
            call.event(&words::result(event));
        }
        // Without the blank line after it, which the agent's end stands for.
        let end = if whole { "\n\n" } else { "\n" };
        call.chunk(format!("data: {}{end}", words::result(last)));
        call.end();
        let answer = client.answer();
        assert_eq!(answer.body.matches("data: ").count(), events.len());
        expected.push(json!({"events": events.len(), "losses": events.len()}));
    }
    for (call, expected) in place.ends(gateway).iter().zip(&expected) {
        has(call, expected);
    }
}

#[test]
fn a_record_is_in_its_file_while_the_gateway_runs() {
    let place = Place::new();
    let gateway = place.gateway(answering(words::TASK), "", "");
    let (line, body) = J10.get();
    for count in 1..4 {
        assert_eq!(gateway.ask(line, "", &body).status(), 200);
        crate::support::until("it is there", || place.calls().len() == count);
    }
}
