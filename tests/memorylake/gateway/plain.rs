//! What a plain client sees of MemoryLake through the gateway, in every dialect: it knows nothing of the extension.
use serde_json::{Value, json};

use crate::{
    BINDINGS,
    ask::{Asks, Say, answer, bare, kind, parts, say, state, text},
    before, by,
    memorylake::{Lake, Op, Page, Tongue},
};

/// A message of a client that does not know the product.
fn plain(words: &str) -> Say {
    Say {
        extension: None,
        ..say(words)
    }
}

/// Both bindings, all families of routes, the current page.
fn everywhere(test: impl Fn(&Lake, &Asks)) {
    for binding in BINDINGS {
        let lake = Lake::of(Page::En);
        let gateway = before(&lake, binding);
        for tongue in Tongue::ALL {
            test(&lake, &by(&gateway, &lake, tongue));
        }
    }
}

/// The payload of a data part.
fn data(tongue: Tongue, part: &Value) -> Value {
    match tongue {
        Tongue::R03 => part["data"]["data"].clone(),
        Tongue::R10 | Tongue::J10 | Tongue::J03 => part["data"].clone(),
    }
}

#[test]
fn the_extension_need_not_be_known() {
    everywhere(|lake, asks| {
        let task = asks.task(&plain("echo hello").in_full());
        assert_eq!(answer(&task), "hello");
        assert_eq!(lake.heard().pop().unwrap().extension, Some(json!({})));
    });
}

#[test]
fn waiting_is_as_the_dialect_has_it() {
    everywhere(|lake, asks| {
        let task = asks.task(&plain("echo hi"));
        let waits = lake.heard().pop().unwrap().waits;
        assert_eq!(waits, asks.tongue != Tongue::R03);
        assert_eq!(task.get("artifacts").is_some(), waits);
        // It is said also where v1.0 takes it for granted.
        let asked = lake.seen().pop().unwrap().json();
        let params = asked.get("params").unwrap_or(&asked);
        assert_eq!(params["configuration"]["returnImmediately"], !waits);
        asks.task(&plain("echo hi").at_once());
        assert!(!lake.heard().pop().unwrap().waits);
        asks.task(&plain("echo hi").in_full());
        assert!(lake.heard().pop().unwrap().waits);
    });
}

#[test]
fn the_history_is_cut_as_asked() {
    everywhere(|_, asks| {
        for (length, expected) in [(0, 0), (2, 2), (100, 10)] {
            let configuration = json!({"blocking": true, "historyLength": length});
            let task = asks.task(&plain("tools").configured(configuration));
            let history = task["history"].as_array().map_or(0, Vec::len);
            assert_eq!(history, expected, "{:?} {length}", asks.tongue);
        }
    });
}

#[test]
fn the_marks_of_tools_and_thinking_come_in_every_dialect() {
    everywhere(|_, asks| {
        let task = asks.task(&plain("tools").in_full());
        let history = task["history"].as_array().unwrap().clone();
        let part = |at: usize| parts(asks.tongue, &history[at])[0].clone();
        assert_eq!(part(1)["metadata"], json!({"adk_thought": true}));
        let signed = json!({"adk_type": "function_call", "adk_thought_signature": "c2lnbmVk"});
        assert_eq!(part(3)["metadata"], signed);
        let call = json!({"id": "call_1", "name": "add", "args": {"a": 2.0, "b": [1.0, 0.5]}});
        assert_eq!(data(asks.tongue, &part(3)), call);
        assert_eq!(
            part(4)["metadata"],
            json!({"adk_type": "function_response"})
        );
    });
}

#[test]
fn parts_of_every_kind_come_in_a_stream() {
    everywhere(|_, asks| {
        let tongue = asks.tongue;
        let events = asks.all(&plain("file"));
        let told = kind(tongue, &events[3]).1;
        let part = parts(tongue, &told["status"]["message"])[0].to_string();
        for word in [
            "https://files.example/report.pdf",
            "application/pdf",
            "report.pdf",
        ] {
            assert!(part.contains(word), "{part}");
        }
        let artifact = kind(tongue, &events[events.len() - 2]).1["artifact"].clone();
        let answered = artifact["parts"].as_array().unwrap();
        assert_eq!(data(tongue, &answered[1])["kind"], "attachments");
        assert_eq!(data(tongue, &answered[2])["kind"], "recommended_questions");
        let end = kind(tongue, events.last().unwrap()).1;
        assert_eq!(end["status"]["state"], state(tongue, "COMPLETED"));
        assert_eq!(end.get("final"), tongue.is_old().then_some(&json!(true)));
    });
}

#[test]
fn numbers_stay_as_the_agent_writes_them() {
    everywhere(|_, asks| {
        let answer = asks.send(&plain("data").in_full());
        assert!(answer.body.contains(r#""int":42.0"#), "{}", answer.body);
    });
}

#[test]
fn a_failed_task_tells_why() {
    everywhere(|_, asks| {
        let task = asks.task(&plain("fail").in_full());
        assert_eq!(task["status"]["state"], state(asks.tongue, "FAILED"));
        let message = &task["status"]["message"];
        assert_eq!(text(&parts(asks.tongue, message)), "it failed");
    });
}

#[test]
fn a_stream_that_was_left_can_be_taken_up_again() {
    everywhere(|lake, asks| {
        let mut stream = asks.streams(&plain("hold"));
        let task = kind(asks.tongue, &asks.event(&stream.event().unwrap())).1;
        let id = task["id"].as_str().unwrap();
        drop(stream);
        let mut again = asks.subscribes(id);
        let first = kind(asks.tongue, &asks.event(&again.event().unwrap())).1;
        assert_eq!(first["status"]["state"], state(asks.tongue, "WORKING"));
        lake.release(id);
        let events = asks.events(&mut again);
        let end = kind(asks.tongue, events.last().unwrap()).1;
        assert_eq!(end["status"]["state"], state(asks.tongue, "COMPLETED"));
        let seen = lake.seen();
        let subscribed = seen.iter().rfind(|s| s.call.unwrap().1 == Op::Subscribe);
        assert!(subscribed.is_some());
    });
}

#[test]
fn a_task_can_be_canceled() {
    everywhere(|lake, asks| {
        let id = asks.starts(plain("hold"));
        let answer = asks.of_task(Op::Cancel, &id);
        let canceled = bare(asks.tongue, &answer);
        assert_eq!(canceled["status"]["state"], state(asks.tongue, "CANCELED"));
        assert_eq!(lake.state(&id), "TASK_STATE_CANCELED");
    });
}

#[test]
fn a_running_task_is_shown_as_it_is() {
    everywhere(|lake, asks| {
        let id = asks.starts(plain("hold"));
        let task = asks.get(&id);
        assert_eq!(task["id"], id.as_str());
        assert!(task.get("artifacts").is_none() && task.get("history").is_none());
        lake.release(&id);
    });
}

#[test]
fn who_polls_gets_the_answer_in_every_dialect() {
    everywhere(|lake, asks| {
        let id = asks.starts(plain("tools"));
        let mut task = asks.get(&id);
        crate::support::until("the task is completed", || {
            task = asks.get(&id);
            task["status"]["state"] == state(asks.tongue, "COMPLETED")
        });
        assert_eq!(answer(&task), "The sum is 3.");
        let history = task["history"].as_array().unwrap();
        // What a send answers, but for the user's own message, which is in no replay.
        let sent = asks.task(&plain("tools").in_full());
        let expected = &sent["history"].as_array().unwrap()[1..];
        assert_eq!(history.len(), expected.len());
        for (got, expected) in history.iter().zip(expected) {
            assert_eq!(parts(asks.tongue, got), parts(asks.tongue, expected));
        }
        let replays = lake
            .seen()
            .into_iter()
            .filter(|s| s.target.contains(&id) || s.body.contains(&id));
        let replays = replays.filter(|s| s.call.unwrap().1 == Op::Subscribe);
        asks.get(&id);
        assert_eq!(replays.count(), 1, "it is read once");
    });
}

#[test]
fn a_task_that_failed_is_shown_as_it_is() {
    everywhere(|_, asks| {
        let task = asks.task(&plain("fail").in_full());
        let got = asks.get(task["id"].as_str().unwrap());
        assert_eq!(got["status"]["state"], state(asks.tongue, "FAILED"));
        assert!(got.get("artifacts").is_none() && got["status"].get("message").is_none());
    });
}

#[test]
fn webhooks_are_taken_out_and_calls_about_them_refused() {
    everywhere(|lake, asks| {
        let name = if asks.tongue.is_old() {
            "pushNotificationConfig"
        } else {
            "taskPushNotificationConfig"
        };
        let config = json!({"blocking": true, name: {"url": "https://hook.example/"}});
        asks.task(&plain("hi").configured(config));
        assert!(!lake.seen().pop().unwrap().body.contains("hook.example"));
        let (method, id) = match asks.tongue {
            Tongue::J10 => ("ListTaskPushNotificationConfigs", "taskId"),
            Tongue::J03 => ("tasks/pushNotificationConfig/list", "id"),
            Tongue::R10 | Tongue::R03 => return,
        };
        let before = lake.seen().len();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {id: "t"}});
        let fields = crate::ask::fields("sk_xxxxxx", Op::Get);
        let mut client = crate::support::client::Client::connect(asks.to);
        let answer = client.ask(&format!("POST {}", asks.base), &fields, &body.to_string());
        assert_eq!(answer.json()["error"]["code"], -32003, "{}", answer.body);
        assert_eq!(lake.seen().len(), before);
    });
}
