//! What is in no record: a credential, a word of a message; and what settings ask for, which is.
use std::fs;

use a2a_gateway::audit::Key;
use serde_json::{Value, json};

use crate::{
    place::{KEY, Place},
    support::{
        agent::Agent,
        desk::said,
        gateway::Gateway,
        message::CONTENT,
        words::{self, ALL, J10},
    },
};

const TOKEN: &str = "token-of-a-caller";
const WORD: &str = "a-word-of-the-agent";

/// One call of each kind, all of which carry something that nobody may read afterwards.
fn use_it(gateway: &Gateway, agent: &Agent) {
    let fields =
        format!("authorization: Bearer {TOKEN}\r\ncookie: s={TOKEN}\r\nx-api-key: {TOKEN}\r\n");
    let message = json!({"messageId": "r1", "role": "ROLE_AGENT", "parts": [{"text": WORD}]});
    let answer = said(false, &json!({"message": message}));
    for speak in ALL {
        for (line, body) in [speak.send(), speak.stream()] {
            let body = body.replace("\"hi\"", &format!("\"{CONTENT}\""));
            let mut client = gateway.client();
            client.send(&format!("{line}?token={TOKEN}"), &fields, &body);
            agent.next().json(&answer);
            assert!(client.answer().body.contains(WORD));
        }
    }
    // Refusals, of the gateway and of the agent, quote what they refuse.
    gateway.ask(&format!("GET /{TOKEN}/{CONTENT}"), &fields, "");
    gateway.ask("POST /", &fields, &format!("{{\"{CONTENT}\""));
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":"{CONTENT}","method":"{CONTENT}","params":{{}}}}"#);
    gateway.ask("POST /", &fields, &body);
    let (line, body) = J10.get();
    let mut client = gateway.client();
    client.send(line, &fields, &body);
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32099,"message":"{WORD}","data":"{WORD}"}}}}"#
    );
    agent.next().json(&error);
    assert!(client.answer().body.contains(WORD));
}

fn all_text(place: &Place) -> String {
    let texts = place
        .files()
        .into_iter()
        .map(|file| fs::read_to_string(file).unwrap());
    texts.collect()
}

#[test]
fn no_content_and_no_credential_is_in_the_log() {
    let place = Place::new();
    let agent = Agent::start();
    let capture = "capture: [{name: text, path: /message/parts/0/text}, {name: size, path: /message/parts/0, keep: length}]";
    let gateway = place.gateway(agent.addr, &format!("digest: true, {capture}"), "");
    use_it(&gateway, &agent);
    let calls = place.ends(gateway);
    assert_eq!(calls.len(), 14);
    let text = all_text(&place);
    for secret in [TOKEN, CONTENT, WORD, KEY] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    assert!(
        text.contains("SendMessage"),
        "it is the log that was looked through"
    );
    let key = Key::read(&place.key_file()).unwrap();
    let sends = calls.iter().filter(|call| call["message"] == "m1");
    for call in sends {
        let captured = &call["captured"];
        assert_eq!(captured["text"], key.digest(CONTENT.as_bytes()), "{call:#}");
        let part = format!(r#"{{"text":"{CONTENT}"}}"#);
        assert_eq!(captured["size"], part.len().to_string());
    }
}

#[test]
fn a_digest_is_of_the_body_as_it_was_received() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "digest: true", "");
    let key = Key::read(&place.key_file()).unwrap();
    let mut expected = vec![];
    for speak in ALL {
        let (line, body) = speak.send();
        let mut client = gateway.client();
        client.send(line, "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        client.answer();
        expected.push(Value::from(key.digest(body.as_bytes())));
    }
    gateway.ask("GET /nowhere", "", "");
    expected.push(Value::Null);
    let calls = place.ends(gateway);
    let digests: Vec<_> = calls.iter().map(|call| call["digest"].clone()).collect();
    assert_eq!(digests, expected);
}

#[test]
fn what_settings_ask_for_is_in_the_log() {
    let place = Place::new();
    let agent = Agent::start();
    let capture = "capture: [{name: said, path: /message/parts/0/text, keep: value}, {name: none, path: /message/no, keep: value}]";
    let gateway = place.gateway(agent.addr, capture, "");
    use_it(&gateway, &agent);
    let calls = place.ends(gateway);
    // By the path of v1.0, whatever the caller speaks.
    for call in &calls[..10] {
        assert_eq!(call["captured"], json!({"said": CONTENT}), "{call:#}");
    }
    assert!(calls[10..].iter().all(|call| call["captured"].is_null()));
}
