//! `metadata.memorylake`: that it has to be there, and what may stand in it.
use serde_json::{Value, json};

use crate::{
    CURRENT,
    ask::{Say, answer, refused, say},
    memorylake::{Lake, Op, Page, Tongue},
};

const ACTOR: &str = "actor-33d6b73298fb43482a765643ff92444b";
const DELETED: &str = "actor-0000000000000000000000000000dead";
const PROJECT: &str = "proj-b93e8d95a8705bcc4ec42a65ba4cc7f8";
const ANOTHER: &str = "proj-cd2e83f761eec93c75977f51667889cd";
const ELSEWHERE: &str = "proj-00000000000000000000000000000000";
const ON_ACTOR: [&str; 2] = ["workspace_actor:fact_add", "workspace_actor:fact_search"];
const ON_READ: [&str; 2] = ["project:mem_search", "project:doc_search"];
const ON_WRITE: [&str; 4] = [
    "project:mem_add",
    "project:doc_add",
    "project:mem_search",
    "project:doc_search",
];

/// For both current pages and all families.
fn everywhere(test: impl Fn(&Lake, Tongue)) {
    for page in CURRENT {
        for tongue in Tongue::ALL {
            test(&Lake::of(page), tongue);
        }
    }
}

fn without() -> Say {
    Say {
        extension: None,
        ..say("hi")
    }
}

#[test]
fn a_message_without_the_extension_is_refused() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        refused(&asks.send(&without()), 400, "INVALID_ARGUMENT");
        let streamed = asks.ask(Op::Stream, "sk_xxxxxx", &without().params(tongue));
        refused(&streamed, 400, "INVALID_ARGUMENT");
        assert!(lake.heard().is_empty());
    });
}

#[test]
fn the_older_page_lets_it_in_without_memory() {
    let lake = Lake::of(Page::Older);
    for tongue in Tongue::ALL {
        lake.by(tongue).task(&without().in_full());
        let heard = lake.heard().pop().unwrap();
        assert_eq!((heard.extension, heard.skips_memory), (None, true));
        lake.by(tongue).task(&say("hi").in_full());
        assert!(!lake.heard().pop().unwrap().skips_memory);
    }
}

#[test]
fn an_empty_extension_means_the_own_actor_and_memory() {
    everywhere(|lake, tongue| {
        lake.by(tongue).task(&say("hi"));
        let heard = lake.heard().pop().unwrap();
        let own = "actor-00000000000000000000000000000001";
        assert_eq!(heard.actor.as_deref(), Some(own));
        assert!(!heard.skips_memory && heard.project.is_none() && heard.searches.is_empty());
    });
}

#[test]
fn the_extension_of_the_message_itself_is_not_read() {
    everywhere(|lake, tongue| {
        let mut params = without().params(tongue);
        params["message"]["metadata"] = json!({"memorylake": {}});
        let answer = lake.by(tongue).ask(Op::Send, "sk_xxxxxx", &params);
        refused(&answer, 400, "INVALID_ARGUMENT");
    });
}

#[test]
fn unknown_names_are_ignored() {
    everywhere(|lake, tongue| {
        let mut say = say("hi").with(json!({"actor_id": DELETED, "tomorrow": [1]}));
        say.configuration = json!({"blocking": true});
        let mut params = say.params(tongue);
        params["metadata"]["other"] = json!({"actorId": DELETED});
        let answer = lake.by(tongue).ask(Op::Send, say.key, &params);
        assert_eq!(answer.status(), 200, "{}", answer.body);
    });
}

#[test]
fn an_actor_has_to_be_of_the_workspace_and_active() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let of = |actor: &str| say("hi").with(json!({"actorId": actor}));
        asks.task(&of(ACTOR));
        assert_eq!(lake.heard().pop().unwrap().actor.as_deref(), Some(ACTOR));
        let unknown = "actor-ffffffffffffffffffffffffffffffff";
        refused(&asks.send(&of(unknown)), 400, "INVALID_ARGUMENT");
        refused(&asks.send(&of("jane")), 400, "INVALID_ARGUMENT");
        refused(&asks.send(&of(DELETED)), 400, "ACTOR_INACTIVE");
    });
}

#[test]
fn a_user_without_an_actor_has_to_name_one() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        refused(
            &asks.send(&say("hi").by("sk_no_actor")),
            400,
            "STATE_NOT_READY",
        );
        asks.task(&say("hi").by("sk_no_actor").with(json!({"actorId": ACTOR})));
    });
}

#[test]
fn permissions_on_an_actor_are_checked_when_it_comes_in() {
    for permission in ON_ACTOR {
        everywhere(|lake, tongue| {
            let asks = lake.by(tongue);
            let of = |actor: Value| {
                let extension = json!({"actorId": actor});
                say("hi").within("ctx").with(extension).in_full()
            };
            asks.task(&of(Value::Null));
            lake.deny("sk_xxxxxx", permission, ACTOR);
            lake.deny(
                "sk_xxxxxx",
                permission,
                "actor-00000000000000000000000000000001",
            );
            // The conversation has had its own actor before; the other is new to it.
            asks.task(&of(Value::Null));
            refused(&asks.send(&of(json!(ACTOR))), 403, "ACCESS_DENIED");
            refused(&asks.send(&say("hi")), 403, "ACCESS_DENIED");
        });
    }
}

#[test]
fn a_project_of_another_workspace_is_not_found() {
    everywhere(|lake, tongue| {
        let say = say("hi").with(json!({"readWriteProjectId": ELSEWHERE}));
        refused(&lake.by(tongue).send(&say), 404, "NOT_FOUND");
    });
}

#[test]
fn permissions_on_a_project_are_checked_when_a_conversation_starts() {
    for permission in ON_WRITE {
        everywhere(|lake, tongue| {
            let asks = lake.by(tongue);
            let within = |context: &str| {
                let extension = json!({"readWriteProjectId": PROJECT});
                say("hi").within(context).with(extension).in_full()
            };
            asks.task(&within("old"));
            lake.deny("sk_xxxxxx", permission, PROJECT);
            asks.task(&within("old"));
            refused(&asks.send(&within("new")), 403, "ACCESS_DENIED");
        });
    }
}

#[test]
fn files_need_a_project_named_by_their_own_message() {
    let files = [
        json!({"url": "drive://reports/1", "mediaType": "text/plain", "filename": "1.txt"}),
        json!({"raw": "aGk=", "mediaType": "text/plain", "filename": "hi.txt"}),
    ];
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let project = json!({"readWriteProjectId": PROJECT});
        for file in &files {
            let with = say("hi").within("ctx").part(file.clone()).in_full();
            refused(&asks.send(&with), 400, "INVALID_ARGUMENT");
            asks.task(&with.clone().with(project.clone()));
            // What the conversation is bound to is not enough.
            refused(&asks.send(&with), 400, "INVALID_ARGUMENT");
        }
        let link =
            json!({"url": "https://files.example/1", "mediaType": "text/plain", "filename": "1"});
        asks.task(&say("hi").part(link));
    });
}

#[test]
fn projects_to_read_are_of_one_message() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let ids = json!({"readOnlyProjectIds": [PROJECT, ELSEWHERE, "x", ANOTHER]});
        asks.task(&say("hi").within("ctx").with(ids).in_full());
        // Those that are not there are skipped.
        assert_eq!(lake.heard().pop().unwrap().searches, [PROJECT, ANOTHER]);
        asks.task(&say("hi").within("ctx").in_full());
        assert!(lake.heard().pop().unwrap().searches.is_empty());
    });
}

#[test]
fn every_project_to_read_needs_its_permissions() {
    for permission in ON_READ {
        everywhere(|lake, tongue| {
            let asks = lake.by(tongue);
            lake.deny("sk_xxxxxx", permission, ANOTHER);
            let ids = json!({"readOnlyProjectIds": [PROJECT, ANOTHER]});
            refused(&asks.send(&say("hi").with(ids)), 403, "ACCESS_DENIED");
        });
    }
}

#[test]
fn memory_can_be_skipped_for_a_message() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let skips = json!({"skipMemory": true, "readWriteProjectId": PROJECT});
        let mut say = say("hi").within("ctx").with(skips).in_full();
        asks.task(&say);
        let heard = lake.heard().pop().unwrap();
        assert!(heard.skips_memory);
        // The conversation is there, and bound, all the same; and access is checked.
        assert_eq!(heard.project.as_deref(), Some(PROJECT));
        say.extension = Some(json!({"readWriteProjectId": ANOTHER}));
        refused(&asks.send(&say), 400, "INVALID_ARGUMENT");
        say.extension = Some(json!({"skipMemory": true, "actorId": DELETED}));
        refused(&asks.send(&say), 400, "ACTOR_INACTIVE");
        say.extension = Some(json!({}));
        asks.task(&say);
        assert!(!lake.heard().pop().unwrap().skips_memory);
    });
}

#[test]
fn a_model_that_nobody_knows_fails_the_task() {
    everywhere(|lake, tongue| {
        let asks = lake.by(tongue);
        let with = |model: &str| {
            let extension = json!({"overrides": {"model": model}});
            say("echo hi").with(extension).in_full()
        };
        assert_eq!(answer(&asks.task(&with("gpt-4o"))), "hi");
        let task = asks.task(&with("gpt-none"));
        let message = &task["status"]["message"];
        let parts = crate::ask::parts(tongue, message);
        assert_eq!(parts[0]["text"], "LLM model config not found: gpt-none");
        assert_eq!(task["status"]["state"], crate::ask::state(tongue, "FAILED"));
        assert!(task.get("artifacts").is_none());
    });
}
