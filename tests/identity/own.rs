//! What the gateway shows the agent of itself.
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    house::{House, KEY, api_key, bearer, file, item, keys_way, log, overwrite, says},
    issuer::{Issuer, Pair, claims},
    support::{
        agent::{Agent, Asked, Log, answer},
        message::Refusal,
        until,
        words::{ALL, J10, R10},
    },
};

const SECRET: &str = "agents-secret-9f27c6d1";
const JSON: &str = "content-type: application/json\r\n";

fn shown(house: &House, name: &str) -> Vec<String> {
    let asked = house.agent.all().pop().unwrap();
    asked
        .head
        .all(name)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_agent_sees_the_gateways_secret_and_never_the_callers() {
    let (pair, keys) = (Pair::new("one"), file(&item("a", KEY, "")));
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let secret = file(&format!("Bearer {SECRET}\n"));
    let ways = format!("{}, {}, anyone", keys_way(&keys), issuer.way());
    for name in ["authorization", "x-agent-key"] {
        let path = secret.path().display();
        let own = format!("credentials: {{header: {{name: {name}, file: '{path}'}}}}");
        let house = House::build(&own, &format!("auth: [{ways}]"));
        let token = pair.signs(&claims());
        for speak in ALL {
            for fields in [
                api_key(KEY) + "cookie: theirs\r\n",
                bearer(KEY),
                bearer(&token),
                bearer(&token) + &api_key("theirs"),
                format!("x-agent-key: theirs\r\n{}", api_key(KEY)),
                "cookie: theirs\r\n".to_owned(),
            ] {
                assert_eq!(house.send(speak, &fields).status(), 200, "{fields}");
                assert_eq!(shown(&house, name), [format!("Bearer {SECRET}")]);
                let asked = house.agent.all().pop().unwrap();
                let text = format!("{asked:?}");
                for theirs in [KEY, &*token, "theirs"] {
                    let other = name == "authorization" && fields.starts_with("x-agent-key");
                    assert!(other || !text.contains(theirs), "{theirs}: {text}");
                }
            }
        }
    }
    assert!(!log().contains(SECRET));
}

#[test]
fn a_secret_is_read_again_when_its_file_changes() {
    let secret = file("Bearer first");
    let path = secret.path().display();
    let own = format!("credentials: {{header: {{file: '{path}'}}}}");
    let house = House::build(&own, "auth: [anyone]");
    let sent = || {
        assert_eq!(house.send(J10, "").status(), 200);
        shown(&house, "authorization")
    };
    assert_eq!(sent(), ["Bearer first"]);
    overwrite(&secret, "Bearer second");
    until("the new one is shown", || sent() == ["Bearer second"]);
}

#[test]
fn a_secret_may_come_from_the_environment() {
    // Of this process, and with no name that it could change: the tests run side by side.
    let house = House::build(
        "credentials: {header: {name: x-agent-key, env: CARGO_PKG_NAME}}",
        "auth: [anyone]",
    );
    assert_eq!(house.send(J10, "").status(), 200);
    assert_eq!(shown(&house, "x-agent-key"), ["a2a-gateway"]);
}

/// Where tokens are fetched.
struct Tokens {
    addr: SocketAddr,
    log: Log,
    says: Arc<Mutex<(u16, String)>>,
}

fn token(token: &str, expires: u32) -> (u16, String) {
    let text =
        format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{expires}}}"#);
    (200, text)
}

impl Tokens {
    fn new() -> Self {
        let says = Arc::new(Mutex::new(token("token-1", 3600)));
        let said = says.clone();
        let (addr, log) = Agent::always(move |_| {
            let (status, text) = said.lock().unwrap().clone();
            answer(status, JSON, text)
        });
        Self { addr, log, says }
    }

    fn says(&self, what: (u16, String)) {
        *self.says.lock().unwrap() = what;
    }

    fn own(&self, secret: &tempfile::NamedTempFile) -> String {
        format!(
            "credentials: {{oauth2: {{token_url: 'http://{}/token', client_id: 'gate way', \
             client_secret_file: '{}', scope: 'a b'}}}}",
            self.addr,
            secret.path().display()
        )
    }
}

#[test]
fn a_token_is_fetched_once_and_kept() {
    let (tokens, secret) = (Tokens::new(), file(&format!("{SECRET}+\n")));
    let house = House::build(&tokens.own(&secret), "auth: [anyone]");
    std::thread::scope(|all| {
        for _ in 0..16 {
            all.spawn(|| assert_eq!(house.send(J10, &bearer("theirs")).status(), 200));
        }
    });
    for asked in house.agent.all() {
        assert_eq!(asked.head.all("authorization"), ["Bearer token-1"]);
    }
    let fetches = tokens.log.all();
    assert_eq!(fetches.len(), 1);
    let fetch = &fetches[0];
    assert!(fetch.is("POST /token "), "{fetch:?}");
    assert_eq!(fetch.body, "grant_type=client_credentials&scope=a%20b");
    let form = "application/x-www-form-urlencoded";
    assert_eq!(fetch.head.get("content-type"), Some(form));
    let basic = STANDARD.encode(format!("gate%20way:{SECRET}%2B"));
    assert_eq!(
        fetch.head.get("authorization"),
        Some(&*format!("Basic {basic}"))
    );
    let log = log();
    assert!(!log.contains(SECRET) && !log.contains(&basic));
}

#[test]
fn a_token_that_ages_is_fetched_again_in_time() {
    let (tokens, secret) = (Tokens::new(), file(SECRET));
    tokens.says(token("token-1", 0)); // good for no time at all: never sent
    let house = House::build(&tokens.own(&secret), "auth: [anyone]");
    assert_eq!(house.send(R10, "").status(), 502);
    tokens.says(token("token-2", 2));
    until("a good one is there", || {
        house.send(R10, "").status() == 200
    });
    tokens.says(token("token-3", 3600));
    until("the next one is there", || {
        assert_eq!(house.send(R10, "").status(), 200);
        shown(&house, "authorization") == ["Bearer token-3"]
    });
}

#[test]
fn without_a_token_the_call_fails_as_the_agents() {
    let (tokens, secret) = (Tokens::new(), file(SECRET));
    let house = House::build(&tokens.own(&secret), "auth: [anyone]");
    for bad in [
        (401, r#"{"error":"invalid_client"}"#.to_owned()),
        (200, "{}".to_owned()),
    ] {
        tokens.says(bad);
        for speak in ALL {
            let answer = house.send(speak, "");
            let refusal = Refusal::read(speak, &answer);
            assert_eq!(refusal.reason, "BACKEND_UNREACHABLE", "{answer:?}");
            assert_eq!(refusal.status, if speak.is_rpc() { 200 } else { 502 });
            assert_eq!(answer.head.get("www-authenticate"), None);
        }
    }
    assert_eq!(house.asked(), 0);
    let log = log();
    assert!(log.contains("look at token_url, client_id"), "{log}");
    tokens.says(token("token-1", 3600));
    until("it is tried again", || house.send(R10, "").status() == 200);
}

#[test]
fn a_token_that_the_agent_refuses_is_fetched_anew() {
    let (tokens, secret) = (Tokens::new(), file(SECRET));
    let agent = |asked: &Asked| {
        if asked.head.get("authorization") == Some("Bearer token-1") {
            let fields = format!("{JSON}www-authenticate: Bearer realm=\"agent\"\r\n");
            return answer(401, &fields, r#"{"detail":"who are you?"}"#);
        }
        says(asked)
    };
    let house = House::before(agent, &tokens.own(&secret), "auth: [anyone]");
    tokens.says(token("token-1", 3600));
    let answer = house.send(R10, "");
    // It is no business of the caller's: nobody asks him for a credential.
    assert_eq!(answer.status(), 502, "{answer:?}");
    assert_eq!(answer.head.get("www-authenticate"), None);
    assert!(!answer.body.contains("who are you"));
    tokens.says(token("token-2", 3600));
    assert_eq!(house.send(R10, "").status(), 200);
    assert_eq!(tokens.log.all().len(), 2);
    assert!(log().contains("look at backend.credentials"));
}

#[test]
fn a_secret_that_goes_over_plain_http_is_warned_of_at_the_start() {
    let secret = file(SECRET);
    let own = crate::support::keys::credentials(&secret);
    // Nobody is there: an address that is for documents only.
    let yaml = format!("auth: [anyone]\nbackend: {{url: 'http://192.0.2.1', {own}}}");
    assert!(!log().contains("over plain http"));
    let _gateway = crate::support::gateway::Gateway::of(&yaml);
    assert!(log().contains("backend.credentials: they go to the agent over plain http"));
}
