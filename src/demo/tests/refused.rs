//! What is refused, and how each binding says so.

use serde_json::{Value, json};

use super::{Demo, said};

/// The code and the reason of a JSON-RPC error.
fn error(reply: &Value) -> (i64, Option<&str>) {
    let error = &reply["error"];
    (
        error["code"].as_i64().expect("an error"),
        error["data"][0]["reason"].as_str(),
    )
}

#[tokio::test]
async fn envelopes_that_are_none() {
    let demo = Demo::start().await;
    for (body, code, id) in [
        ("{", -32700, json!(null)),
        ("", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("7", -32600, json!(null)),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
            -32600,
            json!(null),
        ),
        (r#"{"id":5,"method":"GetTask"}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (
            r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"GetTask"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"message/send","params":{}}"#,
            -32601,
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"GetTask"}"#,
            -32602,
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"none"}}"#,
            -32001,
            json!(null),
        ),
    ] {
        let reply = demo.rpc_text(body).await.json();
        assert_eq!(
            (reply["error"]["code"].as_i64(), &reply["id"]),
            (Some(code), &id),
            "{body}"
        );
    }
}

#[tokio::test]
async fn an_id_is_returned_as_it_was_spelled() {
    let demo = Demo::start().await;
    for id in ["9007199254740993", "1.50", r#""\u00e9""#, "null"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks","params":{{}}}}"#);
        let reply = demo.rpc_text(&body).await;
        assert!(
            reply
                .body
                .starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)),
            "{}",
            reply.body
        );
    }
}

#[tokio::test]
async fn other_versions() {
    let demo = Demo::start().await;
    let params = said("hello").to_string();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}"#);
    for header in [
        "",
        "A2A-Version: 0.3\r\n",
        "A2A-Version: 2.0\r\n",
        "A2A-Version: 1.1\r\n",
    ] {
        let reply = demo.http("POST", "/", header, &body).await;
        assert_eq!(
            (reply.status, error(&reply.json())),
            (200, (-32009, Some("VERSION_NOT_SUPPORTED")))
        );
        let reply = demo.http("POST", "/message:send", header, &params).await;
        let said = reply.json();
        assert_eq!((reply.status, &said["error"]["code"]), (400, &json!(400)));
        assert_eq!(said["error"]["status"], "FAILED_PRECONDITION");
        assert_eq!(
            said["error"]["details"][0]["reason"],
            "VERSION_NOT_SUPPORTED"
        );
    }
    for path in [
        "/message:send?A2A-Version=1.0",
        "/message:send?a2a-version=1",
    ] {
        assert_eq!(demo.http("POST", path, "", &params).await.status, 200);
    }
}

#[tokio::test]
async fn shapes_that_are_not_v10() {
    let demo = Demo::start().await;
    let part = |part: Value| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [part] } });
    for params in [
        json!({}),
        json!({ "message": { "kind": "message", "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } }),
        json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "text": "x" }] } }),
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "x" }] } }),
        json!({ "message": { "message_id": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } }),
        json!({ "message": { "messageId": "", "role": "ROLE_USER", "parts": [{ "text": "x" }] } }),
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [] } }),
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }], "metadata": 5 } }),
        json!({ "message": said("x")["message"], "configuration": { "blocking": true } }),
        json!({ "message": said("x")["message"], "configuration": { "historyLength": -1 } }),
        part(json!({ "kind": "text", "text": "x" })),
        part(json!({ "text": "x", "url": "y" })),
        part(json!({ "raw": "not base64" })),
        part(json!({ "filename": "nothing" })),
        said("stream 1001"),
        said("stream -1"),
        said("slow 61"),
        said("slow NaN"),
    ] {
        let reply = demo.rpc("SendMessage", params.clone()).await.json();
        assert_eq!(error(&reply), (-32602, Some("INVALID_PARAMS")), "{params}");
        let reply = demo
            .rest("POST", "/message:send", &params.to_string())
            .await;
        assert_eq!(
            (reply.status, reply.json()["error"]["status"].as_str()),
            (400, Some("INVALID_ARGUMENT"))
        );
    }
}

#[tokio::test]
async fn tasks_that_are_not_there() {
    let demo = Demo::start().await;
    let push = json!({ "taskId": "none", "id": "x" });
    let create = json!({ "taskId": "none", "url": "http://127.0.0.1:9/" });
    let mut message = said("hello");
    message["message"]["taskId"] = json!("none");
    for (method, params) in [
        ("SendMessage", &message),
        ("SendStreamingMessage", &message),
        ("GetTask", &json!({ "id": "none" })),
        ("CancelTask", &json!({ "id": "none" })),
        ("SubscribeToTask", &json!({ "id": "none" })),
        ("CreateTaskPushNotificationConfig", &create),
        ("GetTaskPushNotificationConfig", &push),
        (
            "ListTaskPushNotificationConfigs",
            &json!({ "taskId": "none" }),
        ),
        ("DeleteTaskPushNotificationConfig", &push),
    ] {
        let reply = demo.rpc(method, params.clone()).await.json();
        assert_eq!(error(&reply), (-32001, Some("TASK_NOT_FOUND")), "{method}");
    }
    for (method, path, body) in [
        ("GET", "/tasks/none", ""),
        ("POST", "/tasks/none:cancel", ""),
        ("GET", "/tasks/none:subscribe", ""),
        (
            "POST",
            "/tasks/none/pushNotificationConfigs",
            r#"{"url":"x"}"#,
        ),
        ("GET", "/tasks/none/pushNotificationConfigs", ""),
        ("GET", "/tasks/none/pushNotificationConfigs/x", ""),
        ("DELETE", "/tasks/none/pushNotificationConfigs/x", ""),
    ] {
        let reply = demo.rest(method, path, body).await;
        assert_eq!(
            (
                reply.status,
                reply.json()["error"]["details"][0]["reason"].as_str()
            ),
            (404, Some("TASK_NOT_FOUND")),
            "{path}"
        );
        assert!(reply.head.contains("content-type: application/json"));
    }
}

#[tokio::test]
async fn routes_parameters_and_bodies() {
    let demo = Demo::start().await;
    let id = demo.send("input").await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let wrong_context = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "taskId": id, "contextId": "other", "parts": [{ "text": "x" }] } });
    for (method, path, body, status) in [
        ("POST", "/v1/message:send", "{}".to_owned(), 404),
        ("GET", "/message:send", String::new(), 404),
        ("POST", "/tasks", String::new(), 404),
        ("POST", "/tasks/x", String::new(), 404),
        ("GET", "/tasks?pageSize=0", String::new(), 400),
        ("GET", "/tasks?pageSize=101", String::new(), 400),
        ("GET", "/tasks?status=completed", String::new(), 400),
        ("GET", "/tasks?page_size=1", String::new(), 400),
        ("GET", "/tasks?pageToken=x", String::new(), 400),
        (
            "GET",
            "/tasks?statusTimestampAfter=yesterday",
            String::new(),
            400,
        ),
        ("GET", "/tasks/%ff", String::new(), 400),
        (
            "POST",
            &format!("/tasks/{id}:cancel"),
            r#"{"id":"another"}"#.to_owned(),
            400,
        ),
        ("POST", "/message:send", wrong_context.to_string(), 400),
        ("POST", "/message:send", "{".to_owned(), 400),
        ("POST", "/message:send", "x".repeat(1024 * 1024 + 1), 413),
    ] {
        let reply = demo.rest(method, path, &body).await;
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_u64()),
            (status, Some(status.into())),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn other_content_types() {
    let demo = Demo::start().await;
    let (body, head) = (
        said("hello").to_string(),
        "A2A-Version: 1.0\r\nContent-Type: ",
    );
    for (kind, status) in [
        ("text/plain", 400),
        ("application/a2a+json", 200),
        ("Application/JSON; charset=utf-8", 200),
    ] {
        let reply = demo
            .http("POST", "/message:send", &format!("{head}{kind}\r\n"), &body)
            .await;
        assert_eq!(reply.status, status, "{kind}");
    }
    let reply = demo
        .http("POST", "/", &format!("{head}text/plain\r\n"), "{}")
        .await
        .json();
    assert_eq!(error(&reply), (-32005, Some("CONTENT_TYPE_NOT_SUPPORTED")));
}
