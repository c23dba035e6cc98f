//! Faults say whether work may have begun: only where it has not, the conversation is free.
use std::net::TcpListener;

use crate::support::{
    agent::answer,
    desk::{self, Error},
    gateway::Gateway,
    message::Message,
    seen::Seen,
    stage::{ANN, BINDINGS, QUICK, Stage},
    words::{ALL, J10, R10, data},
};

fn kinds(id: &str) -> [Message<'_>; 2] {
    [Message::send(id).of("c1"), Message::stream(id).of("c1")]
}

/// How an agent refuses before anything began.
fn not_started(rest: bool) -> Vec<Vec<u8>> {
    let statuses = [400, 401, 403, 404, 413, 415, 429];
    let plain = statuses.map(|s| answer(s, "content-type: text/plain\r\n", "no"));
    let errors: [Error; 12] = [
        (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
        (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
        (
            -32003,
            400,
            "FAILED_PRECONDITION",
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
        (
            -32005,
            400,
            "INVALID_ARGUMENT",
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (
            -32007,
            400,
            "FAILED_PRECONDITION",
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        ),
        (
            -32008,
            400,
            "FAILED_PRECONDITION",
            "EXTENSION_SUPPORT_REQUIRED",
        ),
        (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
        (-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
        (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
        (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    ];
    let told = errors.map(|e| desk::refusal(rest, e));
    plain.into_iter().chain(told).collect()
}

/// What leaves open whether the agent works.
fn may_have_started(rest: bool) -> Vec<Vec<u8>> {
    let json = "content-type: application/json\r\n";
    let statuses = [500, 504];
    let plain = statuses.map(|s| answer(s, "content-type: text/html\r\n", "<html>"));
    let errors: [Error; 3] = [
        (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
        (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
        (-32050, 500, "INTERNAL", "SOMETHING_OF_ITS_OWN"),
    ];
    let told = errors.map(|e| desk::refusal(rest, e));
    let broken = [
        answer(200, "content-type: text/html\r\n", "<html>"),
        answer(200, json, "{}"),
        answer(200, json, desk::said(rest, &serde_json::json!({"task": 7}))),
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".to_vec(),
        b"hello\r\n\r\n".to_vec(),
        vec![],
    ];
    plain.into_iter().chain(told).chain(broken).collect()
}

/// The agent writes this and closes.
fn writes(mut seen: Seen, bytes: &[u8]) {
    seen.call.write(bytes);
}

#[test]
fn a_fault_before_any_work_frees_the_conversation_at_once() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for bytes in not_started(rest) {
            for message in kinds("m1") {
                let (mut client, seen) = stage.admitted(ANN, message);
                writes(seen, &bytes);
                client.answer();
            }
        }
        stage.ends(
            stage.admitted(ANN, Message::send("m2").of("c1")),
            "t2",
            "c1",
        );
    }
}

#[test]
fn a_fault_that_may_follow_work_holds_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for (n, bytes) in may_have_started(rest).into_iter().enumerate() {
            for message in kinds("m1") {
                let task = format!("t-{n}-{}", message.streams);
                let (mut client, seen) = stage.talk(ANN, message);
                stage.desk.knows(&task, "c1", "WORKING");
                writes(seen, &bytes);
                client.answer();
                let next = Message::send("m2").of("c1");
                let case = String::from_utf8_lossy(&bytes);
                let refusal = stage.refused(ANN, next);
                assert_eq!(refusal.task(), Some(&*task), "{case}: {refusal:?}");
                stage.desk.knows(&task, "c1", "COMPLETED");
                stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
            }
        }
    }
}

#[test]
fn a_502_or_503_may_come_from_a_proxy_that_lost_the_answer() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        let overloaded = (-32603, 503, "UNAVAILABLE", "OVERLOADED");
        let page = |status| answer(status, "content-type: text/html\r\n", "<html>");
        let answers = [page(502), page(503), desk::refusal(rest, overloaded)];
        for (n, bytes) in answers.iter().enumerate() {
            let task = format!("t{n}");
            let (mut client, seen) = stage.talk(ANN, Message::send("m1").of("c1"));
            stage.desk.knows(&task, "c1", "WORKING");
            writes(seen, bytes);
            client.answer();
            let next = Message::send("m2").of("c1");
            assert_eq!(stage.refused(ANN, next).task(), Some(&*task));
            stage.desk.knows(&task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
        }
    }
}

#[test]
fn an_error_frame_before_any_task_counts_as_a_refusal_does() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        let fails = |reason| {
            let (code, status, grpc) = match reason {
                "INVALID_PARAMS" => (-32602, 400, "INVALID_ARGUMENT"),
                _ => (-32603, 500, "INTERNAL"),
            };
            let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
            seen.call.begin();
            let error = desk::error(rest, (code, status, grpc, reason));
            seen.call.event(&error);
            seen.call.end();
            client.head();
            assert_eq!(client.rest().len(), 1);
        };
        let next = Message::send("m2").of("c1");
        fails("INVALID_PARAMS");
        stage.ends(stage.admitted(ANN, next), "t2", "c1");
        stage.desk.knows("t1", "c1", "WORKING");
        fails("INTERNAL_ERROR");
        assert_eq!(stage.refused(ANN, next).task(), Some("t1"));
    }
}

#[test]
fn an_agent_that_is_not_there_has_not_started() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let gateway = Gateway::with(addr, "", QUICK);
    for speak in ALL {
        for message in kinds("m1") {
            let (line, body) = message.words(speak);
            for _ in 0..2 {
                let answer = gateway.ask(line, "", &body);
                assert!(answer.body.contains("BACKEND_UNREACHABLE"), "{answer:?}");
            }
        }
    }
}

#[test]
fn an_agent_that_was_too_slow_may_still_work() {
    for rest in BINDINGS {
        let limits = "limits: {send: 50ms}";
        let stage = Stage::set(rest, &format!("{QUICK}\n{limits}"));
        for message in kinds("m1") {
            let task = format!("t-{}", message.streams);
            let (mut client, mut seen) = stage.talk(ANN.speaking(R10), message);
            stage.desk.knows(&task, "c1", "WORKING");
            assert_eq!(client.answer().status(), 504);
            seen.call.closed();
            let next = Message::send("m2").of("c1");
            assert_eq!(stage.refused(ANN, next).task(), Some(&*task));
            stage.desk.knows(&task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
        }
    }
}

#[test]
fn a_reset_before_the_first_event_leaves_open_whether_work_began() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for begun in [false, true] {
            let task = format!("t-{begun}");
            let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
            stage.desk.knows(&task, "c1", "WORKING");
            if begun {
                seen.call.begin();
                client.head();
                seen.call.reset();
                client.rest();
            } else {
                seen.call.reset();
                client.answer();
            }
            let next = Message::send("m2").of("c1");
            assert_eq!(stage.refused(ANN, next).task(), Some(&*task));
            stage.desk.knows(&task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
        }
    }
}

#[test]
fn once_a_task_is_named_every_break_leaves_the_conversation_with_it() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for case in ["reset", "half", "clean-end", "not-started", "internal"] {
            stage.desk.knows(case, "c1", "WORKING");
            let (mut client, mut seen) =
                stage.talk(ANN.speaking(J10), Message::stream("m1").of("c1"));
            seen.begins(case, "c1", "WORKING");
            client.head();
            client.event().unwrap();
            let clean = match case {
                "reset" => {
                    seen.call.reset();
                    false
                }
                "half" => {
                    seen.call.write("ff\r\ndata: {\"half");
                    drop(seen);
                    false
                }
                "clean-end" => {
                    seen.call.end();
                    true
                }
                _ => {
                    let code = if case == "internal" { -32603 } else { -32602 };
                    let error = (code, 400, "INVALID_ARGUMENT", "ANY");
                    seen.call.event(&desk::error(rest, error));
                    seen.call.end();
                    false
                }
            };
            let events = client.rest();
            let is_error = |e: &String| data(e).0.get("error").is_some();
            assert_eq!(events.iter().any(is_error), !clean, "{case}: {events:?}");
            let next = Message::send("m2").of("c1");
            let refusal = stage.refused(ANN, next);
            assert_eq!(refusal.task(), Some(case), "{refusal:?}");
            assert!(
                stage.desk.asked().iter().all(|q| q.task.is_some()),
                "{case}"
            );
            stage.desk.knows(case, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
        }
    }
}
