//! Every operation that names a task or a context, in each dialect.
use serde_json::{Value, json};

use crate::support::words::{J03, J10, R03K, R03P, R10, Speak};

/// The first line and the body of a request.
pub(crate) type Request = (String, String);

fn rpc(speak: Speak, old: &str, new: &str, params: &Value) -> Request {
    let method = if speak == J03 { old } else { new };
    let body = json!({"jsonrpc": "2.0", "id": "q1", "method": method, "params": params});
    ("POST /".to_owned(), body.to_string())
}

fn rest(speak: Speak, verb: &str, path: &str, body: &Value) -> Request {
    let version = if speak.is_old() { "/v1" } else { "" };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    (format!("{verb} {version}{path}"), body)
}

/// All operations on a task and on its webhook `p1`.
pub(crate) fn on_task(speak: Speak, task: &str) -> Vec<(&'static str, Request)> {
    let hook = "http://127.0.0.1:9/hook";
    let path = format!("/tasks/{task}");
    let hooks = format!("{path}/pushNotificationConfigs");
    let none = Value::Null;
    let id = json!({"id": task});
    if speak.is_rpc() {
        let old = speak == J03;
        let push = |with: bool| match (old, with) {
            (true, false) => json!({"id": task}),
            (true, true) => json!({"id": task, "pushNotificationConfigId": "p1"}),
            (false, false) => json!({"taskId": task}),
            (false, true) => json!({"taskId": task, "id": "p1"}),
        };
        let create = if old {
            json!({"taskId": task, "pushNotificationConfig": {"id": "p1", "url": hook}})
        } else {
            json!({"taskId": task, "id": "p1", "url": hook})
        };
        let of = |verb: &str| format!("tasks/pushNotificationConfig/{verb}");
        let rpc = |old: &str, new: &str, params: &Value| rpc(speak, old, new, params);
        return vec![
            ("get", rpc("tasks/get", "GetTask", &id)),
            ("cancel", rpc("tasks/cancel", "CancelTask", &id)),
            (
                "subscribe",
                rpc("tasks/resubscribe", "SubscribeToTask", &id),
            ),
            (
                "create",
                rpc(&of("set"), "CreateTaskPushNotificationConfig", &create),
            ),
            (
                "push",
                rpc(&of("get"), "GetTaskPushNotificationConfig", &push(true)),
            ),
            (
                "pushes",
                rpc(&of("list"), "ListTaskPushNotificationConfigs", &push(false)),
            ),
            (
                "delete",
                rpc(
                    &of("delete"),
                    "DeleteTaskPushNotificationConfig",
                    &push(true),
                ),
            ),
        ];
    }
    let create = match speak {
        R03P => json!({"config": {"id": "p1", "url": hook}}),
        R03K => json!({"pushNotificationConfig": {"id": "p1", "url": hook}}),
        J03 | J10 | R10 => json!({"id": "p1", "url": hook}),
    };
    let rest = |verb: &str, path: &str, body: &Value| rest(speak, verb, path, body);
    let empty = json!({});
    vec![
        ("get", rest("GET", &path, &none)),
        ("cancel", rest("POST", &format!("{path}:cancel"), &empty)),
        (
            "subscribe",
            rest("POST", &format!("{path}:subscribe"), &empty),
        ),
        ("create", rest("POST", &hooks, &create)),
        ("push", rest("GET", &format!("{hooks}/p1"), &none)),
        ("pushes", rest("GET", &hooks, &none)),
        ("delete", rest("DELETE", &format!("{hooks}/p1"), &none)),
    ]
}

/// A message with more in it, or in what is beside it.
pub(crate) fn message(speak: Speak, streams: bool, more: &Value, beside: &Value) -> Request {
    let mut message = match speak {
        J03 | R03K => {
            json!({"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hi"}]})
        }
        R03P => json!({"role": "ROLE_USER", "content": [{"text": "hi"}]}),
        J10 | R10 => json!({"role": "ROLE_USER", "parts": [{"text": "hi"}]}),
    };
    message["messageId"] = "m1".into();
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    let mut params = json!({"message": message});
    for (key, value) in beside.as_object().unwrap() {
        params[key] = value.clone();
    }
    match (speak.is_rpc(), streams) {
        (true, false) => rpc(speak, "message/send", "SendMessage", &params),
        (true, true) => rpc(speak, "message/stream", "SendStreamingMessage", &params),
        (false, false) => rest(speak, "POST", "/message:send", &params),
        (false, true) => rest(speak, "POST", "/message:stream", &params),
    }
}

/// A list of tasks, with these members or parts of a query.
pub(crate) fn list(speak: Speak, with: &[(&str, &str)]) -> Request {
    if speak.is_rpc() {
        let mut params = json!({});
        for (key, value) in with {
            params[*key] = match value.parse::<u64>() {
                Ok(number) if *key == "pageSize" => number.into(),
                _ => Value::from(*value),
            };
        }
        return rpc(speak, "tasks/list", "ListTasks", &params);
    }
    let pairs: Vec<String> = with.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let query = if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    };
    rest(speak, "GET", &format!("/tasks{query}"), &Value::Null)
}
