//! Messages to ADK-Rust's service: what it needs of them, and what it does not heed of them.
use std::{
    fs,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tracing_subscriber::EnvFilter;

use super::{Adk, BINDINGS, TASK, message};
use crate::support::{
    agent::Agent,
    gateway::Gateway,
    words::{data, result},
};

#[test]
fn a_configuration_always_has_output_modes() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for (given, wanted) in [
            (
                json!({"historyLength": 3}),
                json!({"historyLength": 3, "acceptedOutputModes": []}),
            ),
            (json!({}), json!({"acceptedOutputModes": []})),
            (
                json!({"acceptedOutputModes": ["text/plain"]}),
                json!({"acceptedOutputModes": ["text/plain"]}),
            ),
            (Value::Null, Value::Null),
        ] {
            for method in ["SendMessage", "SendStreamingMessage"] {
                let mut params = json!({"message": message(), "metadata": {"configuration": 1.50}});
                if !given.is_null() {
                    params["configuration"] = given.clone();
                }
                let mut client = adk.asks_rpc(method, &params);
                let call = adk.next();
                let said = adk.said(&call);
                assert_eq!(said["configuration"], wanted, "{method}");
                assert_eq!(said["message"], message());
                adk.answers(call, TASK);
                assert_eq!(client.answer().status(), 200);
            }
        }
    }
    // An old client's way to say it, too.
    let adk = Adk::start(false);
    let message = json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]});
    let params = json!({"message": message, "configuration": {"blocking": true}});
    let mut client = adk.asks_rpc("message/send", &params);
    let call = adk.next();
    assert_eq!(
        adk.said(&call)["configuration"]["acceptedOutputModes"],
        json!([])
    );
    adk.answers(call, TASK);
    assert_eq!(client.answer().status(), 200);
}

/// What the gateways of this process have warned of.
fn log() -> String {
    static FILE: OnceLock<NamedTempFile> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let file = NamedTempFile::new().unwrap();
        let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("a2a_gateway=warn"));
        let writer = Arc::new(file.reopen().unwrap());
        log.with_writer(writer).with_ansi(false).init();
        file
    });
    fs::read_to_string(file.path()).unwrap()
}

#[test]
fn what_a_caller_loses_is_logged_once_in_a_while() {
    log();
    let adk = Adk::start(false);
    let hook = json!({"url": "http://a"});
    let params =
        json!({"message": message(), "configuration": {"taskPushNotificationConfig": hook}});
    for _ in 0..3 {
        let mut client = adk.asks_rpc("SendMessage", &params);
        let call = adk.next();
        assert_eq!(
            adk.said(&call)["configuration"]["taskPushNotificationConfig"],
            hook
        );
        adk.answers(call, TASK);
        assert_eq!(client.answer().status(), 200);
    }
    let log = log();
    let told = log.lines().filter(|line| {
        line.contains("ignores the configuration") && line.contains("at_once=false webhook=true")
    });
    assert_eq!(told.count(), 1, "{log}");
}

#[test]
fn without_the_preset_a_configuration_stays_as_it_is() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let mut client = gateway.client();
    let params = json!({"message": message(), "configuration": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    client.send("POST /", "", &call.to_string());
    let call = agent.next();
    assert_eq!(call.asked.json()["params"]["configuration"], json!({}));
    call.json(&result(TASK));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_message_without_an_id_gets_one() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for id in [None, Some("")] {
            let mut message = message();
            let members = message.as_object_mut().unwrap();
            members.remove("messageId");
            members.extend(id.map(|id| ("messageId".to_owned(), json!(id))));
            let mut client = adk.asks_rpc("SendMessage", &json!({"message": message}));
            let call = adk.next();
            let id = adk.said(&call)["message"]["messageId"].take();
            assert_eq!(id.as_str().map(str::len), Some(36), "{id}");
            adk.answers(call, TASK);
            assert_eq!(client.answer().status(), 200);
        }
    }
}

#[test]
fn history_is_trimmed_here() {
    let ids = |task: &Value| {
        let history = task["history"].as_array().cloned().unwrap_or_default();
        let ids: Vec<_> = history.iter().map(|m| m["messageId"].to_string()).collect();
        ids.join(" ")
    };
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for (length, left) in [
            (json!(0), ""),
            (json!(2), r#""h2" "h3""#),
            (json!(9), r#""h1" "h2" "h3""#),
        ] {
            let params = json!({"message": message(), "configuration": {"historyLength": length}});
            let mut client = adk.asks_rpc("SendMessage", &params);
            adk.answers(adk.next(), TASK);
            let answer = client.answer().json();
            assert_eq!(ids(&answer["result"]["task"]), left);

            let mut client = adk.asks_rpc("SendStreamingMessage", &params);
            let mut call = adk.next();
            call.begin();
            let event = format!(r#"{{"task":{TASK}}}"#);
            call.event(&if rest { event } else { result(&event) });
            assert_eq!(client.head().status(), 200);
            let (event, _) = data(&client.event().unwrap());
            assert_eq!(ids(&event["result"]["task"]), left);
            call.end();

            // The list has no bound of its own there.
            let list = json!({"contextId": "c1", "historyLength": length});
            let mut client = adk.asks_rpc("ListTasks", &list);
            adk.answers(adk.next(), &format!("[{TASK}]"));
            assert_eq!(ids(&client.answer().json()["result"]["tasks"][0]), left);
        }
    }
}
