//! What an operator sees of limits.
use std::io::Write;

use serde_json::{Value, json};

use crate::support::{
    message::{CONTENT, Message},
    stage::{ANN, Stage},
};

const RULES: &str = "limits: {rules: [{name: daily, key: [context], quota: {limit: 5, per: day}}]}";

#[test]
fn usage_is_listed_by_rule_and_key() {
    let stage = Stage::set(false, &format!("admin: 127.0.0.1:0\n{RULES}"));
    for id in ["m1", "m2"] {
        stage.ends(stage.talk(ANN, Message::send(id).of("c1")), id, "c1");
    }
    let answer = stage.gateway.ask_admin("GET /v1/limits", "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    let mut said: Value = answer.json();
    let resets = said["limits"][0]["resetsInSeconds"].take();
    assert!((1..=86_400).contains(&resets.as_u64().unwrap()), "{resets}");
    let one = json!({"rule": "daily", "key": "context=c1", "used": 2, "limit": 5, "resetsInSeconds": null});
    assert_eq!(said, json!({ "limits": [one], "uncounted": 0 }));
    for hidden in [CONTENT, ANN.token] {
        assert!(!answer.body.contains(hidden), "{answer:?}");
    }
}

#[test]
fn an_address_that_is_not_loopback_needs_the_token() {
    let mut token = tempfile::NamedTempFile::new().unwrap();
    token.write_all(b"open-sesame-open-sesame\n").unwrap();
    let path = token.path().display();
    let more = format!("admin: 0.0.0.0:0\nadmin_token_file: '{path}'\n{RULES}");
    let stage = Stage::set(false, &more);
    let ask = |fields: &str| stage.gateway.ask_admin("GET /v1/limits", fields).status();
    assert_eq!(ask(""), 401);
    assert_eq!(ask("authorization: Bearer open-sesame-open-sesam\r\n"), 401);
    assert_eq!(
        ask("authorization: Bearer open-sesame-open-sesame\r\n"),
        200
    );
}
