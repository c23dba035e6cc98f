//! Tenants and names of several ways: who may name tenants by one way gets nowhere by that with another's.
use serde_json::{Value, json};

use crate::{
    house::{House, KEY, READER, api_key, bearer, file, item, keys_way},
    issuer::{ISSUER, Issuer, Pair, claims},
    support::words::{J10, R10},
};

const OTHER: &str = "https://other.test";

/// The same tenant and name, by another issuer.
fn others_claims() -> Value {
    let mut claims = claims();
    claims["iss"] = json!(OTHER);
    claims
}

fn tenants(house: &House) -> Vec<(String, String)> {
    let answer = house.gateway.ask_admin("GET /v1/callers", "");
    let all = answer.json()["callers"].as_array().unwrap().clone();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = all
        .iter()
        .map(|c| (text(&c["caller"]), text(&c["tenant"])))
        .collect();
    all.sort();
    all
}

#[test]
fn an_issuer_cannot_mint_another_ones_tenant() {
    let (one, two) = (Pair::new("one"), Pair::new("two"));
    let (a, b) = (
        Issuer::with(std::slice::from_ref(&one)),
        Issuer::with(std::slice::from_ref(&two)),
    );
    let keys = file(&item("ann", KEY, "tenant: acme"));
    let secret = file("Bearer gateway");
    let own = crate::support::keys::credentials(&secret);
    let ways = format!(
        "{}, {}, {}",
        keys_way(&keys),
        a.way(),
        b.way().replace(ISSUER, OTHER)
    );
    let rest = format!("admin: 127.0.0.1:0\nownership: {{by: tenant}}\nauth: [{ways}]");
    let house = House::build(&own, &rest);
    let all = [
        bearer(&one.signs(&claims())),
        bearer(&two.signs(&others_claims())),
        api_key(KEY),
    ];
    // The first one makes the task, and only he sees it.
    assert_eq!(house.send(R10, &all[0]).status(), 200);
    let (line, body) = R10.get();
    let seen = all
        .each_ref()
        .map(|who| house.ask(R10, line, who, &body).status());
    assert_eq!(seen, [200, 404, 404]);
    assert_eq!(
        tenants(&house),
        [
            (format!("jwt:{ISSUER}/ann"), format!("{ISSUER}|acme")),
            (format!("jwt:{OTHER}/ann"), format!("{OTHER}|acme")),
            ("key:ann".to_owned(), "keys|acme".to_owned()),
        ]
    );
}

#[test]
fn ways_that_are_told_to_share_their_tenants_do() {
    let one = Pair::new("one");
    let issuer = Issuer::with(std::slice::from_ref(&one));
    let keys = file(&item("ann", KEY, "tenant: acme"));
    let more = file(&item("ann", READER, "tenant: acme"));
    let realm = |way: String, realm: &str| way.replacen(": {", &format!(": {{realm: {realm}, "), 1);
    let ways = [
        realm(keys_way(&keys), "house"),
        realm(keys_way(&more), "guests"),
        realm(issuer.way(), "house"),
    ];
    let rest = format!("admin: 127.0.0.1:0\nauth: [{}]", ways.join(", "));
    let house = House::build("", &rest);
    for who in [api_key(KEY), api_key(READER), bearer(&one.signs(&claims()))] {
        assert_eq!(house.send(J10, &who).status(), 200);
    }
    let all = tenants(&house);
    let all: Vec<_> = all.iter().map(|(n, t)| (&**n, &**t)).collect();
    let token = format!("jwt:{ISSUER}/ann");
    assert_eq!(
        all,
        [
            (&*token, "house|acme"),
            ("key:guests|ann", "guests|acme"),
            ("key:house|ann", "house|acme"),
        ]
    );
}
