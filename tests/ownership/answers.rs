//! What an answer makes: whose it is from its first word on, and what is not told.
use serde_json::{Value, json};

use crate::{
    attacks::{is_not_there, makes, reaches, refused},
    people::{BY_TENANT, asks, asks_by, gateway, hydrating},
    support::{
        agent::{Agent, STREAM, chunk},
        client::{Answer, Client},
        desk,
        keys::api_key,
        message::Refusal,
        seen::Seen,
        stage::{ANN, BINDINGS, BOB},
        until,
        words::{ALL, J10, data},
    },
    words::{message, on_task},
};

fn plain(speak: crate::support::words::Speak, streams: bool) -> crate::words::Request {
    message(speak, streams, &json!({}), &json!({}))
}

#[test]
fn a_stream_s_task_is_its_owner_s_from_the_first_event_on() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(
            &agent,
            rest,
            &format!("{BY_TENANT}conversation: {{on_busy: 'off'}}"),
        );
        for speak in ALL {
            let (ann, bob) = (ANN.speaking(speak), BOB.speaking(speak));
            let task = format!("t-{speak:?}");
            let mut client = asks(&gateway, ann, &plain(speak, true));
            let mut seen = Seen::read(agent.next());
            seen.call.begin();
            // No whole task: only an update that names it.
            seen.turns(&task, "c1", "WORKING");
            client.head();
            assert!(client.event().unwrap().contains(&task));
            let (_, get) = &on_task(speak, &task)[0];
            is_not_there(speak, &refused(&gateway, &agent, bob, get));
            reaches(&gateway, &agent, ann, get);
            seen.call.end();
            client.rest();
        }
    }
}

#[test]
fn a_stream_that_is_left_at_once_is_read_until_its_task_has_an_owner() {
    let agent = Agent::start();
    let gateway = gateway(
        &agent,
        false,
        &format!("{BY_TENANT}conversation: {{on_busy: 'off'}}"),
    );
    let client = asks(&gateway, ANN, &plain(J10, true));
    let mut seen = Seen::read(agent.next());
    drop(client);
    gateway.until_connected(0);
    seen.begins("t1", "c1", "WORKING");
    seen.call.closed();
    let (_, get) = &on_task(J10, "t1")[0];
    until("it is Ann's", || {
        let mut client = asks(&gateway, ANN, get);
        let call = loop {
            if let Some(call) = agent.next_soon() {
                break Some(call);
            }
            if !client.wire.is_open() {
                break None;
            }
        };
        let found = call.is_some();
        if let Some(call) = call {
            call.answer(503, "", "");
        }
        client.answer();
        found
    });
    is_not_there(J10, &refused(&gateway, &agent, BOB, get));
}

#[test]
fn an_agent_that_answers_with_another_s_task_is_not_heard() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(
            &agent,
            rest,
            &format!("{BY_TENANT}retry: {{message_id: 'on'}}"),
        );
        makes(&gateway, &agent, ANN, "t-secret", "c-ann");
        let mut streams_at_once = false;
        for speak in ALL {
            let bob = BOB.speaking(speak);
            let id = json!({"messageId": format!("m-{speak:?}")});
            // Such as an agent that knows the message's id already.
            let request = message(speak, false, &id, &json!({}));
            let mut client = asks(&gateway, bob, &request);
            Seen::read(agent.next()).task("t-secret", "c-ann", "COMPLETED");
            let answer = client.answer();
            assert!(!answer.body.contains("t-secret"), "{answer:?}");
            let refusal = Refusal::read(speak, &answer);
            assert_eq!(refusal.reason, "INVALID_AGENT_RESPONSE", "{refusal:?}");
            // And not when the message is sent again, either.
            let again = asks(&gateway, bob, &request).answer();
            assert!(!again.body.contains("t-secret"), "{again:?}");

            streams_at_once = !streams_at_once;
            let id = json!({"messageId": format!("s-{speak:?}")});
            let request = message(speak, true, &id, &json!({}));
            let mut client = asks(&gateway, bob, &request);
            let mut seen = Seen::read(agent.next());
            if streams_at_once {
                // The end comes with the event.
                let task = json!({"task": desk::task("t-secret", "c-ann", "COMPLETED")});
                let event = format!("data: {}\n\n", desk::said(rest, &task));
                let end = b"0\r\n\r\n".to_vec();
                seen.call
                    .write([STREAM.as_bytes().to_vec(), chunk(event), end].concat());
            } else {
                seen.begins("t-secret", "c-ann", "COMPLETED");
            }
            client.head();
            let events = client.rest();
            assert_eq!(events.len(), 1, "{events:?}");
            let (value, _) = data(&events[0]);
            assert!(!events[0].contains("t-secret"), "{value}");
            let code = speak.code(&value);
            assert!(!(0..500).contains(&code), "{value}");
            let again = asks(&gateway, bob, &request).answer();
            assert!(!again.body.contains("t-secret"), "{again:?}");
        }
        assert!(agent.is_left_alone_now());
    }
}

#[test]
fn a_message_that_is_another_s_is_not_heard_by_who_sends_again() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(
            &agent,
            rest,
            &format!("{BY_TENANT}retry: {{message_id: 'on'}}"),
        );
        makes(&gateway, &agent, ANN, "t-ann", "c-ann");
        for speak in ALL {
            let bob = BOB.speaking(speak);
            for (n, streams) in [false, true].into_iter().enumerate() {
                let own = json!({"messageId": format!("m{n}-{speak:?}"), "contextId": "c-bob"});
                let request = message(speak, streams, &own, &json!({}));
                let mut client = asks(&gateway, bob, &request);
                let mut seen = Seen::read(agent.next());
                let secret = json!({"message": {"messageId": "x", "role": "ROLE_AGENT",
                    "taskId": "t-ann", "contextId": "c-ann", "parts": [{"text": "secret"}]}});
                if streams {
                    seen.call.begin();
                    seen.call.event(&desk::said(rest, &secret));
                    client.head();
                    let events = client.rest().concat();
                    assert!(!events.contains("secret"), "{events}");
                } else {
                    seen.call.write(desk::document(rest, &secret));
                    seen.call.done();
                    let answer = client.answer();
                    assert!(!answer.body.contains("secret"), "{answer:?}");
                }
                let again = asks(&gateway, bob, &request).answer();
                assert!(!again.body.contains("secret"), "{again:?}");
            }
        }
        assert!(agent.is_left_alone_now());
    }
}

#[test]
fn a_subscription_to_one_s_task_does_not_tell_of_another_s() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, BY_TENANT);
        makes(&gateway, &agent, ANN, "t-ann", "c-ann");
        makes(&gateway, &agent, BOB, "t-bob", "c-bob");
        for speak in ALL {
            let bob = BOB.speaking(speak);
            let subscribe = &on_task(speak, "t-bob")[2].1;
            for whole in [true, false] {
                let mut client = asks(&gateway, bob, subscribe);
                let mut seen = Seen::read(agent.next());
                seen.begins("t-bob", "c-bob", "WORKING");
                client.head();
                assert!(client.event().unwrap().contains("t-bob"));
                if whole {
                    let task = json!({"task": desk::task("t-ann", "c-ann", "WORKING")});
                    seen.call.event(&desk::said(rest, &task));
                } else {
                    seen.turns("t-ann", "c-ann", "WORKING");
                }
                let events = client.rest();
                assert_eq!(events.len(), 1, "{events:?}");
                assert!(!events[0].contains("t-ann"), "{events:?}");
                let (value, _) = data(&events[0]);
                assert!(!(0..500).contains(&speak.code(&value)), "{value}");
            }
            let get = &on_task(speak, "t-bob")[0].1;
            let mut client = asks(&gateway, bob, get);
            Seen::read(agent.next()).bare_task("t-ann", "c-ann", "WORKING");
            let answer = client.answer();
            assert!(!answer.body.contains("t-ann"), "{answer:?}");
            let refusal = Refusal::read(speak, &answer);
            assert_eq!(refusal.reason, "INVALID_AGENT_RESPONSE", "{refusal:?}");
        }
    }
}

#[test]
fn owners_survive_a_restart_in_their_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    let yaml = format!("{BY_TENANT}state: {{persist: '{}'}}", path.display());
    let agent = Agent::start();
    let first = gateway(&agent, false, &yaml);
    makes(&first, &agent, ANN, "t-ann", "c-ann");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let store = first.served().conversations.store();
    runtime.block_on(store.close(std::time::Duration::from_secs(5)));
    let second = gateway(&agent, false, &yaml);
    drop(first);
    for speak in ALL {
        let (ann, bob) = (ANN.speaking(speak), BOB.speaking(speak));
        let (_, get) = &on_task(speak, "t-ann")[0];
        is_not_there(speak, &refused(&second, &agent, bob, get));
        reaches(&second, &agent, ann, get);
        let named = message(speak, false, &json!({"contextId": "c-ann"}), &json!({}));
        refused(&second, &agent, bob, &named).is_told_as_bad(speak);
        reaches(&second, &agent, ann, &named);
    }
}

#[test]
fn one_tenant_that_makes_many_pushes_out_nobody_else_s() {
    let agent = Agent::start();
    let limits = "ownership: {by: tenant, max_entries: 40, max_per_owner: 10}";
    let gateway = gateway(&agent, false, limits);
    makes(&gateway, &agent, ANN, "t-ann", "c-ann");
    for n in 0..100 {
        makes(&gateway, &agent, BOB, &format!("t{n}"), &format!("c{n}"));
    }
    let named = message(J10, false, &json!({"contextId": "c-ann"}), &json!({}));
    refused(&gateway, &agent, BOB, &named).is_told_as_bad(J10);
    reaches(&gateway, &agent, ANN, &named);
    let look = |task| on_task(J10, task)[0].1.clone();
    reaches(&gateway, &agent, ANN, &look("t-ann"));
    reaches(&gateway, &agent, BOB, &look("t99"));
    is_not_there(J10, &refused(&gateway, &agent, BOB, &look("t0")));
}

#[test]
fn the_same_message_of_another_owner_is_another_message() {
    let agent = Agent::start();
    let gateway = gateway(
        &agent,
        false,
        &format!("{BY_TENANT}retry: {{message_id: 'on'}}"),
    );
    for speak in ALL {
        let (ann, bob) = (ANN.speaking(speak), BOB.speaking(speak));
        let id = json!({"messageId": format!("m-{speak:?}")});
        let request = message(speak, false, &id, &json!({}));
        for (who, task) in [(ann, format!("a-{speak:?}")), (bob, format!("b-{speak:?}"))] {
            // From one address, and by what only the gateway knows.
            let fields = api_key(who.token);
            let mut client = asks_by(&gateway, who, &fields, &request);
            Seen::read(agent.next()).task(&task, &task, "COMPLETED");
            assert!(client.answer().body.contains(&task));
            // Sent again, it is a question for its own task.
            let mut again = asks_by(&gateway, who, &fields, &request);
            let seen = Seen::read(agent.next());
            assert_eq!(seen.said.task.as_deref(), Some(&*task));
            seen.bare_task(&task, &task, "COMPLETED");
            assert!(again.answer().body.contains(&task));
        }
    }
}

#[test]
fn a_task_from_before_is_nobody_s_or_everybody_s() {
    for (unknown, open) in [("refuse", false), ("allow", true)] {
        let agent = Agent::start();
        let gateway = gateway(
            &agent,
            false,
            &format!("ownership: {{by: tenant, unknown: {unknown}}}"),
        );
        for speak in ALL {
            for (_, request) in on_task(speak, "from-before") {
                for who in [ANN, BOB] {
                    let who = who.speaking(speak);
                    if open {
                        reaches(&gateway, &agent, who, &request);
                    } else {
                        is_not_there(speak, &refused(&gateway, &agent, who, &request));
                    }
                }
            }
        }
    }
}

/// Answers whatever the agent is asked for this client by saying that it is not there.
fn nothing_is_there(agent: &Agent, client: &mut Client) -> Answer {
    while client.wire.is_open() {
        if let Some(mut call) = agent.next_soon() {
            let rest = !call.asked.body.contains("jsonrpc");
            call.write(desk::refusal(rest, desk::NOT_FOUND));
            call.done();
        }
    }
    client.answer()
}

/// Else the difference tells which ids are there.
#[test]
fn another_s_task_and_one_that_is_not_there_are_told_alike() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "ownership: {by: tenant, unknown: allow}");
        makes(&gateway, &agent, ANN, "t-ann", "c-ann");
        for speak in ALL {
            let bob = BOB.speaking(speak);
            let all = |task: &str| {
                let mut all = on_task(speak, task);
                for (what, streams) in [("send", false), ("stream", true)] {
                    let named = json!({"taskId": task});
                    all.push((what, message(speak, streams, &named, &json!({}))));
                }
                all
            };
            for ((what, theirs), (_, none)) in all("t-ann").iter().zip(&all("none")) {
                let theirs = asks(&gateway, bob, theirs).answer();
                assert!(agent.is_left_alone_now());
                is_not_there(speak, &Refusal::read(speak, &theirs));
                let none = nothing_is_there(&agent, &mut asks(&gateway, bob, none));
                assert_eq!(theirs.body, none.body, "{speak:?} {what}");
                assert_eq!(theirs.status(), none.status(), "{speak:?} {what}");
                for field in ["content-type", "a2a-version", "retry-after"] {
                    let of = |answer: &Answer| answer.head.get(field).map(str::to_owned);
                    assert_eq!(of(&theirs), of(&none), "{speak:?} {what} {field}");
                }
            }
        }
    }
}

#[test]
fn an_agent_s_words_for_what_is_not_there_are_not_told_in_a_stream_either() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "ownership: {by: tenant, unknown: allow}");
        for speak in ALL {
            let (_, subscribe) = &on_task(speak, "none")[2];
            let mut client = asks(&gateway, BOB.speaking(speak), subscribe);
            let mut call = agent.next();
            call.begin();
            let label = if rest { "event: error\n" } else { "" };
            let words = desk::error(rest, desk::NOT_FOUND);
            assert!(!words.contains("there is no such task"), "{words}");
            call.chunk(format!("{label}data: {words}\n\n"));
            client.head();
            let events = client.rest();
            assert_eq!(events.len(), 1, "{events:?}");
            let (value, _) = data(&events[0]);
            assert_eq!(speak.message_of(&value), "there is no such task");
        }
    }
}

#[test]
fn the_replay_of_another_s_task_is_not_asked_for() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = hydrating(&agent, rest, BY_TENANT);
        makes(&gateway, &agent, ANN, "t-ann", "c-ann");
        makes(&gateway, &agent, BOB, "t-bob", "c-bob");
        for speak in ALL {
            let (_, get) = &on_task(speak, "t-bob")[0];
            let mut client = asks(&gateway, BOB.speaking(speak), get);
            Seen::read(agent.next()).bare_task("t-ann", "c-ann", "COMPLETED");
            let refusal = Refusal::read(speak, &client.answer());
            assert_eq!(refusal.reason, "INVALID_AGENT_RESPONSE", "{refusal:?}");
            assert!(agent.is_left_alone_now());
        }
    }
}

#[test]
fn without_owners_everybody_sees_everything() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, "");
    makes(&gateway, &agent, ANN, "t1", "c1");
    for speak in ALL {
        for (_, request) in on_task(speak, "t1") {
            reaches(&gateway, &agent, BOB.speaking(speak), &request);
        }
    }
    let list = crate::words::list(J10, &[]);
    let mut client = asks(&gateway, BOB, &list);
    let call = agent.next();
    let page: Value = json!({"tasks": [desk::task("t1", "c1", "COMPLETED")],
        "nextPageToken": "", "pageSize": 50, "totalSize": 1});
    call.json(&desk::said(false, &page));
    assert!(client.answer().body.contains("t1"));
}
