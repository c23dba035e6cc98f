//! Callers whom the agent tells apart: what a stranger is told of another's task counts for little.
use crate::support::{
    message::Message,
    stage::{ANN, BINDINGS, BOB, Outcome, PATIENT, QUICK, Stage},
    until,
};

/// A task of Ann's, which only she sees, goes on in `c1`; and so long that not finding it would count.
fn working_and_settled(stage: &Stage) {
    stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
    stage.desk.is_of("t1", "ann");
    // What is held after it is freed by not finding it: so it would be, too.
    stage.leaves_working(ANN, Message::send("k1").of("clock"), "t-clock");
    stage.desk.forgets("t-clock");
    let next = stage.admitted_in_time(ANN, Message::send("k2").of("clock"));
    stage.ends(next, "t-clock-2", "clock");
}

#[test]
fn a_task_not_found_by_a_stranger_frees_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working_and_settled(&stage);
        let next = Message::send("m2").of("c1");
        stage.refused_though_asked(BOB, next, 2);
        // Its owner's answer is another.
        stage.refused(ANN, next);
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.refused(BOB, next);
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
        stage.ends(stage.admitted(BOB, next), "t3", "c1");
    }
}

#[test]
fn the_owner_is_not_given_what_a_stranger_was_told() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working_and_settled(&stage);
        let next = Message::send("m2").of("c1");
        stage.refused_though_asked(BOB, next, 1);
        // Not found by Bob; Ann finds it, at work.
        stage.refused(ANN, next);
        stage.refused(BOB, next);
        stage.desk.forgets("t1");
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
    }
}

#[test]
fn no_task_in_a_stranger_s_list_frees_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        stage.desk.knows("t1", "c1", "WORKING");
        stage.desk.is_of("t1", "ann");
        let (client, seen) = stage.talk(ANN, Message::send("m1").of("c1"));
        drop(seen);
        drop(client);
        stage.leaves_working(ANN, Message::send("k1").of("clock"), "t-clock");
        stage.desk.forgets("t-clock");
        let clock = stage.admitted_in_time(ANN, Message::send("k2").of("clock"));
        stage.ends(clock, "t-clock-2", "clock");
        let next = Message::send("m2").of("c1");
        stage.refused_though_asked(BOB, next, 2);
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
    }
}

#[test]
fn a_stranger_gets_a_conversation_that_was_held_for_too_long_without_news() {
    for rest in BINDINGS {
        let settings = "conversation: {busy_grace: 20ms, settle: 50ms, max_hold: 300ms}";
        let stage = Stage::set(rest, settings);
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        stage.desk.fails(Some(403));
        let next = Message::send("m2").of("c1");
        stage.ends(stage.admitted_in_time(BOB, next), "t2", "c1");
    }
}

#[test]
fn callers_without_a_credential_are_one_to_the_agent() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        let message = Message::send("m1").of("c1").at_once();
        let (line, body) = message.words(ANN.speak);
        let mut client = stage.gateway.client();
        client.send(line, "", &body);
        stage.reached(message).task("t1", "c1", "WORKING");
        assert_eq!(client.answer().status(), 200);
        // The agent has forgotten it: the next one may find that out, from wherever it comes.
        until("it is admitted", || {
            let mut client = stage.gateway.client();
            client.send(line, "", &body);
            match stage.outcome(&mut client) {
                Outcome::Reached(seen) => {
                    stage.ends((client, seen), "t2", "c1");
                    true
                }
                Outcome::Answered(answer) => {
                    assert!(answer.body.contains("CONVERSATION_BUSY"), "{answer:?}");
                    false
                }
            }
        });
    }
}

#[test]
fn a_refusal_names_the_task_only_to_the_caller_who_holds_it() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let next = Message::send("m2").of("c1");
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t-secret");
        for speak in crate::support::words::ALL {
            let refusal = stage.refused(ANN.speaking(speak), next);
            assert_eq!(refusal.task(), Some("t-secret"), "{refusal:?}");
            let seconds = |value: &serde_json::Value| value.as_str()?.parse::<u64>().ok();
            let mut others = refusal.metadata.iter().filter(|(k, _)| *k != "taskId");
            let age = others.find_map(|(_, v)| seconds(v));
            assert!(age.is_some_and(|a| a < 60), "{refusal:?}");

            let refusal = stage.refused(BOB.speaking(speak), next);
            assert!(!refusal.body.contains("t-secret"), "{refusal:?}");
            assert!(refusal.metadata.is_empty(), "{refusal:?}");
        }
    }
}
