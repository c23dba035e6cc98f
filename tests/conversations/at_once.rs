//! Free before telling: what a client reads of a task at rest, it may answer at once.
use crate::support::{
    message::Message,
    stage::{ANN, BINDINGS, Stage},
    words::{ALL, J03, J10, R03P},
};

/// Nobody waits for a conversation to be free.
const AT_ONCE: &str = "conversation: {busy_grace: 0ms, settle: 1h, max_hold: 2h}";
const TIMES: usize = 200;

#[test]
fn a_conversation_is_free_before_a_document_says_so() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, AT_ONCE);
        for n in 0..TIMES {
            let ann = ANN.speaking(ALL[n % ALL.len()]);
            let message = Message::send("m1").of("c1");
            let rests = if n % 3 == 0 {
                "INPUT_REQUIRED"
            } else {
                "COMPLETED"
            };
            let (mut client, seen) = stage.admitted(ann, message);
            seen.task("t1", "c1", rests);
            client.head();
            // Not even the whole answer was read.
            stage.ends(stage.admitted(ann, message), "t2", "c1");
        }
        assert!(stage.desk.asked().is_empty());
    }
}

#[test]
fn a_conversation_is_free_before_a_stream_says_so() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, AT_ONCE);
        for n in 0..TIMES {
            let ann = ANN.speaking(ALL[n % ALL.len()]);
            let message = Message::stream("m1").of("c1");
            let (mut client, mut seen) = stage.admitted(ann, message);
            seen.begins("t1", "c1", "WORKING");
            client.head();
            client.event().unwrap();
            seen.turns("t1", "c1", "COMPLETED");
            client.event().unwrap();
            // The stream itself is still open.
            let next = stage.admitted(ann, message);
            seen.call.end();
            assert_eq!(client.event(), None);
            stage.ends(next, "t2", "c1");
        }
        assert!(stage.desk.asked().is_empty());
    }
}

#[test]
fn a_conversation_is_free_before_a_task_at_rest_is_told_in_one_event() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, AT_ONCE);
        for n in 0..TIMES {
            let ann = ANN.speaking(ALL[n % ALL.len()]);
            let message = Message::stream("m1").of("c1");
            let (mut client, mut seen) = stage.admitted(ann, message);
            seen.begins("t1", "c1", "COMPLETED");
            client.head();
            client.event().unwrap();
            stage.ends(stage.admitted(ann, message), "t2", "c1");
        }
    }
}

#[test]
fn a_conversation_is_free_before_a_held_back_event_is_told() {
    for rest in BINDINGS {
        let grace = "stream: {final_grace: 5ms}";
        let stage = Stage::set(rest, &format!("{AT_ONCE}\n{grace}"));
        for n in 0..TIMES / 4 {
            for (speak, ends) in [(J03, false), (R03P, false), (J03, true), (J10, false)] {
                let ann = ANN.speaking(speak);
                let message = Message::stream("m1").of("c1");
                let (mut client, mut seen) = stage.admitted(ann, message);
                seen.begins("t1", "c1", "WORKING");
                client.head();
                client.event().unwrap();
                seen.turns("t1", "c1", "INPUT_REQUIRED");
                let open = if ends {
                    seen.call.end();
                    None
                } else {
                    Some(seen)
                };
                let event = client.event().unwrap();
                let next = stage.admitted(ann, message);
                assert!(event.to_lowercase().contains("input"), "{n}: {event}");
                stage.ends(next, "t2", "c1");
                drop(open);
            }
        }
    }
}
