//! Clients that were written for MemoryLake: the shapes of its page, at its paths.
use serde_json::{Value, json};

use super::lake::{bound, refusal, shown, subscribes, tell};
use crate::support::{
    agent::Agent,
    client::{Answer, Client},
    gateway::Gateway,
    keys::{bearer, file, item, keys_way},
    stage::BINDINGS,
    words::{J03, J10, R03K, R03P, R10, Speak, data},
};

const ALL: [Speak; 4] = [R10, R03P, J10, J03];
const PATH: &str = "/api/v3/workspaces/ws-80/agents/agent-f8/a2a";
const JSON: &str = "content-type: application/json\r\n";
const LAKE: &str = r#"{"memorylake":{"actorId":"actor-33","n":2.0}}"#;

/// Both faces before the same agent: the product's at its path, the plain one at the root.
fn gateway(agent: &Agent, rest: bool, face: &str, more: &str) -> Gateway {
    let (addr, binding) = (agent.addr, if rest { "rest" } else { "jsonrpc" });
    Gateway::of(&format!(
        "workers: 1
backend: {{url: 'http://{addr}', preset: memorylake, binding: {binding}}}
routes:
  - path: /api/v3/workspaces/{{w}}/agents/{{a}}/a2a
    backend: http://{addr}/x/{{w}}/{{a}}/a2a
    agent_parameter: a
    face: {face}
{more}"
    ))
}

/// A message with its metadata, and what stands beside it.
fn message(speak: Speak, streams: bool, more: &str) -> (String, String) {
    let (line, body) = if streams {
        speak.stream()
    } else {
        speak.send()
    };
    let body = body.replacen(r#""message":"#, &format!(r#"{more}"message":"#), 1);
    (at(line), body)
}

fn lake(more: &str) -> String {
    format!(r#""metadata":{LAKE},{more}"#)
}

fn at(line: &str) -> String {
    let (verb, rest) = line.split_once(' ').unwrap();
    format!("{verb} {PATH}{}", rest.trim_end_matches('/'))
}

fn sends(gateway: &Gateway, speak: Speak, more: &str) -> Client {
    let (line, body) = message(speak, false, &lake(more));
    let mut client = gateway.client();
    client.send(&line, JSON, &body);
    client
}

fn params(rest: bool, asked: &Value) -> Value {
    if rest {
        asked.clone()
    } else {
        asked["params"].clone()
    }
}

const TASK: &str = r#"{"task":{"id":"run-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"result-run-1","name":"result","parts":[{"text":"Paris."},{"data":{"kind":"recommended_questions","questions":["Why?"],"n":2.0}}],"metadata":{}}],"history":[{"messageId":"msg-1","contextId":"ctx-1","taskId":"run-1","role":"ROLE_USER","parts":[{"text":"What?"}]},{"messageId":"run-1-3","contextId":"ctx-1","taskId":"run-1","role":"ROLE_AGENT","parts":[{"text":"Paris."}]}]}}"#;

#[test]
fn each_combination_has_its_path_its_defaults_and_its_shape() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "memorylake", "");
        for speak in ALL {
            let mut client = sends(&gateway, speak, "");
            let call = agent.next();
            let path = if rest { "/message:send" } else { "" };
            assert!(
                call.asked.is(&format!("POST /x/ws-80/agent-f8/a2a{path} ")),
                "{:?}",
                call.asked
            );
            let asked = params(rest, &call.asked.json());
            let wanted = match speak {
                R03P => json!({"returnImmediately": true, "historyLength": 0}),
                R10 | J10 | J03 | R03K => json!({"returnImmediately": false}),
            };
            assert_eq!(asked["configuration"], wanted, "{speak:?}");
            assert!(call.asked.body.contains(LAKE), "{}", call.asked.body);
            call.json(&bound(rest, TASK));
            let answer = client.answer();
            assert_eq!(answer.status(), 200);
            let told = answer.json();
            match speak {
                R10 => assert_eq!(answer.body, TASK),
                J10 => assert_eq!(
                    answer.body,
                    format!(r#"{{"jsonrpc":"2.0","id":"q1","result":{TASK}}}"#)
                ),
                J03 => {
                    let task = &told["result"];
                    assert_eq!(
                        (&task["kind"], &task["status"]["state"]),
                        (&json!("task"), &json!("completed"))
                    );
                    assert_eq!(task["history"][1]["role"], "agent");
                    assert_eq!(
                        task["history"][1]["parts"],
                        json!([{"kind": "text", "text": "Paris."}])
                    );
                    assert_eq!(task["artifacts"][0]["parts"][1]["kind"], "data");
                }
                R03P | R03K => {
                    let task = &told["task"];
                    assert_eq!(task["status"], json!({"state": "TASK_STATE_COMPLETED"}));
                    assert_eq!(task.get("history"), None, "{task}");
                    let data = &task["artifacts"][0]["parts"][1]["data"]["data"];
                    assert_eq!(data["kind"], "recommended_questions");
                }
            }
            assert!(answer.body.contains(r#""n":2.0"#), "{}", answer.body);
        }
    }
}

#[test]
fn what_is_said_goes_before_the_defaults_and_history_is_trimmed() {
    let agent = Agent::start();
    let gateway = gateway(
        &agent,
        true,
        "memorylake",
        "compat: {v10_accept_blocking: true}",
    );
    for (speak, said, wanted) in [
        (
            R03P,
            r#"{"blocking":true,"historyLength":1}"#,
            json!({"returnImmediately": false, "historyLength": 1}),
        ),
        (
            J03,
            r#"{"blocking":false,"historyLength":1}"#,
            json!({"returnImmediately": true, "historyLength": 1}),
        ),
        (
            R10,
            r#"{"returnImmediately":true,"historyLength":1}"#,
            json!({"returnImmediately": true, "historyLength": 1}),
        ),
        // As the older page has it.
        (
            J10,
            r#"{"blocking":false,"historyLength":1}"#,
            json!({"returnImmediately": true, "historyLength": 1}),
        ),
    ] {
        let mut client = sends(&gateway, speak, &format!(r#""configuration":{said},"#));
        let call = agent.next();
        assert_eq!(call.asked.json()["configuration"], wanted, "{speak:?}");
        call.json(TASK);
        let body = client.answer().body;
        assert!(
            body.contains("run-1-3") && !body.contains("msg-1"),
            "{speak:?} {body}"
        );
    }
}

#[test]
fn a_task_that_is_got_is_as_the_page_has_it() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "memorylake", "");
    for (speak, state, told, time) in [
        (R10, "COMPLETED", "TASK_STATE_COMPLETED", true),
        (J10, "CANCELED", "TASK_STATE_CANCELED", true),
        (J03, "CANCELED", "canceled", true),
        (R03P, "COMPLETED", "TASK_STATE_COMPLETED", false),
        (R03P, "CANCELED", "TASK_STATE_CANCELLED", false),
    ] {
        let (line, body) = speak.get();
        let mut client = gateway.client();
        client.send(&at(line), JSON, &body);
        let call = agent.next();
        assert!(call.asked.is("GET /x/ws-80/agent-f8/a2a/tasks/t1 "));
        call.json(&shown(state));
        let task = super::lake::task(speak, &client.answer());
        assert_eq!(task["status"]["state"], told, "{speak:?}");
        assert_eq!(task["status"].get("timestamp").is_some(), time, "{speak:?}");
    }
    assert!(agent.is_left_alone_now());
}

#[test]
fn a_replay_is_asked_for_by_get_and_told_in_each_shape() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "memorylake", "");
    for speak in ALL {
        let (line, body) = speak.subscribe();
        let mut client = gateway.client();
        let line = if speak.is_rpc() {
            at(line)
        } else {
            at(line).replace("POST", "GET")
        };
        client.send(&line, JSON, &body);
        let call = agent.next();
        assert!(
            call.asked
                .is("GET /x/ws-80/agent-f8/a2a/tasks/t1:subscribe "),
            "{:?}",
            call.asked
        );
        assert!(!subscribes(&call, false));
        tell(call, true);
        client.head();
        let events = client.rest();
        assert_eq!(events[0], ": keep-alive");
        let all: Vec<Value> = events[1..].iter().map(|e| data(e).0).collect();
        assert_eq!(all.len(), 7);
        let last = match speak {
            R10 | R03P | J10 => {
                json!({"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}}})
            }
            J03 | R03K => {
                json!({"kind": "status-update", "taskId": "t1", "contextId": "c1", "final": true, "status": {"state": "completed"}})
            }
        };
        let told = if speak.is_rpc() {
            &all[6]["result"]
        } else {
            &all[6]
        };
        let mut told = told.clone();
        if speak == R03P {
            told["statusUpdate"]
                .as_object_mut()
                .unwrap()
                .remove("final");
        }
        assert_eq!(told, last, "{speak:?}");
    }
}

/// The body of a refusal, by status and `error_code`, whatever the binding.
fn is_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status(), status, "{answer:?}");
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    let body = answer.json();
    assert_eq!(body["success"], false, "{answer:?}");
    assert_eq!(body["error_code"], code, "{answer:?}");
    assert!(body["message"].is_string());
    assert_eq!(body.as_object().unwrap().len(), 3, "{answer:?}");
}

#[test]
fn its_refusals_pass_as_they_came_and_plain_clients_see_none_of_that() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "memorylake", "");
        for (status, code) in [
            (400, "INVALID_ARGUMENT"),
            (400, "STATE_NOT_READY"),
            (400, "ACTOR_INACTIVE"),
            (402, "QUOTA_EXCEEDED"),
            (403, "ACCESS_DENIED"),
            (404, "NOT_FOUND"),
            (401, "UNAUTHORIZED"),
        ] {
            for speak in ALL {
                for streams in [false, true] {
                    let (line, body) = message(speak, streams, &lake(""));
                    let mut client = gateway.client();
                    client.send(&line, JSON, &body);
                    agent.next().answer(status, JSON, refusal(code));
                    let answer = client.answer();
                    assert_eq!(
                        (answer.status(), answer.body),
                        (status, refusal(code)),
                        "{speak:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_the_agent_reports_over_json_rpc_is_an_error_object() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, "memorylake", "");
    let flat = self::gateway(
        &agent,
        false,
        "{like: memorylake, v03_flat_errors: true}",
        "",
    );
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}"#;
    for (gateway, old) in [(&gateway, -32001), (&flat, -32603)] {
        for speak in ALL {
            let (line, body) = speak.get();
            let mut client = gateway.client();
            client.send(&at(line), JSON, &body);
            agent.next().json(error);
            let answer = client.answer();
            match speak {
                J10 => assert_eq!(answer.json()["error"]["code"], -32001),
                J03 => assert_eq!(answer.json()["error"]["code"], old),
                R10 | R03P | R03K => is_refused(&answer, 404, "NOT_FOUND"),
            }
            if speak.is_rpc() {
                assert_eq!(answer.status(), 200);
                assert_eq!(answer.json()["error"]["message"], "no such task");
            }
        }
    }
}

#[test]
fn what_is_missing_or_of_the_wrong_shape_is_refused_before_the_agent() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "memorylake", "");
    for speak in ALL {
        for (more, why) in [
            ("", "`metadata.memorylake` is required"),
            (r#""metadata":{},"#, "`metadata.memorylake` is required"),
        ] {
            for streams in [false, true] {
                let (line, body) = message(speak, streams, more);
                let answer = gateway.ask(&line, JSON, &body);
                is_refused(&answer, 400, "INVALID_ARGUMENT");
                assert!(answer.body.contains(why), "{answer:?}");
            }
        }
    }
    let rest = |path: &str, speak: Speak| {
        gateway.ask(
            &format!("POST {PATH}{path}"),
            JSON,
            &message(speak, false, &lake("")).1,
        )
    };
    is_refused(&rest("/v1/message:send", R10), 400, "INVALID_ARGUMENT");
    is_refused(&rest("/message:send", R03P), 400, "INVALID_ARGUMENT");
    is_refused(&rest("/v1/message:send", R03K), 400, "INVALID_ARGUMENT");
    is_refused(&rest("/nothing", R10), 404, "NOT_FOUND");
    assert!(agent.is_left_alone_now());
}

#[test]
fn the_gateway_s_own_refusals_are_told_in_that_form() {
    let keys = file(&item("ann", "key-of-ann", ""));
    let agent = Agent::start();
    let more = format!(
        "auth: [{}]
conversation: {{busy_grace: 20ms}}
limits: {{rules: [{{name: calls, key: [operation], match: {{operations: [GetTask]}}, rate: {{limit: 1, per: 1h}}}}]}}",
        keys_way(&keys)
    );
    let gateway = gateway(&agent, true, "memorylake", &more).keeping([keys]);
    let ann = format!("{JSON}{}", bearer("key-of-ann"));
    // Who nobody knows.
    for speak in ALL {
        let (line, body) = message(speak, false, &lake(""));
        is_refused(&gateway.ask(&line, JSON, &body), 401, "UNAUTHENTICATED");
    }
    // A conversation that is busy.
    let busy = |speak: Speak| {
        let (line, body) = message(speak, false, &lake(""));
        let body = body.replacen(r#""messageId""#, r#""contextId":"c1","messageId""#, 1);
        let mut client = gateway.client();
        client.send(&line, &ann, &body);
        client
    };
    let mut first = busy(R10);
    let call = agent.next();
    for speak in ALL {
        is_refused(&busy(speak).answer(), 400, "INVALID_ARGUMENT");
    }
    call.json(TASK);
    assert_eq!(first.answer().status(), 200);
    // Too many.
    let get = |speak: Speak| {
        let (line, body) = speak.get();
        let mut client = gateway.client();
        client.send(&at(line), &ann, &body);
        client
    };
    let mut client = get(R10);
    agent.next().json(&shown("WORKING"));
    assert_eq!(client.answer().status(), 200);
    for speak in ALL {
        let answer = get(speak).answer();
        is_refused(&answer, 429, "RATE_LIMITED");
        assert!(answer.head.get("retry-after").is_some());
    }
    // An agent of another conversation.
    let other = PATH.replace("agent-f8", "agent-f9");
    let (line, body) = message(J10, false, &lake(""));
    let body = body.replacen(r#""messageId""#, r#""contextId":"c1","messageId""#, 1);
    let answer = gateway.ask(&line.replace(PATH, &other), &ann, &body);
    is_refused(&answer, 400, "INVALID_ARGUMENT");
    assert!(agent.is_left_alone_now());
}

#[test]
fn an_agent_that_cannot_be_reached_is_told_in_that_form() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "memorylake", "");
    for speak in ALL {
        let mut client = sends(&gateway, speak, "");
        drop(agent.next());
        is_refused(&client.answer(), 502, "BACKEND_BROKEN");
    }
}

/// Its face is that of the route, as for all else there.
#[test]
fn a_card_that_cannot_be_had_is_told_in_that_form() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "memorylake", "");
    let card = "/.well-known/agent-card.json";
    for (path, product) in [(PATH, true), ("", false)] {
        for version in ["", "a2a-version: 0.3\r\n", "a2a-version: 1.0\r\n"] {
            let mut client = gateway.client();
            client.send(&format!("GET {path}{card}"), version, "");
            while client.wire.is_open() {
                if let Some(call) = agent.next_soon() {
                    call.answer(500, "", "");
                }
            }
            let answer = client.answer();
            let told = answer.json();
            assert_eq!(told.get("success").is_some(), product, "{answer:?}");
        }
    }
}

/// What a rule writes is the gateway's, and says nothing of who speaks.
#[test]
fn no_rule_gives_what_a_client_must_give_by_itself() {
    for (rule, more) in [
        ("{path: memorylake.actorId, set: {parameter: a}}", ""),
        ("{path: memorylake, set: {constant: {n: 1}}}", ""),
        ("{path: memorylake, default: {constant: {n: 1}}}", ""),
        ("{path: memorylake, remove: true}", "gone"),
    ] {
        let agent = Agent::start();
        let face = format!("memorylake\n    metadata: [{rule}]");
        let gateway = gateway(&agent, true, &face, "");
        for speak in ALL {
            let (line, body) = message(speak, false, "");
            let answer = gateway.ask(&line, JSON, &body);
            is_refused(&answer, 400, "INVALID_ARGUMENT");
            let why = "`metadata.memorylake` is required";
            assert!(answer.body.contains(why), "{rule}: {answer:?}");
            assert!(agent.is_left_alone_now());
            // Who gives it is not kept from having it written anew.
            let mut client = sends(&gateway, speak, "");
            let call = agent.next();
            let metadata = &call.asked.json()["metadata"]["memorylake"];
            if more.is_empty() {
                assert!(metadata.is_object(), "{rule}: {:?}", call.asked);
            } else {
                assert!(
                    metadata.get("actorId").is_none(),
                    "{rule}: {:?}",
                    call.asked
                );
            }
            call.json(TASK);
            assert_eq!(client.answer().status(), 200);
        }
    }
}
