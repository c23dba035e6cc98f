//! Calls for whose records there is no place.
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use crate::{
    place::Place,
    support::{
        agent::{Agent, answer},
        message::Refusal,
        until,
        words::{self, ALL, J10},
    },
};

#[test]
fn a_call_that_cannot_be_recorded_is_refused_in_its_own_dialect() {
    let place = Place::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let agent = Agent::answering(move |asked| {
        asked.body.contains("GetTask").then(|| {
            count.fetch_add(1, SeqCst);
            answer(
                200,
                "content-type: application/json\r\n",
                words::result(words::TASK),
            )
        })
    });
    let gateway = place.gateway(agent.addr, "queue: 1", "");
    let (line, body) = J10.send();
    let mut first = gateway.client();
    first.send(line, "", &body);
    let call = agent.next();
    for speak in ALL {
        let (line, body) = speak.get();
        let version = if speak.is_old() { "0.3" } else { "1.0" };
        let answer = gateway.ask(line, &format!("a2a-version: {version}\r\n"), &body);
        let refusal = Refusal::read(speak, &answer);
        assert_eq!(
            (refusal.status, &*refusal.reason),
            (503, "OVERLOADED"),
            "{refusal:?}"
        );
        assert_eq!(refusal.retry_after.as_deref(), Some("1"));
    }
    assert_eq!(asked.load(SeqCst), 0);
    call.json(&words::result(&words::wrapped()));
    first.answer();
    drop(first);
    // There is a place again once its record is written.
    let mut refused = 5;
    let (line, body) = J10.get();
    until("there is a place", || {
        let served = gateway.ask(line, "", &body).status() == 200;
        refused += u64::from(!served);
        served
    });
    assert_eq!(place.ends(gateway).len(), 2);
    assert_eq!(missed(&place, false), refused);
}

#[test]
fn slow_calls_of_one_peer_leave_places_to_others() {
    let place = Place::new();
    let agent = Agent::start();
    let proxied = "http: {trusted_proxies: [127.0.0.1]}";
    for (rest, most) in [("", 2), (proxied, 8)] {
        let gateway = place.gateway(agent.addr, "queue: 8", rest);
        let (line, body) = J10.send();
        let mut slow = vec![];
        for _ in 0..most {
            let mut client = gateway.client();
            client.send(line, "", &body);
            slow.push((client, agent.next()));
        }
        for speak in ALL {
            let (line, body) = speak.get();
            let version = if speak.is_old() { "0.3" } else { "1.0" };
            let answer = gateway.ask(line, &format!("a2a-version: {version}\r\n"), &body);
            let refusal = Refusal::read(speak, &answer);
            let (status, reason) = match most {
                2 => (429, "RATE_LIMITED"),
                _ => (503, "OVERLOADED"),
            };
            assert_eq!((refusal.status, &*refusal.reason), (status, reason));
            assert_eq!(refusal.retry_after.as_deref(), Some("1"));
        }
        let usage = gateway.served().audit.usage().unwrap();
        assert_eq!(usage.taken, most);
        assert_eq!(usage.beyond_share + usage.without_place, 5);
        for (mut client, call) in slow {
            call.json(&words::result(&words::wrapped()));
            client.answer();
        }
        place.ends(gateway);
    }
    assert_eq!(place.calls().len(), 10);
    assert_eq!(missed(&place, false), 10);
}

#[test]
fn who_calls_too_often_is_stopped_before_it_takes_a_place_of_others() {
    let place = Place::new();
    let (addr, _log) = Agent::always(|_| {
        let json = "content-type: application/json\r\n";
        answer(200, json, words::result(words::TASK))
    });
    let limits = "limits: {per_peer: {rate: 1, burst: 2}}\nadmin: 127.0.0.1:0";
    let gateway = place.gateway(addr, "queue: 4", limits);
    let (line, body) = J10.get();
    for status in [200, 200, 429, 429] {
        let free = || gateway.served().audit.usage().unwrap().taken == 0;
        until("its place is free again", free);
        assert_eq!(gateway.ask(line, "", &body).status(), status);
    }
    let told = gateway.ask_admin("GET /v1/audit", "");
    let missed = &told.json()["missed"];
    assert_eq!(missed["withoutPlace"], 0, "{told:?}");
    assert_eq!(told.json()["places"], 4);
    let calls = place.ends(gateway);
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[3]["rule"], "limits.per_peer");
    assert_eq!(calls[3]["decision"], "refused");
}

/// How many calls have no record, all of which were `served` or none.
fn missed(place: &Place, served: bool) -> u64 {
    let mut missed = place.lines();
    missed.retain(|line| line["kind"] == "missed");
    assert!(missed.iter().all(|line| line["served"] == served));
    missed
        .iter()
        .map(|line| line["calls"].as_u64().unwrap())
        .sum()
}

#[test]
fn a_call_that_cannot_be_recorded_may_be_served_and_is_counted() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "queue: 1, on_full: drop", "");
    let (line, body) = J10.send();
    let mut first = gateway.client();
    first.send(line, "", &body);
    let call = agent.next();
    for _ in 0..3 {
        let mut client = gateway.client();
        client.send(line, "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
    }
    call.json(&words::result(&words::wrapped()));
    first.answer();
    drop(first);
    assert_eq!(place.ends(gateway).len(), 1);
    assert_eq!(missed(&place, true), 3);
}
