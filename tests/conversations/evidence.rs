//! What replies say of a task: which of them free its conversation, and which come too late.
use crate::support::{
    client::Client,
    desk::{self, Ask},
    message::Message,
    seen::Seen,
    stage::{ANN, BINDINGS, PATIENT, QUICK, Stage},
    words::{ALL, Words},
};

fn next<'a>() -> Message<'a> {
    Message::send("m2").of("c1")
}

fn get(task: &str) -> Words {
    call("GetTask", task)
}

fn call(method: &str, task: &str) -> Words {
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"id":"{task}"}}}}"#);
    ("POST /", body)
}

#[test]
fn what_the_caller_sees_at_rest_frees_its_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for state in ["COMPLETED", "FAILED", "INPUT_REQUIRED", "AUTH_REQUIRED"] {
            stage.leaves_working(ANN, Message::send("m1").of("c1"), state);
            stage.desk.knows(state, "c1", state);
            assert_eq!(stage.looks(ANN, state).status(), 200);
            stage.ends(stage.admitted(ANN, next()), "t9", "c1");
        }
        // One of another task, or not at rest, does not.
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        stage.desk.knows("t2", "c1", "COMPLETED");
        stage.looks(ANN, "t2");
        stage.looks(ANN, "t1");
        stage.refused(ANN, next());
    }
}

#[test]
fn a_cancelled_task_frees_its_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        let (line, body) = call("CancelTask", "t1");
        let mut client = stage.writes(ANN, line, &body);
        stage.asked(Ask::Cancel).bare_task("t1", "c1", "CANCELED");
        assert_eq!(client.answer().status(), 200);
        stage.ends(stage.admitted(ANN, next()), "t2", "c1");
    }
}

/// A caller asks for the task; the agent has the question and waits.
fn asks_late(stage: &Stage, task: &str) -> (Client, Seen) {
    stage.desk.by_hand(true);
    let (line, body) = get(task);
    let client = stage.writes(ANN, line, &body);
    let question = stage.asked(Ask::Get);
    stage.desk.by_hand(false);
    (client, question)
}

#[test]
fn a_late_answer_of_before_a_resumption_frees_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        let (mut late, question) = asks_late(&stage, "t1");
        stage.desk.knows("t1", "c1", "INPUT_REQUIRED");
        stage.looks(ANN, "t1");
        // Resumed, and it works again.
        let resumes = Message::send("m2").of("c1").to("t1").at_once();
        stage.desk.knows("t1", "c1", "WORKING");
        let (mut client, seen) = stage.admitted(ANN, resumes);
        seen.task("t1", "c1", "WORKING");
        assert_eq!(client.answer().status(), 200);
        question.bare_task("t1", "c1", "INPUT_REQUIRED");
        let answer = late.answer();
        assert!(answer.body.contains("INPUT_REQUIRED"), "it passes as it is");
        for speak in ALL {
            let third = Message::send("m3").of("c1");
            let refusal = stage.refused(ANN.speaking(speak), third);
            assert_eq!(refusal.task(), Some("t1"));
        }
    }
}

#[test]
fn a_late_answer_frees_nothing_while_the_resumption_is_in_flight() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        let (mut late, question) = asks_late(&stage, "t1");
        stage.desk.knows("t1", "c1", "INPUT_REQUIRED");
        stage.looks(ANN, "t1");
        let held = stage.admitted(ANN, Message::send("m2").of("c1").to("t1"));
        question.bare_task("t1", "c1", "INPUT_REQUIRED");
        late.answer();
        let before = stage.desk.asked().len();
        stage.refused(ANN, Message::send("m3").of("c1"));
        assert_eq!(stage.desk.asked().len(), before);
        stage.ends(held, "t1", "c1");
    }
}

/// A resumption of a task whose answer does not come: its caller leaves.
fn resumes_and_leaves(stage: &Stage) {
    let message = Message::stream("m1").of("c1").to("t1");
    let (client, mut seen) = stage.admitted(ANN, message);
    drop(client);
    seen.call.closed();
    stage.gateway.until_connected(0);
}

#[test]
fn an_interrupted_state_may_be_that_of_before_the_resumption() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.desk.knows("t1", "c1", "INPUT_REQUIRED");
        resumes_and_leaves(&stage);
        let next = Message::send("m2").of("c1");
        stage.refused(ANN, next);
        stage.looks(ANN, "t1");
        stage.refused(ANN, next);
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");

        // In time it counts.
        let stage = Stage::set(rest, QUICK);
        stage.desk.knows("t1", "c1", "INPUT_REQUIRED");
        resumes_and_leaves(&stage);
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
    }
}

#[test]
fn of_a_subscription_only_a_terminal_state_frees_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        let (line, body) = call("SubscribeToTask", "t1");
        let mut client = stage.writes(ANN, line, &body);
        let mut seen = stage.asked(Ask::Subscribe);
        seen.begins("t1", "c1", "INPUT_REQUIRED");
        client.head();
        client.event().unwrap();
        seen.turns("t1", "c1", "INPUT_REQUIRED");
        client.event().unwrap();
        stage.refused(ANN, next());
        seen.turns("t1", "c1", "WORKING");
        client.event().unwrap();
        seen.turns("t1", "c1", "COMPLETED");
        client.event().unwrap();
        // At once, while the subscription is still open.
        stage.ends(stage.admitted(ANN, next()), "t2", "c1");
    }
}

/// A stream whose task waits for a permission.
fn waits_for_permission(stage: &Stage, client: &mut Client, seen: &mut Seen) {
    seen.begins("t1", "c1", "WORKING");
    client.head();
    client.event().unwrap();
    seen.turns("t1", "c1", "AUTH_REQUIRED");
    client.event().unwrap();
    assert!(stage.agent.is_left_alone_now());
}

#[test]
fn a_task_that_goes_on_by_itself_takes_its_conversation_back() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let (mut client, mut seen) = stage.talk(ann, Message::stream("m1").of("c1"));
            waits_for_permission(&stage, &mut client, &mut seen);
            stage.ends(stage.admitted(ann, next()), "t2", "c1");
            // The permission came by another way.
            seen.turns("t1", "c1", "WORKING");
            client.event().unwrap();
            stage.refused(ann, next());
            seen.turns("t1", "c1", "COMPLETED");
            client.event().unwrap();
            stage.ends(stage.admitted(ann, next()), "t2", "c1");
            seen.call.end();
            client.rest();
        }
        assert!(stage.desk.asked().is_empty());
    }
}

#[test]
fn a_task_that_goes_on_beside_another_s_message_is_told_all_the_same() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        waits_for_permission(&stage, &mut client, &mut seen);
        let held = stage.admitted(ANN, next());
        for state in ["WORKING", "COMPLETED"] {
            seen.turns("t1", "c1", state);
            let event = client.event().unwrap();
            assert!(event.contains(state), "{event}");
        }
        // The one message in flight is the other's still.
        stage.refused(ANN, Message::send("m3").of("c1"));
        stage.ends(held, "t2", "c1");
        let third = stage.admitted_in_time(ANN, Message::send("m3").of("c1"));
        stage.ends(third, "t3", "c1");
    }
}

#[test]
fn a_document_in_place_of_a_stream_says_how_the_task_is() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let message = Message::stream("m1").of("c1");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for state in ["COMPLETED", "INPUT_REQUIRED"] {
                let (mut client, seen) = stage.admitted(ann, message);
                seen.task("t1", "c1", state);
                assert_eq!(client.answer().status(), 200);
            }
        }
        stage.desk.knows("t2", "c1", "WORKING");
        let (mut client, seen) = stage.admitted(ANN, message);
        seen.task("t2", "c1", "WORKING");
        client.answer();
        assert_eq!(stage.refused(ANN, next()).task(), Some("t2"));
    }
}

#[test]
fn a_bare_message_frees_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let message = serde_json::json!({"message": {
            "messageId": "r1", "contextId": "c1", "role": "ROLE_AGENT", "parts": [{"text": "yes"}],
        }});
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let (mut client, mut seen) = stage.admitted(ann, Message::send("m1").of("c1"));
            seen.call.write(desk::document(rest, &message));
            seen.call.done();
            client.answer();
            let (mut client, mut seen) = stage.admitted(ann, Message::stream("m1").of("c1"));
            seen.call.begin();
            seen.call.event(&desk::said(rest, &message));
            client.head();
            client.event().unwrap();
            stage.ends(stage.admitted(ann, next()), "t2", "c1");
        }
    }
}
