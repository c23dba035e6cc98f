//! A newcomer finds the conversation held: what the agent says of the task decides.
use crate::support::{
    desk::Ask,
    message::Message,
    stage::{ANN, BINDINGS, BOB, Outcome, PATIENT, QUICK, Stage},
    until,
    words::ALL,
};

const NEXT: Message<'_> = Message {
    id: "m2",
    context: Some("c1"),
    task: None,
    streams: false,
    at_once: false,
};

/// A task of Ann's goes on in `c1`.
fn working(stage: &Stage, task: &str) {
    stage.leaves_working(ANN, Message::send("m1").of("c1"), task);
}

const AT_REST: [&str; 6] = [
    "COMPLETED",
    "FAILED",
    "CANCELED",
    "REJECTED",
    "INPUT_REQUIRED",
    "AUTH_REQUIRED",
];

#[test]
fn a_task_at_rest_gives_the_conversation_to_the_newcomer() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for state in AT_REST {
            // Whoever asks: the agent shows the task to both here.
            for who in [ANN, BOB] {
                let task = format!("t-{state}-{}", who.token);
                working(&stage, &task);
                stage.desk.knows(&task, "c1", state);
                let (client, seen) = stage.talk(who, NEXT);
                let asked = stage.desk.asked();
                let last = asked.last().unwrap();
                assert_eq!(last.ask, Ask::Get);
                assert_eq!(last.task.as_deref(), Some(&*task));
                // With the newcomer's own credential.
                let bearer = format!("Bearer {}", who.token);
                assert_eq!(last.authorization.as_deref(), Some(&*bearer));
                stage.ends((client, seen), "t9", "c1");
            }
        }
    }
}

#[test]
fn a_task_not_at_rest_keeps_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for state in ["SUBMITTED", "WORKING", "UNSPECIFIED", "OF_TOMORROW"] {
            working(&stage, "t1");
            stage.desk.knows("t1", "c1", state);
            for speak in ALL {
                for who in [ANN, BOB] {
                    stage.refused(who.speaking(speak), NEXT);
                }
            }
            assert!(!stage.desk.asked().is_empty());
            stage.desk.knows("t1", "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
        }
    }
}

/// Holds another conversation and waits until not finding its task frees it: what was held before has settled.
fn settled(stage: &Stage) {
    stage.leaves_working(ANN, Message::send("k1").of("clock"), "t-clock");
    stage.desk.forgets("t-clock");
    let next = stage.admitted_in_time(ANN, Message::send("k2").of("clock"));
    stage.ends(next, "t-clock-2", "clock");
}

#[test]
fn a_task_not_found_gives_the_conversation_to_its_own_caller_in_time() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working(&stage, "t1");
        stage.desk.forgets("t1");
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
        let get = |q: &crate::support::desk::Question| q.ask == Ask::Get;
        assert!(stage.desk.asked().iter().any(get));
    }
}

#[test]
fn a_task_not_found_says_nothing_while_the_agent_may_not_show_it_yet() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        working(&stage, "t1");
        stage.desk.forgets("t1");
        for _ in 0..3 {
            stage.refused(ANN, NEXT);
        }
        assert!(!stage.desk.asked().is_empty());
        // The same task at rest does.
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn an_answer_that_says_nothing_of_the_task_frees_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working(&stage, "t1");
        settled(&stage);
        for status in [401, 403, 429, 500, 502, 503] {
            stage.desk.fails(Some(status));
            stage.refused_though_asked(ANN, NEXT, 1);
        }
        stage.desk.fails(None);
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn a_question_that_breaks_off_frees_nothing() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working(&stage, "t1");
        stage.desk.by_hand(true);
        let mut client = stage.says(ANN, NEXT);
        stage.asked(Ask::Get).call.reset();
        // A question may be repeated, and breaks again.
        until("it is refused", || match stage.outcome(&mut client) {
            Outcome::Reached(seen) => {
                assert_eq!(seen.said.ask, Ask::Get, "{:?}", seen.said);
                seen.call.reset();
                false
            }
            Outcome::Answered(answer) => answer.body.contains("CONVERSATION_BUSY"),
        });
        stage.desk.by_hand(false);
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn an_answer_after_its_deadline_is_too_late() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working(&stage, "t1");
        stage.desk.by_hand(true);
        let mut client = stage.says(ANN, NEXT);
        let mut question = stage.asked(Ask::Get);
        assert!(stage.is_stopped(ANN, &mut client).is_busy());
        question.call.closed();
        question.bare_task("t1", "c1", "COMPLETED");
        // It freed nothing: the next one asks anew.
        let client = stage.says(ANN, NEXT);
        let question = stage.asked(Ask::Get);
        question.bare_task("t1", "c1", "COMPLETED");
        stage.ends((client, stage.reached(NEXT)), "t2", "c1");
    }
}

#[test]
fn an_answer_of_before_a_change_is_too_late() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        working(&stage, "t1");
        stage.desk.by_hand(true);
        let mut late = stage.says(ANN, NEXT);
        let question = stage.asked(Ask::Get);
        // Meanwhile the caller looks at the task, which frees the conversation, and sends a message.
        stage.desk.by_hand(false);
        stage.desk.knows("t1", "c1", "INPUT_REQUIRED");
        assert_eq!(stage.looks(ANN, "t1").status(), 200);
        let third = Message::send("m3").of("c1");
        let held = stage.talk(ANN, third);
        question.bare_task("t1", "c1", "INPUT_REQUIRED");
        let refusal = stage.is_stopped(ANN, &mut late);
        assert!(refusal.is_busy(), "{refusal:?}");
        stage.refused(ANN, NEXT);
        stage.ends(held, "t3", "c1");
        stage.ends(stage.admitted(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn of_many_newcomers_one_takes_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        working(&stage, "t1");
        stage.desk.knows("t1", "c1", "COMPLETED");
        let mut clients: Vec<_> = (0..8).map(|_| stage.says(ANN, NEXT)).collect();
        let seen = stage.reached(NEXT);
        until("seven are refused", || {
            clients.retain_mut(|client| {
                let open = client.wire.is_open();
                if !open {
                    let answer = client.answer();
                    assert!(answer.body.contains("CONVERSATION_BUSY"), "{answer:?}");
                }
                open
            });
            assert!(stage.agent.is_left_alone_now());
            clients.len() == 1
        });
        let client = clients.pop().unwrap();
        stage.ends((client, seen), "t2", "c1");
        assert!(stage.agent.is_left_alone());
        assert_eq!(stage.desk.asked().len(), 1, "they share one answer");
    }
}

#[test]
fn newcomers_ask_four_times_a_second_at_most() {
    let stage = Stage::set(false, "conversation: {busy_grace: 1ms}");
    working(&stage, "t1");
    let start = tokio::time::Instant::now();
    until("it was asked four times", || {
        let mut clients = [ANN, ANN, BOB, BOB].map(|who| stage.says(who, NEXT));
        for client in &mut clients {
            stage.is_stopped(ANN, client);
        }
        stage.desk.asked().len() >= 4
    });
    let since = start.elapsed();
    assert!(since >= std::time::Duration::from_millis(700), "{since:?}");
}

#[test]
fn a_newcomer_who_leaves_while_the_agent_is_asked_is_never_sent() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        working(&stage, "t1");
        stage.desk.by_hand(true);
        let client = stage.says(ANN, NEXT);
        let question = stage.asked(Ask::Get);
        drop(client);
        stage.gateway.until_connected(0);
        stage.desk.by_hand(false);
        stage.desk.knows("t1", "c1", "COMPLETED");
        question.bare_task("t1", "c1", "COMPLETED");
        let third = Message::send("m3").of("c1");
        stage.ends(stage.admitted_in_time(ANN, third), "t3", "c1");
        assert!(stage.agent.is_left_alone());
    }
}
