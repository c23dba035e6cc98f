//! What costs nothing: calls that are refused, and calls that never reached the agent.
use std::net::TcpListener;

use crate::support::{
    gateway::Gateway,
    message::Message,
    stage::{ANN, BINDINGS, PATIENT, Stage},
};

const ONE: &str = "auth: [anyone]\nlimits: {rules: [{name: one, key: [caller], quota: {limit: 1, per: rolling 24h}}]}";
const TWO: &str =
    "auth: [anyone]\nlimits: {rules: [{name: two, key: [caller], quota: {limit: 2, per: month}}]}";

#[test]
fn an_agent_that_cannot_be_reached_costs_nothing() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = nobody.local_addr().unwrap();
    drop(nobody);
    let gateway = Gateway::with(addr, "", ONE);
    let (line, body) = Message::send("m1").words(ANN.speak);
    for _ in 0..5 {
        let answer = gateway.ask(line, &ANN.fields(), &body);
        assert!(answer.body.contains("BACKEND_UNREACHABLE"), "{answer:?}");
    }
}

#[test]
fn a_busy_conversation_costs_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, &format!("{PATIENT}\n{TWO}"));
        let held = stage.talk(ANN, Message::send("m1").of("c1"));
        for _ in 0..5 {
            stage.refused(ANN, Message::send("m2").of("c1"));
        }
        stage.ends(held, "t1", "c1");
        stage.ends(stage.talk(ANN, Message::send("m2").of("c1")), "t2", "c1");
        let refusal = stage.stopped(ANN, Message::send("m3").of("c1"));
        assert_eq!(refusal.reason, "QUOTA_EXCEEDED");
    }
}

#[test]
fn what_the_agent_refuses_is_charged() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, TWO);
        for id in ["m1", "m2"] {
            let (mut client, seen) = stage.talk(ANN, Message::send(id).of(id));
            seen.call.answer(404, "", "");
            client.answer();
        }
        let refusal = stage.stopped(ANN, Message::send("m3").of("c1"));
        assert_eq!(refusal.reason, "QUOTA_EXCEEDED");
    }
}
