//! `on_busy`: other answers than a refusal.
use crate::support::{
    message::Message,
    stage::{ANN, BINDINGS, BOB, Stage},
    until,
    words::{ALL, J03, J10, R03K, R03P, R10},
};

fn one(id: &str) -> Message<'_> {
    Message::send(id).of("c1")
}

#[test]
fn without_the_rule_messages_pass_as_they_come() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, "conversation: {on_busy: \"off\"}");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let first = stage.talk(ann, one("m1"));
            let second = stage.admitted(ann, Message::stream("m2").of("c1"));
            let third = stage.admitted(BOB, one("m3"));
            stage.ends(second, "t2", "c1");
            stage.ends(first, "t1", "c1");
            stage.ends(third, "t3", "c1");
        }
    }
}

#[test]
fn messages_wait_in_order_where_that_is_set() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, "conversation: {on_busy: wait, busy_grace: 20ms}");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let mut held = stage.talk(ann, one("m1"));
            let messages = [one("m2"), Message::stream("m3").of("c1"), one("m4")];
            let waiting = messages.map(|message| {
                let client = stage.says(ann, message);
                stage.catches_up();
                (client, message)
            });
            for (client, message) in waiting {
                assert!(stage.agent.is_left_alone_now());
                stage.ends(held, "t1", "c1");
                held = (client, stage.reached(message));
            }
            assert!(stage.agent.is_left_alone_now());
            stage.ends(held, "t1", "c1");
        }
    }
}

#[test]
fn a_message_waits_for_a_task_that_goes_on() {
    for rest in BINDINGS {
        let settings = "conversation: {on_busy: wait, busy_grace: 20ms, settle: 100ms}";
        let stage = Stage::set(rest, settings);
        stage.leaves_working(ANN, one("m1"), "t1");
        let client = stage.says(ANN, one("m2"));
        until("the agent is asked", || !stage.desk.asked().is_empty());
        assert!(stage.agent.is_left_alone_now());
        stage.desk.knows("t1", "c1", "COMPLETED");
        let seen = stage.reached(one("m2"));
        stage.ends((client, seen), "t2", "c1");
    }
}

#[test]
fn a_message_does_not_wait_for_ever() {
    for rest in BINDINGS {
        let settings = "conversation: {on_busy: wait, busy_grace: 5ms, wait: 50ms}";
        let stage = Stage::set(rest, settings);
        let held = stage.talk(ANN, one("m1"));
        for speak in ALL {
            let refusal = stage.refused(ANN.speaking(speak), one("m2"));
            assert!(refusal.retry_after.is_some());
        }
        stage.ends(held, "t1", "c1");
        stage.ends(stage.admitted(ANN, one("m2")), "t2", "c1");
    }
}

#[test]
fn no_more_messages_wait_than_there_is_room_for() {
    for rest in BINDINGS {
        let settings = "conversation: {on_busy: wait, busy_grace: 5ms, max_waiting: 1}";
        let stage = Stage::set(rest, settings);
        let held = stage.talk(ANN, one("m1"));
        let waiting = stage.says(ANN, one("m2"));
        stage.catches_up();
        // It comes again later, whether it is called busy or the queue full.
        let refusal = stage.stopped(ANN, one("m3"));
        assert!(refusal.retry_after.is_some(), "{refusal:?}");
        stage.ends(held, "t1", "c1");
        let seen = stage.reached(one("m2"));
        stage.ends((waiting, seen), "t2", "c1");
    }
}

#[test]
fn a_message_whose_caller_left_the_queue_is_never_sent() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, "conversation: {on_busy: wait, busy_grace: 5ms}");
        let held = stage.talk(ANN, one("m1"));
        let leaves = stage.says(ANN, one("m2"));
        stage.catches_up();
        let stays = stage.says(ANN, one("m3"));
        stage.catches_up();
        drop(leaves);
        stage.gateway.until_connected(2);
        stage.ends(held, "t1", "c1");
        let seen = stage.reached(one("m3"));
        stage.ends((stays, seen), "t3", "c1");
        assert!(stage.agent.is_left_alone());
    }
}

#[test]
fn a_message_whose_caller_left_while_it_waited_a_little_is_never_sent() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, "conversation: {busy_grace: 1h}");
        let held = stage.talk(ANN, one("m1"));
        let leaves = stage.says(ANN, one("m2"));
        stage.catches_up();
        drop(leaves);
        stage.gateway.until_connected(1);
        stage.ends(held, "t1", "c1");
        stage.ends(stage.admitted(ANN, one("m3")), "t3", "c1");
        assert!(stage.agent.is_left_alone());
    }
}

#[test]
fn a_message_waits_a_little_for_the_one_before_it() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, "conversation: {busy_grace: 10s}");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let held = stage.talk(ann, one("m1"));
            let client = stage.says(ann, one("m2"));
            stage.catches_up();
            stage.ends(held, "t1", "c1");
            let seen = stage.reached(one("m2"));
            stage.ends((client, seen), "t2", "c1");
        }
    }
}

#[test]
fn a_refusal_by_rest_may_be_a_conflict() {
    for rest in BINDINGS {
        let settings = "conversation: {busy_grace: 20ms, busy_status: \"409\"}";
        let stage = Stage::set(rest, settings);
        let held = stage.talk(ANN, one("m1"));
        for (speak, status, code) in [
            (J03, 200, -32602),
            (J10, 200, -32602),
            (R03P, 409, -32602),
            (R03K, 409, -32602),
            (R10, 409, 409),
        ] {
            for message in [one("m2"), Message::stream("m2").of("c1")] {
                let refusal = stage.refused(ANN.speaking(speak), message);
                assert_eq!((refusal.status, refusal.code), (status, code), "{speak:?}");
                assert!(refusal.retry_after.is_some(), "{speak:?}");
            }
        }
        stage.ends(held, "t1", "c1");
    }
}

#[test]
fn no_more_conversations_are_held_than_there_is_room_for() {
    for rest in BINDINGS {
        let more = "conversation: {busy_grace: 20ms, max_held: 1}";
        let stage = Stage::set(rest, more);
        let held = stage.talk(ANN, one("m1"));
        for speak in ALL {
            let refusal = stage.stopped(ANN.speaking(speak), Message::send("m2").of("c2"));
            assert_eq!(refusal.status, 503, "{speak:?}");
        }
        stage.ends(held, "t1", "c1");
        let next = stage.admitted(ANN, Message::send("m2").of("c2"));
        stage.ends(next, "t2", "c2");
    }
}
