//! What each word does.

use serde_json::{Value, json};

use super::{Demo, said, said_with, state};

#[tokio::test]
async fn echo_returns_text_and_parts_as_they_came() {
    let demo = Demo::start().await;
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"echo hi  there"},
        {"data":{"z":1.10,"a":[1e2, 9007199254740993],"n":null},"metadata":{"k":-0.0}},{"data":null},
        {"raw":"AAE=","filename":"a.bin"}]}}"#;
    let reply = demo.rest("POST", "/message:send", body).await;
    let task = &reply.json()["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED");
    assert_eq!(
        task["artifacts"][0]["parts"][0],
        json!({ "text": "hi  there" })
    );
    assert_eq!(task["artifacts"][0]["parts"][2], json!({ "data": null }));
    assert_eq!(task["history"][0]["taskId"], task["id"]);
    for text in [
        r#""data":{"z":1.10,"a":[1e2, 9007199254740993],"n":null}"#,
        r#"{"k":-0.0}"#,
    ] {
        assert_eq!(reply.body.matches(text).count(), 2, "{}", reply.body);
    }
}

#[tokio::test]
async fn anything_else_is_echoed_whole() {
    let demo = Demo::start().await;
    let task = demo.send("hello world").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello world");
    let time = task["status"]["timestamp"].as_str().expect("a timestamp");
    assert_eq!((time.len(), time.ends_with('Z')), (24, true), "{time}");
}

#[tokio::test]
async fn stream_tells_task_then_chunks_then_status() {
    let demo = Demo::start().await;
    let events = demo
        .streamed("SendStreamingMessage", said("stream 3 1"))
        .await;
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event.as_object()?.keys().next())
        .map(String::as_str)
        .collect();
    let update = "artifactUpdate";
    assert_eq!(
        kinds,
        [
            "task",
            "statusUpdate",
            update,
            update,
            update,
            "statusUpdate"
        ]
    );
    assert_eq!(state(&events[0]["task"]), "TASK_STATE_SUBMITTED");
    assert_eq!(state(&events[1]["statusUpdate"]), "TASK_STATE_WORKING");
    assert_eq!(state(&events[5]["statusUpdate"]), "TASK_STATE_COMPLETED");
    let chunks: Vec<&Value> = events[2..5].iter().map(|event| &event[update]).collect();
    assert_eq!(chunks[0].get("append"), None);
    assert_eq!(
        (&chunks[1]["append"], chunks[1].get("lastChunk")),
        (&json!(true), None)
    );
    assert_eq!(
        (&chunks[2]["append"], &chunks[2]["lastChunk"]),
        (&json!(true), &json!(true))
    );
    let id = events[0]["task"]["id"].as_str().expect("an id");
    let task = demo.fetch("GET", &format!("/tasks/{id}"), "").await;
    assert_eq!(
        task["artifacts"][0]["parts"].as_array().map(Vec::len),
        Some(3)
    );
}

#[tokio::test]
async fn stream_of_rest_has_bare_events_of_one_line() {
    let demo = Demo::start().await;
    let body = "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}],\n\"metadata\":{\r\n\"a\":\n1}}}";
    let reply = demo.rest("POST", "/message:stream", body).await;
    let events = reply.events();
    assert_eq!(
        events[0]["task"]["history"][0]["metadata"],
        json!({ "a": 1 })
    );
    assert_eq!(
        state(&events.last().expect("one")["statusUpdate"]),
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test]
async fn a_thousand_chunks_all_arrive() {
    let demo = Demo::start().await;
    let events = demo
        .streamed("SendStreamingMessage", said("stream 1000 0"))
        .await;
    assert_eq!(events.len(), 1_003);
}

#[tokio::test]
async fn slow_works_for_a_while() {
    let demo = Demo::start().await;
    let task = demo.send("slow 0.01").await;
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "slept 0.01");
}

#[tokio::test]
async fn file_has_a_url_and_bytes() {
    let demo = Demo::start().await;
    let parts = demo.send("file").await["artifacts"][0]["parts"].clone();
    assert_eq!(parts[0]["url"], "https://example.com/report.pdf");
    assert_eq!(parts[1]["raw"], "AAECaGVsbG///g==");
    assert_eq!(parts[1]["mediaType"], "application/octet-stream");
}

#[tokio::test]
async fn data_is_sent_as_it_is_spelled() {
    let demo = Demo::start().await;
    let body = said("data").to_string();
    for reply in [
        demo.rest("POST", "/message:send", &body).await,
        demo.rest("POST", "/message:stream", &body).await,
    ] {
        for text in [
            "9007199254740993",
            "1.10",
            "1e2",
            "-0.0",
            r#""null":null"#,
            "世界 🌍",
            r"\u00e9",
        ] {
            assert!(reply.body.contains(text), "{text}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn fail_and_reject_end_the_task_with_a_reason() {
    let demo = Demo::start().await;
    for (word, end, why) in [
        ("fail", "FAILED", "it failed"),
        ("reject", "REJECTED", "not my job"),
    ] {
        let task = demo.send(word).await;
        assert_eq!(state(&task), format!("TASK_STATE_{end}"));
        assert_eq!(task["status"]["message"]["parts"][0]["text"], why);
        assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    }
}

#[tokio::test]
async fn input_is_completed_by_the_next_message() {
    let demo = Demo::start().await;
    let task = demo.send("input").await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "which one?");
    let answer = said_with(
        "blue",
        &json!({ "taskId": task["id"], "contextId": task["contextId"] }),
    );
    let events = demo.streamed("SendStreamingMessage", answer.clone()).await;
    assert_eq!(events[0]["task"]["id"], task["id"]);
    let again = demo.ask("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&again), "TASK_STATE_COMPLETED");
    assert_eq!(
        again["artifacts"][0]["parts"][0]["text"],
        "resumed with: blue"
    );
    assert_eq!(
        again["history"].as_array().map(Vec::len),
        Some(3),
        "{again}"
    );
    let refused = demo.rpc("SendMessage", answer).await.json();
    assert_eq!(refused["error"]["code"], -32004);
}

#[tokio::test]
async fn message_makes_no_task() {
    let demo = Demo::start().await;
    let result = demo.ask("SendMessage", said("message good day")).await;
    assert_eq!(result["message"]["parts"][0]["text"], "good day");
    assert_eq!(result["message"]["role"], "ROLE_AGENT");
    let events = demo.streamed("SendStreamingMessage", said("message")).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["message"]["parts"][0]["text"], "hi");
    assert_eq!(demo.ask("ListTasks", json!({})).await["totalSize"], 0);
}
