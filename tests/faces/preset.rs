//! What the agent gets and what plain clients see of it, by the preset.
use serde_json::json;

use super::lake::{bound, gateway, refusal, shown, subscribes, tell};
use crate::support::{
    agent::Agent,
    message::Refusal,
    stage::BINDINGS,
    words::{ALL, J03, J10, R03K, R03P, R10, Speak, TASK},
};

const JSON: &str = "content-type: application/json\r\n";

fn with_configuration(
    (line, body): (&'static str, String),
    configuration: &str,
) -> (&'static str, String) {
    let with = format!(r#""configuration":{configuration},"message":"#);
    (line, body.replacen(r#""message":"#, &with, 1))
}

fn webhook(speak: Speak) -> &'static str {
    match speak {
        J03 | R03K => {
            r#"{"blocking":true,"pushNotificationConfig":{"url":"http://127.0.0.1:9/hook"}}"#
        }
        R03P => r#"{"blocking":true,"pushNotification":{"url":"http://127.0.0.1:9/hook"}}"#,
        J10 | R10 => r#"{"taskPushNotificationConfig":{"url":"http://127.0.0.1:9/hook"}}"#,
    }
}

#[test]
fn a_message_has_what_the_agent_requires_and_nothing_that_it_cannot_do() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "", "");
        for speak in ALL {
            let (line, body) = with_configuration(speak.send(), webhook(speak));
            let mut client = gateway.client();
            client.send(line, JSON, &body);
            let call = agent.next();
            let asked = call.asked.json();
            let params = if rest { asked } else { asked["params"].clone() };
            assert_eq!(params["metadata"], json!({"memorylake": {}}), "{speak:?}");
            assert_eq!(
                params["configuration"],
                json!({"returnImmediately": false}),
                "{speak:?}"
            );
            call.json(&bound(rest, &format!(r#"{{"task":{TASK}}}"#)));
            assert_eq!(client.answer().status(), 200);
        }
        let (line, body) = R10.send();
        let said = body.replacen(
            '{',
            r#"{"metadata":{"memorylake":{"skipMemory":true,"n":1.0}},"#,
            1,
        );
        let mut client = gateway.client();
        client.send(line, JSON, &said);
        let call = agent.next();
        assert!(
            call.asked
                .body
                .contains(r#""memorylake":{"skipMemory":true,"n":1.0}"#)
        );
        assert!(call.asked.body.contains(r#""returnImmediately":false"#));
        call.json(&bound(rest, &format!(r#"{{"task":{TASK}}}"#)));
        client.answer();
    }
}

#[test]
fn who_must_say_it_by_themselves_are_refused_who_do_not() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "require_metadata: [memorylake]", "");
    for speak in ALL {
        let (line, body) = speak.send();
        let answer = gateway.ask(line, JSON, &body);
        let refusal = Refusal::read(speak, &answer);
        refusal.is_told_as_bad(speak);
        assert!(
            refusal.body.contains("`metadata.memorylake` is required"),
            "{refusal:?}"
        );
    }
    assert!(agent.is_left_alone_now());
}

#[test]
fn calls_about_webhooks_are_answered_without_the_agent() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    let rpc = |method: &str| {
        let id = if method.contains('/') { "id" } else { "taskId" };
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"{id}":"t1"}}}}"#)
    };
    for body in [
        rpc("tasks/pushNotificationConfig/list"),
        rpc("ListTaskPushNotificationConfigs"),
        rpc("GetTaskPushNotificationConfig"),
    ] {
        let answer = gateway.ask("POST /", JSON, &body);
        assert_eq!(answer.json()["error"]["code"], -32003, "{answer:?}");
    }
    let answer = gateway.ask("GET /tasks/t1/pushNotificationConfigs", "", "");
    assert_eq!(answer.status(), 400, "{answer:?}");
    assert!(answer.body.contains("PUSH_NOTIFICATION_NOT_SUPPORTED"));
    assert!(agent.is_left_alone_now());
}

#[test]
fn its_refusals_are_told_as_each_dialect_tells_them() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "", "");
        for (status, code, reason, in_rpc) in [
            (400, "INVALID_ARGUMENT", "INVALID_PARAMS", -32602),
            (400, "STATE_NOT_READY", "INVALID_PARAMS", -32602),
            (402, "QUOTA_EXCEEDED", "QUOTA_EXCEEDED", -32603),
            (403, "ACCESS_DENIED", "ACCESS_DENIED", -32603),
        ] {
            for speak in ALL {
                let (line, body) = speak.send();
                let mut client = gateway.client();
                client.send(line, JSON, &body);
                let call = agent.next();
                call.answer(status, "content-type: application/json\r\n", refusal(code));
                let told = Refusal::read(speak, &client.answer());
                assert_eq!(told.reason, reason, "{speak:?} {told:?}");
                assert!(told.body.contains("no such luck"), "{told:?}");
                assert!(!told.body.contains("error_code"), "{told:?}");
                let wanted = if speak.is_rpc() { 200 } else { status };
                assert_eq!(told.status, wanted, "{speak:?} {told:?}");
                if speak.is_rpc() {
                    assert_eq!(told.code, in_rpc, "{speak:?} {told:?}");
                }
            }
        }
    }
}

/// The replay has no task before it; it passes as it is.
#[test]
fn a_replay_passes_by_get() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "", "");
        for speak in ALL {
            let (line, body) = speak.subscribe();
            let mut client = gateway.client();
            client.send(line, JSON, &body);
            let call = agent.next();
            assert!(subscribes(&call, rest), "{:?}", call.asked);
            tell(call, rest);
            assert_eq!(client.head().status(), 200);
            let events = client.rest();
            let data = events.iter().filter(|e| e.contains("data:")).count();
            assert_eq!(data, 7, "{speak:?} {events:?}");
            assert!(events.concat().contains("adk_type"), "{events:?}");
        }
        let (line, body) = J10.get();
        let mut client = gateway.client();
        client.send(line, JSON, &body);
        agent.next().json(&bound(rest, &shown("FAILED")));
        assert_eq!(client.answer().status(), 200);
    }
}
