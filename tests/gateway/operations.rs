//! Operations with ways of their own: subscribing, webhooks, extended cards; and what is told of losses.
use serde_json::json;

use crate::support::{
    agent::Agent,
    gateway::Gateway,
    words::{self, ALL, J10, R03P, R10, TASK},
};

#[test]
fn subscribing_falls_back_to_get_and_remembers_it() {
    for (status, fields, body, again) in [
        (405, "", "", true),
        (404, "content-type: text/html\r\n", "<html>", true),
        (
            404,
            "content-type: application/json\r\n",
            r#"{"error":{"code":404,"status":"NOT_FOUND","message":"gone","details":[]}}"#,
            false,
        ),
    ] {
        let agent = Agent::start();
        let gateway = Gateway::before_rest(agent.addr);
        let mut client = gateway.client();
        let (line, text) = R10.subscribe();
        client.send(line, "", &text);
        let call = agent.next();
        assert!(call.asked.is("POST /tasks/t1:subscribe "));
        call.answer(status, fields, body);
        if !again {
            assert_eq!(client.answer().status(), 404);
            assert_eq!(agent.seen(), 1);
            continue;
        }
        let mut call = agent.next();
        assert!(call.asked.is("GET /tasks/t1:subscribe "));
        assert_eq!(call.asked.head.get("content-type"), None);
        call.begin();
        assert_eq!(client.head().status(), 200);
        call.end();
        assert_eq!(client.event(), None);

        let mut client = gateway.client();
        client.send(line, "", &text);
        let mut call = agent.next();
        assert!(call.asked.is("GET /tasks/t1:subscribe "));
        call.begin();
        call.end();
        assert_eq!(client.head().status(), 200);
    }
}

#[test]
fn getting_a_push_config_without_an_id_gives_the_first() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let get = r#"{"jsonrpc":"2.0","id":7,"method":"tasks/pushNotificationConfig/get","params":{"id":"t1"}}"#;
    let mut client = gateway.client();
    client.send("POST /", "", get);
    let call = agent.next();
    assert_eq!(
        call.asked.json()["method"],
        "ListTaskPushNotificationConfigs"
    );
    assert_eq!(call.asked.json()["params"]["taskId"], "t1");
    call.json(&words::result(
        r#"{"configs":[{"taskId":"t1","id":"p1","url":"http://a"},{"taskId":"t1","id":"p2","url":"http://b"}]}"#,
    ));
    let answer = client.answer().json();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["pushNotificationConfig"]["id"], "p1");

    client.send("POST /", "", get);
    agent.next().json(&words::result(r#"{"configs":[]}"#));
    assert_eq!(client.answer().json()["error"]["code"], -32001);
}

#[test]
fn pages_of_push_configs_are_joined_for_v03() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tasks/pushNotificationConfig/list","params":{"id":"t1"}}"#;
    let mut client = gateway.client();
    client.send("POST /", "", list);
    for (n, token) in [(1, "two"), (2, "three"), (3, "")] {
        let call = agent.next();
        let wanted = if n == 1 {
            json!(null)
        } else {
            json!(["two", "three"][n - 2])
        };
        assert_eq!(call.asked.json()["params"]["pageToken"], wanted);
        call.json(&words::result(&format!(
            r#"{{"configs":[{{"taskId":"t1","id":"p{n}","url":"http://a"}}],"nextPageToken":"{token}"}}"#
        )));
    }
    let answer = client.answer().json();
    let ids: Vec<_> = answer["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["pushNotificationConfig"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["p1", "p2", "p3"]);

    // A page that cannot be had fails the list: half of it would look like all of it.
    client.send("POST /", "", list);
    agent.next().json(&words::result(
        r#"{"configs":[{"taskId":"t1","id":"p1","url":"http://a"}],"nextPageToken":"two"}"#,
    ));
    agent.next().answer(503, "", "");
    assert_eq!(client.answer().status(), 503);
}

#[test]
fn a_delete_is_answered_as_each_version_does() {
    let old = r#"{"jsonrpc":"2.0","id":7,"method":"tasks/pushNotificationConfig/delete","params":{"id":"t1","pushNotificationConfigId":"p1"}}"#;
    let new = r#"{"jsonrpc":"2.0","id":7,"method":"DeleteTaskPushNotificationConfig","params":{"taskId":"t1","id":"p1"}}"#;
    let agent = Agent::start();
    for rest in [true, false] {
        let binding = if rest { "binding: rest" } else { "" };
        let gateway = Gateway::with(agent.addr, binding, "");
        let answers: &[(u16, &str)] = if rest {
            &[(204, ""), (200, "{}"), (200, "null"), (200, "")]
        } else {
            &[
                (200, r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
                (200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
                (200, r#"{"jsonrpc":"2.0","id":1}"#),
            ]
        };
        for (status, body) in answers {
            let mut client = gateway.client();
            let mut ask = |line: &str, text: &str| {
                client.send(line, "", text);
                agent
                    .next()
                    .answer(*status, "content-type: application/json\r\n", body);
                let answer = client.answer();
                (answer.status(), answer.body)
            };
            let config = "tasks/t1/pushNotificationConfigs/p1";
            assert_eq!(
                ask("POST /", old),
                (200, r#"{"jsonrpc":"2.0","id":7,"result":null}"#.to_owned())
            );
            assert_eq!(
                ask("POST /", new),
                (200, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned())
            );
            assert_eq!(
                ask(&format!("DELETE /v1/{config}"), ""),
                (204, String::new())
            );
            assert_eq!(
                ask(&format!("DELETE /{config}"), ""),
                (200, "{}".to_owned())
            );
        }
    }
}

#[test]
fn webhooks_can_be_switched_off() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "push: {mode: 'off'}");
    let create = gateway.ask(
        "POST /tasks/t1/pushNotificationConfigs",
        "",
        r#"{"url":"http://a"}"#,
    );
    assert_eq!(create.status(), 400);
    assert!(create.body.contains("PUSH_NOTIFICATION_NOT_SUPPORTED"));
    let send = gateway.ask(
        "POST /message:send",
        "",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"taskPushNotificationConfig":{"url":"http://a"}}}"#,
    );
    assert_eq!(send.status(), 400);
    let old = gateway.ask(
        "POST /",
        "",
        r#"{"jsonrpc":"2.0","id":7,"method":"tasks/pushNotificationConfig/list","params":{"id":"t1"}}"#,
    );
    assert_eq!(old.json()["error"]["code"], -32003);
    assert!(agent.is_left_alone());
}

#[test]
fn an_extended_card_is_rewritten_and_never_kept() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "public_url: https://agents.example/pub");
    let card = words::result(&super::cards::card(agent.addr));
    let ask = |line: &str, body: &str| {
        let mut client = gateway.client();
        client.send(line, "authorization: Bearer x\r\n", body);
        let call = agent.next();
        assert_eq!(call.asked.json()["method"], "GetExtendedAgentCard");
        assert_eq!(call.asked.head.get("authorization"), Some("Bearer x"));
        call.json(&card);
        client.answer()
    };
    let rpc = |name| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{name}","params":{{}}}}"#);
    for _ in 0..2 {
        for (line, body) in [
            ("POST /", rpc("agent/getAuthenticatedExtendedCard")),
            ("POST /", rpc("GetExtendedAgentCard")),
            ("GET /v1/card", String::new()),
            ("GET /extendedAgentCard", String::new()),
        ] {
            let answer = ask(line, &body);
            assert_eq!(answer.status(), 200, "{line}: {answer:?}");
            assert!(answer.body.contains("https://agents.example/pub"));
            assert!(!answer.body.contains(&agent.addr.to_string()), "{answer:?}");
        }
    }
    assert_eq!(agent.seen(), 8);
}

#[test]
fn losses_are_told_when_asked_for() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let extra = (0..150).fold(String::new(), |all, n| all + &format!(r#","x y{n:040}":1"#));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"kind":"message","messageId":"m","role":"user","parts":[{{"kind":"text","text":"hi"}}]{extra}}}}}}}"#
    );
    for asked in [true, false] {
        let fields = if asked {
            "a2a-gateway-report: losses\r\n"
        } else {
            ""
        };
        let mut client = gateway.client();
        client.send("POST /", fields, &body);
        let call = agent.next();
        assert_eq!(call.asked.head.get("a2a-gateway-report"), None);
        call.json(&words::result(&words::wrapped()));
        let head = client.answer().head;
        let told = head.get("a2a-gateway-losses");
        assert_eq!(told.is_some(), asked);
        let Some(told) = told else { continue };
        assert!(told.len() <= 2048 && told.len() > 1900, "{}", told.len());
        let first = told.split(',').next().unwrap();
        assert!(
            first.contains("x%20y0000") && first.starts_with("message."),
            "{first}"
        );
    }
    let mut client = gateway.client();
    let (line, body) = J10.send();
    client.send(line, "a2a-gateway-report: losses\r\n", &body);
    agent.next().json(&words::result(&words::wrapped()));
    assert_eq!(client.answer().head.get("a2a-gateway-losses"), None);
}

#[test]
fn every_version_and_binding_reaches_every_agent() {
    for (binding, version) in [("rest", "1.0"), ("jsonrpc", "1.0"), ("jsonrpc", "0.3")] {
        let agent = Agent::start();
        let backend = format!("binding: {binding}, version: '{version}'");
        let gateway = Gateway::with(agent.addr, &backend, "");
        for speak in ALL {
            let mut client = gateway.client();
            let (line, body) = speak.get();
            client.send(line, "", &body);
            let call = agent.next();
            let said = call.asked.head.get("a2a-version");
            assert_eq!(said, (version == "1.0").then_some("1.0"));
            call.json(&match (binding, version) {
                ("rest", _) => TASK.to_owned(),
                (_, "1.0") => words::result(TASK),
                _ => words::result(
                    r#"{"kind":"task","id":"t1","contextId":"c1","status":{"state":"working"}}"#,
                ),
            });
            let answer = client.answer();
            assert_eq!(answer.status(), 200);
            let state = if speak.is_old() && speak != R03P {
                "working"
            } else {
                "TASK_STATE_WORKING"
            };
            let (task, said) = (answer.json(), if speak.is_old() { "0.3" } else { "1.0" });
            let task = if speak.is_rpc() {
                &task["result"]
            } else {
                &task
            };
            // A v0.3 REST call without a body is answered in ProtoJSON.
            let state = if speak == words::R03K {
                "TASK_STATE_WORKING"
            } else {
                state
            };
            assert_eq!(task["status"]["state"], state, "{speak:?}");
            assert_eq!(answer.head.get("a2a-version"), Some(said));
        }
    }
}
