//! One message at a time in a conversation, one agent for it, and its project.
use serde_json::json;

use crate::{
    CURRENT,
    ask::{begin, refused, say},
    memorylake::{Lake, Op, Page, Tongue},
};

const PROJECT: &str = "proj-b93e8d95a8705bcc4ec42a65ba4cc7f8";
const ANOTHER: &str = "proj-cd2e83f761eec93c75977f51667889cd";

#[test]
fn a_conversation_takes_one_message_at_a_time() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for first in Tongue::ALL {
            let context = format!("ctx-{first:?}");
            let held = lake.by(first).starts(say("hold").within(&context));
            for tongue in Tongue::ALL {
                let asks = lake.by(tongue);
                let busy = say("hi").within(&context);
                refused(&asks.send(&busy), 400, "INVALID_ARGUMENT");
                let streamed = asks.ask(Op::Stream, busy.key, &busy.params(tongue));
                refused(&streamed, 400, "INVALID_ARGUMENT");
            }
            // Another conversation goes on, and this one when its task is over.
            lake.by(first)
                .task(&say("hi").within(&format!("{context}-2")));
            lake.by(first).of_task(Op::Cancel, &held);
            lake.by(first).task(&say("hi").within(&context));
        }
    }
}

#[test]
fn a_stream_keeps_its_conversation_busy() {
    for lake in CURRENT.map(Lake::of) {
        let asks = lake.by(Tongue::R10);
        let mut stream = asks.streams(&say("hold").within("ctx"));
        let first = asks.event(&stream.event().unwrap());
        refused(
            &asks.send(&say("hi").within("ctx")),
            400,
            "INVALID_ARGUMENT",
        );
        lake.release(first["task"]["id"].as_str().unwrap());
        stream.rest();
        asks.task(&say("hi").within("ctx"));
    }
}

#[test]
fn a_client_that_leaves_does_not_end_its_task() {
    for lake in CURRENT.map(Lake::of) {
        let asks = lake.by(Tongue::R10);
        let mut stream = asks.streams(&say("hold").within("ctx"));
        let first = asks.event(&stream.event().unwrap());
        drop(stream);
        refused(
            &asks.send(&say("hi").within("ctx")),
            400,
            "INVALID_ARGUMENT",
        );
        let id = first["task"]["id"].as_str().unwrap();
        let mut again = asks.subscribes(id);
        lake.release(id);
        assert!(
            again
                .rest()
                .last()
                .unwrap()
                .contains("TASK_STATE_COMPLETED")
        );
    }
}

#[test]
fn a_context_of_its_own_is_made_where_none_is_named() {
    for lake in CURRENT.map(Lake::of) {
        for tongue in Tongue::ALL {
            let task = lake.by(tongue).task(&say("hi").in_full());
            let context = task["contextId"].as_str().unwrap().to_owned();
            let next = lake.by(tongue).task(&say("hi").within(&context).in_full());
            assert_eq!(next["contextId"], context);
            let other = lake.by(tongue).task(&say("hi").in_full());
            assert_ne!(other["contextId"], context);
        }
    }
}

#[test]
fn a_conversation_is_of_the_agent_that_it_began_with() {
    for page in CURRENT {
        let lake = Lake::of(page);
        lake.by(Tongue::R10).task(&say("hi").within("ctx"));
        for tongue in Tongue::ALL {
            let params = say("hi").within("ctx").params(tongue);
            let ask = |base: &str| {
                let mut client = begin(lake.addr, base, tongue, Op::Send, "sk_xxxxxx", &params);
                client.answer()
            };
            refused(&ask(&lake.other()), 400, "INVALID_ARGUMENT");
            assert_eq!(ask(&lake.base()).status(), 200);
            lake.by(tongue).task(&say("hi").within("ctx").in_full());
        }
    }
}

#[test]
fn the_first_message_binds_the_project() {
    for page in CURRENT {
        let lake = Lake::of(page);
        for tongue in Tongue::ALL {
            let (bound, free) = (format!("bound-{tongue:?}"), format!("free-{tongue:?}"));
            let asks = lake.by(tongue);
            let with = |context: &str, project: &str| {
                let extension = json!({"readWriteProjectId": project});
                say("hi").within(context).with(extension).in_full()
            };
            asks.task(&with(&bound, PROJECT));
            asks.task(&say("hi").within(&bound).in_full());
            assert_eq!(
                lake.heard().pop().unwrap().project.as_deref(),
                Some(PROJECT)
            );
            asks.task(&with(&bound, PROJECT));
            refused(&asks.send(&with(&bound, ANOTHER)), 400, "INVALID_ARGUMENT");
            asks.task(&say("hi").within(&free).in_full());
            refused(&asks.send(&with(&free, PROJECT)), 400, "INVALID_ARGUMENT");
        }
    }
}

#[test]
fn the_older_page_has_none_of_these_rules() {
    let lake = Lake::of(Page::Older);
    for tongue in Tongue::ALL {
        let asks = lake.by(tongue);
        let context = format!("ctx-{tongue:?}");
        let first = say("hold")
            .within(&context)
            .configured(json!({"blocking": false}));
        asks.task(&first);
        let other = json!({"readWriteProjectId": "proj_def456"});
        asks.task(&say("hi").within(&context).with(other).in_full());
        let params = say("hi").within(&context).params(tongue);
        let mut client = begin(
            lake.addr,
            &lake.other(),
            tongue,
            Op::Send,
            "sk_xxxxxx",
            &params,
        );
        assert_eq!(client.answer().status(), 200);
    }
}
