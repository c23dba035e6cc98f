//! The product's refusals, as plain clients get them: errors of the protocol in their own binding.
use serde_json::{Value, json};

use crate::{
    BINDINGS,
    ask::{Asks, say},
    before, by,
    memorylake::{Lake, Op, Page, Tongue},
    support::client::Answer,
};

/// Both bindings and all families of routes.
fn everywhere(test: impl Fn(&Lake, &Asks)) {
    for binding in BINDINGS {
        let lake = Lake::of(Page::En);
        let gateway = before(&lake, binding);
        for tongue in Tongue::ALL {
            test(&lake, &by(&gateway, &lake, tongue));
        }
    }
}

/// An error of the protocol: this code over JSON-RPC, this status over REST, never the product's own body.
fn is(tongue: Tongue, answer: &Answer, status: u16, code: i64) {
    let body = answer.json();
    assert!(
        body.get("error_code").is_none() && body.get("success").is_none(),
        "{body}"
    );
    let what = format!("{tongue:?} {body}");
    if tongue.is_rpc() {
        assert_eq!(answer.status(), 200, "{what}");
        assert_eq!(body["error"]["code"], code, "{what}");
        assert_eq!(body["id"], "req-1", "{what}");
    } else {
        assert_eq!(answer.status(), status, "{what}");
    }
    match tongue {
        Tongue::R10 => assert_eq!(body["error"]["code"], status, "{what}"),
        // What A2A has no name for has a code of the gateway's own there.
        Tongue::R03 if status == 402 || status == 403 => {}
        Tongue::R03 => assert_eq!(body["code"], code, "{what}"),
        Tongue::J10 | Tongue::J03 => {}
    }
}

#[test]
fn a_refused_message_has_invalid_params() {
    let actor = |id: &str| json!({"actorId": id});
    let rows = [
        (actor("actor-ffffffffffffffffffffffffffffffff"), "sk_xxxxxx"),
        (actor("actor-0000000000000000000000000000dead"), "sk_xxxxxx"),
        (json!({}), "sk_no_actor"),
        (
            json!({"overrides": {"capabilitiesOverride": []}}),
            "sk_xxxxxx",
        ),
    ];
    everywhere(|_, asks| {
        for (extension, key) in &rows {
            let answer = asks.send(&say("hi").with(extension.clone()).by(key));
            is(asks.tongue, &answer, 400, -32602);
        }
    });
}

#[test]
fn quota_and_permission_keep_their_statuses() {
    everywhere(|lake, asks| {
        let answer = asks.send(&say("hi").by("sk_no_quota"));
        is(asks.tongue, &answer, 402, -32603);
        assert!(
            answer.body.contains("QUOTA_EXCEEDED") || asks.tongue == Tongue::R03,
            "{}",
            answer.body
        );
        let project = "proj-cd2e83f761eec93c75977f51667889cd";
        lake.deny("sk_xxxxxx", "project:mem_search", project);
        let answer = asks.send(&say("hi").with(json!({"readOnlyProjectIds": [project]})));
        is(asks.tongue, &answer, 403, -32603);
    });
}

#[test]
fn a_task_that_is_not_there_is_not_found() {
    everywhere(|_, asks| {
        for op in [Op::Get, Op::Cancel] {
            is(asks.tongue, &asks.of_task(op, "run-none"), 404, -32001);
        }
    });
}

#[test]
fn a_busy_conversation_is_told_by_the_gateway() {
    everywhere(|lake, asks| {
        let context = format!("ctx-{:?}", asks.tongue);
        let id = asks.starts(say("hold").within(&context));
        let before = lake
            .seen()
            .iter()
            .filter(|s| s.call.unwrap().1 == Op::Send)
            .count();
        let answer = asks.send(&say("hi").within(&context));
        is(asks.tongue, &answer, 400, -32602);
        let after = lake
            .seen()
            .iter()
            .filter(|s| s.call.unwrap().1 == Op::Send)
            .count();
        assert_eq!(before, after, "the double was not asked");
        lake.release(&id);
    });
}

#[test]
fn what_is_over_can_be_neither_canceled_nor_subscribed_to() {
    everywhere(|_, asks| {
        let of = |task: &Value| task["id"].as_str().unwrap().to_owned();
        let done = of(&asks.task(&say("hi").in_full()));
        let failed = of(&asks.task(&say("fail").in_full()));
        let canceled = asks.of_task(Op::Cancel, &done);
        let subscribed = asks.of_task(Op::Subscribe, &failed);
        // Over REST the product does not say which error it is: its code is INVALID_ARGUMENT.
        for (answer, code) in [(canceled, -32002), (subscribed, -32004)] {
            // The error of a stream over JSON-RPC is its only event.
            let body = answer.body.trim().trim_start_matches("data: ");
            let body: Value = serde_json::from_str(body).unwrap();
            assert!(body.get("error_code").is_none(), "{body}");
            if asks.tongue.is_rpc() {
                let found = body["error"]["code"].as_i64().unwrap();
                assert!([code, -32602].contains(&found), "{body}");
            }
        }
    });
}
