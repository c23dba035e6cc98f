//! The examples of the pages, asked of the double as they stand there.
use serde_json::json;

use crate::{
    ask::say,
    memorylake::{Lake, Op, Page, Tongue},
    page::{self, Example, REQUESTS, is_like, renamed},
    support::client::Client,
};

const WHAT: [(Tongue, Op); 8] = [
    (Tongue::R10, Op::Send),
    (Tongue::R10, Op::Stream),
    (Tongue::R03, Op::Send),
    (Tongue::R03, Op::Stream),
    (Tongue::J10, Op::Send),
    (Tongue::J10, Op::Stream),
    (Tongue::J03, Op::Send),
    (Tongue::J03, Op::Stream),
];

#[test]
fn every_request_of_a_page_is_let_in_as_what_it_is() {
    for page in Page::ALL {
        let lake = Lake::of(page);
        for (name, what) in REQUESTS.into_iter().zip(WHAT) {
            let example = Example::read(page, name);
            let mut client = Client::connect(lake.addr);
            example.send(&mut client);
            let answer = client.answer();
            assert_eq!(answer.status(), 200, "{name}: {}", answer.body);
            let seen = lake.seen().pop().unwrap();
            assert_eq!(seen.call, Some(what), "{name}");
            let heard = lake.heard().pop().unwrap();
            let extension = &example.params()["metadata"]["memorylake"];
            assert_eq!(heard.extension.as_ref(), Some(extension));
            let project = extension["readWriteProjectId"].as_str();
            assert_eq!(heard.project.as_deref(), project);
            assert!(answer.body.contains("COMPLETED") || answer.body.contains("completed"));
        }
        assert_eq!(lake.heard().len(), 8);
    }
}

#[test]
fn what_is_sent_is_answered_as_the_page_shows() {
    for page in [Page::En, Page::Cn] {
        let lake = Lake::of(page);
        let shown = page::json(page, "sent.json");
        let question = say("What is the capital of France?").within("ctx-demo-1");
        let answer = lake.by(Tongue::R10).send(&question).json();
        let id = answer["task"]["id"].as_str().unwrap();
        let on_page = shown["task"]["id"].as_str().unwrap();
        assert_eq!(id.len(), on_page.len());
        assert!(id.starts_with("run-"));
        is_like(&shown, &renamed(&answer, id, on_page));
    }
}

#[test]
fn what_is_streamed_is_answered_as_the_page_shows() {
    for page in [Page::En, Page::Cn] {
        let lake = Lake::of(page);
        let asks = lake.by(Tongue::R10);
        let shown = page::stream(page);
        let question = say("What is the capital of France?").within("ctx-demo-1");
        let events = asks.all(&question);
        assert_eq!(events.len(), shown.len());
        let id = events[0]["task"]["id"].as_str().unwrap();
        for (shown, event) in shown.iter().zip(&events) {
            is_like(shown, &renamed(event, id, "run-7828…6073"));
        }
    }
}

#[test]
fn the_capabilities_of_the_page_are_all_known() {
    for page in [Page::En, Page::Cn] {
        let lake = Lake::of(page);
        let all = page::json(page, "capabilities.json");
        let asked = json!({"overrides": {"capabilitiesOverride": all}});
        lake.by(Tongue::R10).task(&say("hi").with(asked));
        let has = lake.heard()[0].capabilities.clone();
        assert_eq!(serde_json::to_value(has).unwrap(), all);
    }
}
