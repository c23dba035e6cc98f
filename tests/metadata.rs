//! What rules write into the metadata of messages, over real sockets: what the agent gets, whoever says what.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

use std::sync::LazyLock;

use serde_json::{Value, json};
use support::{
    agent::Agent,
    client::{Answer, Client},
    gateway::Gateway,
    issuer::{ISSUER, Pair, now, set},
    keys::{bearer, file},
    message::Refusal,
    stage::BINDINGS,
    words::{ALL, J10, R10, Speak, TASK, result, wrapped},
};

const RULES: &str = "
  - {path: memorylake.actorId, set: {claim: actor}, required: true}
  - {path: memorylake.team, set: {label: team}}
  - {path: memorylake.level, default: {claim: level}}
  - {path: memorylake.size, default: {constant: 1.5}}
  - {path: [https://ext.example/v1, deep], default: {constant: {a: [1]}}}
  - {path: memorylake.debug, remove: true}
";

static PAIR: LazyLock<Pair> = LazyLock::new(|| Pair::new("one"));

/// Of somebody with a claim and a label of this name.
fn token(name: &str) -> String {
    let claims = json!({"iss": ISSUER, "aud": "gateway", "sub": name, "exp": now() + 600,
        "actor": name, "crew": name, "level": 3});
    PAIR.signs(&claims)
}

/// Who has no token is let in as well, and has no claims.
fn gateway(agent: &Agent, rest: bool, more: &str) -> Gateway {
    let binding = if rest { "rest" } else { "jsonrpc" };
    let keys = file(&set(std::slice::from_ref(&*PAIR)));
    let path = keys.path().display();
    let auth = format!(
        "auth: [{{jwt: {{issuer: '{ISSUER}', audience: [gateway], algorithms: [ES256], \
         labels: {{team: crew}}, jwks_file: '{path}'}}}}, anyone]"
    );
    let backend = format!("binding: {binding}");
    Gateway::with(agent.addr, &backend, &format!("{auth}\n{more}")).keeping([keys])
}

/// A message with this metadata beside it.
fn says(
    gateway: &Gateway,
    path: &str,
    who: &str,
    speak: Speak,
    streams: bool,
    metadata: &str,
) -> Client {
    let (line, body) = if streams {
        speak.stream()
    } else {
        speak.send()
    };
    let with = format!(r#""metadata":{metadata},"message":"#);
    let body = if metadata.is_empty() {
        body
    } else {
        body.replacen(r#""message":"#, &with, 1)
    };
    let (verb, rest) = line.split_once(' ').unwrap();
    let rest = if rest == "/" && !path.is_empty() {
        ""
    } else {
        rest
    };
    let mut client = gateway.client();
    let version = if speak.is_old() {
        ""
    } else {
        "a2a-version: 1.0\r\n"
    };
    let who = if who.is_empty() {
        String::new()
    } else {
        bearer(&token(who))
    };
    let fields = format!("content-type: application/json\r\n{version}{who}");
    client.send(&format!("{verb} {path}{rest}"), &fields, &body);
    client
}

/// The text of what the agent gets, which it answers.
fn got(agent: &Agent, rest: bool, streams: bool, client: &mut Client) -> (Value, String) {
    let mut call = agent.next();
    let body = call.asked.body.clone();
    let value = call.asked.json();
    let value = if rest { value } else { value["params"].clone() };
    let task = if rest { wrapped() } else { result(&wrapped()) };
    if streams {
        call.begin();
        call.event(&task);
        call.end();
        client.head();
        client.rest();
    } else {
        call.json(&task);
        assert_eq!(client.answer().status(), 200);
    }
    (value["metadata"].clone(), body)
}

fn refused(agent: &Agent, speak: Speak, answer: &Answer) -> Refusal {
    assert!(agent.is_left_alone_now());
    let refusal = Refusal::read(speak, answer);
    assert_eq!(refusal.reason, "INVALID_PARAMS", "{refusal:?}");
    refusal
}

#[test]
fn the_agent_gets_what_the_rules_say_whatever_the_caller_does() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, &format!("metadata: {RULES}"));
        for speak in ALL {
            for streams in [false, true] {
                let mut client = says(&gateway, "", "actor-1", speak, streams, "");
                let (metadata, _) = got(&agent, rest, streams, &mut client);
                let whole = json!({
                    "memorylake": {"actorId": "actor-1", "team": "actor-1", "level": 3, "size": 1.5},
                    "https://ext.example/v1": {"deep": {"a": [1]}},
                });
                assert_eq!(metadata, whole, "{speak:?}");

                let said = r#"{"memorylake":{"actorId":"boss","team":null,"level":null,"size":0,"debug":true,"odd":1.10e+2,"big":123456789012345678901234567890},"n":-0.0}"#;
                let mut client = says(&gateway, "", "actor-1", speak, streams, said);
                let (metadata, body) = got(&agent, rest, streams, &mut client);
                let lake = &metadata["memorylake"];
                assert_eq!(lake["actorId"], "actor-1", "{speak:?}");
                assert_eq!(lake["team"], "actor-1");
                assert_eq!((&lake["level"], &lake["size"]), (&json!(3), &json!(0)));
                assert_eq!(lake.get("debug"), None);
                for text in [
                    r#""odd":1.10e+2"#,
                    r#""big":123456789012345678901234567890"#,
                    r#""n":-0.0"#,
                ] {
                    assert!(body.contains(text), "{speak:?}: {body}");
                }
                assert!(!body.contains("boss"), "{body}");
            }
        }
    }
}

#[test]
fn who_lacks_what_is_required_is_refused_and_nobody_says_it_instead() {
    let agent = Agent::start();
    let needed = gateway(&agent, false, &format!("metadata: {RULES}"));
    for speak in ALL {
        let said = r#"{"memorylake":{"actorId":"boss"}}"#;
        let answer = says(&needed, "", "", speak, false, said).answer();
        let refusal = refused(&agent, speak, &answer);
        refusal.is_told_as_bad(speak);
        let rule = "`metadata.memorylake.actorId` is required here";
        assert!(refusal.body.contains(rule), "{refusal:?}");
    }
    let rules = "metadata: [{path: memorylake.actorId, set: {claim: actor}}]";
    let wanted = gateway(&agent, false, rules);
    for speak in ALL {
        let said = r#"{"memorylake":{"actorId":"boss","a":1}}"#;
        let mut client = says(&wanted, "", "", speak, false, said);
        let (metadata, _) = got(&agent, false, false, &mut client);
        assert_eq!(metadata, json!({"memorylake": {"a": 1}}), "{speak:?}");
    }
}

#[test]
fn what_stands_in_the_way_or_is_said_twice_is_refused() {
    let agent = Agent::start();
    let rules = "metadata: [{path: memorylake.actorId, set: {claim: actor}}]";
    let gateway = gateway(&agent, false, rules);
    for speak in [J10, R10] {
        for said in [
            r#"{"memorylake":7}"#,
            r#"{"memorylake":{"actorId":"a","actorId":"b"}}"#,
            r#"{"memorylake":{},"memory\u006cake":{"actorId":"boss"}}"#,
        ] {
            let answer = says(&gateway, "", "actor-1", speak, false, said).answer();
            refused(&agent, speak, &answer).is_told_as_bad(speak);
        }
    }
}

#[test]
fn a_route_has_rules_of_its_own_and_parts_of_its_path() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let addr = agent.addr;
        let gateway = gateway(
            &agent,
            rest,
            &format!(
                "metadata: [{{path: at, set: {{constant: root}}}}]
routes:
  - path: /w/{{w}}/a/{{a}}
    backend: http://{addr}/w/{{w}}/a/{{a}}
    metadata:
      - {{path: memorylake.workspace, set: {{parameter: w}}}}
      - {{path: memorylake.agent, default: {{parameter: a}}}}
  - {{path: /plain, backend: 'http://{addr}/plain'}}
"
            ),
        );
        for speak in ALL {
            let said = r#"{"memorylake":{"workspace":"w-of-another","agent":"mine"}}"#;
            for (path, said, whole) in [
                (
                    "/w/w%201/a/%61gent",
                    "",
                    json!({"memorylake": {"workspace": "w 1", "agent": "agent"}}),
                ),
                (
                    "/w/w1/a/a1",
                    said,
                    json!({"memorylake": {"workspace": "w1", "agent": "mine"}}),
                ),
                ("/plain", r#"{"x":1}"#, json!({"x": 1})),
                ("", "", json!({"at": "root"})),
            ] {
                let mut client = says(&gateway, path, "actor-1", speak, false, said);
                let (metadata, _) = got(&agent, rest, false, &mut client);
                assert_eq!(metadata, whole, "{speak:?} {path}");
            }
        }
    }
}

#[test]
fn only_messages_have_rules() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, &format!("metadata: {RULES}"));
    for speak in ALL {
        let (line, body) = speak.get();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let call = agent.next();
        assert!(!call.asked.body.contains("memorylake"), "{:?}", call.asked);
        call.json(&result(TASK));
        assert_eq!(client.answer().status(), 200);
    }
}
