//! Messages that do not say their conversation: its task does, or the first reply.
use crate::support::{
    desk::{Ask, Question},
    message::Message,
    seen::Seen,
    stage::{ANN, BINDINGS, BOB, Outcome, PATIENT, QUICK, Stage},
    until,
    words::ALL,
};

fn said(seen: &Seen) -> (Option<&str>, Option<&str>) {
    (seen.said.context.as_deref(), seen.said.task.as_deref())
}

/// A task of `c1` that waits for input, as the gateway learned from a reply.
fn knows_task(stage: &Stage, task: &str) {
    stage.desk.knows(task, "c1", "INPUT_REQUIRED");
    let (mut client, seen) = stage.talk(ANN, Message::send("m0").of("c1"));
    seen.task(task, "c1", "INPUT_REQUIRED");
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_message_to_a_known_task_is_of_its_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        knows_task(&stage, "t1");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for alone in [Message::send("m1").to("t1"), Message::stream("m1").to("t1")] {
                let (client, seen) = stage.admitted(ann, alone);
                assert_eq!(said(&seen), (Some("c1"), Some("t1")));
                stage.refused(ann, Message::send("m2").of("c1"));
                stage.refused(ann, Message::send("m2").to("t1"));
                stage.refused(ann, Message::send("m2").of("c1").to("t1"));
                stage.ends((client, seen), "t1", "c1");
                // And the other way round.
                let held = stage.admitted(ann, Message::send("m2").of("c1"));
                stage.refused(ann, alone);
                stage.ends(held, "t2", "c1");
            }
        }
    }
}

#[test]
fn a_stream_s_first_event_teaches_the_task_s_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m0").of("c1"));
        seen.call.begin();
        seen.turns("t1", "c1", "WORKING");
        client.head();
        client.event().unwrap();
        seen.turns("t1", "c1", "INPUT_REQUIRED");
        client.event().unwrap();
        let (client, seen) = stage.admitted(ANN, Message::send("m1").to("t1"));
        assert_eq!(said(&seen), (Some("c1"), Some("t1")));
        stage.ends((client, seen), "t1", "c1");
    }
}

#[test]
fn the_conversation_is_not_filled_in_where_that_is_off() {
    for rest in BINDINGS {
        let settings = "conversation: {busy_grace: 20ms, fill_context: false}";
        let stage = Stage::set(rest, settings);
        knows_task(&stage, "t1");
        let (client, seen) = stage.admitted(ANN, Message::send("m1").to("t1"));
        assert_eq!(said(&seen), (None, Some("t1")));
        stage.refused(ANN, Message::send("m2").of("c1"));
        stage.ends((client, seen), "t1", "c1");
    }
}

#[test]
fn an_unknown_task_is_asked_for_once() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.desk.knows("t7", "c7", "INPUT_REQUIRED");
        for (n, speak) in ALL.into_iter().enumerate() {
            let bob = BOB.speaking(speak);
            let (client, seen) = stage.talk(bob, Message::send("m1").to("t7"));
            assert_eq!(said(&seen), (Some("c7"), Some("t7")));
            let asked = stage.desk.asked();
            assert_eq!(asked.len(), 1, "the answer of {n} is remembered");
            assert_eq!(asked[0].ask, Ask::Get);
            assert_eq!(asked[0].task.as_deref(), Some("t7"));
            assert_eq!(asked[0].authorization.as_deref(), Some("Bearer bob"));
            stage.refused(ANN, Message::send("m2").of("c7"));
            stage.ends((client, seen), "t7", "c7");
        }
    }
}

#[test]
fn an_unknown_task_of_a_busy_conversation_is_refused() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.desk.knows("t7", "c7", "INPUT_REQUIRED");
        let held = stage.talk(ANN, Message::send("m1").of("c7"));
        for message in [Message::send("m2").to("t7"), Message::stream("m2").to("t7")] {
            stage.refused(BOB, message);
        }
        stage.ends(held, "t1", "c7");
    }
}

#[test]
fn a_task_of_another_conversation_is_refused() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        knows_task(&stage, "t1");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for message in [Message::send("m1"), Message::stream("m1")] {
                let refusal = stage.stopped(ann, message.of("c2").to("t1"));
                refusal.is_told_as_bad(speak);
                assert_eq!(refusal.reason, "INVALID_PARAMS", "{refusal:?}");
            }
        }
        // Neither conversation is held by it.
        for context in ["c1", "c2"] {
            let next = stage.admitted(ANN, Message::send("m2").of(context));
            stage.ends(next, "t2", context);
        }
    }
}

#[test]
fn a_first_message_holds_the_conversation_that_its_reply_names() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let (mut client, mut seen) = stage.talk(ann, Message::stream("m1"));
            assert_eq!(said(&seen), (None, None));
            seen.begins("t1", "c1", "WORKING");
            client.head();
            client.event().unwrap();
            let next = Message::send("m2").of("c1");
            assert_eq!(stage.refused(ann, next).task(), Some("t1"));
            seen.turns("t1", "c1", "COMPLETED");
            seen.call.end();
            client.rest();
            stage.ends(stage.admitted(ann, next), "t2", "c1");
        }
        assert!(stage.desk.asked().is_empty());
    }
}

#[test]
fn a_first_send_that_did_not_wait_holds_the_conversation_that_its_reply_names() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for leaves in [false, true] {
            let task = format!("t-{leaves}");
            stage.desk.knows(&task, "c1", "WORKING");
            let (client, seen) = stage.talk(ANN, Message::send("m1").at_once());
            let next = Message::send("m2").of("c1");
            if leaves {
                drop(client);
                stage.gateway.until_connected(0);
                // Whose conversation it is, is not known yet.
                stage.ends(stage.admitted(ANN, next), "t2", "c1");
                seen.task(&task, "c1", "WORKING");
                until("its reply was read", || {
                    let mut client = stage.says(ANN, next);
                    match stage.outcome(&mut client) {
                        Outcome::Reached(seen) => {
                            stage.ends((client, seen), "t2", "c1");
                            false
                        }
                        Outcome::Answered(answer) => answer.body.contains("CONVERSATION_BUSY"),
                    }
                });
            } else {
                let mut client = client;
                seen.task(&task, "c1", "WORKING");
                client.answer();
            }
            assert_eq!(stage.refused(ANN, next).task(), Some(&*task));
            stage.desk.knows(&task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
        }
    }
}

#[test]
fn a_first_reply_that_names_a_busy_conversation_holds_it_as_well() {
    for rest in BINDINGS {
        for other_ends_first in [false, true] {
            let stage = Stage::set(rest, PATIENT);
            let held = stage.talk(ANN, Message::send("m1").of("c1"));
            let (mut client, mut seen) = stage.talk(ANN, Message::stream("m2"));
            seen.begins("t2", "c1", "WORKING");
            // The message is out: it is answered all the same.
            client.head();
            client.event().unwrap();
            let third = Message::send("m3").of("c1");
            stage.refused(ANN, third);
            let end = |mut seen: Seen, mut client: crate::support::client::Client| {
                seen.turns("t2", "c1", "COMPLETED");
                seen.call.end();
                client.rest();
            };
            if other_ends_first {
                stage.ends(held, "t1", "c1");
                stage.refused(ANN, third);
                end(seen, client);
            } else {
                end(seen, client);
                stage.refused(ANN, third);
                stage.ends(held, "t1", "c1");
            }
            stage.ends(stage.admitted(ANN, third), "t3", "c1");
            let listed = |q: &Question| q.ask == Ask::List;
            assert!(!stage.desk.asked().iter().any(listed));
        }
    }
}
