//! The double of MemoryLake with the gateway before it: a client of the product cannot tell which of the two it speaks
//! with, and a plain client that polls gets what a client that waited would have got.
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::{
    ask::{self, Asks, KEY, Say, begin, say},
    memorylake::{API, Lake, Op, Page, Tongue},
    page::{self, Example, REQUESTS, is_like, renamed},
    support::{client::Answer, gateway::Gateway, stage::BINDINGS},
};

/// The product's paths before this double, with this face.
fn before(lake: &Lake, rest: bool, face: &str) -> Gateway {
    let path = format!("{API}/workspaces/{{w}}/agents/{{a}}/a2a");
    let (addr, binding) = (lake.addr, if rest { "rest" } else { "jsonrpc" });
    Gateway::of(&format!(
        "workers: 1
backend: {{preset: memorylake, binding: {binding}}}
routes:
  - {{path: '{path}', backend: 'http://{addr}{path}', agent_parameter: a, face: {face}}}
"
    ))
}

const FACE: &str = "{like: memorylake, v03_flat_errors: true}";

/// The double alone, and another one behind the gateway.
struct Both {
    bare: Lake,
    behind: Lake,
    gateway: Gateway,
    tongue: Tongue,
}

impl Both {
    fn of(tongue: Tongue, rest: bool) -> Self {
        let behind = Lake::of(Page::En);
        Self {
            gateway: before(&behind, rest, FACE),
            bare: Lake::of(Page::En),
            behind,
            tongue,
        }
    }

    fn everywhere(test: impl Fn(&Self)) {
        for tongue in Tongue::ALL {
            for rest in BINDINGS {
                test(&Self::of(tongue, rest));
            }
        }
    }

    fn asks(&self) -> [Asks; 2] {
        let asks = |to| Asks {
            to,
            base: self.bare.base(),
            tongue: self.tongue,
        };
        [asks(self.bare.addr), asks(self.gateway.addr)]
    }

    fn alike(&self, what: &str, of: impl Fn(&Asks) -> Value) {
        let [bare, face] = self.asks().map(|asks| plain(&of(&asks)));
        assert_eq!(bare, face, "{:?} {what}", self.tongue);
    }
}

/// With what is new each time in order of its coming: ids of runs, and times.
fn plain(value: &Value) -> Value {
    let text = value.to_string();
    let (mut out, mut known) = (String::new(), HashMap::new());
    for word in text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c))) {
        let (word, end) = word.split_at(
            word.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
                .len(),
        );
        let is_time = word.ends_with('Z') && word.contains('T') && word.starts_with("20");
        let run = word.find("run-").filter(|_| word.len() >= 36);
        if is_time {
            out.push_str("TIME");
        } else if let Some(at) = run {
            let id = &word[at..(at + 36).min(word.len())];
            let next = known.len();
            let n = *known.entry(id.to_owned()).or_insert(next);
            out.push_str(&word.replace(id, &format!("run-{n}")));
        } else {
            out.push_str(word);
        }
        out.push_str(end);
    }
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

fn told(answer: &Answer) -> Value {
    json!([answer.status(), answer.json()])
}

/// What is told of a refusal, but for the words.
fn refused(answer: &Answer) -> Value {
    let body = answer.json();
    let code = &body["error"]["code"];
    json!([answer.status(), body["success"], body["error_code"], code])
}

fn questions() -> Vec<Say> {
    let mut all = vec![];
    for text in [
        "What is the capital of France?",
        "tools",
        "file",
        "data",
        "nothing",
        "fail",
        "fail late",
    ] {
        let context = format!("ctx-{}", text.len());
        all.push(say(text).in_full().within(&context));
        let model = json!({"overrides": {"model": "none"}});
        all.push(
            say(text)
                .in_full()
                .within(&format!("{context}m"))
                .with(model),
        );
        let short = json!({"blocking": true, "historyLength": 1});
        all.push(say(text).within(&format!("{context}s")).configured(short));
    }
    all
}

#[test]
fn what_is_sent_is_answered_as_by_the_product() {
    Both::everywhere(|both| {
        for say in questions() {
            both.alike(&format!("{say:?}"), |asks| told(&asks.send(&say)));
        }
    });
}

/// Whether it waits, and how much history there is, where the client does not say.
#[test]
fn what_is_not_said_is_what_the_product_takes_for_granted() {
    Both::everywhere(|both| {
        let held = say("hold").within("ctx-held");
        let old_rest = both.tongue == Tongue::R03;
        if old_rest {
            both.alike("at once", |asks| {
                let mut task = asks.task(&held);
                task["status"] = Value::Null; // it may be at work already
                task
            });
        }
        both.alike("whole", |asks| {
            let mut task = asks.task(&say("What is the capital of France?").within("ctx-1"));
            if old_rest {
                task["status"] = Value::Null;
            }
            task
        });
    });
}

#[test]
fn what_is_streamed_is_told_as_by_the_product() {
    Both::everywhere(|both| {
        for say in questions() {
            both.alike(&format!("{say:?}"), |asks| {
                let mut events = asks.all(&say);
                if both.tongue == Tongue::R03 {
                    no_final(&mut events);
                }
                events.into()
            });
        }
    });
}

/// The page does not say whether v0.3 REST has `final`.
fn no_final(events: &mut [Value]) {
    for event in events {
        if let Some(update) = event["statusUpdate"].as_object_mut() {
            update.remove("final");
        }
    }
}

#[test]
fn a_task_is_followed_as_with_the_product() {
    Both::everywhere(|both| {
        for text in ["What is the capital of France?", "tools", "fail", "nothing"] {
            both.alike(text, |asks| {
                let task = asks.task(&say(text).in_full());
                let id = task["id"].as_str().unwrap();
                let got = asks.get(id);
                let mut events = vec![];
                if text != "fail" {
                    events = asks.events(&mut asks.subscribes(id));
                    no_final(&mut events);
                }
                let mut got = json!([got, events]);
                got[0]["contextId"] = Value::Null;
                let context = task["contextId"].as_str().unwrap();
                serde_json::from_str(&got.to_string().replace(context, "ctx")).unwrap()
            });
        }
    });
}

#[test]
fn refusals_are_told_as_by_the_product() {
    Both::everywhere(|both| {
        let project = "proj-cd2e83f761eec93c75977f51667889cd";
        for lake in [&both.bare, &both.behind] {
            lake.deny(KEY, "project:mem_search", project);
        }
        let mut none = say("hi");
        none.extension = None;
        for (what, say) in [
            ("nothing of it", none),
            (
                "an actor of nobody",
                say("hi").with(json!({"actorId": "actor-ffffffffffffffffffffffffffffffff"})),
            ),
            (
                "an actor that is gone",
                say("hi").with(json!({"actorId": "actor-0000000000000000000000000000dead"})),
            ),
            ("no actor", say("hi").by("sk_no_actor")),
            ("no quota", say("hi").by("sk_no_quota")),
            (
                "no permission",
                say("hi").with(json!({"readOnlyProjectIds": [project]})),
            ),
            (
                "a list of capabilities",
                say("hi").with(json!({"overrides": {"capabilitiesOverride": []}})),
            ),
        ] {
            both.alike(what, |asks| refused(&asks.send(&say)));
            both.alike(what, |asks| {
                refused(&asks.ask(Op::Stream, say.key, &say.params(asks.tongue)))
            });
        }
        both.alike("busy", |asks| {
            asks.starts(say("hold").within("ctx-busy"));
            refused(&asks.send(&say("hi").within("ctx-busy")))
        });
        let bare = both.bare.other();
        both.alike("an agent of another conversation", |asks| {
            asks.task(&say("hi").within("ctx-bound").in_full());
            let params = say("hi").within("ctx-bound").params(asks.tongue);
            refused(&begin(asks.to, &bare, asks.tongue, Op::Send, KEY, &params).answer())
        });
        both.alike("no task", |asks| {
            refused(&asks.of_task(Op::Get, "run-none"))
        });
    });
}

/// The examples of the pages, each as it stands there.
#[test]
fn every_request_of_a_page_is_answered_as_by_the_product() {
    for page in Page::ALL {
        for rest in BINDINGS {
            for name in REQUESTS {
                let (bare, behind) = (Lake::of(page), Lake::of(page));
                let gateway = before(&behind, rest, FACE);
                let example = Example::read(page, name);
                let [bare, face] = [bare.addr, gateway.addr].map(|addr| {
                    let mut client = crate::support::client::Client::connect(addr);
                    example.send(&mut client);
                    let answer = client.answer();
                    assert_eq!(answer.status(), 200, "{answer:?}");
                    answer.body
                });
                assert_eq!(
                    bare.contains("COMPLETED"),
                    face.contains("COMPLETED"),
                    "{page:?} {name}"
                );
                let heard = behind.heard().pop().unwrap();
                let extension = &example.params()["metadata"]["memorylake"];
                assert_eq!(heard.extension.as_ref(), Some(extension), "{name}");
            }
        }
    }
    let lake = Lake::of(Page::En);
    let gateway = before(&lake, true, "memorylake");
    let asks = Asks {
        to: gateway.addr,
        base: lake.base(),
        tongue: Tongue::R10,
    };
    let answer = asks
        .send(&say("What is the capital of France?").within("ctx-demo-1"))
        .json();
    let shown = page::json(Page::En, "sent.json");
    let id = answer["task"]["id"].as_str().unwrap();
    is_like(
        &shown,
        &renamed(&answer, id, shown["task"]["id"].as_str().unwrap()),
    );
}

/// But for the user's own message, which is not in the replay.
#[test]
fn who_polls_gets_what_who_waited_would_have_got() {
    for rest in BINDINGS {
        let lake = Lake::of(Page::En);
        let gateway = before(&lake, rest, "a2a");
        for tongue in Tongue::ALL {
            let asks = Asks {
                to: gateway.addr,
                base: lake.base(),
                tongue,
            };
            for text in [
                "What is the capital of France?",
                "tools",
                "file",
                "data",
                "echo hi",
            ] {
                let mut waited = asks.task(&say(text).in_full());
                let id = waited["id"].as_str().unwrap().to_owned();
                let mut got = asks.get(&id);
                let history = waited["history"].as_array_mut().unwrap();
                let mine = history.remove(0);
                assert!(
                    mine["role"]
                        .as_str()
                        .unwrap()
                        .to_lowercase()
                        .contains("user"),
                    "{mine}"
                );
                got["status"].as_object_mut().unwrap().remove("timestamp");
                waited["status"]
                    .as_object_mut()
                    .unwrap()
                    .remove("timestamp");
                assert_eq!(waited["artifacts"], got["artifacts"], "{tongue:?} {text}");
                let said = |task: &Value| -> Vec<Value> {
                    let all = task["history"].as_array().unwrap();
                    all.iter().flat_map(|m| ask::parts(tongue, m)).collect()
                };
                assert_eq!(said(&waited), said(&got), "{tongue:?} {text}");
            }
        }
        // Failed and empty tasks stay as they are.
        let asks = Asks {
            to: gateway.addr,
            base: lake.base(),
            tongue: Tongue::J10,
        };
        for text in ["fail", "nothing"] {
            let task = asks.task(&say(text).in_full());
            let got = asks.get(task["id"].as_str().unwrap());
            assert_eq!(got.get("artifacts"), None, "{got}");
        }
    }
}
