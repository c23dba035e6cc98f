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
