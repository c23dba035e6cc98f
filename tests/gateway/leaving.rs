//! Clients that leave, and a gateway that does.

use crate::support::{
    PATIENCE,
    agent::{Agent, Call},
    client::Client,
    gateway::Gateway,
    words::{self, ALL, J03, J10, R10},
};

#[test]
fn a_client_that_leaves_a_stream_ends_it() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        for (sends, (line, body)) in [(true, speak.stream()), (false, speak.subscribe())] {
            // A message is followed to its first event, which names its task.
            let first = |call: &mut Call| {
                if sends {
                    call.event(&words::result(words::WORKING));
                }
            };
            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            drop(client);
            gateway.until_connected(0);
            call.begin();
            first(&mut call);
            call.closed();

            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            call.begin();
            client.head();
            drop(client);
            gateway.until_connected(0);
            first(&mut call);
            call.closed();

            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            call.begin();
            call.event(&words::result(words::WORKING));
            client.head();
            client.event().unwrap();
            drop(client);
            call.closed();
        }
    }
}

#[test]
fn a_send_is_followed_when_its_client_leaves() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        let (line, body) = speak.send();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let mut call = agent.next();
        drop(client);
        gateway.until_connected(0);
        assert!(call.is_open());
        let port = call.wire.io.peer_addr().unwrap().port();
        call.json(&words::result(&words::wrapped()));
        // The answer was read to its end, for the connection serves again.
        let mut client = gateway.client();
        client.send(line, "", &body);
        let call = agent.next();
        assert_eq!(call.wire.io.peer_addr().unwrap().port(), port);
        call.json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
        drop(client);
        gateway.until_connected(0);
    }
}

#[test]
fn no_more_sends_are_followed_than_there_is_room_for() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {followers: 1}");
    let (line, body) = J10.send();
    let leave = || {
        let mut client = gateway.client();
        client.send(line, "", &body);
        let call = agent.next();
        drop(client);
        gateway.until_connected(0);
        call
    };
    let mut first = leave();
    let mut second = leave();
    second.closed();
    assert!(first.is_open());
    first.json(&words::result(&words::wrapped()));
}

#[test]
fn a_read_is_given_up_when_its_client_leaves() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let (line, body) = J03.get();
    let mut client = gateway.client();
    client.send(line, "", &body);
    let mut call = agent.next();
    drop(client);
    call.closed();
}

#[test]
fn a_drain_lets_a_send_end_and_takes_no_more() {
    let agent = Agent::start();
    let admin = "admin: 127.0.0.1:0";
    let gateway = Gateway::with(agent.addr, "", admin);
    let probes = gateway.served().admin.as_ref().unwrap().local_addr;
    let ready = |client: &mut Client| client.ask("GET /readyz", "", "").status();
    assert_eq!(ready(&mut Client::connect(probes)), 200);
    let alive = Client::connect(probes).ask("GET /livez", "", "");
    assert_eq!((alive.status(), alive.body.as_str()), (200, "ok\n"));

    let (line, body) = R10.send();
    let mut client = gateway.client();
    client.send(line, "", &body);
    let call = agent.next();
    // One send whose client has left is waited for as well.
    let mut left = gateway.client();
    left.send(line, "", &body);
    let followed = agent.next();
    drop(left);
    gateway.served().running.drain();
    assert_eq!(ready(&mut Client::connect(probes)), 503);
    // Who comes late is told so, and to come to somebody else.
    let start = tokio::time::Instant::now();
    let late = loop {
        let late = gateway.client().ask("GET /no/such/path", "", "");
        if late.status() != 404 {
            break late;
        }
        assert!(start.elapsed() < PATIENCE, "it still takes calls");
    };
    assert_eq!(late.status(), 503);
    assert_eq!(late.head.get("connection"), Some("close"));
    call.json(&words::result(&words::wrapped()));
    let answer = client.answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.head.get("connection"), Some("close"));
    client.wire.closed();
    followed.json(&words::result(&words::wrapped()));
    assert!(gateway.end(), "nothing was cut");
}
