//! Errors of ADK-Rust's service: by their reason, whatever its statuses, their names and its framework say.
use serde_json::{Value, json};

use super::{Adk, BINDINGS, How, PLAIN, message, words};
use crate::support::{
    client::Client,
    words::{ALL, R10, Speak, data, result},
};

/// The name of a method, what the service says of it, and what is told by v1.0: code, status, gRPC's name of it, reason.
type Refusal = (
    &'static str,
    Refused,
    (i64, u16, &'static str, &'static str),
);
/// Code, status and HTTP's name of it; the reason; what goes with it.
type Refused = (How, &'static str, Value);

fn refusals() -> Vec<Refusal> {
    let moved = |from: &str, to: &str| json!({"from": from, "to": to});
    let transition = "INVALID_STATE_TRANSITION";
    let bad = (400, "INVALID_ARGUMENT", "INVALID_PARAMS");
    let failed = |reason| (400, "FAILED_PRECONDITION", reason);
    let all = |code, (status, grpc, reason)| (code, status, grpc, reason);
    vec![
        (
            "SendMessage",
            (
                (-32602, 400, "BAD_REQUEST"),
                "INVALID_PARAMS",
                json!({"message": "no"}),
            ),
            all(-32602, bad),
        ),
        (
            "SendMessage",
            (
                (-32005, 415, "UNSUPPORTED_MEDIA_TYPE"),
                "CONTENT_TYPE_NOT_SUPPORTED",
                json!({}),
            ),
            all(
                -32005,
                (400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            ),
        ),
        (
            "SendMessage",
            (
                (-32006, 502, "BAD_GATEWAY"),
                "INVALID_AGENT_RESPONSE",
                json!({}),
            ),
            all(-32006, (500, "INTERNAL", "INVALID_AGENT_RESPONSE")),
        ),
        (
            "SendMessage",
            (
                (-32603, 500, "INTERNAL_SERVER_ERROR"),
                "INTERNAL",
                json!({}),
            ),
            all(-32603, (500, "INTERNAL", "INTERNAL")),
        ),
        (
            "SendMessage",
            (
                (-32603, 409, "CONFLICT"),
                transition,
                moved("COMPLETED", "WORKING"),
            ),
            all(-32004, failed("UNSUPPORTED_OPERATION")),
        ),
        (
            "SendMessage",
            (
                (-32603, 409, "CONFLICT"),
                transition,
                moved("CANCELED", "COMPLETED"),
            ),
            all(-32603, (500, "INTERNAL", "INTERNAL_ERROR")),
        ),
        (
            "CancelTask",
            (
                (-32603, 409, "CONFLICT"),
                transition,
                moved("COMPLETED", "CANCELED"),
            ),
            all(-32002, failed("TASK_NOT_CANCELABLE")),
        ),
        (
            "CancelTask",
            (
                (-32002, 409, "CONFLICT"),
                "TASK_NOT_CANCELABLE",
                json!({"task_id": "t1"}),
            ),
            all(-32002, failed("TASK_NOT_CANCELABLE")),
        ),
        (
            "SubscribeToTask",
            (
                (-32002, 409, "CONFLICT"),
                "TASK_NOT_CANCELABLE",
                json!({"task_id": "t1"}),
            ),
            all(-32004, failed("UNSUPPORTED_OPERATION")),
        ),
        (
            "GetTask",
            (
                (-32001, 404, "NOT_FOUND"),
                "TASK_NOT_FOUND",
                json!({"task_id": "t1"}),
            ),
            all(-32001, (404, "NOT_FOUND", "TASK_NOT_FOUND")),
        ),
    ]
}

#[test]
fn its_errors_are_told_by_their_reason_on_both_bindings() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for (method, (how, reason, meta), (code, status, grpc, told)) in refusals() {
            let params = match method {
                "SendMessage" => json!({"message": message()}),
                _ => json!({"id": "t1"}),
            };
            let case = format!("{method} {reason} {meta}, agent by REST: {rest}");
            let mut client = adk.asks_rpc(method, &params);
            adk.refuses(adk.next(), how, reason, &meta);
            let answer = client.answer();
            assert_eq!(answer.status(), 200, "{case}");
            let error = answer.json()["error"].take();
            assert_eq!(error["code"], code, "{case}: {error}");
            assert_eq!(error["data"][0]["reason"], told, "{case}: {error}");

            let (line, body) = match method {
                "SendMessage" => ("POST /message:send", params.to_string()),
                "CancelTask" => ("POST /tasks/t1:cancel", String::new()),
                "SubscribeToTask" => ("POST /tasks/t1:subscribe", String::new()),
                _ => ("GET /tasks/t1", String::new()),
            };
            let mut client = adk.asks((line, &body));
            adk.refuses(adk.next(), how, reason, &meta);
            let answer = client.answer();
            assert_eq!(answer.status(), status, "{case}");
            let error = answer.json()["error"].take();
            assert_eq!(
                (&error["code"], &error["status"]),
                (&json!(status), &json!(grpc)),
                "{case}"
            );
            assert_eq!(error["details"][0]["reason"], told, "{case}: {error}");
        }
    }
}

#[test]
fn what_its_framework_says_is_no_a2a() {
    // Malformed JSON, the wrong type, a body that does not fit, one that is too long: text, not JSON-RPC.
    for (status, code) in [(400, -32603), (415, -32603), (422, -32603), (413, -32600)] {
        for rest in BINDINGS {
            let adk = Adk::start(rest);
            let says = |client: &mut Client| {
                adk.next()
                    .answer(status, PLAIN, "Failed to parse http://10.0.0.1/ as JSON");
                let answer = client.answer();
                assert!(!answer.body.contains("10.0.0.1"), "{answer:?}");
                assert_eq!(answer.head.get("content-type"), Some("application/json"));
                answer
            };
            let mut client = adk.asks_rpc("SendMessage", &json!({"message": message()}));
            let answer = says(&mut client);
            assert_eq!(
                (answer.status(), &answer.json()["error"]["code"]),
                (200, &json!(code))
            );

            let body = json!({"message": message()}).to_string();
            let mut client = adk.asks(("POST /message:send", &body));
            assert_eq!(says(&mut client).status(), status);
        }
    }
}

#[test]
fn a_json_rpc_service_that_refuses_the_version_by_rest_is_understood() {
    let adk = Adk::start(false);
    let mut client = adk.asks_rpc("SendMessage", &json!({"message": message()}));
    let error = r#"{"error":{"code":400,"status":"BAD_REQUEST","message":"Version not supported: 1.0.0","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VERSION_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{"requested":"1.0.0","supported":"0.3, 1.0"}}]}}"#;
    adk.next()
        .answer(400, "content-type: application/json\r\n", error);
    let answer = client.answer();
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (200, &json!(-32009))
    );
}

#[test]
fn a_stream_that_fails_ends_with_an_error_of_its_dialect() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for speak in ALL {
            let (line, body) = words(speak, Speak::stream);
            let mut client = adk.asks((line, &body));
            let mut call = adk.next();
            call.begin();
            let info = r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INTERNAL","domain":"a2a-protocol.org","metadata":{"message":"no"}}]"#;
            let failed = r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_FAILED"}}}"#;
            if rest {
                call.event(failed);
                call.event(&format!(r#"{{"error":{{"code":500,"status":"INTERNAL_SERVER_ERROR","message":"no","details":{info}}}}}"#));
            } else {
                call.event(&result(failed));
                call.event(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"no","data":{info}}}}}"#));
            }
            assert_eq!(client.head().status(), 200);
            let (event, _) = data(&client.event().unwrap());
            assert!(
                event.to_string().to_lowercase().contains("failed"),
                "{event}"
            );
            let (event, labelled) = data(&client.event().unwrap());
            assert_eq!(labelled, !speak.is_rpc());
            let code = if speak == R10 { 500 } else { -32603 };
            assert_eq!(speak.code(&event), code, "{speak:?}: {event}");
            call.end();
            assert_eq!(client.event(), None);
        }
    }
}
