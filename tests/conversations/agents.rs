//! One agent per conversation, where a part of the path names the agent.
use crate::support::{
    agent::Agent,
    client::Client,
    gateway::Gateway,
    message::{Message, Refusal},
    stage::{ANN, BINDINGS, PATIENT, Stage, Who},
    words::ALL,
};

/// Agents of workspaces below `/w/…/agents/…`.
fn bound(agent: &Agent, rest: bool) -> Gateway {
    let binding = if rest { "rest" } else { "jsonrpc" };
    let path = "/w/{w}/agents/{a}/a2a";
    let addr = agent.addr;
    Gateway::of(&format!(
        "workers: 1\nbackend: {{binding: {binding}}}\n{PATIENT}\n\
         routes: [{{path: '{path}', backend: 'http://{addr}{path}', agent_parameter: a}}]\n"
    ))
}

/// Somebody says something to one agent.
fn says(stage: &Stage, who: Who, at: &str, message: Message<'_>) -> Client {
    let (line, body) = message.words(who.speak);
    let (verb, path) = line.split_once(' ').unwrap();
    let path = path.trim_end_matches('/');
    stage.writes(who, &format!("{verb} {at}{path}"), &body)
}

/// One exchange with one agent, which it sees.
fn talks(stage: &Stage, who: Who, at: &str, message: Message<'_>, context: &str) {
    let client = says(stage, who, at, message);
    let seen = stage.reached(message);
    let line = &seen.call.asked.head.line;
    assert!(line.starts_with(&format!("POST {at}")), "{line}");
    stage.ends((client, seen), "t1", context);
}

fn refused(stage: &Stage, who: Who, at: &str, message: Message<'_>) -> Refusal {
    let mut client = says(stage, who, at, message);
    let refusal = stage.is_stopped(who, &mut client);
    refusal.is_told_as_bad(who.speak);
    assert_eq!(refusal.reason, "CONTEXT_BOUND", "{refusal:?}");
    refusal
}

#[test]
fn a_conversation_stays_with_the_agent_that_it_was_first_used_with() {
    for rest in BINDINGS {
        let stage = Stage::build(|agent| bound(agent, rest));
        let (one, two) = ("/w/w1/agents/one/a2a", "/w/w1/agents/two/a2a");
        for speak in ALL {
            let ann = ANN.speaking(speak);
            let context = format!("c-{speak:?}");
            for (kind, other) in [
                (Message::send("m1"), Message::send("m2")),
                (Message::stream("m1"), Message::stream("m2")),
            ] {
                talks(&stage, ann, one, kind.of(&context), &context);
                refused(&stage, ann, two, other.of(&context));
                talks(&stage, ann, one, other.of(&context), &context);
                // Another conversation, and the same one elsewhere, are not bound.
                let elsewhere = "/w/w2/agents/two/a2a";
                talks(&stage, ann, elsewhere, kind.of(&context), &context);
            }
        }
        talks(&stage, ANN, two, Message::send("m3").of("c2"), "c2");
        refused(&stage, ANN, one, Message::send("m4").of("c2"));
        assert!(stage.agent.is_left_alone());
    }
}

#[test]
fn a_reply_s_conversation_stays_with_its_agent() {
    for rest in BINDINGS {
        let stage = Stage::build(|agent| bound(agent, rest));
        let (one, two) = ("/w/w1/agents/one/a2a", "/w/w1/agents/two/a2a");
        talks(&stage, ANN, one, Message::send("m1"), "c1");
        talks(&stage, ANN, one, Message::stream("m1"), "c2");
        for context in ["c1", "c2"] {
            refused(&stage, ANN, two, Message::send("m2").of(context));
            talks(&stage, ANN, one, Message::send("m3").of(context), context);
        }
    }
}

#[test]
fn another_spelling_of_the_agent_is_the_same_agent() {
    let stage = Stage::build(|agent| bound(agent, false));
    let (one, same) = ("/w/w1/agents/one/a2a", "/w/w1/agents/%6fne/a2a");
    talks(&stage, ANN, one, Message::send("m1").of("c1"), "c1");
    let message = Message::send("m2").of("c1");
    let client = says(&stage, ANN, same, message);
    let seen = stage.reached(message);
    stage.ends((client, seen), "t1", "c1");
}
