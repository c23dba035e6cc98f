//! Capabilities that a message turns on.
use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{answer, begin, refused, say},
    memorylake::{Lake, Op, Page, Tongue},
};

/// What the agent has with this override. The other agent searches research by its own configuration.
fn has(lake: &Lake, base: &str, asked: &Value) -> Value {
    for tongue in Tongue::ALL {
        let extension = json!({"overrides": {"capabilitiesOverride": asked}});
        let params = say("hi").with(extension).params(tongue);
        let mut client = begin(lake.addr, base, tongue, Op::Send, "sk_xxxxxx", &params);
        let answer = client.answer();
        assert_eq!(answer.status(), 200, "{}", answer.body);
    }
    let mut heard = lake.heard();
    let last = heard.pop().unwrap().capabilities;
    assert!(heard.iter().rev().take(3).all(|h| h.capabilities == last));
    serde_json::to_value(last).unwrap()
}

fn check(rows: &[(Value, Value)]) {
    for page in CURRENT {
        let lake = Lake::of(page);
        for (asked, expected) in rows {
            assert_eq!(has(&lake, &lake.base(), asked), *expected, "{asked}");
        }
    }
}

/// The same of the agent that has a capability of its own.
fn check_other(rows: &[(Value, Value)]) {
    for page in CURRENT {
        let lake = Lake::of(page);
        for (asked, expected) in rows {
            assert_eq!(has(&lake, &lake.other(), asked), *expected, "{asked}");
        }
    }
}

#[test]
fn a_capability_is_of_one_message() {
    for lake in CURRENT.map(Lake::of) {
        assert_eq!(
            has(&lake, &lake.base(), &json!({"vega": {}})),
            json!({"vega": {}})
        );
        assert_eq!(has(&lake, &lake.base(), &Value::Null), json!({}));
    }
}

#[test]
fn names_may_be_in_camel_case() {
    let sets = json!({"web_search": {"open_datasets": ["research/academic"]}});
    check(&[
        (
            json!({"webSearch": {"openDatasets": ["research/academic"]}}),
            sets.clone(),
        ),
        (
            json!({"web_search": {"open_datasets": ["research/academic"]}}),
            sets,
        ),
        (json!({"webFetch": {}}), json!({"web_fetch": {}})),
    ]);
}

#[test]
fn what_is_asked_for_replaces_what_the_agent_has() {
    let own = json!({"web_search": {"open_datasets": ["research/academic"]}});
    check_other(&[
        (json!({}), own.clone()),
        (json!({"web_search": {}}), json!({"web_search": {}})),
        (
            json!({"pii": {}}),
            json!({"pii": {}, "web_search": own["web_search"]}),
        ),
    ]);
}

#[test]
fn a_capability_cannot_be_turned_off() {
    let own = json!({"web_search": {"open_datasets": ["research/academic"]}});
    check_other(&[
        (json!({"web_search": null}), own.clone()),
        (json!({"web_search": true}), own),
        (
            json!({"web_search": {"enabled": false}}),
            json!({"web_search": {}}),
        ),
    ]);
    check(&[(
        json!({"web_search": {"enabled": false}}),
        json!({"web_search": {}}),
    )]);
}

#[test]
fn mistakes_drop_the_capability_and_nothing_else() {
    let vega = json!({"vega": {}});
    check(&[
        (json!({"web_serch": {}, "vega": {}}), vega.clone()),
        (json!({"web_search": true, "vega": {}}), vega.clone()),
        (
            json!({"web_search": {"open_datasets": "x"}, "vega": {}}),
            vega.clone(),
        ),
        (
            json!({"web_search": {"open_datasets": [1]}, "vega": {}}),
            vega,
        ),
    ]);
}

#[test]
fn collections_that_nobody_knows_are_skipped() {
    let known = json!({"web_search": {"open_datasets": ["clinical/trials"]}});
    check(&[
        (
            json!({"web_search": {"open_datasets": ["x", "clinical/trials"]}}),
            known,
        ),
        (
            json!({"web_search": {"open_datasets": ["x"]}}),
            json!({"web_search": {}}),
        ),
    ]);
}

#[test]
fn an_override_that_is_no_object_is_refused() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for asked in [
            json!([]),
            json!(["web_search"]),
            json!("web_search"),
            json!(true),
        ] {
            for tongue in Tongue::ALL {
                let extension = json!({"overrides": {"capabilitiesOverride": asked}});
                let answer = lake.by(tongue).send(&say("hi").with(extension));
                refused(&answer, 400, "INVALID_ARGUMENT");
            }
        }
    }
}

#[test]
fn personal_information_is_masked_for_the_model_alone() {
    for page in CURRENT {
        let lake = Lake::of(page);
        let pii = json!({"overrides": {"capabilitiesOverride": {"pii": {}}}});
        let task = lake
            .by(Tongue::R10)
            .task(&say("I am jane@lake.example now").with(pii));
        assert_eq!(answer(&task), "I am [EMAIL_REDACTED] now");
        let said = &task["history"][0]["parts"][0]["text"];
        assert_eq!(*said, "I am jane@lake.example now");
        assert_eq!(lake.heard()[0].text, "I am [EMAIL_REDACTED] now");
    }
}

#[test]
fn only_the_chinese_page_has_databases() {
    let bundles = json!({"dataset": {"enabled_service_bundles": ["nl2sql"]}});
    let rows = [
        (Page::Cn, bundles.clone(), bundles.clone()),
        (Page::En, bundles, json!({})),
        (
            Page::Cn,
            json!({"dataset": {"enabled_service_bundles": ["x"]}}),
            json!({}),
        ),
        (Page::Cn, json!({"dataset": {}}), json!({})),
    ];
    for (page, asked, expected) in rows {
        let lake = Lake::of(page);
        assert_eq!(has(&lake, &lake.base(), &asked), expected);
    }
}

#[test]
fn the_older_page_knows_no_such_override() {
    let lake = Lake::of(Page::Older);
    assert_eq!(has(&lake, &lake.base(), &json!(["x"])), json!({}));
    assert_eq!(has(&lake, &lake.base(), &json!({"vega": {}})), json!({}));
}
