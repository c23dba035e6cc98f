//! Callers by their certificates: who is let in, as whom, and what the agent and the record see of it.
use std::{fs, path::Path};

use super::house::{House, says};
use crate::support::{
    agent::Agent,
    keys::{file, item, keys_way},
    words::{ALL, J10, R10},
};

const CLIENTS: &str = ", client_certificates: {mode: optional, ca_file: '{D}/ca.crt'}";
const WAY: &str = "client_certificates: {names: ['spiffe://example.org/ns/{ns}/sa/*', '{ns}.agents.example'], tenant: ns}";

#[test]
fn a_name_is_the_caller_and_none_is_refused() {
    let records = tempfile::tempdir().unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    fs::write(key.path(), "k".repeat(40)).unwrap();
    let audit = format!(
        "audit: {{folder: '{}', key_file: '{}'}}",
        records.path().display(),
        key.path().display()
    );
    let house = House::build(CLIENTS, &format!("auth: [{WAY}]\n{audit}"));
    let mut asked = 0;
    for (names, known) in [
        (
            &["spiffe://example.org/ns/shop/sa/cart"][..],
            Some(("cert:spiffe://example.org/ns/shop/sa/cart", "shop")),
        ),
        (
            &["shop.agents.example"],
            Some(("cert:shop.agents.example", "shop")),
        ),
        (
            &["other.example", "SHOP.agents.example"],
            Some(("cert:shop.agents.example", "shop")),
        ),
        (
            &["spiffe://example.org/ns/shop/sa/cart", "b.agents.example"],
            Some(("cert:spiffe://example.org/ns/shop/sa/cart", "shop")),
        ),
        (&["spiffe://example.com/ns/shop/sa/cart"], None),
        (
            &[
                "spiffe://example.com/ns/shop/sa/cart",
                "shop.agents.example",
            ],
            None,
        ),
        (
            &[
                "spiffe://example.org/ns/shop/sa/cart",
                "spiffe://example.org/ns/b/sa/c",
            ],
            None,
        ),
        (&["spiffe://example.org/ns/shop/sa/cart", "https://a"], None),
        (&["spiffe://example.org/ns/shop/../sa"], None),
        (&["*.agents.example"], None),
        (&["other.example"], None),
        (&[], None),
    ] {
        let caller = house.showing(&house.vouches.issue(names));
        for speak in ALL {
            let fields = "client-cert: :AAAA:\r\nx-forwarded-client-cert: By=x\r\n";
            let (status, text) = caller
                .connect(house.addr())
                .unwrap()
                .send(speak, fields)
                .unwrap();
            assert_eq!(
                status,
                if known.is_some() { 200 } else { 401 },
                "{names:?} {text}"
            );
        }
        asked += known.map_or(0, |_| ALL.len());
        let all = house.agent.all();
        assert_eq!(all.len(), asked, "{names:?}");
        for seen in &all {
            assert!(
                seen.head.get("client-cert").is_none()
                    && seen.head.get("x-forwarded-client-cert").is_none()
            );
        }
        if let Some((name, tenant)) = known {
            crate::support::until("it is on record", || {
                let text = recorded(records.path());
                text.contains(&format!("\"{name}\"")) && text.contains(&format!("\"{tenant}\""))
            });
        }
    }
}

/// All that is on record.
fn recorded(folder: &Path) -> String {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    texts.collect()
}

#[test]
fn without_a_certificate_nobody_is_let_in_but_by_another_way() {
    let keys = file(&item("billing", "k-5b0c7b8f1d2e4a6890-billing", ""));
    let ways = format!("auth: [{WAY}, {}]", keys_way(&keys));
    let house = House::build(CLIENTS, &ways);
    let key = "x-api-key: k-5b0c7b8f1d2e4a6890-billing\r\n";
    let known = house.showing(&house.vouches.issue(&["a.agents.example"]));
    let unknown = house.showing(&house.vouches.issue(&["other.example"]));
    for (caller, fields, status) in [
        (&house.stranger(), "", 401),
        (&house.stranger(), key, 200),
        (&unknown, "", 401),
        (&unknown, key, 200),
        (&known, "", 200),
        (&known, key, 200),
        (&known, "x-api-key: wrong-wrong-wrong\r\n", 200),
    ] {
        let (told, text) = caller
            .connect(house.addr())
            .unwrap()
            .send(R10, fields)
            .unwrap();
        assert_eq!(told, status, "{fields} {text}");
    }
}

#[test]
fn a_refusal_says_what_is_needed_in_every_dialect() {
    let house = House::build(CLIENTS, &format!("auth: [{WAY}]"));
    for speak in ALL {
        let (status, text) = house.stranger().ask(house.addr(), speak).unwrap();
        assert_eq!(status, 401, "{text}");
        assert!(
            text.contains("www-authenticate: ClientCertificate realm=\"a2a-gateway\"\n"),
            "{text}"
        );
        assert!(text.contains("a credential is needed"), "{text}");
    }
}

#[test]
fn a_caller_with_a_certificate_has_conversations_of_its_own() {
    let token = tempfile::NamedTempFile::new().unwrap();
    fs::write(token.path(), "Bearer of-the-house").unwrap();
    let (agent, log) = Agent::always(says);
    let backend = format!(
        "credentials: {{header: {{file: '{}'}}}}",
        token.path().display()
    );
    let rest = "auth: [client_certificates: {}]\nownership: {by: caller}";
    let house = House::with(agent, log, &backend, CLIENTS, rest);
    let (ann, bob) = (
        house.vouches.issue(&["ann.example"]),
        house.vouches.issue(&["bob.example"]),
    );
    assert_eq!(house.showing(&ann).ask(house.addr(), J10).unwrap().0, 200);
    let (line, body) = R10.get();
    let ask = |by| {
        house
            .showing(by)
            .connect(house.addr())
            .unwrap()
            .ask(line, "a2a-version: 1.0\r\n", &body)
            .unwrap()
            .0
    };
    assert_eq!(ask(&ann), 200);
    assert_eq!(ask(&bob), 404);
    // Renewed, it is the same caller.
    assert_eq!(ask(&house.vouches.issue(&["ann.example"])), 200);
}
