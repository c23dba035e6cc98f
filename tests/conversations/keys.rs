//! What is one conversation: the spelling does not matter, the agent behind does.
use crate::support::{
    agent::Agent,
    gateway::Gateway,
    message::Message,
    seen::Seen,
    stage::{ANN, BINDINGS, PATIENT, Stage},
    words::{ALL, J03, J10, R03P, R10},
};

#[test]
fn an_escaped_spelling_is_the_same_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let held = stage.talk(ANN, Message::send("m1").of("c1"));
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for message in [Message::send("m2"), Message::stream("m2")] {
                let (line, body) = message.of("c1").words(speak);
                let body = body.replace(r#""c1""#, r#""\u0063\u0031""#);
                let mut client = stage.writes(ann, line, &body);
                assert!(stage.is_stopped(ann, &mut client).is_busy());
            }
        }
        stage.ends(held, "t1", "c1");
    }
}

#[test]
fn names_in_snake_case_say_the_same_conversation() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let held = stage.talk(ANN, Message::send("m1").of("c1"));
        for speak in [R03P, J10, R10] {
            let ann = ANN.speaking(speak);
            let (line, body) = Message::send("m2").of("c1").words(speak);
            let body = body.replace("contextId", "context_id");
            let mut client = stage.writes(ann, line, &body);
            assert!(stage.is_stopped(ann, &mut client).is_busy(), "{speak:?}");
        }
        stage.ends(held, "t1", "c1");

        // The other way round: what it holds is what others find.
        let (line, body) = Message::send("m1").of("c1").words(R03P);
        let body = body.replace("contextId", "context_id");
        let client = stage.writes(ANN.speaking(R03P), line, &body);
        let seen = stage.reached(Message::send("m1").of("c1"));
        stage.refused(ANN.speaking(J03), Message::send("m2").of("c1"));
        stage.ends((client, seen), "t1", "c1");
    }
}

#[test]
fn text_beyond_ascii_is_compared_as_it_is_decoded() {
    let stage = Stage::set(false, PATIENT);
    let held = stage.talk(ANN, Message::send("m1").of("caf\u{e9} \u{1f600}"));
    let (line, body) = Message::send("m2").of("X").words(J10);
    let body = body.replace(r#""X""#, r#""caf\u00e9 \ud83d\ude00""#);
    let mut client = stage.writes(ANN, line, &body);
    assert!(stage.is_stopped(ANN, &mut client).is_busy());
    // Composed or not is another text.
    let other = Message::send("m2").of("cafe\u{301} \u{1f600}");
    stage.ends(stage.admitted(ANN, other), "t2", "cafe\u{301} \u{1f600}");
    stage.ends(held, "t1", "caf\u{e9} \u{1f600}");
}

#[test]
fn a_context_id_may_have_1024_bytes_and_no_more() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let longest = "x".repeat(1024);
        let longer = "x".repeat(1025);
        // Bytes are counted, not characters.
        let wide = "\u{e9}".repeat(513);
        for speak in ALL {
            let ann = ANN.speaking(speak);
            for message in [Message::send("m1"), Message::stream("m1")] {
                stage.ends(stage.admitted(ann, message.of(&longest)), "t1", &longest);
                for long in [&longer, &wide] {
                    let refusal = stage.stopped(ann, message.of(long));
                    refusal.is_told_as_bad(speak);
                    assert_eq!(refusal.reason, "INVALID_PARAMS", "{refusal:?}");
                }
            }
        }
    }
}

/// A gateway with routes to the agent, given as path and backend path.
fn routed(agent: &Agent, rest: bool, routes: &[(&str, &str)]) -> Gateway {
    let addr = agent.addr;
    let route = |(path, backend): &(&str, &str)| {
        format!("  - {{path: '{path}', backend: 'http://{addr}{backend}'}}\n")
    };
    let routes: String = routes.iter().map(route).collect();
    let binding = if rest { "rest" } else { "jsonrpc" };
    Gateway::of(&format!(
        "workers: 1\nbackend: {{binding: {binding}}}\n{PATIENT}\nroutes:\n{routes}"
    ))
}

#[test]
fn two_routes_to_one_agent_share_its_conversations() {
    for rest in BINDINGS {
        let routes = [("/a", "/x"), ("/b", "/x"), ("/c", "/y")];
        let stage = Stage::build(|agent| routed(agent, rest, &routes));
        let message = Message::send("m1").of("c1");
        let (_, body) = message.words(J10);
        let mut client = stage.writes(ANN, "POST /a", &body);
        let seen = stage.reached(message);
        let mut other = stage.writes(ANN, "POST /b", &body);
        assert!(stage.is_stopped(ANN, &mut other).is_busy());
        // Another agent has conversations of its own.
        let mut third = stage.writes(ANN, "POST /c", &body);
        stage.reached(message).completes("t3", "c1");
        assert_eq!(third.answer().status(), 200);
        seen.completes("t1", "c1");
        assert_eq!(client.answer().status(), 200);
        let mut other = stage.writes(ANN, "POST /b", &body);
        stage.reached(message).completes("t2", "c1");
        assert_eq!(other.answer().status(), 200);
    }
}

#[test]
fn parameters_of_a_path_are_compared_as_they_are_decoded() {
    let stage = Stage::build(|agent| routed(agent, false, &[("/w/{w}/a", "/w/{w}/a")]));
    let message = Message::send("m1").of("c1");
    let (_, body) = message.words(J10);
    let mut client = stage.writes(ANN, "POST /w/one/a", &body);
    let seen: Seen = stage.reached(message);
    let mut other = stage.writes(ANN, "POST /w/%6fne/a", &body);
    assert!(stage.is_stopped(ANN, &mut other).is_busy());
    let mut third = stage.writes(ANN, "POST /w/two/a", &body);
    stage.reached(message).completes("t3", "c1");
    assert_eq!(third.answer().status(), 200);
    seen.completes("t1", "c1");
    assert_eq!(client.answer().status(), 200);
}
