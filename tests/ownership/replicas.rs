//! Two gateways with one store, before one agent: whose something is, both know at once, and nobody while it is away.
use redis::Commands as _;
use serde_json::json;

#[path = "../../src/state/redis/tests/server.rs"]
mod server;

use server::RedisServer;

use crate::{
    attacks::{is_not_there, makes, reaches, refused},
    lists::{all_are_of, lists},
    people::{BOTH, BY_TENANT, asks, gateway},
    support::{
        agent::Agent,
        gateway::Gateway,
        message::Refusal,
        stage::{ANN, BOB, Who},
        until,
        words::{ALL, J10, Speak},
    },
    words::{Request, list, message, on_task},
};

struct Stage {
    agent: Agent,
    here: Gateway,
    there: Gateway,
    store: RedisServer,
}

/// Its data are not new: it is not quiet.
fn is_old(store: &RedisServer) {
    let old = store.connection().set("{a2a:00}epoch", 1);
    let () = old.unwrap();
}

fn stage() -> Stage {
    let store = RedisServer::start();
    is_old(&store);
    let agent = Agent::start();
    let one = || {
        gateway(
            &agent,
            false,
            &format!("{BY_TENANT}state: '{}'", store.url()),
        )
    };
    Stage {
        here: one(),
        there: one(),
        agent,
        store,
    }
}

/// All that names a task or makes one.
fn everything(speak: Speak, task: &str) -> Vec<(&'static str, Request)> {
    let mut all = on_task(speak, task);
    for streams in [false, true] {
        all.push(("send", message(speak, streams, &json!({}), &json!({}))));
    }
    if !speak.is_old() {
        all.push(("list", list(speak, &[])));
    }
    all
}

#[test]
fn what_is_made_at_one_gateway_has_its_owner_at_the_other() {
    let stage = stage();
    let (here, there, agent) = (&stage.here, &stage.there, &stage.agent);
    for (n, (owner, thief)) in BOTH.into_iter().enumerate() {
        for speak in ALL {
            let (owner, thief) = (owner.speaking(speak), thief.speaking(speak));
            let (task, context) = (format!("t{n}-{speak:?}"), format!("c{n}-{speak:?}"));
            makes(here, agent, owner, &task, &context);
            // At once, since the answer waited for it.
            for (_, request) in on_task(speak, &task) {
                is_not_there(speak, &refused(there, agent, thief, &request));
                reaches(there, agent, owner, &request);
            }
            for gateway in [here, there] {
                let names = message(speak, false, &json!({"taskId": task}), &json!({}));
                is_not_there(speak, &refused(gateway, agent, thief, &names));
                let of = message(speak, false, &json!({"contextId": context}), &json!({}));
                refused(gateway, agent, thief, &of).is_told_as_bad(speak);
            }
        }
    }
    // Names of nobody are in the store.
    let mut store = stage.store.connection();
    let all: Vec<String> = store.keys("*}o:*").unwrap();
    assert!(!all.is_empty());
    for name in all {
        let owner: String = store.get(&name).unwrap();
        let text = format!("{name} {owner}");
        for word in ["ann", "bob", "blue", "red", "t0", "c0"] {
            let plain = text.contains(word) && !word.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(!plain, "{text}");
        }
        let left: i64 = store.pttl(&name).unwrap();
        assert!(left > 0, "it is forgotten one day: {left}");
    }
}

#[test]
fn a_page_token_of_one_gateway_is_good_at_the_other() {
    let stage = stage();
    let tasks: Vec<String> = (0..60).map(|n| format!("ann-{n}")).collect();
    all_are_of(&stage.here, &stage.agent, ANN, &tasks);
    let here = (&stage.here, &stage.agent, false);
    let there = (&stage.there, &stage.agent, false);
    let (answer, _) = lists(here, ANN, &[("pageSize", "50")], &tasks);
    let first = answer.json();
    let token = first["result"]["nextPageToken"].as_str().unwrap();
    let with = [("pageSize", "50"), ("pageToken", token)];
    let (answer, _) = lists(there, ANN, &with, &tasks);
    assert_eq!(answer.json()["result"]["totalSize"], 60);
    refused(&stage.there, &stage.agent, BOB, &list(J10, &with)).is_told_as_bad(J10);
}

fn is_away(gateway: &Gateway, who: Who, what: &str, request: &Request) {
    let answer = asks(gateway, who, request).answer();
    assert_eq!(answer.status(), 503, "{who:?} {what} {answer:?}");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    assert_eq!(Refusal::read(who.speak, &answer).reason, "OVERLOADED");
}

#[test]
fn while_the_store_is_away_nobody_is_told_anything() {
    let mut stage = stage();
    makes(&stage.here, &stage.agent, ANN, "t1", "c1");
    stage.store.end();
    for speak in ALL {
        for who in [ANN, BOB] {
            for gateway in [&stage.here, &stage.there] {
                for (what, request) in everything(speak, "t1") {
                    is_away(gateway, who.speaking(speak), what, &request);
                }
            }
        }
    }
    assert!(stage.agent.is_left_alone_now());

    // It comes back empty: what it forgot is nobody's, and not everybody's.
    stage.store.begin();
    is_old(&stage.store);
    let (_, get) = &on_task(J10, "t1")[0];
    until("it is back", || {
        asks(&stage.here, BOB, get).answer().status() == 200
    });
    for who in [ANN, BOB] {
        is_not_there(J10, &refused(&stage.here, &stage.agent, who, get));
    }
}

#[test]
fn what_was_made_while_the_store_went_away_has_its_owner_when_it_is_back() {
    let mut stage = stage();
    let request = message(J10, false, &json!({}), &json!({}));
    let mut client = asks(&stage.here, ANN, &request);
    let call = stage.agent.next();
    stage.store.end();
    crate::support::seen::Seen::read(call).task("t1", "c1", "COMPLETED");
    let answer = client.answer();
    assert_eq!(
        answer.status(),
        200,
        "the agent's work is not lost: {answer:?}"
    );
    let (_, get) = &on_task(J10, "t1")[0];
    is_away(&stage.here, ANN, "get", get);
    stage.store.begin();
    is_old(&stage.store);
    let both = [&stage.here, &stage.there];
    until("both are back", || {
        both.iter()
            .all(|g| asks(g, BOB, get).answer().status() == 200)
    });
    is_not_there(J10, &refused(&stage.there, &stage.agent, BOB, get));
    until("it is Ann's", || {
        let mut client = asks(&stage.there, ANN, get);
        loop {
            if let Some(call) = stage.agent.next_soon() {
                call.answer(503, "", "");
                client.answer();
                return true;
            }
            if !client.wire.is_open() {
                client.answer();
                return false;
            }
        }
    });
}
