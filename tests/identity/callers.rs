//! Who calls how, as an operator sees it; and by that, who a credential is that only passes through.
use serde_json::Value;

use crate::{
    house::{House, KEY, api_key, bearer, file, item, keys_way, says},
    support::{
        agent::{Asked, answer},
        words::{ALL, J03, J10, R10, result, wrapped},
    },
};

fn callers(house: &House) -> Vec<Value> {
    let answer = house.gateway.ask_admin("GET /v1/callers", "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()["callers"].as_array().unwrap().clone()
}

fn names(house: &House) -> Vec<String> {
    let all = callers(house);
    let mut names: Vec<_> = all
        .iter()
        .map(|c| c["caller"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_caller_is_listed_with_what_it_uses() {
    let keys = file(&item("billing", KEY, "tenant: acme"));
    let auth = format!(
        "admin: 127.0.0.1:0\nauth: [{}, anyone]\ncompat: {{v10_accept_blocking: true}}",
        keys_way(&keys)
    );
    let house = House::build("", &auth);
    assert_eq!(house.send(J03, &api_key(KEY)).status(), 200);
    let body = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"blocking":true}}"#;
    let answer = house.ask(R10, "POST /message:send", &bearer(KEY), body);
    assert_eq!(answer.status(), 200, "{answer:?}");
    let (line, body) = J10.get();
    assert_eq!(
        house
            .ask(J10, line, "x-a2a-extensions: a\r\n", &body)
            .status(),
        200
    );
    assert_eq!(names(&house), ["key:billing", "peer:127.0.0.1"]);
    let all = callers(&house);
    let billing = all.iter().find(|c| c["caller"] == "key:billing").unwrap();
    assert_eq!(billing["tenant"], "acme");
    let uses = |of: &Value| -> Vec<String> {
        let uses = of["uses"].as_array().unwrap().iter();
        uses.map(|u| format!("{} {} {}", u["version"], u["binding"], u["operation"]))
            .collect()
    };
    assert_eq!(
        uses(billing),
        [
            r#""0.3" "JSONRPC" "SendMessage""#,
            r#""1.0" "HTTP+JSON" "SendMessage""#
        ]
    );
    assert_eq!(billing["deprecated"][0]["member"], "configuration.blocking");
    assert!(billing["last"].as_str().unwrap().ends_with('Z'));
    let peer = all.iter().find(|c| c["caller"] != "key:billing").unwrap();
    assert_eq!(uses(peer), [r#""1.0" "JSONRPC" "GetTask""#]);
    assert_eq!(peer["deprecated"][0]["member"], "X-A2A-Extensions");
    assert!(!format!("{all:?}").contains(KEY));
}

#[test]
fn a_credential_that_passes_through_counts_once_the_agent_has_accepted_it() {
    let agent = |asked: &Asked| {
        const JSON: &str = "content-type: application/json\r\n";
        match asked.head.get("authorization") {
            Some("Bearer ann") => says(asked),
            // An error in a good status is no acceptance.
            Some("Bearer eve") => {
                let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"who?"}}"#;
                answer(200, JSON, error)
            }
            _ => answer(401, JSON, "{}"),
        }
    };
    let house = House::before(agent, "", "admin: 127.0.0.1:0");
    let send = |token: &str| house.send(J10, &bearer(token)).status();
    for n in 0..5 {
        for _ in 0..2 {
            assert_eq!(send(&format!("made-up-{n}")), 401);
            send("eve");
        }
    }
    assert_eq!(names(&house), ["peer:127.0.0.1"]);
    assert_eq!(send("ann"), 200); // which accepts it
    assert_eq!(names(&house), ["peer:127.0.0.1"]);
    for speak in ALL {
        assert_eq!(house.send(speak, &bearer("ann")).status(), 200);
    }
    let names = names(&house);
    assert_eq!(names.len(), 2);
    assert!(
        names[0].starts_with("credential:") && !names[0].contains("ann"),
        "{names:?}"
    );
}

#[test]
fn a_stream_accepts_a_credential_with_its_first_good_event() {
    const EVENTS: &str = "content-type: text/event-stream\r\n";
    let agent = |asked: &Asked| {
        let event = match asked.head.get("authorization") {
            Some("Bearer ann") => result(&wrapped()),
            _ => r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"who?"}}"#.to_owned(),
        };
        answer(200, EVENTS, format!("data: {event}\n\n"))
    };
    let house = House::before(agent, "", "admin: 127.0.0.1:0");
    for speak in ALL {
        let (line, body) = speak.stream();
        let stream = |token: &str| house.ask(speak, line, &bearer(token), &body).status();
        for _ in 0..3 {
            assert_eq!(stream("eve"), 200, "{speak:?}");
        }
        assert_eq!(names(&house), ["peer:127.0.0.1"], "{speak:?}");
    }
    for _ in 0..3 {
        let (line, body) = R10.stream();
        assert_eq!(house.ask(R10, line, &bearer("ann"), &body).status(), 200);
    }
    let names = names(&house);
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn one_address_does_not_fill_the_table_of_accepted_credentials() {
    let house = House::build("", "admin: 127.0.0.1:0");
    let start = tokio::time::Instant::now();
    for n in 0..300 {
        for _ in 0..2 {
            let fields = bearer(&format!("made-up-{n}"));
            assert_eq!(house.send(J10, &fields).status(), 200);
        }
    }
    let names = names(&house);
    assert!(names.contains(&"peer:127.0.0.1".to_owned()), "{names:?}");
    let most = 125 + usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!((2..most.min(295)).contains(&names.len()), "{}", names.len());
}

#[test]
fn an_admin_address_that_is_not_loopback_shows_nothing_without_the_token() {
    let token = file("open-sesame-open-sesame");
    let path = token.path().display();
    let house = House::build("", &format!("admin: 0.0.0.0:0\nadmin_token_file: '{path}'"));
    for page in ["callers", "limits", "conversations"] {
        let line = format!("GET /v1/{page}");
        let ask = |fields: &str| house.gateway.ask_admin(&line, fields);
        for wrong in [
            "",
            &*bearer("open-sesame-open-sesam"),
            "authorization: Basic a\r\n",
        ] {
            let answer = ask(wrong);
            assert_eq!(answer.status(), 401, "{page} {wrong}: {answer:?}");
            assert!(answer.head.get("www-authenticate").is_some());
        }
        assert_eq!(
            ask(&bearer("open-sesame-open-sesame")).status(),
            200,
            "{page}"
        );
    }
    // Where there is no token, nobody has it.
    let house = House::build("", "admin: 0.0.0.0:0");
    for page in ["callers", "limits", "conversations"] {
        let answer = house
            .gateway
            .ask_admin(&format!("GET /v1/{page}"), &bearer(""));
        assert_eq!(answer.status(), 401, "{page}");
    }
}

#[test]
fn what_an_unverified_token_says_is_no_identity() {
    let house = House::build("", "admin: 127.0.0.1:0");
    let pair = crate::issuer::Pair::new("any");
    let token = pair.signs(&crate::issuer::claims());
    for _ in 0..2 {
        assert_eq!(house.send(J10, &bearer(&token)).status(), 200);
    }
    let names = names(&house);
    assert!(
        names
            .iter()
            .all(|n| !n.contains("jwt") && !n.contains("ann")),
        "{names:?}"
    );
}
