//! Clients that leave, and a gateway that stops: the conversation stays with its task.
use crate::support::{
    desk,
    message::Message,
    stage::{ANN, BINDINGS, PATIENT, QUICK, Stage},
    until,
    words::{ALL, data},
};

#[test]
fn a_send_whose_caller_left_holds_its_conversation_until_its_answer() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let message = Message::send("m1").of("c1");
            let next = Message::send("m2").of("c1");
            let (client, mut seen) = stage.talk(ann, message);
            drop(client);
            stage.gateway.until_connected(0);
            stage.refused(ann, next);
            assert!(seen.call.is_open(), "it is followed");
            assert!(stage.desk.asked().is_empty());
            // Its end is seen by nobody but the gateway.
            seen.completes("t1", "c1");
            let next = stage.admitted_in_time(ann, next);
            assert!(stage.desk.asked().is_empty());
            stage.ends(next, "t2", "c1");
            stage.gateway.until_connected(0);
        }
    }
}

#[test]
fn a_send_whose_caller_left_passes_its_conversation_to_its_task() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        stage.desk.knows("t1", "c1", "WORKING");
        let (client, seen) = stage.talk(ANN, Message::send("m1").of("c1").at_once());
        drop(client);
        stage.gateway.until_connected(0);
        seen.task("t1", "c1", "WORKING");
        let next = Message::send("m2").of("c1");
        stage.refused_for(ANN, next, "t1");
        stage.desk.knows("t1", "c1", "FAILED");
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
    }
}

#[test]
fn a_stream_whose_caller_left_before_its_head_is_followed_to_its_first_event() {
    is_followed_to_its_first_event(false);
}

#[test]
fn a_stream_whose_caller_left_after_its_head_is_followed_to_its_first_event() {
    is_followed_to_its_first_event(true);
}

fn is_followed_to_its_first_event(begun: bool) {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for task in ["t1", "t2"] {
            let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
            if begun {
                seen.call.begin();
                client.head();
            }
            drop(client);
            stage.gateway.until_connected(0);
            let next = Message::stream("m2").of("c1");
            stage.refused(ANN, next);
            assert!(seen.call.is_open(), "which task it is, is not known yet");
            stage.desk.knows(task, "c1", "WORKING");
            let event = desk::said(rest, &desk::update(task, "c1", "WORKING"));
            if !begun {
                seen.call.begin();
            }
            seen.call.event(&event);
            seen.call.closed();
            stage.refused_for(ANN, next, task);
            stage.desk.knows(task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ANN, next), "t9", "c1");
            stage.gateway.until_connected(0);
        }
    }
}

#[test]
fn a_stream_whose_caller_left_is_closed_when_no_task_comes() {
    for rest in BINDINGS {
        let settings = "limits: {send: 300ms}";
        let stage = Stage::set(rest, settings);
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        seen.call.begin();
        client.head();
        drop(client);
        seen.call.closed();
    }
}

#[test]
fn a_stream_whose_caller_left_is_closed_and_its_task_holds_the_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let task = format!("t-{speak:?}");
            stage.desk.knows(&task, "c1", "WORKING");
            let (mut client, mut seen) = stage.talk(ann, Message::stream("m1").of("c1"));
            seen.begins(&task, "c1", "WORKING");
            client.head();
            client.event().unwrap();
            drop(client);
            seen.call.closed();
            let next = Message::send("m2").of("c1");
            let refusal = stage.refused(ann, next);
            assert_eq!(refusal.task(), Some(&*task), "{refusal:?}");
            stage.desk.knows(&task, "c1", "COMPLETED");
            stage.ends(stage.admitted_in_time(ann, next), "t9", "c1");
        }
    }
}

#[test]
fn a_stream_to_a_task_is_closed_at_once_when_its_caller_leaves() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, QUICK);
        stage.desk.knows("t1", "c1", "WORKING");
        let message = Message::stream("m1").of("c1").to("t1");
        let (client, mut seen) = stage.talk(ANN, message);
        drop(client);
        seen.call.closed();
        let next = Message::send("m2").of("c1");
        stage.refused_for(ANN, next, "t1");
        stage.desk.knows("t1", "c1", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, next), "t2", "c1");
    }
}

#[test]
fn a_stream_is_read_to_its_end_where_that_is_set() {
    for rest in BINDINGS {
        let stage = Stage::with(rest, "follow_streams: true", PATIENT);
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        seen.begins("t1", "c1", "WORKING");
        client.head();
        client.event().unwrap();
        drop(client);
        stage.gateway.until_connected(0);
        let next = Message::send("m2").of("c1");
        stage.refused(ANN, next);
        seen.turns("t1", "c1", "WORKING");
        stage.refused(ANN, next);
        assert!(seen.call.is_open());
        seen.turns("t1", "c1", "COMPLETED");
        seen.call.end();
        let next = stage.admitted_in_time(ANN, next);
        assert!(stage.desk.asked().is_empty());
        stage.ends(next, "t2", "c1");
    }
}

#[test]
fn a_stream_that_does_not_end_is_not_followed_for_ever() {
    for rest in BINDINGS {
        let limits = "limits: {followed: 300ms}\nadmin: 127.0.0.1:0";
        for begun in [false, true] {
            let settings = format!("{PATIENT}\n{limits}");
            let stage = Stage::with(rest, "follow_streams: true", &settings);
            let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
            if begun {
                seen.begins("t1", "c1", "WORKING");
                client.head();
                client.event().unwrap();
            } else {
                seen.call.begin();
                client.head();
            }
            drop(client);
            seen.call.closed();
            let word = if begun { "held" } else { "unknown" };
            until("it is left as after a fault", || {
                shown(&stage).contains(word)
            });
            assert_eq!(shown(&stage).contains("t1"), begun);
        }
    }
}

#[test]
fn a_send_for_which_there_is_no_room_among_followers_may_still_run() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, &format!("{QUICK}\nlimits: {{followers: 1}}"));
        let (client, first) = stage.talk(ANN, Message::send("m1").of("c1"));
        drop(client);
        stage.gateway.until_connected(0);
        let (client, mut second) = stage.talk(ANN, Message::send("m2").of("c2"));
        drop(client);
        second.call.closed();
        stage.desk.knows("t2", "c2", "WORKING");
        let next = Message::send("m3").of("c2");
        stage.refused_for(ANN, next, "t2");
        stage.desk.knows("t2", "c2", "COMPLETED");
        stage.ends(stage.admitted_in_time(ANN, next), "t3", "c2");
        first.completes("t1", "c1");
    }
}

/// What the admin address says of the one conversation that is held.
fn shown(stage: &Stage) -> String {
    let answer = stage.gateway.ask_admin("GET /v1/conversations", "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.body
}

#[test]
fn a_stop_during_a_stream_leaves_the_conversation_with_its_task() {
    for rest in BINDINGS {
        let more = "admin: 127.0.0.1:0\ndrain: {grace: 50ms}";
        let stage = Stage::set(rest, &format!("{PATIENT}\n{more}"));
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        seen.begins("t1", "c1", "WORKING");
        client.head();
        client.event().unwrap();
        stage.gateway.served().running.drain();
        let events = client.rest();
        assert_eq!(events.len(), 1, "{events:?}");
        let (error, _) = data(&events[0]);
        assert_eq!(error["error"]["code"], -32603, "{error}");
        seen.call.closed();
        let shown = shown(&stage);
        assert!(shown.contains("held") && shown.contains("t1"), "{shown}");
    }
}

#[test]
fn a_stop_before_the_first_event_leaves_the_conversation_unknown() {
    for rest in BINDINGS {
        let more = "admin: 127.0.0.1:0\ndrain: {grace: 50ms}";
        let stage = Stage::set(rest, &format!("{PATIENT}\n{more}"));
        let (mut client, mut seen) = stage.talk(ANN, Message::stream("m1").of("c1"));
        seen.call.begin();
        client.head();
        stage.gateway.served().running.drain();
        assert_eq!(client.rest().len(), 1);
        seen.call.closed();
        let shown = shown(&stage);
        assert!(shown.contains("unknown"), "{shown}");
    }
}
