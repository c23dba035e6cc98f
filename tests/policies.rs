//! All policies at once, over real sockets: who is let in, whose a task is, how often, what is recorded, and that no
//! secret stands in anything that somebody may read.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "policies/secrets.rs"]
mod secrets;

use std::{fs, net::SocketAddr, path::Path, process::Command};

use serde_json::{Value, json};
use support::{
    agent::{Agent, Asked, Log, answer},
    client::Answer,
    desk,
    gateway::Gateway,
    keys::{api_key, bearer, credentials, file, item, keys_way},
    message::{Message, Refusal},
    place::{KEY, Place},
    words::{J03, R10, Speak, result},
};
use tempfile::NamedTempFile;

const A: &str = "key-of-a-52e94b7d1f0c";
const B: &str = "key-of-b-c07f4a1be336";
const WRONG: &str = "key-of-nobody-9ad1428c";
const OWN: &str = "the-gateway-s-own-61fe0b";
const BOTH: [Speak; 2] = [J03, R10];

/// A v1.0 JSON-RPC agent: message `m1` makes task `t1`.
fn says(asked: &Asked) -> Vec<u8> {
    let body = asked.json();
    let task = |id: &str| desk::task(id, &format!("c-{id}"), "COMPLETED");
    let said = match body["params"]["message"]["messageId"].as_str() {
        Some(id) => json!({"task": task(&id.replace('m', "t"))}),
        None => task(body["params"]["id"].as_str().unwrap()),
    };
    let json = "content-type: application/json\r\n";
    answer(200, json, result(&said.to_string()))
}

struct House {
    gateway: Gateway,
    agent: Log,
    place: Place,
    /// All settings.
    yaml: NamedTempFile,
    /// All that was answered, heads and bodies.
    told: Vec<String>,
}

impl House {
    fn build() -> Self {
        let (addr, agent) = Agent::always(says);
        let place = Place::new();
        let keys = file(&(item("a", A, "tenant: red") + &item("b", B, "tenant: blue")));
        let own = file(&format!("Bearer {OWN}\n"));
        let settings = settings(addr, &place, &keys, &own);
        let yaml = file(&format!("listen: 127.0.0.1:0\n{settings}"));
        Self {
            gateway: Gateway::of(&settings).keeping([keys, own]),
            agent,
            place,
            yaml,
            told: vec![],
        }
    }

    fn ask(&mut self, fields: &str, (line, body): &(&str, String)) -> Answer {
        let answer = self.gateway.ask(line, fields, body);
        self.told.push(format!("{answer:?}"));
        answer
    }

    fn sends(&mut self, fields: &str, speak: Speak, id: &str) -> Answer {
        self.ask(fields, &Message::send(id).words(speak))
    }

    fn is_refused(&mut self, fields: &str, speak: Speak, id: &str) -> Refusal {
        Refusal::read(speak, &self.sends(fields, speak, id))
    }
}

fn settings(agent: SocketAddr, place: &Place, keys: &NamedTempFile, own: &NamedTempFile) -> String {
    format!(
        "workers: 1
admin: 127.0.0.1:0
backend: {{url: 'http://{agent}', {}}}
auth: [{}]
ownership: {{by: tenant}}
limits: {{rules: [{{name: calls, key: [caller], match: {{operations: [SendMessage]}}, rate: {{limit: 2, per: 1h}}}}]}}
{}",
        credentials(own),
        keys_way(keys),
        place.section("flush: 10ms, checkpoint: 0, digest: true"),
    )
}

/// What the record of a call is to say.
fn record(who: &str, speak: Speak, op: Option<&str>, rule: Option<&str>, status: u16) -> Value {
    let (caller, tenant) = match who {
        "a" => ("key:a", json!("red")),
        "b" => ("key:b", json!("blue")),
        _ => ("peer:127.0.0.1", Value::Null),
    };
    let decision = if rule.is_some() { "refused" } else { "allowed" };
    json!({
        "caller": caller, "tenant": tenant, "in": format!("{speak:?}"), "operation": op,
        "decision": decision, "rule": rule, "status": status,
    })
}

/// Everybody does everything once; what each record is to say.
fn use_it(house: &mut House) -> Vec<Value> {
    let mut expected = vec![];
    let (send, get) = (Some("SendMessage"), Some("GetTask"));
    // By either field, and the agent sees neither.
    for (speak, fields, id) in [(J03, api_key(A), "m1"), (R10, bearer(A), "m2")] {
        let answer = house.sends(&fields, speak, id);
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert!(answer.body.contains(&id.replace('m', "t")), "{answer:?}");
        expected.push(record("a", speak, send, None, 200));
    }
    for speak in BOTH {
        let refusal = Refusal::read(speak, &house.ask(&api_key(B), &speak.get()));
        assert_eq!(refusal.reason, "TASK_NOT_FOUND", "{refusal:?}");
        let status = if speak == R10 { 404 } else { 200 };
        assert_eq!(refusal.status, status);
        expected.push(record("b", speak, get, Some("TASK_NOT_FOUND"), status));
    }
    for speak in BOTH {
        let answer = house.ask(&api_key(A), &speak.get());
        assert_eq!(
            answer.status(),
            200,
            "it is there for its owner: {answer:?}"
        );
        expected.push(record("a", speak, get, None, 200));
    }
    for (speak, fields) in [(J03, api_key(A)), (R10, bearer(A))] {
        let refusal = house.is_refused(&fields, speak, "m3");
        assert_eq!(refusal.status, 429, "{refusal:?}");
        assert_eq!(refusal.metadata["rule"], "calls");
        expected.push(record("a", speak, send, Some("limits.calls"), 429));
    }
    for (speak, id) in [(J03, "m4"), (R10, "m5")] {
        let answer = house.sends(&api_key(B), speak, id);
        assert_eq!(
            answer.status(),
            200,
            "others have a limit of their own: {answer:?}"
        );
        expected.push(record("b", speak, send, None, 200));
    }
    for (speak, fields) in [(J03, api_key(WRONG)), (R10, bearer(WRONG))] {
        let refusal = house.is_refused(&fields, speak, "m6");
        assert_eq!(refusal.status, 401, "{refusal:?}");
        let op = send.filter(|_| speak == R10); // a path says it, a body that was not read does not
        expected.push(record("nobody", speak, op, Some("UNAUTHENTICATED"), 401));
    }
    expected
}

/// What `check` says of the settings.
fn check(yaml: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
    let output = command.args(["check", "--config"]).arg(yaml).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    format!("{output:?}")
}

fn all_in(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
        .collect()
}

#[test]
fn each_policy_holds_with_all_others_and_no_secret_is_told() {
    let mut house = House::build();
    let expected = use_it(&mut house);

    let shown = house.agent.all();
    assert_eq!(shown.len(), 6, "what is refused never reaches the agent");
    for asked in &shown {
        let all = asked.head.all("authorization");
        assert_eq!(all, [format!("Bearer {OWN}")]);
        let text = format!("{asked:?}");
        assert!(!text.contains(A) && !text.contains(B), "{text}");
    }

    let callers = house.gateway.ask_admin("GET /v1/callers", "");
    let limits = house.gateway.ask_admin("GET /v1/limits", "");
    let said = check(house.yaml.path());
    assert!(callers.body.contains("key:a") && callers.body.contains("key:b"));
    assert!(limits.body.contains("calls") && limits.body.contains("key:a"));
    assert!(said.contains("ownership"), "{said}");

    let folder = house.place.folder();
    let calls = house.place.ends(house.gateway);
    assert_eq!(calls.len(), expected.len(), "{calls:#?}");
    for (call, expected) in calls.iter().zip(&expected) {
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&call[key], value, "{key} of {call:#}");
        }
    }

    let log = all_in(&folder);
    assert!(log.contains("limits.calls"), "it is the log");
    for (place, text) in [
        ("the log", log),
        ("an answer", house.told.concat()),
        ("the callers", format!("{callers:?}")),
        ("the limits", format!("{limits:?}")),
        ("what check says", said),
    ] {
        for secret in [A, B, WRONG, OWN, KEY] {
            assert!(!text.contains(secret), "{secret} is in {place}: {text}");
        }
    }
}
