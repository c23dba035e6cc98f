//! Calls whose clients leave: their records say so, and what became of the call.
use serde_json::Value;

use crate::{
    place::Place,
    support::{
        agent::Agent,
        words::{self, ALL, J10},
    },
};

fn check(call: &Value, left: bool, state: Option<&str>, status: Option<u16>) {
    let is = |name: &str, value: Value| assert_eq!(call[name], value, "{name} of {call:#}");
    is("left", if left { true.into() } else { Value::Null });
    is("state", state.into());
    is("status", status.into());
    is("decision", "allowed".into());
}

#[test]
fn a_send_whose_client_left_has_a_record_with_its_end() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    for (n, speak) in ALL.into_iter().enumerate() {
        let (line, body) = speak.send();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let call = agent.next();
        drop(client);
        gateway.until_connected(0);
        assert_eq!(
            place.calls().len(),
            2 * n,
            "it goes on, and so does its record"
        );
        call.json(&words::result(&words::wrapped()));
        crate::support::until("it is there", || place.calls().len() == 2 * n + 1);
        // One that fails.
        let mut client = gateway.client();
        client.send(line, "", &body);
        let call = agent.next();
        drop(client);
        gateway.until_connected(0);
        drop(call);
        crate::support::until("it is there", || place.calls().len() == 2 * n + 2);
    }
    let calls = place.ends(gateway);
    for pair in calls.chunks(2) {
        check(&pair[0], true, Some("TASK_STATE_WORKING"), None);
        assert_eq!(pair[0]["task"], "t1");
        check(&pair[1], true, None, None);
        assert_eq!(pair[1]["fault"], "BACKEND_BROKEN");
    }
}

#[test]
fn a_read_that_is_given_up_has_a_record() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    let (line, body) = J10.get();
    let mut client = gateway.client();
    client.send(line, "", &body);
    let mut call = agent.next();
    drop(client);
    call.closed();
    // And one that left before its body was there.
    let mut client = gateway.client();
    client.wire.write(format!("{line} HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{{"));
    gateway.until_connected(1);
    drop(client);
    gateway.until_connected(0);
    let calls = place.ends(gateway);
    check(&calls[0], true, None, None);
    assert_eq!(calls[1]["operation"], Value::Null);
}

#[test]
fn a_stream_whose_client_left_has_a_record() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", "");
    let (line, body) = J10.stream();
    // It has seen an event: the stream is closed.
    let mut client = gateway.client();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(words::WORKING));
    client.head();
    client.event().unwrap();
    drop(client);
    call.closed();
    // It has seen none: the stream is read on to its first event, and so is the record.
    let mut client = gateway.client();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    client.head();
    drop(client);
    gateway.until_connected(0);
    call.event(&words::result(words::ASKS));
    call.closed();
    let calls = place.ends(gateway);
    check(&calls[0], true, Some("TASK_STATE_WORKING"), Some(200));
    check(
        &calls[1],
        true,
        Some("TASK_STATE_INPUT_REQUIRED"),
        Some(200),
    );
    assert_eq!(
        (&calls[0]["events"], &calls[1]["events"]),
        (&1.into(), &1.into())
    );
    assert_eq!(calls[1]["bytes"]["out"], 0);
}
