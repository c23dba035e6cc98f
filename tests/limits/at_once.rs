//! What may be there at once, and how exact counts are when many come at once.
use std::thread;

use crate::support::{
    agent::{Agent, answer},
    gateway::Gateway,
    message::Message,
    stage::{ANN, BINDINGS, Stage},
    until,
};

const STREAMS: &str = "auth: [anyone]\nlimits: {rules: [{name: open, key: [caller], concurrency: {of: streams, limit: 1}}]}";

#[test]
fn a_stream_counts_until_it_has_ended_or_its_client_has_left() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, STREAMS);
        let open = stage.talk(ANN, Message::stream("m1").of("c1"));
        let refusal = stage.stopped(ANN, Message::stream("m2").of("c2"));
        assert_eq!(refusal.reason, "RATE_LIMITED");
        // It concerns streams alone.
        stage.ends(stage.talk(ANN, Message::send("m3").of("c3")), "t3", "c3");
        stage.ends(open, "t1", "c1");
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m4").of("c4"));
        seen.begins("t4", "c4", "WORKING");
        client.head();
        client.event();
        stage.stopped(ANN, Message::stream("m5").of("c5"));
        drop(client);
        seen.call.closed();
        let mut next = None;
        until("its place is free", || {
            let mut client = stage.says(ANN, Message::stream("m6").of("c6"));
            match stage.outcome(&mut client) {
                crate::support::stage::Outcome::Reached(seen) => {
                    next = Some((client, seen));
                    true
                }
                crate::support::stage::Outcome::Answered(_) => false,
            }
        });
        stage.ends(next.unwrap(), "t6", "c6");
    }
}

#[test]
fn sixty_four_at_once_get_just_what_there_is() {
    let task = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}}"#;
    let (agent, log) =
        Agent::always(move |_| answer(200, "content-type: application/json\r\n", task));
    let rules = "workers: 2
auth: [anyone]
limits: {rules: [{name: a, key: [caller], quota: {limit: 100, per: month}}, {name: b, key: [global], rate: {limit: 1000, per: 1h}}]}";
    let gateway = Gateway::of(&format!("backend: {{url: 'http://{agent}'}}\n{rules}"));
    let admitted: usize = thread::scope(|scope| {
        let sends = |caller: usize| {
            let mut client = gateway.client();
            let send = |n: usize| {
                let id = format!("m{caller}-{n}");
                let (line, body) = Message::send(&id).of(&id).words(ANN.speak);
                client.ask(line, &ANN.fields(), &body).status()
            };
            (0..10).map(send).filter(|status| *status == 200).count()
        };
        let callers: Vec<_> = (0..64).map(|n| scope.spawn(move || sends(n))).collect();
        callers.into_iter().map(|c| c.join().unwrap()).sum()
    });
    assert_eq!((admitted, log.all().len()), (100, 100));
}
