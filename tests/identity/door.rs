//! Every way in, and every way to be refused, in all dialects.
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    house::{House, KEY, OLD_KEY, READER, api_key, bearer, file, item, keys_way, log, usual_keys},
    issuer::{ISSUER, Issuer, Pair, claims, now},
    support::{
        message::Refusal,
        words::{ALL, J10, R10},
    },
};

const BEARER: &str = r#"Bearer realm="a2a-gateway""#;
const INVALID: &str = r#"Bearer realm="a2a-gateway", error="invalid_token""#;
const API_KEY: &str = r#"ApiKey realm="a2a-gateway""#;

/// Tokens that are refused, each by what is wrong with it.
fn bad_tokens(pair: &Pair) -> Vec<(&'static str, String)> {
    let with = |claim: &str, value: Value| {
        let mut claims = claims();
        claims[claim] = value;
        pair.signs(&claims)
    };
    let good = pair.signs(&claims());
    let body = good.split('.').nth(1).unwrap();
    let head = |text: Value| URL_SAFE_NO_PAD.encode(text.to_string());
    let none = head(json!({"alg": "none", "kid": pair.id}));
    let secret = jsonwebtoken::EncodingKey::from_secret(pair.public().to_string().as_bytes());
    let mut shared = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    shared.kid = Some(pair.id.to_owned());
    let shared = jsonwebtoken::encode(&shared, &claims(), &secret.unwrap()).unwrap();
    let mut other = good.clone();
    other.replace_range(good.len() - 8..good.len() - 4, "AAAA");
    vec![
        ("expired", with("exp", json!(now() - 3600))),
        ("not yet", with("nbf", json!(now() + 3600))),
        ("wrong audience", with("aud", json!("agent"))),
        ("no tenant", with("org", Value::Null)),
        ("no name", with("sub", Value::Null)),
        ("no end", with("exp", Value::Null)),
        ("none", format!("{none}.{body}.")),
        ("wrong alg", shared),
        ("wrong signature", other),
        ("unknown kid", Pair::new("unknown").signs(&claims())),
        ("another's key", Pair::new(pair.id).signs(&claims())),
        ("another's token", with("iss", json!("https://other.test"))),
        ("huge", with("more", json!("x".repeat(20_000)))),
        ("no token at all", "swordfish-swordfish".to_owned()),
    ]
}

/// All ways through one door. Gives the credentials that were used.
fn everybody(house: &House, pair: &Pair) -> Vec<String> {
    let mut used = vec![KEY.to_owned(), OLD_KEY.to_owned(), READER.to_owned()];
    let good = pair.signs(&claims());
    let mut refused = vec![
        ("nothing", String::new(), BEARER),
        ("a wrong key", api_key("k-wrong-wrong-wrong"), BEARER),
        ("two keys", api_key(KEY) + &api_key(KEY), BEARER),
        ("an expired key", api_key(OLD_KEY), BEARER),
        ("an expired key as a token", bearer(OLD_KEY), INVALID),
        ("a longer key", bearer(&format!("{KEY}x")), INVALID),
        (
            "another scheme",
            format!("authorization: Basic {KEY}\r\n"),
            BEARER,
        ),
        ("no scheme", format!("authorization: {KEY}\r\n"), BEARER),
        ("a cookie", format!("cookie: {KEY}\r\n"), BEARER),
    ];
    for (what, token) in bad_tokens(pair) {
        refused.push((what, bearer(&token), INVALID));
        used.push(token);
    }
    for speak in ALL {
        for (what, fields, challenge) in &refused {
            let before = house.asked();
            let answer = house.send(speak, fields);
            let refusal = Refusal::read(speak, &answer);
            let told = (refusal.status, refusal.reason.as_str());
            assert_eq!(
                told,
                (401, "UNAUTHENTICATED"),
                "{speak:?}: {what}: {answer:?}"
            );
            assert_eq!(
                answer.head.all("www-authenticate"),
                [API_KEY, challenge],
                "{what}"
            );
            assert_eq!(house.asked(), before, "{what} reached the agent");
        }
        for fields in [api_key(KEY), bearer(KEY), bearer(&good)] {
            assert_eq!(
                house.send(speak, &fields).status(),
                200,
                "{speak:?}: {fields}"
            );
        }
        // What its holder may do is said by the key.
        let (line, body) = speak.get();
        let looks = house.ask(speak, line, &api_key(READER), &body);
        assert_eq!(looks.status(), 200, "{looks:?}");
        for (line, body) in [speak.send(), speak.stream(), speak.subscribe()] {
            let before = house.asked();
            let answer = house.ask(speak, line, &api_key(READER), &body);
            let refusal = Refusal::read(speak, &answer);
            assert_eq!(
                (refusal.status, &*refusal.reason),
                (403, "ACCESS_DENIED"),
                "{speak:?}"
            );
            assert_eq!(house.asked(), before);
        }
    }
    used.push(good);
    used
}

#[test]
fn who_is_known_gets_in_and_nobody_else() {
    let (pair, keys) = (Pair::new("one"), file(&usual_keys()));
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let auth = format!("auth: [{}, {}]", keys_way(&keys), issuer.way());
    let house = House::build("", &auth);
    let start = tokio::time::Instant::now();
    let used = everybody(&house, &pair);
    // The issuer was asked for its keys, and now and then for one that nobody knows.
    let asked = u64::try_from(issuer.log.all().len()).unwrap();
    assert!(asked <= 2 + start.elapsed().as_secs() / 10, "{asked}");
    let log = log();
    assert!(log.contains("refused"), "{log}");
    for secret in used {
        assert!(!log.contains(&secret), "{secret} is in the log");
        if let Some((_, rest)) = secret.split_once('.') {
            let body = rest.split('.').next().unwrap();
            assert!(!log.contains(body), "a token's claims are in the log");
        }
    }
    assert!(!log.contains("swordfish"));
}

#[test]
fn a_gateways_key_never_reaches_the_agent() {
    let keys = file(&usual_keys());
    let house = House::build("", &format!("auth: [{}]", keys_way(&keys)));
    let theirs = "authorization: Bearer for-the-agent\r\n";
    for (fields, left) in [
        (bearer(KEY), None),
        (api_key(KEY), None),
        (
            format!("{}{theirs}", api_key(KEY)),
            Some("Bearer for-the-agent"),
        ),
    ] {
        assert_eq!(house.send(J10, &fields).status(), 200);
        let asked = house.agent.all().pop().unwrap();
        assert_eq!(asked.head.get("authorization"), left, "{fields}");
        assert_eq!(asked.head.get("x-api-key"), None, "{fields}");
    }
}

#[test]
fn a_field_that_settings_name_for_keys_is_kept_back_as_well() {
    let keys = file(&usual_keys());
    let path = keys.path().display();
    let way = format!("{{api_keys: {{file: '{path}', headers: [x-team-key, authorization]}}}}");
    let open = House::build("", &format!("auth: [{way}, passthrough]"));
    let team = |value: &str| format!("x-team-key: {value}\r\n");
    for (fields, left) in [
        (team(KEY), None),
        // Whoever is known has nothing for the agent in such a field.
        (team("theirs") + &bearer(KEY), None),
        // Nobody can have two keys, and who they are passes: the keys do not.
        (team(KEY) + &team(READER), None),
        (team("theirs"), Some("theirs")),
    ] {
        let before = open.asked();
        assert_eq!(open.send(J10, &fields).status(), 200, "{fields}");
        assert_eq!(open.asked(), before + 1);
        let asked = open.agent.all().pop().unwrap();
        assert_eq!(asked.head.get("x-team-key"), left, "{fields}");
        assert_eq!(asked.head.get("authorization"), None, "{fields}");
    }
}

#[test]
fn a_key_that_is_shown_twice_does_not_reach_the_agent_either() {
    let (pair, keys) = (Pair::new("one"), file(&usual_keys()));
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let token = bearer(&pair.signs(&claims()));
    let ways = format!("{}, {}", keys_way(&keys), issuer.way());
    let raw = |field: &str, value: &str| format!("{field}: {value}\r\n");
    let all = [
        api_key(KEY) + &bearer(KEY),
        api_key(KEY) + &api_key(READER) + &token,
        api_key(KEY) + &api_key(KEY) + &token,
        api_key(KEY) + &bearer(READER) + &bearer("theirs"),
        api_key(KEY) + &raw("authorization", READER),
        api_key(KEY) + &raw("authorization", &format!("ApiKey {READER}")),
        api_key(&format!("{KEY}, {READER}")) + &token,
        token.clone() + &api_key(OLD_KEY),
    ];
    // What nobody knows passes here; two keys at once are nobody's.
    let strangers = [
        api_key(KEY) + &api_key(KEY),
        bearer(KEY) + &bearer(KEY),
        raw("authorization", KEY),
        raw("authorization", &format!("Basic {KEY}")),
        api_key(&format!("{KEY},{READER}")),
        raw("cookie", &format!("key={KEY}; other={READER}")),
    ];
    let closed = House::build("", &format!("auth: [{ways}]"));
    let open = House::build("", &format!("auth: [{ways}, passthrough]"));
    let anyone = House::build("", &format!("auth: [{ways}, anyone]"));
    let known = all
        .iter()
        .flat_map(|f| [(&closed, f), (&open, f), (&anyone, f)]);
    let strange = strangers.iter().flat_map(|f| [(&open, f), (&anyone, f)]);
    for (house, fields) in known.chain(strange) {
        let before = house.asked();
        let status = house.send(J10, fields).status();
        if house.asked() == before {
            assert_eq!(status, 401, "{fields}");
            continue;
        }
        let text = format!("{:?}", house.agent.all().pop().unwrap().head);
        for key in [KEY, READER, OLD_KEY] {
            assert!(!text.contains(key), "{fields}\n{text}");
        }
    }
    assert!(open.asked() >= all.len() && closed.asked() >= all.len() - 1);
}

#[test]
fn a_key_is_good_for_its_routes_only() {
    let keys = file(&(item("a", KEY, "routes: [/a]") + &item("b", READER, "routes: []")));
    // Nobody is there: what is let in fails behind the door.
    let agent = "http://127.0.0.1:1/x";
    let routes =
        format!("routes: [{{path: /a, backend: '{agent}'}}, {{path: /b, backend: '{agent}'}}]");
    let gateway =
        crate::support::gateway::Gateway::of(&format!("{routes}\nauth: [{}]\n", keys_way(&keys)));
    let ask = |path: &str, key: &str| {
        let fields = api_key(key) + "a2a-version: 1.0\r\n";
        gateway
            .ask(&format!("GET {path}/tasks/t1"), &fields, "")
            .status()
    };
    assert_eq!(
        (ask("/b", KEY), ask("/a", READER), ask("/b", READER)),
        (403, 403, 403)
    );
    assert_ne!(ask("/a", KEY), 403);
    assert_eq!((ask("/a", "k-wrong"), ask("/b", "k-wrong")), (401, 401));
}

#[test]
fn what_no_way_knows_passes_where_the_last_one_lets_it() {
    let (pair, keys) = (Pair::new("one"), file(&usual_keys()));
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let ways = format!("{}, {}", keys_way(&keys), issuer.way());
    let open = House::build("", &format!("auth: [{ways}, passthrough]"));
    let mut expired = claims();
    expired["exp"] = json!(now() - 3600);
    let expired = pair.signs(&expired);
    for speak in [J10, R10] {
        for passes in [
            "",
            &*bearer("theirs"),
            &*api_key("theirs"),
            "cookie: theirs\r\n",
        ] {
            assert_eq!(open.send(speak, passes).status(), 200, "{passes}");
            let asked = open.agent.all().pop().unwrap();
            let theirs = asked
                .head
                .fields
                .iter()
                .filter(|(_, v)| v.contains("theirs"));
            assert_eq!(theirs.count(), usize::from(!passes.is_empty()));
        }
        // Who knows a credential decides about it.
        for known in [bearer(&expired), api_key(OLD_KEY)] {
            assert_eq!(open.send(speak, &known).status(), 401, "{known}");
        }
    }
    let anyone = House::build("", &format!("auth: [{ways}, anyone]"));
    assert_eq!(anyone.send(J10, "").status(), 200);
    assert_eq!(anyone.send(J10, &bearer(KEY)).status(), 200);
    for wrong in [bearer("theirs"), api_key("theirs"), bearer(&expired)] {
        assert_eq!(anyone.send(J10, &wrong).status(), 401, "{wrong}");
    }
}

#[test]
fn the_names_of_settings_are_what_starts_or_does_not() {
    let start = |auth: &str| {
        let text =
            format!("listen: 127.0.0.1:0\nbackend: {{url: 'http://127.0.0.1:1'}}\nauth: [{auth}]");
        let config =
            a2a_gateway::config::Config::parse(&text, a2a_gateway::config::Overrides::default())
                .unwrap();
        a2a_gateway::run::start(config).err().map(|e| e.to_string())
    };
    let absent = start("{api_keys: {file: /no/such/file}}").unwrap();
    assert!(absent.contains("/no/such/file"), "{absent}");
    let bad = file("- {name: a, digest: hunter2}");
    let told = start(&keys_way(&bad)).unwrap();
    assert!(
        told.contains("[0].digest: line 1") && !told.contains("hunter2"),
        "{told}"
    );
    let jwks = format!(
        "{{jwt: {{issuer: '{ISSUER}', audience: [a], algorithms: [RS256], jwks_file: '{}'}}}}",
        file(&crate::issuer::set(&[Pair::new("a")]))
            .path()
            .display()
    );
    assert!(start(&jwks).is_some());
}
