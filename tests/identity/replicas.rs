//! A credential that only passes through has one name, whichever replica it is shown to, and the same after a restart.
use tempfile::TempDir;

#[path = "../../src/state/redis/tests/server.rs"]
mod server;

use server::RedisServer;

use crate::{
    house::{House, bearer},
    support::{until, words::J10},
};

/// The name of the one credential that is shown here.
fn name(house: &House) -> String {
    let mut name = None;
    until("the credential has a name", || {
        assert_eq!(house.send(J10, &bearer("ann")).status(), 200);
        let answer = house.gateway.ask_admin("GET /v1/callers", "");
        let all = answer.json()["callers"].as_array().unwrap().clone();
        let names = all.iter().filter_map(|c| c["caller"].as_str());
        name = names
            .map(str::to_owned)
            .find(|n| n.starts_with("credential:"));
        name.is_some()
    });
    name.unwrap()
}

#[test]
fn a_credential_has_one_name_in_all_replicas() {
    let store = RedisServer::start();
    let old = redis::Commands::set(&mut store.connection(), "{a2a:00}epoch", 1);
    let () = old.unwrap(); // its data are not new: it is not quiet
    let rest = format!("admin: 127.0.0.1:0\nstate: '{}'", store.url());
    let (here, there) = (House::build("", &rest), House::build("", &rest));
    assert_eq!(name(&here), name(&there));
}

#[test]
fn a_credential_has_no_name_while_the_store_is_away() {
    let store = RedisServer::start();
    let url = store.url();
    drop(store);
    let rest = format!("admin: 127.0.0.1:0\nconversation: {{on_busy: off}}\nstate: '{url}'");
    let house = House::build("", &rest);
    for _ in 0..5 {
        house.send(J10, &bearer("ann"));
    }
    let answer = house.gateway.ask_admin("GET /v1/callers", "");
    assert!(!answer.body.contains("credential:"), "{answer:?}");
    assert!(answer.body.contains("peer:127.0.0.1"), "{answer:?}");
}

#[test]
fn a_credential_keeps_its_name_when_the_gateway_is_started_again() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state.redb");
    let rules = "limits: {rules: [{name: a, key: [caller], quota: {limit: 1000, per: day}}]}";
    let path = file.display();
    let rest = format!("admin: 127.0.0.1:0\nstate: {{persist: '{path}'}}\n{rules}");
    let start = || House::build("", &rest);
    let first = start();
    let before = name(&first);
    first.gateway.served().rules.close(); // which lets go of the file, as the end of a process does
    assert!(first.gateway.end());
    assert_eq!(name(&start()), before);
    // Without a file there is nothing to have it from.
    assert_ne!(name(&House::build("", "admin: 127.0.0.1:0")), before);
}
