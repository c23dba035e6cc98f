//! The examples of the pages through the gateway, with the plain face: requests as they stand there, answers as v1.0
//! REST shows them, which is how the page does.
use crate::{
    BINDINGS,
    ask::say,
    before, by,
    memorylake::{Lake, Page, Tongue},
    page::{self, Example, REQUESTS, is_like, renamed},
};

#[test]
fn every_request_of_a_page_arrives() {
    for page in Page::ALL {
        for binding in BINDINGS {
            let lake = Lake::of(page);
            let gateway = before(&lake, binding);
            for name in REQUESTS {
                let mut example = Example::read(page, name);
                let plain = by(&gateway, &lake, Tongue::R10).base;
                example.target = example.target.replace(&lake.base(), &plain);
                let mut client = gateway.client();
                example.send(&mut client);
                let answer = client.answer();
                assert_eq!(answer.status(), 200, "{name}: {}", answer.body);
                let is_done =
                    answer.body.contains("COMPLETED") || answer.body.contains("completed");
                assert!(is_done, "{name}: {}", answer.body);
                let heard = lake.heard().pop().unwrap();
                let extension = &example.params()["metadata"]["memorylake"];
                assert_eq!(heard.extension.as_ref(), Some(extension), "{name}");
            }
            assert_eq!(lake.heard().len(), 8);
        }
    }
}

#[test]
fn what_is_sent_is_answered_as_the_page_shows() {
    for page in [Page::En, Page::Cn] {
        for binding in BINDINGS {
            let lake = Lake::of(page);
            let gateway = before(&lake, binding);
            let shown = page::json(page, "sent.json");
            let question = say("What is the capital of France?").within("ctx-demo-1");
            let answer = by(&gateway, &lake, Tongue::R10).send(&question).json();
            let id = answer["task"]["id"].as_str().unwrap();
            let on_page = shown["task"]["id"].as_str().unwrap();
            is_like(&shown, &renamed(&answer, id, on_page));
        }
    }
}

#[test]
fn what_is_streamed_is_answered_as_the_page_shows() {
    for page in [Page::En, Page::Cn] {
        for binding in BINDINGS {
            let lake = Lake::of(page);
            let gateway = before(&lake, binding);
            let shown = page::stream(page);
            let question = say("What is the capital of France?").within("ctx-demo-1");
            let events = by(&gateway, &lake, Tongue::R10).all(&question);
            assert_eq!(events.len(), shown.len());
            let id = events[0]["task"]["id"].as_str().unwrap();
            for (shown, event) in shown.iter().zip(&events) {
                is_like(shown, &renamed(event, id, "run-7828…6073"));
            }
        }
    }
}
