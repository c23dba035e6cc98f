//! What a stream tells, in which order, and what follows a task.
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{bare, kind, parts, refused_by_agent, say, state, text},
    memorylake::{Lake, Op, Rules, Tongue},
};

/// All families of both current pages.
fn everywhere(test: impl Fn(&Lake, Tongue)) {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            test(&lake, tongue);
        }
    }
}

fn kinds(tongue: Tongue, events: &[Value]) -> Vec<String> {
    events.iter().map(|event| kind(tongue, event).0).collect()
}

#[test]
fn a_stream_has_its_order() {
    everywhere(|lake, tongue| {
        let events = lake.by(tongue).all(&say("tools"));
        let kinds = kinds(tongue, &events);
        assert_eq!(kinds[0], "task");
        let task = kind(tongue, &events[0]).1;
        assert_eq!(task["status"], json!({"state": state(tongue, "SUBMITTED")}));
        assert_eq!(task.get("history").is_some(), tongue != Tongue::R03);
        let last = kinds.len() - 1;
        assert_eq!(kinds[last - 1], "artifactUpdate");
        assert!(kinds[1..last - 1].iter().all(|kind| kind == "statusUpdate"));
        assert_eq!(kinds[last], "statusUpdate");
        for event in &events[1..last - 1] {
            let update = kind(tongue, event).1;
            assert_eq!(update["status"]["state"], state(tongue, "WORKING"));
            assert_eq!(
                (&update["taskId"], &update["contextId"]),
                (&task["id"], &task["contextId"])
            );
        }
        assert!(
            kind(tongue, &events[1]).1["status"]
                .get("message")
                .is_none()
        );
        let artifact = kind(tongue, &events[last - 1]).1;
        assert_eq!(artifact["lastChunk"], true);
        assert_eq!(artifact["artifact"]["name"], "result");
        let end = kind(tongue, &events[last]).1;
        assert_eq!(end["status"], json!({"state": state(tongue, "COMPLETED")}));
    });
}

#[test]
fn the_first_event_has_as_much_history_as_was_asked_for_or_always_the_message() {
    for cuts in [true, false] {
        let rules = Rules {
            streams_cut_history: cuts,
            ..Rules::default()
        };
        let lake = Lake::with(rules);
        for tongue in Tongue::ALL {
            for (length, told) in [(0, !cuts), (1, true), (5, true)] {
                let say = say("hi").configured(json!({"historyLength": length}));
                let first = kind(tongue, &lake.by(tongue).all(&say)[0]).1;
                assert_eq!(first.get("history").is_some(), told);
            }
        }
    }
}

#[test]
fn each_step_is_a_message_of_one_part() {
    everywhere(|lake, tongue| {
        let events = lake.by(tongue).all(&say("tools"));
        let messages = events[2..events.len() - 2].iter();
        let messages: Vec<_> = messages
            .map(|e| kind(tongue, e).1["status"]["message"].clone())
            .collect();
        assert_eq!(messages.len(), 11);
        assert!(
            messages
                .iter()
                .all(|message| parts(tongue, message).len() == 1)
        );
        let mut ids: Vec<_> = messages.iter().map(|m| m["messageId"].as_str()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 11, "each has its own");
        let first = &parts(tongue, &messages[0])[0];
        assert_eq!(
            (&first["text"], &first["metadata"]["adk_thought"]),
            (&json!("I have to "), &json!(true))
        );
        let marks = messages.iter().filter_map(|m| {
            let mark = &parts(tongue, m)[0]["metadata"]["adk_type"];
            mark.as_str().map(str::to_owned)
        });
        let pairs = ["function_call", "function_response"].repeat(3);
        assert!(marks.eq(pairs));
    });
}

#[test]
fn chunks_are_to_be_appended() {
    everywhere(|lake, tongue| {
        let events = lake.by(tongue).all(&say("stream 3 1"));
        let all = events[2..5]
            .iter()
            .flat_map(|event| parts(tongue, &kind(tongue, event).1["status"]["message"]));
        assert_eq!(text(&all.collect::<Vec<_>>()), "chunk 0 chunk 1 chunk 2 ");
    });
}

#[test]
fn a_file_that_the_agent_makes_is_a_step() {
    everywhere(|lake, tongue| {
        let events = lake.by(tongue).all(&say("file"));
        let part = parts(tongue, &kind(tongue, &events[3]).1["status"]["message"])[0].clone();
        let (url, media, name) = (
            "https://files.example/report.pdf",
            "application/pdf",
            "report.pdf",
        );
        let expected = match tongue {
            Tongue::R10 | Tongue::J10 => json!({"url": url, "mediaType": media, "filename": name}),
            Tongue::J03 => {
                json!({"kind": "file", "file": {"uri": url, "mimeType": media, "name": name}})
            }
            Tongue::R03 => json!({"file": {"fileWithUri": url, "mimeType": media, "name": name}}),
        };
        assert_eq!(part, expected);
    });
}

#[test]
fn a_stream_of_a_task_that_fails_ends_with_the_error() {
    everywhere(|lake, tongue| {
        for (words, why) in [("fail", "it failed"), ("fail late", "it failed late")] {
            let events = lake.by(tongue).all(&say(words));
            assert!(!kinds(tongue, &events).contains(&"artifactUpdate".to_owned()));
            let end = kind(tongue, events.last().unwrap()).1;
            assert_eq!(end["status"]["state"], state(tongue, "FAILED"));
            assert_eq!(text(&parts(tongue, &end["status"]["message"])), why);
        }
    });
}

#[test]
fn a_stream_of_a_task_that_is_canceled_ends_so() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let mut stream = asks.streams(&say("hold"));
        let task = kind(tongue, &asks.event(&stream.event().unwrap())).1;
        let answer = asks.of_task(Op::Cancel, task["id"].as_str().unwrap());
        let canceled = bare(tongue, &answer);
        assert_eq!(canceled["status"]["state"], state(tongue, "CANCELED"));
        let end = kind(tongue, asks.events(&mut stream).last().unwrap()).1;
        assert_eq!(end["status"]["state"], state(tongue, "CANCELED"));
    });
}

#[test]
fn v03_json_rpc_marks_the_last_update_as_final() {
    for lake in CURRENT.map(Lake::of) {
        for words in ["hi", "fail", "tools"] {
            let events = lake.by(Tongue::J03).all(&say(words));
            let finals: Vec<_> = events
                .iter()
                .filter(|event| event["final"] == true)
                .collect();
            assert_eq!(finals, [events.last().unwrap()]);
            let kinds = events.iter().map(|event| event["kind"].as_str().unwrap());
            assert!(
                kinds.eq(events.iter().enumerate().map(|(at, event)| match at {
                    0 => "task",
                    _ if event.get("artifact").is_some() => "artifact-update",
                    _ => "status-update",
                }))
            );
        }
    }
}

#[test]
fn a_silent_stream_has_comments() {
    let rules = Rules {
        keep_alive: Duration::from_millis(1),
        ..Rules::default()
    };
    let lake = Lake::with(rules);
    for tongue in Tongue::ALL {
        let asks = lake.by(tongue);
        let mut stream = asks.streams(&say("hold"));
        let task = kind(tongue, &asks.event(&stream.event().unwrap())).1;
        let mut comments = std::iter::from_fn(|| stream.event()).filter(|e| e.starts_with(':'));
        assert!(comments.next().is_some() && comments.next().is_some());
        lake.release(task["id"].as_str().unwrap());
        assert!(asks.events(&mut stream).len() > 1);
    }
}

#[test]
fn a_question_about_a_task_gets_neither_answer_nor_history() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        for (words, end) in [("tools", "COMPLETED"), ("fail", "FAILED")] {
            let task = asks.task(&say(words).in_full());
            let mut told = asks.get(task["id"].as_str().unwrap());
            let time = told["status"].as_object_mut().unwrap().remove("timestamp");
            // v0.3 over REST has no time.
            assert_eq!(time.is_some(), tongue != Tongue::R03);
            if let Some(time) = time {
                let time = time.as_str().unwrap();
                assert!(time.ends_with('Z') && time.len() == 24, "{time}");
            }
            let mut expected = json!({
                "id": task["id"], "contextId": task["contextId"], "status": {"state": state(tongue, end)},
            });
            if tongue == Tongue::J03 {
                expected["kind"] = "task".into();
            }
            assert_eq!(told, expected);
        }
    });
}

#[test]
fn a_subscription_replays_all_but_the_task() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let streamed = asks.all(&say("tools"));
        let id = kind(tongue, &streamed[0]).1["id"]
            .as_str()
            .unwrap()
            .to_owned();
        // Not only once.
        for _ in 0..2 {
            let replayed = asks.events(&mut asks.subscribes(&id));
            assert_eq!(replayed, streamed[1..]);
        }
    });
}

#[test]
fn a_subscription_follows_until_the_end() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let id = asks.starts(say("hold"));
        let mut stream = asks.subscribes(&id);
        let first = kind(tongue, &asks.event(&stream.event().unwrap())).1;
        assert_eq!(first["status"]["state"], state(tongue, "WORKING"));
        lake.release(&id);
        let rest = asks.events(&mut stream);
        assert!(
            rest.last()
                .unwrap()
                .to_string()
                .contains(&state(tongue, "COMPLETED"))
        );
    });
}

#[test]
fn what_failed_or_was_canceled_cannot_be_subscribed_to() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let failed = asks.task(&say("fail").in_full());
        let canceled = asks.starts(say("hold"));
        asks.of_task(Op::Cancel, &canceled);
        for id in [failed["id"].as_str().unwrap(), &canceled] {
            let answer = asks.of_task(Op::Subscribe, id);
            refused_by_agent(tongue, &answer, 400, "INVALID_ARGUMENT", -32004);
        }
    });
}

#[test]
fn what_is_over_cannot_be_canceled() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let task = asks.task(&say("hi").in_full());
        let answer = asks.of_task(Op::Cancel, task["id"].as_str().unwrap());
        refused_by_agent(tongue, &answer, 400, "INVALID_ARGUMENT", -32002);
    });
}
