//! What an operator sees of conversations, and may do.
use std::io::Write;

use serde_json::Value;

use crate::support::{
    message::{CONTENT, Message},
    stage::{ANN, BINDINGS, PATIENT, Stage},
};

struct Office {
    stage: Stage,
    _token: tempfile::NamedTempFile,
}

const TOKEN: &str = "authorization: Bearer open-sesame-open-sesame\r\n";

impl Office {
    fn open(rest: bool) -> Self {
        let mut token = tempfile::NamedTempFile::new().unwrap();
        token.write_all(b"open-sesame-open-sesame\n").unwrap();
        let path = token.path().display();
        let more = format!("admin: 127.0.0.1:0\nadmin_token_file: '{path}'");
        Self {
            stage: Stage::set(rest, &format!("{PATIENT}\n{more}")),
            _token: token,
        }
    }

    fn list(&self) -> String {
        let gateway = &self.stage.gateway;
        let answer = gateway.ask_admin("GET /v1/conversations", TOKEN);
        assert_eq!(answer.status(), 200, "{answer:?}");
        let kind = answer.head.get("content-type").unwrap();
        assert!(kind.starts_with("application/json"), "{kind}");
        answer.body
    }

    fn release(&self, key: &str, fields: &str) -> u16 {
        let line = format!("POST /v1/conversations/{key}:release");
        self.stage.gateway.ask_admin(&line, fields).status()
    }
}

/// The only key in a list.
fn key(list: &str) -> String {
    fn keys(value: &Value, found: &mut Vec<String>) {
        let is_key = |t: &str| t.len() == 32 && t.bytes().all(|b| b.is_ascii_hexdigit());
        match value {
            Value::String(text) if is_key(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|v| keys(v, found)),
            Value::Object(members) => members.values().for_each(|v| keys(v, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = vec![];
    keys(&serde_json::from_str(list).unwrap(), &mut found);
    assert_eq!(found.len(), 1, "{list}");
    found.remove(0)
}

#[test]
fn conversations_are_listed_without_their_content() {
    for rest in BINDINGS {
        let office = Office::open(rest);
        let stage = &office.stage;
        assert!(!office.list().contains("in_flight"));
        let held = stage.talk(ANN, Message::send("m1").of("c1"));
        let list = office.list();
        key(&list);
        assert!(list.contains("in_flight"), "{list}");
        for hidden in [CONTENT, "Bearer", "open-sesame-open-sesame"] {
            assert!(!list.contains(hidden), "{list}");
        }
        stage.ends(held, "t1", "c1");
        assert!(!office.list().contains("in_flight"));

        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t-held");
        let list = office.list();
        assert!(list.contains("held") && list.contains("t-held"), "{list}");
        stage.desk.knows("t-held", "c1", "COMPLETED");
        stage.looks(ANN, "t-held");
        assert!(!office.list().contains("t-held"));

        let (mut client, seen) = stage.talk(ANN, Message::send("m1").of("c1"));
        drop(seen);
        client.answer();
        assert!(office.list().contains("unknown"));
    }
}

#[test]
fn a_conversation_is_released_with_the_token_only() {
    for rest in BINDINGS {
        let office = Office::open(rest);
        let stage = &office.stage;
        stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
        let key = key(&office.list());
        for wrong in [
            "",
            "authorization: Bearer open-sesame-open-sesam\r\n",
            "authorization: Bearer open-sesame-open-sesame2\r\n",
            "authorization: Bearer \r\n",
            "authorization: Basic open-sesame-open-sesame\r\n",
        ] {
            assert_eq!(office.release(&key, wrong), 401, "{wrong}");
        }
        let next = Message::send("m2").of("c1");
        stage.refused(ANN, next);
        let other = "0".repeat(32);
        for unknown in [&other, "c1", "x"] {
            assert_eq!(office.release(unknown, TOKEN), 404, "{unknown}");
        }
        stage.refused(ANN, next);
        assert_eq!(office.release(&key, TOKEN), 204);
        assert_eq!(office.release(&key, TOKEN), 404);
        stage.ends(stage.admitted(ANN, next), "t2", "c1");
    }
}

#[test]
fn without_a_token_nothing_is_released() {
    let more = "admin: 127.0.0.1:0";
    let stage = Stage::set(false, &format!("{PATIENT}\n{more}"));
    stage.leaves_working(ANN, Message::send("m1").of("c1"), "t1");
    let list = stage.gateway.ask_admin("GET /v1/conversations", "");
    assert_eq!(list.status(), 200);
    let line = format!("POST /v1/conversations/{}:release", key(&list.body));
    for fields in ["", TOKEN, "authorization: Bearer \r\n"] {
        let status = stage.gateway.ask_admin(&line, fields).status();
        assert!((400..500).contains(&status), "{status}");
    }
    stage.refused(ANN, Message::send("m2").of("c1"));
}

#[test]
fn who_was_released_takes_nothing_from_the_next_one() {
    for rest in BINDINGS {
        let office = Office::open(rest);
        let stage = &office.stage;
        let (mut client, seen) = stage.talk(ANN, Message::send("m1").of("c1").at_once());
        assert_eq!(office.release(&key(&office.list()), TOKEN), 204);
        let held = stage.admitted(ANN, Message::send("m2").of("c1"));
        // The first one ends, and frees nothing.
        seen.completes("t1", "c1");
        assert_eq!(client.answer().status(), 200);
        stage.refused(ANN, Message::send("m3").of("c1"));
        stage.ends(held, "t2", "c1");
        let next = stage.admitted(ANN, Message::send("m3").of("c1"));
        stage.ends(next, "t3", "c1");
    }
}
