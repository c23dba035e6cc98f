//! Where the four families of routes lie, what tells them apart, and what each wants a message to look like.
use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{Say, bare, begin, fields, kind, refused, refused_by_agent, request, say, state},
    memorylake::{API, Lake, Op, Page, Tongue},
    support::client::Client,
};

#[test]
fn every_operation_has_its_path_in_all_four_families() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            let asks = lake.by(tongue);
            let task = asks.task(&say("hi").in_full());
            let id = task["id"].as_str().unwrap();
            assert_eq!(asks.get(id)["id"], id);
            assert_eq!(kind(tongue, &asks.all(&say("hi"))[0]).0, "task");
            let events = asks.events(&mut asks.subscribes(id));
            assert_eq!(kind(tongue, &events[0]).0, "statusUpdate");
            let held = asks.starts(say("hold"));
            let canceled = bare(tongue, &asks.of_task(Op::Cancel, &held));
            assert_eq!(canceled["status"]["state"], state(tongue, "CANCELED"));
        }
        let ops = [
            Op::Send,
            Op::Get,
            Op::Stream,
            Op::Subscribe,
            Op::Send,
            Op::Cancel,
        ];
        let seen = lake.seen().into_iter().map(|seen| seen.call.unwrap());
        let asked = Tongue::ALL.into_iter().flat_map(|t| ops.map(|op| (t, op)));
        assert_eq!(seen.collect::<Vec<_>>(), asked.collect::<Vec<_>>());
    }
}

#[test]
fn the_name_of_the_method_tells_the_version() {
    for lake in CURRENT.map(Lake::of) {
        for (tongue, header) in [
            (Tongue::J03, "1.0"),
            (Tongue::J10, "0.3"),
            (Tongue::J10, ""),
        ] {
            let params = say("hi").params(tongue);
            let (line, body) = request(&lake.base(), tongue, Op::Send, &params);
            let fields = format!("{}a2a-version: {header}\r\n", fields("sk_xxxxxx", Op::Send));
            let answer = Client::connect(lake.addr).ask(&line, &fields, &body);
            let result = &answer.json()["result"];
            assert_eq!(result.get("kind").is_some(), tongue == Tongue::J03);
        }
    }
}

/// Posts this message with the double's own key.
fn post(lake: &Lake, tongue: Tongue, message: &Value) -> crate::support::client::Answer {
    let params = json!({"message": message, "metadata": {"memorylake": {}}});
    lake.by(tongue).ask(Op::Send, "sk_xxxxxx", &params)
}

#[test]
fn the_list_of_the_other_version_is_refused() {
    let text = json!([{"text": "hi"}]);
    let new = json!({"role": "ROLE_USER", "parts": text});
    let old = json!({"role": "ROLE_USER", "content": text});
    for page in Page::ALL {
        let lake = Lake::of(page);
        refused(&post(&lake, Tongue::R10, &old), 400, "INVALID_ARGUMENT");
        refused(&post(&lake, Tongue::R03, &new), 400, "INVALID_ARGUMENT");
        assert_eq!(post(&lake, Tongue::R10, &new).status(), 200);
        assert_eq!(post(&lake, Tongue::R03, &old).status(), 200);
        let methods = [(Tongue::J10, &old), (Tongue::J03, &old)];
        for (tongue, message) in methods {
            let answer = post(&lake, tongue, message);
            refused_by_agent(tongue, &answer, 400, "", -32602);
        }
    }
}

#[test]
fn kinds_and_lowercase_roles_are_of_v03_json_rpc_alone() {
    for lake in CURRENT.map(Lake::of) {
        let with = json!([{"kind": "text", "text": "hi"}]);
        let without = json!([{"text": "hi"}]);
        for tongue in Tongue::ALL {
            let list = if tongue == Tongue::R03 {
                "content"
            } else {
                "parts"
            };
            let (role, other, right, wrong) = match tongue {
                Tongue::J03 => ("user", "ROLE_USER", &with, &without),
                Tongue::R10 | Tongue::R03 | Tongue::J10 => ("ROLE_USER", "user", &without, &with),
            };
            for (role, parts) in [(other, right), (role, wrong)] {
                let answer = post(&lake, tongue, &json!({"role": role, list: parts}));
                refused_by_agent(tongue, &answer, 400, "INVALID_ARGUMENT", -32602);
            }
            let answer = post(&lake, tongue, &json!({"role": role, list: right}));
            assert!(answer.json().get("error").is_none(), "{}", answer.body);
        }
    }
}

#[test]
fn a_message_needs_no_id_of_its_own() {
    for lake in CURRENT.map(Lake::of) {
        let without = Say {
            id: None,
            ..say("hi").in_full()
        };
        for tongue in [Tongue::R10, Tongue::R03] {
            let task = lake.by(tongue).task(&without);
            assert!(task["history"][0]["messageId"].is_string());
        }
    }
}

#[test]
fn an_agent_that_is_not_there_is_not_found() {
    for page in CURRENT {
        let lake = Lake::of(page);
        let (workspace, _) = page.example();
        let base = format!("{API}/workspaces/{workspace}/agents/agent-none/a2a");
        for tongue in Tongue::ALL {
            let params = say("hi").params(tongue);
            let mut client = begin(lake.addr, &base, tongue, Op::Send, "sk_xxxxxx", &params);
            refused(&client.answer(), 404, "NOT_FOUND");
        }
    }
}

#[test]
fn the_card_tells_whether_there_are_push_notifications() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        let line = format!("GET {}/.well-known/agent-card.json", lake.base());
        let card = Client::connect(lake.addr).ask(&line, "", "").json();
        let push = &card["capabilities"]["pushNotifications"];
        assert_eq!(*push, page == Page::Older);
    }
}

#[test]
fn what_no_page_lists_is_not_there() {
    for lake in CURRENT.map(Lake::of) {
        let base = lake.base();
        for line in [
            "GET {}/tasks",
            "POST {}/tasks/x:subscribe",
            "GET {}/v1/card",
            "PUT {}/message:send",
        ] {
            let line = line.replace("{}", &base);
            let answer = Client::connect(lake.addr).ask(&line, &fields("sk_xxxxxx", Op::Get), "");
            refused(&answer, 404, "NOT_FOUND");
        }
        let body = r#"{"jsonrpc": "2.0", "id": "req-1", "method": "ListTasks", "params": {}}"#;
        let answer = Client::connect(lake.addr).ask(&format!("POST {base}"), "", body);
        assert_eq!(answer.json()["error"]["code"], -32601);
    }
}
