//! With the product's face on, its clients see what they would see of the product: both are asked the same, and say the
//! same.
use serde_json::{Value, json};

use crate::{
    BINDINGS,
    ask::{Asks, KEY, Say, refused, say},
    before, before_with,
    memorylake::{Lake, Op, Page, Tongue},
    of_product,
    page::{self, Example, REQUESTS, leveled},
    support::client::{Answer, Client},
};

const WORDS: [&str; 8] = [
    "What is the capital of France?",
    "echo hello you",
    "stream 3 1",
    "fail late",
    "nothing",
    "tools",
    "file",
    "data",
];

/// The events of a stream, leveled. `final` over v0.3 REST is not compared: the page does not say whether it is there.
fn events(tongue: Tongue, mut all: Vec<Value>) -> Value {
    if tongue == Tongue::R03 {
        for event in &mut all {
            if let Some(update) = event.get_mut("statusUpdate") {
                update.as_object_mut().unwrap().remove("final");
            }
        }
    }
    leveled(&Value::from(all))
}

/// Two doubles, one of them behind a gateway, for every page, binding and family of routes.
fn both(pages: &[Page], test: impl Fn(&Asks, &Asks)) {
    for page in pages {
        for binding in BINDINGS {
            let (direct, behind) = (Lake::of(*page), Lake::of(*page));
            let gateway = before(&behind, binding);
            for tongue in Tongue::ALL {
                test(&direct.by(tongue), &of_product(&gateway, &behind, tongue));
            }
        }
    }
}

const CURRENT: [Page; 2] = [Page::En, Page::Cn];

fn is_same(direct: &Answer, behind: &Answer, what: &str) {
    assert_eq!(
        behind.status(),
        direct.status(),
        "{what}: {} / {}",
        direct.body,
        behind.body
    );
    let (direct, behind) = (leveled(&direct.json()), leveled(&behind.json()));
    assert_eq!(behind, direct, "{what}");
}

/// Sent with these wishes, the answers are the same; gives both tasks' ids.
fn sent(direct: &Asks, behind: &Asks, say: &Say) -> [String; 2] {
    let answers = [direct, behind].map(|asks| asks.send(say));
    let what = format!("{:?} {say:?}", direct.tongue);
    is_same(&answers[0], &answers[1], &what);
    answers.map(|answer| id(&answer.json()))
}

/// The id of the task in an answer.
fn id(answer: &Value) -> String {
    let result = answer.get("result").unwrap_or(answer);
    let task = result.get("task").unwrap_or(result);
    task["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_request_of_a_page_is_answered_as_by_the_product() {
    for page in Page::ALL {
        for binding in BINDINGS {
            let (direct, behind) = (Lake::of(page), Lake::of(page));
            let gateway = before(&behind, binding);
            for name in REQUESTS {
                let example = Example::read(page, name);
                let answers = [direct.addr, gateway.addr].map(|addr| {
                    let mut client = Client::connect(addr);
                    example.send(&mut client);
                    client.answer()
                });
                let [direct, behind] = &answers;
                if direct.body.starts_with("data: ") {
                    let told = answers.each_ref().map(|answer| frames(name, &answer.body));
                    assert_eq!(told[1], told[0], "{name}");
                } else {
                    is_same(direct, behind, name);
                }
            }
            let heard = direct.heard().into_iter().zip(behind.heard());
            let mut count = 0;
            for (name, (direct, behind)) in REQUESTS.into_iter().zip(heard) {
                assert_eq!(behind.extension, direct.extension, "{name}");
                let sends = name.contains("send");
                assert!(!sends || behind.waits == direct.waits, "{name}");
                count += 1;
            }
            assert_eq!(count, 8);
        }
    }
}

fn frames(name: &str, body: &str) -> Value {
    let tongue = if name.contains("v03-stream-rest") {
        Tongue::R03
    } else {
        Tongue::R10
    };
    let frames = body
        .split_terminator(
            "

",
        )
        .filter(|f| !f.starts_with(':'));
    let data = frames.map(|frame| frame.strip_prefix("data: ").unwrap());
    events(
        tongue,
        data.map(|d| serde_json::from_str(d).unwrap()).collect(),
    )
}

#[test]
fn what_the_page_shows_is_shown() {
    for page in CURRENT {
        for binding in BINDINGS {
            let lake = Lake::of(page);
            let gateway = before(&lake, binding);
            let asks = of_product(&gateway, &lake, Tongue::R10);
            let question = say("What is the capital of France?").within("ctx-demo-1");
            let shown = page::json(page, "sent.json");
            let answer = asks.send(&question).json();
            let on_page = shown["task"]["id"].as_str().unwrap();
            page::is_like(&shown, &page::renamed(&answer, &id(&answer), on_page));
            let events = asks.all(&question);
            for (shown, event) in page::stream(page).iter().zip(&events) {
                let id = events[0]["task"]["id"].as_str().unwrap();
                page::is_like(shown, &page::renamed(event, id, "run-7828…6073"));
            }
        }
    }
}

#[test]
fn sends_are_answered_as_by_the_product() {
    both(&CURRENT, |direct, behind| {
        for words in WORDS {
            sent(direct, behind, &say(words).in_full());
        }
    });
}

#[test]
fn history_is_cut_as_by_the_product() {
    both(&CURRENT, |direct, behind| {
        for length in [0, 1, 3] {
            let configuration = json!({"blocking": true, "historyLength": length});
            sent(direct, behind, &say("tools").configured(configuration));
        }
        // Nothing is said: v0.3 REST has none.
        sent(
            direct,
            behind,
            &say("tools").configured(json!({"blocking": true})),
        );
    });
}

#[test]
fn waiting_is_as_at_the_product() {
    both(&CURRENT, |direct, behind| {
        for configuration in [
            json!({}),
            json!({"blocking": false}),
            json!({"blocking": true}),
            json!({"returnImmediately": true}),
            json!({"returnImmediately": false}),
        ] {
            sent(direct, behind, &say("hi").configured(configuration));
        }
    });
}

#[test]
fn blocking_waits_on_every_version_of_the_older_page() {
    // A client of the older page sees the product of that time; behind the gateway is that of today.
    for binding in BINDINGS {
        let (old, new) = (Lake::of(Page::Older), Lake::of(Page::En));
        let accepts = "compat: {v10_accept_blocking: true}";
        let gateway = before_with(&new, binding, "memorylake", accepts);
        for tongue in Tongue::ALL {
            let asks = of_product(&gateway, &new, tongue);
            for blocking in [true, false] {
                let say = say("hi").configured(json!({"blocking": blocking, "historyLength": 5}));
                sent(&old.by(tongue), &asks, &say);
            }
        }
    }
}

#[test]
fn streams_are_as_by_the_product() {
    both(&CURRENT, |direct, behind| {
        for words in WORDS {
            let [direct, behind] =
                [direct, behind].map(|asks| events(asks.tongue, asks.all(&say(words))));
            assert_eq!(behind, direct, "{words}");
        }
    });
}

#[test]
fn tasks_and_replays_are_as_by_the_product() {
    both(&CURRENT, |direct, behind| {
        for words in WORDS {
            let ids = sent(direct, behind, &say(words).in_full());
            let answers = [(direct, &ids[0]), (behind, &ids[1])];
            let [one, two] = answers.map(|(asks, id)| asks.of_task(Op::Get, id));
            is_same(&one, &two, "a task");
            if words.starts_with("fail") {
                continue;
            }
            let [one, two] = answers
                .map(|(asks, id)| events(asks.tongue, asks.events(&mut asks.subscribes(id))));
            assert_eq!(two, one, "{words}");
        }
        let ids = [direct, behind].map(|asks| asks.starts(say("hold")));
        let [one, two] =
            [(direct, &ids[0]), (behind, &ids[1])].map(|(asks, id)| asks.of_task(Op::Cancel, id));
        // Whether the time is in it is told of GET alone.
        let state = |answer: Answer| {
            let body = answer.json();
            let task = body.get("result").unwrap_or(&body).clone();
            task["status"]["state"].clone()
        };
        assert_eq!(state(two), state(one));
    });
}

/// Refused by the product, with what it says.
#[test]
fn refusals_of_the_product_pass_as_they_came() {
    let actor = |id: &str| json!({"actorId": id});
    let rows = [
        (actor("actor-ffffffffffffffffffffffffffffffff"), KEY),
        (actor("actor-0000000000000000000000000000dead"), KEY),
        (json!({}), "sk_no_actor"),
        (json!({}), "sk_no_quota"),
        (json!({}), "sk_stranger"),
        (
            json!({"readWriteProjectId": "proj-00000000000000000000000000000000"}),
            KEY,
        ),
        (json!({"overrides": {"capabilitiesOverride": []}}), KEY),
    ];
    both(&CURRENT, |direct, behind| {
        for (extension, key) in &rows {
            let say = say("hi").with(extension.clone()).by(key).in_full();
            for op in [Op::Send, Op::Stream] {
                let answers =
                    [direct, behind].map(|asks| asks.ask(op, key, &say.params(asks.tongue)));
                is_same(
                    &answers[0],
                    &answers[1],
                    &format!("{op:?} {:?} {say:?}", direct.tongue),
                );
            }
        }
    });
}

/// Refused by the gateway itself: the same but for the words of the message.
#[test]
fn refusals_of_the_gateway_have_the_product_s_form() {
    both(&CURRENT, |direct, behind| {
        let same = |op: Op, params: &Value| {
            let [one, two] = [direct, behind].map(|asks| {
                let answer = asks.ask(op, KEY, params);
                let body = answer.json();
                (
                    answer.status(),
                    body["success"].clone(),
                    body["error_code"].clone(),
                )
            });
            assert_eq!(two, one, "{:?} {params}", direct.tongue);
        };
        let bare = Say {
            extension: None,
            ..say("hi")
        };
        same(Op::Send, &bare.params(direct.tongue));
        same(Op::Stream, &bare.params(direct.tongue));
        let held = [direct, behind].map(|asks| asks.starts(say("hold").within("ctx-busy")));
        same(
            Op::Send,
            &say("hi").within("ctx-busy").params(direct.tongue),
        );
        for (asks, id) in [(direct, &held[0]), (behind, &held[1])] {
            asks.of_task(Op::Cancel, id);
        }
        for op in [Op::Get, Op::Cancel] {
            let missing = json!({"id": "run-none"});
            let [one, two] = [direct, behind].map(|asks| asks.ask(op, KEY, &missing));
            // The page leaves open whether the agent tells this over JSON-RPC; its REST does not say who did.
            if direct.tongue.is_rpc() && two.status() == 404 {
                refused(&two, 404, "NOT_FOUND");
            } else {
                assert_eq!(two.status(), one.status());
                assert_eq!(two.json()["error"]["code"], one.json()["error"]["code"]);
            }
        }
        let other = if direct.tongue.is_old() {
            Tongue::R10
        } else {
            Tongue::R03
        };
        if !direct.tongue.is_rpc() {
            same(Op::Send, &say("hi").params(other));
            same(Op::Send, &say("hi").params(Tongue::J03));
        }
    });
}

#[test]
fn a_conversation_is_of_one_agent() {
    for binding in BINDINGS {
        let lake = Lake::of(Page::En);
        let gateway = before(&lake, binding);
        for tongue in Tongue::ALL {
            let context = format!("ctx-{tongue:?}");
            let mut asks = of_product(&gateway, &lake, tongue);
            asks.task(&say("hi").within(&context).in_full());
            let asked = lake.seen().len();
            asks.base = lake.other();
            let answer = asks.send(&say("hi").within(&context).in_full());
            refused(&answer, 400, "INVALID_ARGUMENT");
            assert_eq!(lake.seen().len(), asked, "the gateway knows it");
            asks.task(&say("hi").in_full());
        }
    }
}

#[test]
fn v03_json_rpc_has_one_code_for_all_errors_or_better_ones() {
    for (face, codes) in [
        (
            "{like: memorylake, v03_flat_errors: true}",
            [-32603, -32603],
        ),
        ("memorylake", [-32001, -32002]),
    ] {
        let lake = Lake::of(Page::En);
        let gateway = before_with(&lake, "jsonrpc", face, "");
        let asks = of_product(&gateway, &lake, Tongue::J03);
        let done = id(&asks.send(&say("hi").in_full()).json());
        let answers = [
            asks.of_task(Op::Get, "run-none"),
            asks.of_task(Op::Cancel, &done),
        ];
        let found = answers.map(|answer| answer.json()["error"]["code"].clone());
        assert_eq!(found, codes.map(Value::from));
    }
}
