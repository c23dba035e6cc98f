//! What a send is answered with: the task, its history, the answer and its parts.
use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{answer, parts, say, state, text},
    memorylake::{Lake, Tongue},
};

/// The task of a message that is waited for, in every family of both current pages.
fn everywhere(words: &str, test: impl Fn(Tongue, &Value)) {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            test(tongue, &lake.by(tongue).task(&say(words).in_full()));
        }
    }
}

fn messages(task: &Value) -> Vec<Value> {
    task["history"].as_array().unwrap().clone()
}

/// The payload of a data part.
fn data(tongue: Tongue, part: &Value) -> Value {
    match tongue {
        Tongue::R03 => part["data"]["data"].clone(),
        Tongue::R10 | Tongue::J10 | Tongue::J03 => part["data"].clone(),
    }
}

fn answered(task: &Value) -> Vec<Value> {
    task["artifacts"][0]["parts"].as_array().unwrap().clone()
}

#[test]
fn a_send_is_always_answered_with_a_task() {
    for words in ["hi", "nothing", "fail", "tools"] {
        everywhere(words, |_, task| {
            assert!(task["id"].as_str().unwrap().starts_with("run-"));
            assert!(task["contextId"].is_string() && task["status"].is_object());
        });
    }
}

#[test]
fn the_answer_is_one_artifact() {
    everywhere("echo hello", |tongue, task| {
        assert_eq!(task["status"], json!({"state": state(tongue, "COMPLETED")}));
        assert_eq!(answer(task), "hello");
        let id = task["id"].as_str().unwrap();
        let artifact = &task["artifacts"][0];
        assert_eq!(artifact["artifactId"], format!("result-{id}"));
        assert_eq!(artifact["metadata"], json!({}));
    });
}

#[test]
fn there_is_no_artifact_without_an_answer() {
    everywhere("nothing", |tongue, task| {
        assert_eq!(task["status"]["state"], state(tongue, "COMPLETED"));
        assert!(task.get("artifacts").is_none());
    });
    everywhere("fail late", |_, task| {
        assert!(task.get("artifacts").is_none());
    });
}

#[test]
fn a_task_that_fails_tells_why_with_status_200() {
    everywhere("fail", |tongue, task| {
        assert_eq!(task["status"]["state"], state(tongue, "FAILED"));
        let message = &task["status"]["message"];
        assert_eq!(text(&parts(tongue, message)), "it failed");
    });
}

#[test]
fn the_history_is_what_was_said_in_order() {
    everywhere("tools", |tongue, task| {
        let history = messages(task);
        let id = task["id"].as_str().unwrap();
        let role = if tongue == Tongue::J03 {
            ["user", "agent"]
        } else {
            ["ROLE_USER", "ROLE_AGENT"]
        };
        assert_eq!(history[0]["messageId"], "msg-1");
        assert_eq!(history[0]["role"], role[0]);
        for message in &history {
            assert_eq!(
                (&message["taskId"], &message["contextId"]),
                (&task["id"], &task["contextId"])
            );
        }
        let ids: Vec<_> = history[1..]
            .iter()
            .map(|m| m["messageId"].as_str().unwrap())
            .collect();
        let endings = [
            "3",
            "5",
            "6-call",
            "7-response",
            "8-call",
            "9-response",
            "10-call",
            "11-response",
            "12",
        ];
        assert_eq!(ids, endings.map(|ending| format!("{id}-{ending}")));
        assert!(history[1..].iter().all(|m| m["role"] == role[1]));
    });
}

#[test]
fn text_that_follows_text_is_one_message() {
    everywhere("echo hello you", |tongue, task| {
        let history = messages(task);
        assert_eq!(history.len(), 2);
        assert_eq!(text(&parts(tongue, &history[1])), "hello you");
    });
    everywhere("tools", |tongue, task| {
        let history = messages(task);
        let thinking = parts(tongue, &history[1]);
        assert_eq!(text(&thinking), "I have to add.");
        assert_eq!(thinking[0]["metadata"], json!({"adk_thought": true}));
        let said = parts(tongue, &history[2]);
        assert_eq!(
            (text(&said).as_str(), said[0].get("metadata")),
            ("Adding. ", None)
        );
    });
}

#[test]
fn tool_calls_are_marked_as_in_adk() {
    everywhere("tools", |tongue, task| {
        let history = messages(task);
        let part = |at: usize| parts(tongue, &history[at])[0].clone();
        let (call, result) = (part(3), part(4));
        assert_eq!(
            data(tongue, &call),
            json!({"id": "call_1", "name": "add", "args": {"a": 2.0, "b": [1.0, 0.5]}})
        );
        let signed = json!({"adk_type": "function_call", "adk_thought_signature": "c2lnbmVk"});
        assert_eq!(call["metadata"], signed);
        assert_eq!(
            data(tongue, &result),
            json!({"id": "call_1", "name": "add", "response": {"sum": 3.0}})
        );
        assert_eq!(result["metadata"], json!({"adk_type": "function_response"}));
        assert_eq!(
            data(tongue, &part(6))["response"],
            json!({"error": "by zero"})
        );
        let coded = data(tongue, &part(8));
        assert_eq!(coded["response"], json!({"error": "gone", "code": 410.0}));
    });
}

#[test]
fn an_answer_may_have_attachments_and_questions() {
    everywhere("file", |tongue, task| {
        let answered = answered(task);
        assert_eq!(answered.len(), 3);
        let attached = data(tongue, &answered[1]);
        assert_eq!(attached["kind"], "attachments");
        let attachments = attached["attachments"].as_array().unwrap();
        for attachment in attachments {
            for name in ["name", "mime_type", "presign_url", "description"] {
                assert!(attachment[name].is_string());
            }
        }
        assert_eq!(attachments[1]["committed"], false);
        assert!(attachments[1]["error"].is_string() && attachments[0].get("error").is_none());
        let questions = data(tongue, &answered[2]);
        assert_eq!(
            questions,
            json!({"kind": "recommended_questions", "questions": ["Another one?"]})
        );
    });
}

#[test]
fn numbers_in_data_come_back_as_floats() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            let say = say("echo hi").part(json!({"data": {"two": 2, "list": [1]}}));
            let answer = lake.by(tongue).send(&say.in_full());
            assert!(answer.body.contains(r#""two":2.0"#), "{}", answer.body);
            assert!(answer.body.contains("[1.0]") && !answer.body.contains(r#""two":2}"#));
        }
    }
}

#[test]
fn other_data_may_stand_in_an_answer() {
    everywhere("data", |tongue, task| {
        let answered = answered(task);
        assert_eq!(data(tongue, &answered[0])["kind"], "a key named kind");
        assert!(data(tongue, &answered[2]).get("kind").is_none());
        assert!(task.to_string().contains(r#""int":42.0"#));
    });
}

#[test]
fn v03_json_rpc_marks_everything_with_a_kind() {
    for lake in CURRENT.map(Lake::of) {
        let say = say("tools")
            .part(json!({"data": {"a": true}}))
            .part(json!({"url": "https://x.example/1", "mediaType": "text/plain", "filename": "1"}))
            .in_full();
        let task = lake.by(Tongue::J03).task(&say);
        assert_eq!(
            (&task["kind"], &task["status"]["state"]),
            (&json!("task"), &json!("completed"))
        );
        let kinds = task["history"][0]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| &part["kind"]);
        assert!(kinds.eq(["text", "data", "file"].iter()));
        let file = &task["history"][0]["parts"][2]["file"];
        assert_eq!(
            *file,
            json!({"uri": "https://x.example/1", "mimeType": "text/plain", "name": "1"})
        );
        for message in messages(&task) {
            assert_eq!(message["kind"], "message");
            assert!(
                message["parts"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|part| part["kind"].is_string())
            );
        }
    }
}

#[test]
fn v03_rest_puts_parts_under_content_and_data_in_data() {
    for lake in CURRENT.map(Lake::of) {
        let task = lake.by(Tongue::R03).task(&say("tools").in_full());
        for message in messages(&task) {
            assert!(message.get("parts").is_none() && message["content"].is_array());
        }
        let call = &task["history"][3]["content"][0];
        assert_eq!(call["data"]["data"]["name"], "add");
        assert!(!task.to_string().contains(r#""kind":"text""#));
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    }
}
