//! Each attacks the other, by every operation and id, in every dialect: nothing crosses, and nothing is told.
use serde_json::{Value, json};

use crate::{
    people::{BLUE, BOTH, BY_TENANT, CID, asks, gateway, open},
    support::{
        agent::Agent,
        gateway::Gateway,
        message::Refusal,
        seen::Seen,
        stage::{ANN, BINDINGS, BOB, Who},
        words::{ALL, J03, J10, R03K, R03P, R10, Speak},
    },
    words::{Request, list, message, on_task},
};

/// Somebody's message makes this task in this context.
pub(crate) fn makes(gateway: &Gateway, agent: &Agent, who: Who, task: &str, context: &str) {
    let request = message(who.speak, false, &json!({}), &json!({}));
    let mut client = asks(gateway, who, &request);
    Seen::read(agent.next()).task(task, context, "COMPLETED");
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{answer:?}");
}

/// It reaches the agent, who has no time for it.
pub(crate) fn reaches(gateway: &Gateway, agent: &Agent, who: Who, request: &Request) {
    let mut client = asks(gateway, who, request);
    agent.next().answer(503, "", "");
    client.answer();
}

/// It is refused, and the agent hears nothing of it.
pub(crate) fn refused(gateway: &Gateway, agent: &Agent, who: Who, request: &Request) -> Refusal {
    let answer = asks(gateway, who, request).answer();
    assert!(agent.is_left_alone_now(), "{who:?} {request:?}");
    Refusal::read(who.speak, &answer)
}

/// There is no such task, as the dialect says it.
pub(crate) fn is_not_there(speak: Speak, refusal: &Refusal) {
    let (status, code) = match speak {
        R10 => (404, 404),
        J03 | J10 => (200, -32001),
        R03P | R03K => (404, -32001),
    };
    let told = (refusal.status, refusal.code, refusal.reason.as_str());
    assert_eq!(
        told,
        (status, code, "TASK_NOT_FOUND"),
        "{speak:?}: {refusal:?}"
    );
}

/// Messages that name a task in one place or another.
fn naming(speak: Speak, task: &str) -> Vec<(Value, Value)> {
    let hook = "http://127.0.0.1:9/hook";
    let beside = json!({"taskId": task, "contextId": "of-nobody"});
    let mut all = vec![(json!({"taskId": task}), json!({})), (beside, json!({}))];
    if speak != R03P {
        // R03P has no such member: it goes no further.
        all.push((json!({"referenceTaskIds": ["x", task]}), json!({})));
    }
    if matches!(speak, J10 | R10) {
        let webhook = json!({"taskPushNotificationConfig": {"url": hook, "taskId": task}});
        all.push((json!({}), json!({"configuration": webhook})));
    }
    all
}

#[test]
fn another_s_task_is_not_there_whatever_is_asked_of_it() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, BY_TENANT);
        for (n, (owner, thief)) in BOTH.into_iter().enumerate() {
            let task = format!("t{n}");
            makes(&gateway, &agent, owner, &task, &format!("c{n}"));
            for speak in ALL {
                let thief = thief.speaking(speak);
                let missing = on_task(speak, "none");
                for ((what, request), (_, none)) in on_task(speak, &task).iter().zip(&missing) {
                    let refusal = refused(&gateway, &agent, thief, request);
                    is_not_there(speak, &refusal);
                    let same = refused(&gateway, &agent, thief, none);
                    assert_eq!(refusal.body, same.body, "{speak:?} {what}");
                    reaches(&gateway, &agent, owner.speaking(speak), request);
                }
                for (more, beside) in naming(speak, &task) {
                    for streams in [false, true] {
                        let request = message(speak, streams, &more, &beside);
                        let refusal = refused(&gateway, &agent, thief, &request);
                        is_not_there(speak, &refusal);
                    }
                }
            }
        }
    }
}

#[test]
fn another_s_context_cannot_be_used_not_even_for_one_s_own_task() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, BY_TENANT);
        makes(&gateway, &agent, ANN, "t-ann", "c-ann");
        makes(&gateway, &agent, BOB, "t-bob", "c-bob");
        for (thief, own, context) in [(BOB, "t-bob", "c-ann"), (ANN, "t-ann", "c-bob")] {
            for speak in ALL {
                let thief = thief.speaking(speak);
                for streams in [false, true] {
                    for more in [
                        json!({"contextId": context}),
                        json!({"contextId": context, "taskId": own}),
                    ] {
                        let request = message(speak, streams, &more, &json!({}));
                        let refusal = refused(&gateway, &agent, thief, &request);
                        if !(streams && speak.is_old()) {
                            refusal.is_told_as_bad(speak);
                        }
                        assert_eq!(refusal.reason, "INVALID_PARAMS", "{refusal:?}");
                    }
                }
            }
        }
        let own = message(J10, false, &json!({"contextId": "c-ann"}), &json!({}));
        reaches(&gateway, &agent, ANN, &own);
    }
}

#[test]
fn a_context_that_a_client_made_up_is_its_own() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    let of = |speak| message(speak, false, &json!({"contextId": "made-up"}), &json!({}));
    // Refused by the agent, but claimed: who knows what it began.
    reaches(&gateway, &agent, ANN, &of(J10));
    for speak in ALL {
        let refusal = refused(&gateway, &agent, BOB.speaking(speak), &of(speak));
        refusal.is_told_as_bad(speak);
    }
}

#[test]
fn no_request_names_one_task_in_its_path_and_another_in_its_body() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    makes(&gateway, &agent, ANN, "t-ann", "c-ann");
    makes(&gateway, &agent, BOB, "t-bob", "c-bob");
    let hook = "http://127.0.0.1:9/hook";
    let new = "POST /tasks/t-bob/pushNotificationConfigs";
    let old = "POST /v1/tasks/t-bob/pushNotificationConfigs";
    for (speak, line, body) in [
        (R10, new, json!({"taskId": "t-ann", "url": hook})),
        (
            R03P,
            old,
            json!({"parent": "tasks/t-ann", "config": {"url": hook}}),
        ),
        (
            R03P,
            old,
            json!({"config": {
                "name": "tasks/t-ann/pushNotificationConfigs/p1",
                "pushNotificationConfig": {"url": hook},
            }}),
        ),
    ] {
        let request = (line.to_owned(), body.to_string());
        let mut client = asks(&gateway, BOB.speaking(speak), &request);
        // It is refused, or it is about the task of the path.
        let sent = loop {
            if let Some(call) = agent.next_soon() {
                break Some(call);
            }
            if !client.wire.is_open() {
                break None;
            }
        };
        if let Some(call) = sent {
            assert!(!call.asked.body.contains("t-ann"), "{:?}", call.asked);
            call.answer(503, "", "");
        } else {
            assert_eq!(client.answer().status(), 400);
        }
    }
}

#[test]
fn colleagues_share_what_their_tenant_has_and_nobody_else_does() {
    for (by, shared) in [("tenant", true), ("caller", false)] {
        let agent = Agent::start();
        let gateway = gateway(&agent, false, &format!("ownership: {{by: {by}}}"));
        makes(&gateway, &agent, ANN, "t1", "c1");
        for speak in ALL {
            for (_, request) in on_task(speak, "t1") {
                if shared {
                    reaches(&gateway, &agent, CID.speaking(speak), &request);
                } else {
                    let cid = CID.speaking(speak);
                    is_not_there(speak, &refused(&gateway, &agent, cid, &request));
                }
                // A caller by the name of the tenant is not of it.
                let blue = BLUE.speaking(speak);
                is_not_there(speak, &refused(&gateway, &agent, blue, &request));
            }
        }
    }
}

#[test]
fn who_is_not_known_does_nothing_at_all() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    makes(&gateway, &agent, ANN, "t1", "c1");
    for speak in ALL {
        let mut requests = on_task(speak, "t1");
        requests.push(("send", message(speak, false, &json!({}), &json!({}))));
        requests.push(("stream", message(speak, true, &json!({}), &json!({}))));
        if !speak.is_old() {
            requests.push(("list", list(speak, &[])));
        }
        for (what, (line, body)) in requests {
            let mut client = gateway.client();
            client.send(&line, "content-type: application/json\r\n", &body);
            assert_eq!(client.answer().status(), 401, "{speak:?} {what}");
        }
    }
    assert!(agent.is_left_alone_now());
}

#[test]
fn who_is_let_in_but_not_known_is_told_how_to_be_known() {
    let agent = Agent::start();
    let gateway = open(&agent, BY_TENANT);
    for speak in ALL {
        let mut requests = on_task(speak, "t1");
        requests.push(("send", message(speak, false, &json!({}), &json!({}))));
        for (what, (line, body)) in requests {
            let mut client = gateway.client();
            client.send(&line, "content-type: application/json\r\n", &body);
            let answer = client.answer();
            assert_eq!(answer.status(), 401, "{speak:?} {what}");
            let told = answer.head.get("www-authenticate");
            assert!(
                told.is_some_and(|told| told.contains("realm=")),
                "{speak:?} {what} {answer:?}"
            );
        }
    }
    assert!(agent.is_left_alone_now());
}

#[test]
fn a_made_up_context_that_the_agent_refuses_is_nobody_s_again() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    for speak in ALL {
        let context = format!("made-up-{speak:?}");
        let request = message(speak, false, &json!({"contextId": context}), &json!({}));
        let mut client = asks(
            &gateway,
            ANN,
            &message(J10, false, &json!({"contextId": context}), &json!({})),
        );
        let call = agent.next();
        // While nobody knows, it is hers.
        let bob = BOB.speaking(speak);
        let answer = asks(&gateway, bob, &request).answer();
        Refusal::read(speak, &answer).is_told_as_bad(speak);
        Seen::read(call).fails((-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"));
        client.answer();
        reaches(&gateway, &agent, bob, &request);
    }
}

#[test]
fn nobody_is_asked_about_another_s_task_for_a_stranger() {
    // An agent that has one context for all: the caller's own task is in another's context.
    let agent = Agent::start();
    let gateway = gateway(
        &agent,
        false,
        &format!("{BY_TENANT}conversation: {{on_busy: reject, busy_grace: 0s}}"),
    );
    let begins = |who, task| {
        let mut client = asks(&gateway, who, &message(J10, false, &json!({}), &json!({})));
        Seen::read(agent.next()).task(task, "c-all", "WORKING");
        assert_eq!(client.answer().status(), 200);
    };
    begins(ANN, "t-ann");
    begins(BOB, "t-bob");
    for speak in ALL {
        for streams in [false, true] {
            let context = json!({"contextId": "c-all"});
            let named = message(speak, streams, &context, &json!({}));
            let refusal = refused(&gateway, &agent, BOB.speaking(speak), &named);
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{refusal:?}");
        }
    }
    // What the agent is asked is about the caller's own, or it is the message itself.
    let own = message(J10, false, &json!({"taskId": "t-bob"}), &json!({}));
    let mut client = asks(&gateway, BOB, &own);
    let call = agent.next();
    assert!(!call.asked.body.contains("t-ann"), "{:?}", call.asked);
    call.answer(503, "", "");
    client.answer();
}
