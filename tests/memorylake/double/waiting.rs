//! The wishes in `configuration`: waiting, history, output modes, push.
use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{answer, parts, refused, say, state, text},
    memorylake::{Lake, Op, Page, Tongue},
};

/// Whether a send with this configuration waits for the end of its task.
fn waits(lake: &Lake, tongue: Tongue, configuration: Value) -> bool {
    let say = say("echo hi").configured(configuration);
    let task = lake.by(tongue).task(&say);
    let heard = lake.heard().pop().unwrap();
    let is_over = task["status"]["state"] == state(tongue, "COMPLETED");
    assert_eq!(heard.waits, is_over, "{task}");
    assert_eq!(task.get("artifacts").is_some(), is_over);
    if !is_over {
        assert_eq!(task["status"]["state"], state(tongue, "SUBMITTED"));
    }
    is_over
}

#[test]
fn only_v03_rest_returns_at_once_when_nothing_is_said() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            assert_eq!(waits(&lake, tongue, json!({})), tongue != Tongue::R03);
        }
    }
}

#[test]
fn v10_knows_return_immediately_and_ignores_blocking() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in [Tongue::R10, Tongue::J10] {
            assert!(!waits(&lake, tongue, json!({"returnImmediately": true})));
            assert!(waits(&lake, tongue, json!({"returnImmediately": false})));
            assert!(waits(&lake, tongue, json!({"blocking": false})));
            let both = json!({"blocking": true, "returnImmediately": true});
            assert!(!waits(&lake, tongue, both));
        }
    }
}

#[test]
fn v03_knows_blocking() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for tongue in [Tongue::R03, Tongue::J03] {
            assert!(waits(&lake, tongue, json!({"blocking": true})));
            assert!(!waits(&lake, tongue, json!({"blocking": false})));
        }
    }
}

#[test]
fn the_older_page_says_blocking_for_both_versions() {
    let lake = Lake::of(Page::Older);
    for tongue in Tongue::ALL {
        assert!(waits(&lake, tongue, json!({"blocking": true})));
        assert!(!waits(&lake, tongue, json!({"blocking": false})));
    }
    assert!(waits(
        &lake,
        Tongue::R10,
        json!({"returnImmediately": true})
    ));
}

/// How many messages of the history come with the whole task; there are 10.
fn history(lake: &Lake, tongue: Tongue, length: Value) -> Option<usize> {
    let mut configuration = json!({"blocking": true});
    if !length.is_null() {
        configuration["historyLength"] = length;
    }
    let task = lake
        .by(tongue)
        .task(&say("tools").configured(configuration));
    let history = task.get("history")?.as_array().unwrap();
    let last = parts(tongue, history.last().unwrap());
    assert_eq!(text(&last), "The sum is 3.");
    Some(history.len())
}

#[test]
fn the_history_is_cut_to_its_end() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            assert_eq!(history(&lake, tongue, json!(0)), None);
            assert_eq!(history(&lake, tongue, json!(1)), Some(1));
            assert_eq!(history(&lake, tongue, json!(3)), Some(3));
            assert_eq!(history(&lake, tongue, json!(100)), Some(10));
        }
    }
}

#[test]
fn only_v03_rest_leaves_the_history_out_when_nothing_is_said() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            let all = (tongue != Tongue::R03).then_some(10);
            assert_eq!(history(&lake, tongue, Value::Null), all);
        }
    }
}

#[test]
fn a_wish_of_the_wrong_type_is_refused() {
    for lake in CURRENT.map(Lake::of) {
        for configuration in [
            json!({"historyLength": "1"}),
            json!({"historyLength": -1}),
            json!([]),
        ] {
            for tongue in Tongue::ALL {
                let answer = lake
                    .by(tongue)
                    .send(&say("hi").configured(configuration.clone()));
                refused(&answer, 400, "INVALID_ARGUMENT");
            }
        }
    }
}

#[test]
fn output_modes_are_accepted() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            let modes = json!({"acceptedOutputModes": ["text/plain"], "blocking": true});
            let task = lake.by(tongue).task(&say("echo hi").configured(modes));
            assert_eq!(answer(&task), "hi");
        }
    }
}

#[test]
fn a_task_that_is_not_waited_for_goes_on() {
    for lake in CURRENT.map(Lake::of) {
        for tongue in Tongue::ALL {
            let asks = lake.by(tongue);
            let task = asks.task(&say("hold").at_once());
            assert_eq!(task["history"].as_array().unwrap().len(), 1);
            assert!(task.get("artifacts").is_none());
            let id = task["id"].as_str().unwrap();
            let mut stream = asks.subscribes(id);
            lake.release(id);
            let events = asks.events(&mut stream);
            assert!(
                events
                    .last()
                    .unwrap()
                    .to_string()
                    .contains(&state(tongue, "COMPLETED"))
            );
            assert_eq!(asks.get(id)["status"]["state"], state(tongue, "COMPLETED"));
        }
    }
}

/// A listener that nothing may come to.
fn nobody() -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn push_configs_are_taken_and_nothing_is_called() {
    for page in CURRENT {
        let (lake, hook) = (Lake::of(page), nobody());
        let url = format!("http://{}/hook", hook.local_addr().unwrap());
        for tongue in Tongue::ALL {
            let (old, new) = ("pushNotificationConfig", "taskPushNotificationConfig");
            let config = json!({"blocking": true, old: {"url": url}, new: {"url": url}});
            lake.by(tongue).task(&say("hi").configured(config));
        }
        assert!(lake.callbacks().is_empty());
        assert!(hook.accept().is_err(), "somebody came");
    }
}

#[test]
fn the_older_page_calls_back() {
    use crate::support::{agent::Agent, until};
    let (lake, hook) = (Lake::of(Page::Older), Agent::start());
    for tongue in Tongue::ALL {
        let url = format!("http://{}/hook", hook.addr);
        let config = json!({"blocking": true, "pushNotificationConfig": {"url": url}});
        let task = lake.by(tongue).task(&say("hi").configured(config));
        let call = hook.next();
        assert!(call.asked.is("POST /hook"));
        assert_eq!(call.asked.json()["id"], task["id"]);
        call.json("{}");
    }
    until("all are told", || lake.callbacks().len() == 4);
    assert!(lake.callbacks().iter().all(|told| told["arrived"] == true));
    let seen = lake.seen().into_iter().map(|seen| seen.call.unwrap().1);
    assert!(seen.eq([Op::Send; 4]));
}
