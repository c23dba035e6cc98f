//! Two gateways with one store, before one agent: the message that is sent again comes to the other one.
use redis::Commands as _;

use super::*;

#[path = "../../src/state/redis/tests/server.rs"]
mod server;

use server::{RedisServer, eventually};

struct Stage {
    agent: Agent,
    here: Gateway,
    there: Gateway,
    store: RedisServer,
}

fn stage() -> Stage {
    let store = RedisServer::start();
    // Its data are not new: it is not quiet.
    let old = store.connection().set("{a2a:00}epoch", 1);
    let () = old.unwrap();
    let agent = Agent::start();
    let gateway = || {
        let rest = format!("state: '{}'\n{ON}", store.url());
        Gateway::with(agent.addr, "", &rest)
    };
    Stage {
        here: gateway(),
        there: gateway(),
        agent,
        store,
    }
}

impl Stage {
    /// Waits until the store has it that this became of the only message.
    fn knows(&self, fate: &str, with_task: bool) {
        let mut store = self.store.connection();
        eventually("the store knows", || {
            let all: Vec<String> = store.keys("{a2a:00}r:*").unwrap();
            let [one] = &all[..] else {
                return false;
            };
            let now: Option<String> = store.hget(one, "fate").unwrap();
            let task: Option<String> = store.hget(one, "task").unwrap();
            now.as_deref() == Some(fate) && task.is_some() == with_task
        });
    }
}

#[test]
fn the_agent_is_asked_once_whichever_gateway_the_message_comes_to() {
    let stage = stage();
    let mut first = asked(&stage.here, J03.send());
    let call = next(&stage.agent, "SendMessage");
    // Nobody but the gateway that runs it knows anything of it.
    for speak in [R10, J10] {
        let busy = asked(&stage.there, speak.send()).answer();
        is_refused(speak, &busy, 400, -32602, "CONVERSATION_BUSY");
        assert_eq!(busy.head.get("retry-after"), Some("1"));
        let other = asked(&stage.there, said(speak, "", "m1", "bye")).answer();
        is_refused(speak, &other, 400, -32602, "DUPLICATE_MESSAGE");
    }
    assert!(stage.agent.is_left_alone());
    call.json(&result(ENDED));
    assert_eq!(first.answer().json()["result"]["id"], "t1");

    stage.knows("rest", true);
    for gateway in [&stage.there, &stage.here] {
        let mut again = asked(gateway, R10.send());
        let get = next(&stage.agent, "GetTask");
        get.json(&result(&TASK.replace("WORKING", "COMPLETED")));
        let task = &again.answer().json()["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    }
    assert_eq!(stage.agent.seen(), 3);
}

#[test]
fn a_stream_that_runs_at_another_gateway_is_joined_by_its_task() {
    let stage = stage();
    let mut first = asked(&stage.here, J10.stream());
    let mut call = next(&stage.agent, "SendStreamingMessage");
    call.begin();
    call.event(&result(&wrapped()));
    first.head();
    assert!(first.event().unwrap().contains("t1"));
    stage.knows("running", true);

    let mut second = asked(&stage.there, R10.stream());
    next(&stage.agent, "GetTask").json(&result(TASK));
    let mut joined = next(&stage.agent, "SubscribeToTask");
    joined.begin();
    for event in [&wrapped(), DONE] {
        joined.event(&result(event));
    }
    joined.end();
    second.head();
    assert_eq!(second.rest().len(), 2);
    call.event(&result(DONE));
    call.end();
    assert_eq!(first.rest().len(), 1);
}

#[test]
fn what_is_lost_or_kept_at_one_gateway_is_not_asked_for_at_another() {
    for bare in [true, false] {
        let stage = stage();
        let mut first = asked(&stage.here, R10.send());
        let call = next(&stage.agent, "SendMessage");
        let (fate, status, code, reason) = if bare {
            call.json(&result(HELLO));
            ("message", 400, -32602, "DUPLICATE_MESSAGE")
        } else {
            call.reset();
            ("unknown", 502, -32603, "OUTCOME_UNKNOWN")
        };
        first.answer();
        stage.knows(fate, false);
        for speak in ALL {
            let answer = asked(&stage.there, speak.send()).answer();
            is_refused(speak, &answer, status, code, reason);
        }
        assert_eq!(stage.agent.seen(), 1);
        // Words of nobody are in the store.
        let mut store = stage.store.connection();
        let all: Vec<String> = store.keys("*").unwrap();
        for name in all.iter().filter(|name| name.contains("}r:")) {
            let kept: Vec<(String, String)> = store.hgetall(name).unwrap();
            let text = format!("{name} {kept:?}");
            assert!(!text.contains("hi\"") && !text.contains("m1"), "{text}");
        }
    }
}

#[test]
fn what_the_agent_did_not_begin_may_be_sent_by_another_gateway() {
    let stage = stage();
    let mut first = asked(&stage.here, R10.send());
    next(&stage.agent, "SendMessage").answer(429, "", "");
    assert_eq!(first.answer().status(), 429);
    // Here at once, and there when the store has forgotten it.
    let mut again = asked(&stage.here, R10.send());
    next(&stage.agent, "SendMessage").answer(429, "", "");
    assert_eq!(again.answer().status(), 429);
    let mut store = stage.store.connection();
    eventually("the store forgets", || {
        let all: Vec<String> = store.keys("{a2a:00}r:*").unwrap();
        all.is_empty()
    });
    let mut third = asked(&stage.there, R10.send());
    next(&stage.agent, "SendMessage").json(&result(ENDED));
    assert_eq!(third.answer().status(), 200);
}
