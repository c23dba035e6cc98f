//! Refusals: their statuses and bodies on both transports.
use crate::{
    CURRENT,
    ask::{begin, refused, refused_by_agent, say},
    memorylake::{Lake, Op, Page, Rules, Tongue},
    support::client::{Answer, Client},
};

/// Sent and streamed, over every family: what comes before the agent runs looks the same everywhere.
fn before_the_agent(prepared: impl Fn(&Lake), key: &'static str, status: u16, code: &str) {
    for page in CURRENT {
        let lake = Lake::of(page);
        prepared(&lake);
        for tongue in Tongue::ALL {
            for op in [Op::Send, Op::Stream] {
                let params = say("hi").params(tongue);
                refused(&lake.by(tongue).ask(op, key, &params), status, code);
            }
        }
        assert!(lake.heard().is_empty());
    }
}

#[test]
fn a_quota_that_is_used_up_is_402() {
    before_the_agent(|_| {}, "sk_no_quota", 402, "QUOTA_EXCEEDED");
}

#[test]
fn a_missing_permission_is_403() {
    let without = |lake: &Lake| lake.deny("sk_xxxxxx", "workspace_agent:a2a", "");
    before_the_agent(without, "sk_xxxxxx", 403, "ACCESS_DENIED");
}

#[test]
fn the_older_page_names_another_permission() {
    let lake = Lake::of(Page::Older);
    lake.deny("sk_xxxxxx", "workspace_agent:a2a", "");
    assert_eq!(lake.by(Tongue::R10).send(&say("hi")).status(), 200);
    lake.deny("sk_xxxxxx", "workspace:a2a", "");
    refused(&lake.by(Tongue::R10).send(&say("hi")), 403, "ACCESS_DENIED");
}

#[test]
fn a_key_that_nobody_has_is_401() {
    before_the_agent(|_| {}, "sk_stranger", 401, "UNAUTHENTICATED");
}

/// Get, cancel and subscribe of a task that is not there.
fn missing(lake: &Lake, test: impl Fn(Tongue, &Answer)) {
    for tongue in Tongue::ALL {
        for op in [Op::Get, Op::Cancel, Op::Subscribe] {
            test(tongue, &lake.by(tongue).of_task(op, "run-none"));
        }
    }
}

#[test]
fn a_task_that_is_not_there_is_404() {
    for page in CURRENT {
        missing(&Lake::of(page), |tongue, answer| {
            refused_by_agent(tongue, answer, 404, "NOT_FOUND", -32001);
        });
        // Or before the agent, which the page leaves open.
        let rules = Rules {
            agent_misses_task: false,
            ..Rules::of(page)
        };
        missing(&Lake::with(rules), |_, answer| {
            refused(answer, 404, "NOT_FOUND");
        });
    }
}

#[test]
fn a_message_to_a_task_that_is_not_there_is_refused() {
    let lake = Lake::of(Page::En);
    for tongue in Tongue::ALL {
        let mut params = say("hi").params(tongue);
        params["message"]["taskId"] = "run-none".into();
        let answer = lake.by(tongue).ask(Op::Send, "sk_xxxxxx", &params);
        refused_by_agent(tongue, &answer, 404, "NOT_FOUND", -32001);
    }
}

#[test]
fn a_task_of_another_agent_is_not_there() {
    for lake in CURRENT.map(Lake::of) {
        for tongue in Tongue::ALL {
            let task = lake.by(tongue).task(&say("hi").in_full());
            let params = serde_json::json!({"id": task["id"]});
            let mut client = begin(
                lake.addr,
                &lake.other(),
                tongue,
                Op::Get,
                "sk_xxxxxx",
                &params,
            );
            refused_by_agent(tongue, &client.answer(), 404, "NOT_FOUND", -32001);
        }
    }
}

#[test]
fn v03_methods_report_all_errors_of_the_agent_with_one_code() {
    for page in CURRENT {
        let lake = Lake::of(page);
        let codes = |tongue: Tongue| {
            let asks = lake.by(tongue);
            let done = asks.task(&say("hi").in_full());
            let failed = asks.task(&say("fail").in_full());
            let of = |op, id: &serde_json::Value| asks.of_task(op, id.as_str().unwrap()).json();
            let all = [
                of(Op::Get, &"run-none".into()),
                of(Op::Cancel, &done["id"]),
                of(Op::Subscribe, &failed["id"]),
            ];
            all.map(|body| body["error"]["code"].as_i64().unwrap())
        };
        assert_eq!(codes(Tongue::J10), [-32001, -32002, -32004]);
        assert_eq!(codes(Tongue::J03), [-32603; 3]);
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for lake in CURRENT.map(Lake::of) {
        let post = |path: &str| {
            let line = format!("POST {}{path}", lake.base());
            let fields = "authorization: Bearer sk_xxxxxx\r\n";
            Client::connect(lake.addr).ask(&line, fields, "{")
        };
        for path in ["/message:send", "/v1/message:send"] {
            refused(&post(path), 400, "INVALID_ARGUMENT");
        }
        assert_eq!(post("").json()["error"]["code"], -32700);
    }
}
