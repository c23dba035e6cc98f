//! Each kind of setting changes what it should, for the next call on a connection that was there before.
use std::fs;

use serde_json::json;

use crate::{
    Place,
    program::{TOKEN, write},
    support::{
        agent::{Agent, Asked, Log, answer},
        client::{Answer, Client},
        keys::item,
        message::Message,
        words::{self, J03, J10, R10},
    },
};

const JSON: &str = "content-type: application/json\r\n";

fn agent() -> (std::net::SocketAddr, Log) {
    let body = words::result(&words::wrapped());
    let whole = answer(200, JSON, body);
    Agent::always(move |_: &Asked| whole.clone())
}

fn send(client: &mut Client, id: &str, fields: &str) -> Answer {
    let (line, body) = Message::send(id).words(J10);
    client.ask(line, &format!("{JSON}{fields}"), &body)
}

#[test]
fn what_clients_may_speak() {
    let place = Place::new(agent().0, "");
    let mut client = place.gateway.client();
    let (line, body) = J03.send();
    let asks = |client: &mut Client| client.ask(line, JSON, &body).json();
    assert!(asks(&mut client)["result"].is_object());
    let answer = place.takes("dialects: {v03: false}");
    assert_eq!(
        answer,
        json!({"result": "taken", "changed": ["dialects"], "needsRestart": []})
    );
    assert!(asks(&mut client)["error"].is_object());
    place.takes("");
    assert!(asks(&mut client)["result"].is_object());
}

#[test]
fn bounds_and_what_browsers_may_do() {
    let place = Place::new(agent().0, "");
    let mut client = place.gateway.client();
    let origin = "origin: https://a.example\r\n";
    let first = send(&mut client, "m1", origin);
    assert_eq!(first.status(), 200);
    assert_eq!(first.head.get("access-control-allow-origin"), None);
    place.takes("http: {cors: {origins: ['https://a.example']}}");
    let second = send(&mut client, "m2", origin);
    assert_eq!(
        second.head.get("access-control-allow-origin"),
        Some("https://a.example")
    );
    place.takes("limits: {body: 64}");
    let third = send(&mut client, "m3", "");
    assert!(third.body.contains("error"), "{}", third.body);
    place.takes("");
    assert_eq!(
        send(&mut place.gateway.client(), "m4", "").json()["error"],
        json!(null)
    );
}

#[test]
fn who_is_let_in() {
    let place = Place::new(agent().0, "");
    let mut client = place.gateway.client();
    assert_eq!(send(&mut client, "m1", "").status(), 200);
    let keys = place.folder.path().join("keys");
    fs::write(&keys, item("ann", "a-key-of-sufficient-length", "")).unwrap();
    let auth = format!("auth: [{{api_keys: {{file: '{}'}}}}]", keys.display());
    let answer = place.takes(&auth);
    assert_eq!(answer["changed"], json!(["auth"]));
    let key = "x-api-key: a-key-of-sufficient-length\r\n";
    assert_eq!(send(&mut client, "m2", "").status(), 401);
    assert_eq!(send(&mut client, "m3", key).status(), 200);
    // The file that was there before is the one that is looked at.
    let watched = place.gateway.served().front.setup().watched();
    for n in 0..5 {
        place.takes(&format!("{auth}\ndrain: {{grace: {}s}}", 10 + n));
    }
    assert_eq!(place.gateway.served().front.setup().watched(), watched);
    assert_eq!(send(&mut client, "m4", key).status(), 200);
}

#[test]
fn where_agents_are_and_what_they_are_told() {
    let (first, second) = (agent(), agent());
    let place = Place::new(first.0, "");
    let mut client = place.gateway.client();
    send(&mut client, "m1", "");
    let route = format!(
        "routes: [{{path: '/two', backend: 'http://{}', metadata: [{{path: a.b, set: {{constant: c}}}}]}}]",
        second.0
    );
    place.takes(&route);
    let (_, body) = Message::send("m2").words(J10);
    assert_eq!(client.ask("POST /two", JSON, &body).status(), 200);
    let told = second.1.all()[0].json();
    assert_eq!(told["params"]["metadata"]["a"]["b"], "c", "{told}");
    place.takes("");
    assert_eq!(client.ask("POST /two", JSON, &body).status(), 404);

    let moved = Place {
        agent: second.0,
        ..place
    };
    moved.takes("");
    send(&mut client, "m3", "");
    assert_eq!(first.1.all().len(), 1);
    assert_eq!(second.1.all().len(), 2);
}

#[test]
fn how_answers_are_written() {
    let whole = answer(200, JSON, words::wrapped());
    let (addr, _) = Agent::always(move |_| whole.clone());
    let rest = "compat: {rest_content_type: application/a2a+json}";
    let place = Place::new(addr, "");
    let yaml = |more: &str| {
        let text = crate::settings(place.folder.path(), addr, more);
        let text = text.replace("backend: {", "backend: {binding: rest, ");
        write(place.folder.path(), &text);
        assert_eq!(place.post(Some(TOKEN)).status(), 200);
    };
    let mut client = place.gateway.client();
    let (line, body) = R10.send();
    let mut content = || {
        let answer = client.ask(line, JSON, &body);
        answer.head.get("content-type").unwrap().to_owned()
    };
    yaml("");
    assert_eq!(content(), "application/json");
    yaml(rest);
    assert_eq!(content(), "application/a2a+json");
}

#[test]
fn the_token_of_the_admin_address() {
    let place = Place::new(agent().0, "");
    let other = "another token of sufficient length";
    fs::write(place.folder.path().join("token"), other).unwrap();
    assert_eq!(place.post(Some(other)).status(), 401);
    // It is read again with the settings.
    assert_eq!(place.post(Some(TOKEN)).json()["result"], "unchanged");
    assert_eq!(place.post(Some(TOKEN)).status(), 401);
    assert_eq!(place.post(Some(other)).status(), 200);
}

#[test]
fn rules_go_on_with_what_they_counted() {
    let place = Place::new(agent().0, "");
    let quota = |limit: u32| {
        format!(
            "limits: {{rules: [{{name: all, key: [global], quota: {{of: messages, limit: {limit}, per: month}}}}]}}"
        )
    };
    let mut client = place.gateway.client();
    assert_eq!(send(&mut client, "m0", "").status(), 200);
    place.takes(&quota(2));
    assert_eq!(send(&mut client, "m1", "").status(), 200);
    place.takes(&format!("{}\nhttp: {{cors: {{origins: '*'}}}}", quota(2)));
    assert_eq!(send(&mut client, "m2", "").status(), 200);
    place.takes(&quota(2));
    let mut refused = |id| send(&mut client, id, "").json()["error"].is_object();
    assert!(refused("m3"));
    // There is more of it now, and what was used is used.
    place.takes(&quota(3));
    assert!(!refused("m4"));
    assert!(refused("m5"));
    let usage = place.gateway.ask_admin("GET /v1/limits", "").json();
    assert_eq!(usage["limits"][0]["rule"], "all", "{usage}");
    assert_eq!(usage["limits"][0]["used"], 3, "{usage}");
    // One that was away for a while was not forgotten.
    place.takes("");
    assert!(!refused("m6"));
    place.takes(&quota(3));
    assert!(refused("m7"));
}
