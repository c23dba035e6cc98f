//! What runs while settings change, and what the gateway remembers.
use serde_json::{Value, json};

use crate::{
    Place,
    support::{
        agent::{Agent, answer},
        client::Client,
        message::Message,
        place, until,
        words::{self, DONE, J03, J10},
    },
};

const JSON: &str = "content-type: application/json\r\n";

fn says(client: &mut Client, message: Message<'_>) {
    let (line, body) = message.words(J10);
    client.send(line, JSON, &body);
}

#[test]
fn a_stream_keeps_the_settings_that_it_began_with() {
    let agent = Agent::start();
    let place = Place::new(agent.addr, "stream: {keep_alive: 0}");
    let mut first = place.gateway.client();
    let (line, body) = J03.stream();
    first.send(line, JSON, &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(&words::wrapped()));
    assert_eq!(first.head().status(), 200);
    first.event().unwrap();

    place.takes("stream: {keep_alive: 20ms}\ndialects: {v03: false}");
    let mut second = place.gateway.client();
    says(&mut second, Message::stream("m2"));
    let mut other = agent.next();
    other.begin();
    assert_eq!(second.head().status(), 200);
    for _ in 0..5 {
        assert_eq!(second.event().unwrap(), ": keep-alive");
    }
    assert!(first.wire.is_open(), "it hears nothing, as was asked for");
    call.event(&words::result(DONE));
    call.end();
    let (event, _) = words::data(&first.event().unwrap());
    assert_eq!(event["result"]["kind"], "status-update", "{event}");
    assert_eq!(first.event(), None);
    other.event(&words::result(DONE));
    other.end();
}

#[test]
fn settings_go_with_the_last_call_that_goes_by_them() {
    let agent = Agent::start();
    let place = Place::new(agent.addr, "");
    let front = &place.gateway.served().front;
    let mut running = place.gateway.client();
    says(&mut running, Message::send("m1"));
    let call = agent.next();
    let mut streaming = place.gateway.client();
    says(&mut streaming, Message::stream("m2"));
    let mut stream = agent.next();
    stream.begin();
    stream.event(&words::result(&words::wrapped()));
    assert_eq!(streaming.head().status(), 200);
    let life = front.setup().life();
    place.takes("drain: {grace: 10s}");
    assert_eq!(front.earlier(), 1);
    for n in 11..20 {
        place.takes(&format!("drain: {{grace: {n}s}}"));
    }
    assert_eq!(front.earlier(), 1, "those in between have gone");
    assert!(life.upgrade().is_some());
    call.json(&words::result(&words::wrapped()));
    assert_eq!(running.answer().status(), 200);
    stream.event(&words::result(DONE));
    stream.end();
    streaming.rest();
    until("all have gone", || front.earlier() == 0);
    assert!(life.upgrade().is_none());
}

#[test]
fn a_conversation_stays_busy() {
    let agent = Agent::start();
    let busy = "conversation: {busy_grace: 1ms}";
    let place = Place::new(agent.addr, busy);
    let mut first = place.gateway.client();
    says(&mut first, Message::send("m1").of("c1"));
    let call = agent.next();
    place.takes(&format!("{busy}\ndialects: {{v03: false}}"));
    let mut second = place.gateway.client();
    says(&mut second, Message::send("m2").of("c1"));
    let refused = second.answer().json();
    let reason = refused.to_string();
    assert!(reason.contains("CONVERSATION_BUSY"), "{reason}");
    call.json(&words::result(
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ));
    assert_eq!(first.answer().status(), 200);
    says(&mut second, Message::send("m3").of("c1"));
    agent.next().json(&words::result(&words::wrapped()));
    assert!(second.answer().json()["result"].is_object());
}

#[test]
fn who_waits_gets_a_turn_from_a_call_of_other_settings() {
    let agent = Agent::start();
    let place = Place::new(agent.addr, "conversation: {on_busy: wait}");
    let mut first = place.gateway.client();
    says(&mut first, Message::send("m1").of("c1"));
    let call = agent.next();
    place.takes("conversation: {on_busy: wait, max_waiting: 3}");
    let mut second = place.gateway.client();
    says(&mut second, Message::send("m2").of("c1"));
    assert!(agent.is_left_alone());
    call.json(&words::result(
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ));
    assert_eq!(first.answer().status(), 200);
    agent.next().json(&words::result(&words::wrapped()));
    assert_eq!(second.answer().status(), 200);
}

#[test]
fn what_was_sent_before_is_known() {
    let agent = Agent::start();
    let on = "retry: {message_id: 'on'}";
    let place = Place::new(agent.addr, on);
    let mut client = place.gateway.client();
    says(&mut client, Message::send("m1"));
    let message = r#"{"message":{"messageId":"r","role":"ROLE_AGENT","parts":[{"text":"once"}]}}"#;
    agent.next().json(&words::result(message));
    let once = client.answer().json();
    place.takes(&format!("{on}\ndialects: {{v03: false}}"));
    says(&mut client, Message::send("m1"));
    assert_eq!(client.answer().json(), once);
    assert!(agent.is_left_alone_now());
}

#[test]
fn connections_to_an_agent_that_stays_are_kept() {
    let agent = Agent::start();
    let place = Place::new(agent.addr, "workers: 1");
    let mut client = place.gateway.client();
    let mut ports = vec![];
    for n in 0..4 {
        says(&mut client, Message::send(&format!("m{n}")));
        let call = agent.next();
        ports.push(call.wire.io.peer_addr().unwrap().port());
        call.json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
        let more = if n < 2 { "" } else { "limits: {connect: 4s}" };
        place.takes(&format!("workers: 1\ndrain: {{grace: {n}s}}\n{more}"));
    }
    assert_eq!(ports[0], ports[1]);
    assert_eq!(ports[1], ports[2]);
    assert_ne!(ports[2], ports[3], "it is reached in another way now");
}

#[test]
fn the_record_of_calls_goes_on() {
    let log = place::Place::new();
    let body = words::result(&words::wrapped());
    let whole = answer(200, JSON, body);
    let (agent, _) = Agent::always(move |_| whole.clone());
    let section = |more: &str| log.section(&format!("flush: 10ms, checkpoint: 0, {more}"));
    let place = Place::new(agent, &section(""));
    let mut client = place.gateway.client();
    for n in 0..10 {
        says(&mut client, Message::send(&format!("m{n}")));
        assert_eq!(client.answer().status(), 200);
        let digest = n % 2 == 0;
        place.takes(&section(&format!("digest: {digest}, queue: {}", 100 + n)));
    }
    let places = place.gateway.served().front.setup().audit().usage();
    assert_eq!(places.unwrap().places, 109);
    let Place {
        gateway, folder, ..
    } = place;
    let calls = log.ends(gateway);
    drop(folder);
    assert_eq!(calls.len(), 10);
    let digests: Vec<bool> = calls.iter().map(|call| has(call, "digest")).collect();
    let wanted: Vec<bool> = (0..10).map(|n| n % 2 == 1).collect();
    assert_eq!(digests, wanted, "{}", json!(calls));
}

fn has(call: &Value, word: &str) -> bool {
    call.to_string().contains(word)
}

#[test]
fn at_once_is_given_back_by_calls_of_other_settings() {
    let agent = Agent::start();
    let rules = "limits: {rules: [{name: one, key: [global], concurrency: {of: sends, limit: 1}}]}";
    let place = Place::new(agent.addr, rules);
    let mut first = place.gateway.client();
    says(&mut first, Message::send("m1"));
    let call = agent.next();
    place.takes(&format!("{rules}\ndialects: {{v03: false}}"));
    let mut second = place.gateway.client();
    says(&mut second, Message::send("m2"));
    assert!(second.answer().json()["error"].is_object());
    call.json(&words::result(&words::wrapped()));
    first.answer();
    says(&mut second, Message::send("m3"));
    agent.next().json(&words::result(&words::wrapped()));
    assert!(second.answer().json()["result"].is_object());
}

#[test]
fn an_idle_connection_of_earlier_settings_is_closed_when_its_agent_closes_it() {
    let agent = Agent::start();
    let place = Place::new(agent.addr, "workers: 1");
    let mut running = place.gateway.client();
    says(&mut running, Message::send("m1"));
    let held = agent.next();
    let mut client = place.gateway.client();
    says(&mut client, Message::send("m2"));
    let call = agent.next();
    let wire = call.wire.io.try_clone().unwrap();
    call.json(&words::result(&words::wrapped()));
    assert_eq!(client.answer().status(), 200);
    // It is reached in another way now, and the call holds on to the one before.
    place.takes("workers: 1\nlimits: {connect: 4s}");
    assert_eq!(place.gateway.served().front.earlier(), 1);
    wire.shutdown(std::net::Shutdown::Write).unwrap();
    wire.set_nonblocking(true).unwrap();
    until("the gateway closes its side", || {
        use std::io::Read as _;
        (&wire).read(&mut [0]).is_ok_and(|n| n == 0)
    });
    assert_eq!(place.gateway.served().front.earlier(), 1);
    held.json(&words::result(&words::wrapped()));
    assert_eq!(running.answer().status(), 200);
}
