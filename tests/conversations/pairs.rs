//! Two messages of one conversation, by each way in and out.
use crate::support::{
    message::Message,
    stage::{ANN, BINDINGS, BOB, PATIENT, QUICK, Stage},
    words::ALL,
};

/// A send and a stream.
fn kinds<'a>(id: &'a str, context: &'a str) -> [Message<'a>; 2] {
    [
        Message::send(id).of(context),
        Message::stream(id).of(context),
    ]
}

#[test]
fn a_second_message_is_refused_and_never_reaches_the_agent() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for first in kinds("m1", "c1") {
                for second in kinds("m2", "c1") {
                    let held = stage.talk(ann, first);
                    stage.refused(ann, second).is_told_as_bad(speak);
                    stage.ends(held, "t1", "c1");
                    // No question was asked: nothing helps while a message is in flight.
                    assert!(stage.desk.asked().is_empty());
                    stage.ends(stage.admitted(ann, second), "t2", "c1");
                }
            }
        }
        assert!(stage.agent.is_left_alone());
    }
}

#[test]
fn a_message_beside_a_stream_that_has_begun_is_refused() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for second in kinds("m2", "c1") {
                let (mut client, mut seen) = stage.talk(ann, Message::stream("m1").of("c1"));
                seen.begins("t1", "c1", "SUBMITTED");
                client.head();
                client.event().unwrap();
                let refusal = stage.refused(ann, second);
                assert_eq!(refusal.task(), Some("t1"), "{refusal:?}");
                seen.turns("t1", "c1", "WORKING");
                client.event().unwrap();
                stage.refused(ann, second);
                seen.turns("t1", "c1", "COMPLETED");
                seen.call.end();
                client.rest();
                stage.ends(stage.admitted(ann, second), "t2", "c1");
            }
        }
        assert!(stage.desk.asked().is_empty());
    }
}

#[test]
fn a_send_that_did_not_wait_holds_its_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for (n, second) in kinds("m2", "c1").into_iter().enumerate() {
                let task = format!("t-{speak:?}-{n}");
                stage.leaves_working(ann, Message::send("m1").of("c1"), &task);
                let refusal = stage.refused(ann, second);
                refusal.is_told_as_bad(speak);
                assert_eq!(refusal.task(), Some(&*task), "{refusal:?}");
                stage.desk.knows(&task, "c1", "COMPLETED");
                let next = stage.admitted_in_time(ann, second);
                stage.ends(next, "t2", "c1");
            }
        }
    }
}

#[test]
fn each_dialect_finds_the_conversation_that_another_holds() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for one in ALL {
            for first in kinds("m1", "c1") {
                let held = stage.talk(ANN.speaking(one), first);
                for other in ALL {
                    for second in kinds("m2", "c1") {
                        let refusal = stage.refused(BOB.speaking(other), second);
                        refusal.is_told_as_bad(other);
                    }
                }
                stage.ends(held, "t1", "c1");
            }
        }
    }
}

#[test]
fn messages_of_other_conversations_pass() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for first in kinds("m1", "c1") {
            let held = stage.talk(ANN, first);
            for other in ["c2", "C1", "c1 ", "c", "c11"] {
                for second in kinds("m2", other) {
                    stage.ends(stage.admitted(ANN, second), "t2", other);
                }
            }
            // One without a conversation begins a new one.
            stage.ends(stage.admitted(ANN, Message::send("m3")), "t3", "c3");
            stage.ends(held, "t1", "c1");
        }
    }
}

#[test]
fn calls_that_send_nothing_pass_while_a_message_is_in_flight() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.desk.knows("t1", "c1", "COMPLETED");
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        seen.begins("t1", "c1", "WORKING");
        client.head();
        client.event().unwrap();
        let answer = stage.looks(ANN, "t1");
        assert_eq!(
            answer.json()["result"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
        // And what they say of its task frees nothing: it is in flight.
        stage.refused(ANN, Message::send("m2").of("c1"));
        seen.turns("t1", "c1", "COMPLETED");
        client.event().unwrap();
        stage.ends(
            stage.admitted(ANN, Message::send("m2").of("c1")),
            "t2",
            "c1",
        );
    }
}
