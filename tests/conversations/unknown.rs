//! A message went out and its answer was lost: the agent's list of tasks decides.
use crate::support::{
    desk::Ask,
    message::Message,
    stage::{ANN, BINDINGS, PATIENT, QUICK, Stage},
    words::ALL,
};

const NEXT: Message<'_> = Message {
    id: "m2",
    context: Some("c1"),
    task: None,
    streams: false,
    at_once: false,
};

/// The agent closes before it answers.
fn lost(stage: &Stage) {
    let (mut client, seen) = stage.talk(ANN, Message::send("m1").of("c1"));
    drop(seen);
    client.answer();
}

#[test]
fn no_task_in_the_list_gives_the_conversation_to_its_own_caller_in_time() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        // What is at rest, and what belongs elsewhere, is none.
        stage.desk.knows("t-old", "c1", "COMPLETED");
        stage.desk.knows("t-other", "c2", "WORKING");
        lost(&stage);
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
        let asked = stage.desk.asked();
        let first = asked.first().unwrap();
        assert_eq!(first.ask, Ask::List);
        assert_eq!(first.context.as_deref(), Some("c1"));
        assert_eq!(first.authorization.as_deref(), Some("Bearer ann"));
    }
}

#[test]
fn no_task_in_the_list_says_nothing_while_the_agent_may_not_show_it_yet() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        lost(&stage);
        for speak in ALL {
            stage.refused(ANN.speaking(speak), NEXT);
        }
        assert!(!stage.desk.asked().is_empty());
        // A task shows up, which need not be the lost message's: its end frees nothing before that shows, too.
        stage.desk.knows("t1", "c1", "WORKING");
        stage.refused_for(ANN, NEXT, "t1");
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.refused(ANN, NEXT);
        assert_ne!(stage.desk.asked().last().unwrap().ask, Ask::Get);
    }
}

#[test]
fn a_list_that_cannot_be_had_frees_nothing() {
    for rest in BINDINGS {
        let settings = "conversation: {busy_grace: 20ms, settle: 50ms, unknown_hold: 1h}";
        let stage = Stage::set(rest, settings);
        lost(&stage);
        for status in [401, 403, 500, 503] {
            stage.desk.fails(Some(status));
            stage.refused_though_asked(ANN, NEXT, 1);
        }
        stage.desk.fails(None);
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn an_agent_without_a_list_is_waited_for() {
    for rest in BINDINGS {
        let hold = |time| {
            let settings =
                format!("conversation: {{busy_grace: 20ms, settle: 50ms, unknown_hold: {time}}}");
            let stage = Stage::set(rest, &settings);
            stage.desk.cannot_list();
            lost(&stage);
            stage
        };
        let stage = hold("1h");
        let start = tokio::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(400) {
            stage.refused(ANN, NEXT);
        }
        let stage = hold("300ms");
        stage.refused(ANN, NEXT);
        stage.ends(stage.admitted_in_time(ANN, NEXT), "t2", "c1");
    }
}

#[test]
fn a_list_may_come_in_pages() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        lost(&stage);
        stage.desk.by_hand(true);
        // The task at work is not on the first page.
        let page = |state: &str, token: &str| {
            let task = crate::support::desk::task(&format!("t-{state}"), "c1", state);
            serde_json::json!({"tasks": [task], "nextPageToken": token, "pageSize": 1, "totalSize": 2})
        };
        let mut client = stage.says(ANN, NEXT);
        let mut first = stage.asked(Ask::List);
        let text = crate::support::desk::document(rest, &page("COMPLETED", "two"));
        first.call.write(text);
        first.call.done();
        let refused = match stage.outcome(&mut client) {
            crate::support::stage::Outcome::Answered(answer) => answer,
            crate::support::stage::Outcome::Reached(mut second) => {
                assert_eq!(second.said.ask, Ask::List, "{:?}", second.said);
                let text = crate::support::desk::document(rest, &page("WORKING", ""));
                second.call.write(text);
                second.call.done();
                client.answer()
            }
        };
        assert!(refused.body.contains("CONVERSATION_BUSY"), "{refused:?}");
    }
}
