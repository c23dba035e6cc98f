//! Finished tasks that the agent shows without their answer are filled in from the replay of their events.
use serde_json::{Value, json};

use super::lake::{CALL, bound, gateway, refusal, replay, shown, subscribes, task, tell};
use crate::support::{
    agent::Agent,
    client::{Answer, Client},
    gateway::Gateway,
    stage::BINDINGS,
    words::{J03, J10, R03K, R03P, R10, Speak},
};

/// R03K has nothing in a GET that tells it from R03P.
const ALL: [Speak; 4] = [J03, R03P, J10, R10];

fn gets(gateway: &Gateway, who: &str, speak: Speak) -> Client {
    let (line, body) = speak.get();
    asks(gateway, who, line, &body)
}

fn asks(gateway: &Gateway, who: &str, line: &str, body: &str) -> Client {
    let fields = format!("content-type: application/json\r\nauthorization: Bearer {who}\r\n");
    let mut client = gateway.client();
    client.send(line, &fields, body);
    client
}

/// The agent shows the task in this state.
fn shows(agent: &Agent, rest: bool, state: &str) {
    let call = agent.next();
    assert!(!subscribes(&call, rest), "{:?}", call.asked);
    call.json(&bound(rest, &shown(state)));
}

/// The agent is asked for the replay, as this caller, and tells it.
fn replays(agent: &Agent, rest: bool, who: &str) {
    let call = agent.next();
    assert!(subscribes(&call, rest), "{:?}", call.asked);
    let bearer = format!("Bearer {who}");
    assert_eq!(call.asked.head.get("authorization"), Some(bearer.as_str()));
    tell(call, rest);
}

fn is_bare(speak: Speak, answer: &Answer) {
    let task = task(speak, answer);
    assert_eq!(
        (task.get("artifacts"), task.get("history")),
        (None, None),
        "{speak:?}"
    );
    assert_eq!(task["id"], "t1");
}

/// The whole task, as the answer to its message would have shown it.
fn is_whole(speak: Speak, answer: &Answer) {
    let task = task(speak, answer);
    let old = |mut part: Value| {
        if matches!(speak, J03 | R03K) {
            part["kind"] = if part.get("data").is_some() {
                "data"
            } else {
                "text"
            }
            .into();
        } else if speak == R03P && part.get("data").is_some() {
            part["data"] = json!({"data": part["data"]});
        }
        part
    };
    let parts = if speak == R03P { "content" } else { "parts" };
    let answer_text = old(json!({"text": "Paris is the capital."}));
    assert_eq!(
        task["artifacts"][0]["parts"],
        json!([answer_text]),
        "{speak:?} {task}"
    );
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
    let call: Value = serde_json::from_str(CALL).unwrap();
    let said: Vec<&Value> = task["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m[parts])
        .collect();
    let wanted = [
        json!([old(
            json!({"text": "hm", "metadata": {"adk_thought": true}})
        )]),
        json!([old(call)]),
        json!([answer_text]),
    ];
    assert_eq!(said, wanted.iter().collect::<Vec<_>>(), "{speak:?}");
    assert_eq!(task["history"][2]["messageId"], "t1-11");
    assert_eq!(
        task["status"]["timestamp"], "2026-01-02T03:04:05.000Z",
        "{speak:?}"
    );
}

#[test]
fn who_polls_gets_the_answer_in_every_dialect() {
    for rest in BINDINGS {
        for speak in ALL {
            let agent = Agent::start();
            let gateway = gateway(&agent, rest, "", "");
            let mut client = gets(&gateway, "ann", speak);
            shows(&agent, rest, "COMPLETED");
            replays(&agent, rest, "ann");
            is_whole(speak, &client.answer());
            // Kept, for every dialect.
            for again in ALL {
                let mut client = gets(&gateway, "ann", again);
                shows(&agent, rest, "COMPLETED");
                is_whole(again, &client.answer());
            }
            assert!(agent.is_left_alone_now());
        }
    }
}

#[test]
fn the_other_way_to_write_v03_rest_is_filled_in_where_it_is_the_only_one() {
    let agent = Agent::start();
    let kind = "dialects: {v03_rest_dialects: [kind]}";
    let gateway = gateway(&agent, true, "", kind);
    let mut client = gets(&gateway, "ann", R03K);
    shows(&agent, true, "COMPLETED");
    replays(&agent, true, "ann");
    is_whole(R03K, &client.answer());
}

#[test]
fn numbers_stay_as_the_agent_wrote_them() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    let mut client = gets(&gateway, "ann", R10);
    shows(&agent, true, "COMPLETED");
    replays(&agent, true, "ann");
    let body = client.answer().body;
    assert!(body.contains(r#""args":{"n":2.0}"#), "{body}");
}

#[test]
fn as_much_history_as_was_asked_for() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    for (line, wanted) in [
        ("GET /tasks/t1?historyLength=2", Some(2)),
        ("GET /tasks/t1?historyLength=0", None),
        ("GET /tasks/t1?historyLength=9", Some(3)),
        ("GET /v1/tasks/t1?historyLength=1", Some(1)),
    ] {
        let mut client = asks(&gateway, "ann", line, "");
        shows(&agent, true, "COMPLETED");
        if line.ends_with("=2") {
            replays(&agent, true, "ann");
        }
        let task = client.answer().json();
        assert_eq!(task["history"].as_array().map(Vec::len), wanted, "{line}");
        let history = task["history"].as_array().cloned().unwrap_or_default();
        if let Some(last) = history.last() {
            assert_eq!(last["messageId"], "t1-11", "{line}");
        }
        assert!(task["artifacts"][0].is_object(), "{line}");
    }
}

#[test]
fn tasks_that_run_or_failed_or_show_their_answer_pass_as_they_are() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    for state in [
        "SUBMITTED",
        "WORKING",
        "FAILED",
        "CANCELED",
        "REJECTED",
        "INPUT_REQUIRED",
    ] {
        let mut client = gets(&gateway, "ann", R10);
        shows(&agent, true, state);
        let answer = client.answer();
        assert_eq!(answer.body, shown(state));
    }
    let full = shown("COMPLETED").replace(
        r#""status""#,
        r#""artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}],"status""#,
    );
    let mut client = gets(&gateway, "ann", R10);
    agent.next().json(&full);
    assert_eq!(client.answer().body, full);
    assert!(agent.is_left_alone_now());
}

/// What one credential got is not shown to another: the agent decides for each.
#[test]
fn each_credential_has_its_own_replay() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, "", "");
        let mut client = gets(&gateway, "ann", J10);
        shows(&agent, rest, "COMPLETED");
        replays(&agent, rest, "ann");
        is_whole(J10, &client.answer());

        let mut client = gets(&gateway, "bob", J10);
        shows(&agent, rest, "COMPLETED");
        let call = agent.next();
        assert!(subscribes(&call, rest));
        assert_eq!(call.asked.head.get("authorization"), Some("Bearer bob"));
        call.answer(
            403,
            "content-type: application/json\r\n",
            refusal("ACCESS_DENIED"),
        );
        is_bare(J10, &client.answer());

        // Nor does a field that may be one, whatever it is called.
        let mut client = gateway.client();
        let fields = "authorization: Bearer ann\r\nx-other-key: 7\r\n";
        client.send("GET /tasks/t1", fields, "");
        shows(&agent, rest, "COMPLETED");
        replays(&agent, rest, "ann");
        is_whole(R10, &client.answer());

        // But what is no credential makes no difference.
        let mut client = gateway.client();
        let fields = "authorization: Bearer ann\r\nuser-agent: x/2\r\ntraceparent: 00-1-2-01\r\n\
                      x-forwarded-host: of.ann\r\nforwarded: for=192.0.2.1\r\n";
        client.send("GET /tasks/t1", fields, "");
        shows(&agent, rest, "COMPLETED");
        is_whole(R10, &client.answer());
        assert!(agent.is_left_alone_now());
    }
}

/// A proxy in front that logs people in says by such fields who they are.
#[test]
fn who_is_named_by_a_forwarded_field_has_a_replay_of_their_own() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    for name in ["user", "email", "groups", "access-token"] {
        for who in ["ann", "bob"] {
            let mut client = gateway.client();
            let field = format!("x-forwarded-{name}: {who}\r\n");
            client.send("GET /tasks/t1", &field, "");
            shows(&agent, true, "COMPLETED");
            let call = agent.next();
            assert!(subscribes(&call, true), "{name} {who}: {:?}", call.asked);
            let told = call.asked.head.get(&format!("x-forwarded-{name}"));
            assert_eq!(told, Some(who));
            tell(call, true);
            is_whole(R10, &client.answer());
        }
    }
}

#[test]
fn whatever_fails_the_plain_answer_passes_and_the_next_call_tries_again() {
    let agent = Agent::start();
    let gateway = gateway(
        &agent,
        true,
        "",
        "limits: {replay: 4KiB, event: 2KiB, replay_time: 300ms}",
    );
    let long = format!(": {}\n\n", "x".repeat(1000));
    for case in 0..9 {
        let mut client = gets(&gateway, "ann", R10);
        shows(&agent, true, "COMPLETED");
        let mut call = agent.next();
        assert!(subscribes(&call, true), "{:?}", call.asked);
        match case {
            0 => call.answer(
                404,
                "content-type: application/json\r\n",
                refusal("NOT_FOUND"),
            ),
            1 => call.json(&shown("COMPLETED")),
            2 => {
                drop(call); // on a connection that was used before: it may have been closed, and is tried again
                drop(agent.next());
            }
            3 => {
                call.begin(); // cut within
                call.event(&replay()[0]);
                drop(call);
            }
            4 => {
                call.begin(); // ended before its end
                call.event(&replay()[0]);
                call.end();
            }
            5 => {
                call.begin();
                call.event(&replay()[6].replace("t1", "t2"));
                call.end();
            }
            6 => {
                call.begin();
                call.event(&replay()[6].replace("COMPLETED", "FAILED"));
                call.end();
            }
            7 => {
                call.begin(); // longer than limits.replay
                for _ in 0..5 {
                    call.chunk(&long);
                }
                for event in replay() {
                    call.event(&event); // whole, for who read that far
                }
                call.end();
            }
            _ => {
                call.begin(); // longer than limits.replay_time
                call.closed();
            }
        }
        let answer = client.answer();
        assert_eq!(answer.body, shown("COMPLETED"), "{case}");
    }
    let mut client = gets(&gateway, "ann", R10);
    shows(&agent, true, "COMPLETED");
    replays(&agent, true, "ann");
    is_whole(R10, &client.answer());
}

#[test]
fn one_replay_serves_all_who_ask_at_once() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    let mut first = gets(&gateway, "ann", R10);
    shows(&agent, true, "COMPLETED");
    let flies = agent.next();
    assert!(subscribes(&flies, true));
    let mut others: Vec<(Speak, Client)> = ALL.map(|s| (s, gets(&gateway, "ann", s))).into();
    for _ in ALL {
        shows(&agent, true, "COMPLETED");
    }
    assert!(agent.is_left_alone_now());
    tell(flies, true);
    is_whole(R10, &first.answer());
    for (speak, client) in &mut others {
        is_whole(*speak, &client.answer());
    }
    assert!(agent.is_left_alone_now());
}

/// A failure is shared as well: the others do not fail one after the other.
#[test]
fn who_waited_for_a_replay_that_failed_gets_the_plain_answer_at_once() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    let mut first = gets(&gateway, "ann", R10);
    shows(&agent, true, "COMPLETED");
    let flies = agent.next();
    let mut others: Vec<(Speak, Client)> = ALL.map(|s| (s, gets(&gateway, "ann", s))).into();
    for _ in ALL {
        shows(&agent, true, "COMPLETED");
    }
    // The gateway has one worker: what came before is where it waits once it answers this.
    for _ in 0..5 {
        assert_eq!(gateway.ask("GET /no/such/path", "", "").status(), 404);
    }
    flies.answer(500, "", "");
    is_bare(R10, &first.answer());
    for (speak, client) in &mut others {
        is_bare(*speak, &client.answer());
    }
    assert!(agent.is_left_alone_now());
}

/// Who reads a replay may leave: the next in line begins it anew.
#[test]
fn a_caller_that_leaves_takes_the_replay_from_nobody() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "");
    let first = gets(&gateway, "ann", R10);
    shows(&agent, true, "COMPLETED");
    let mut flies = agent.next();
    let mut second = gets(&gateway, "ann", J03);
    shows(&agent, true, "COMPLETED");
    drop(first);
    flies.closed();
    replays(&agent, true, "ann");
    is_whole(J03, &second.answer());
}

/// What the agent showed is known before its replay is asked for, whatever becomes of that.
#[test]
fn a_replay_that_hangs_holds_no_conversation() {
    for rest in BINDINGS {
        for leaves in [true, false] {
            let agent = Agent::start();
            let gateway = gateway(&agent, rest, "", "conversation: {on_busy: reject}");
            let says = |what: &str| {
                let (line, body) = R10.send();
                let with = format!(r#""message":{{"contextId":"c1","metadata":{{"n":"{what}"}},"#);
                asks(
                    &gateway,
                    "ann",
                    line,
                    &body.replacen(r#""message":{"#, &with, 1),
                )
            };
            let mut first = says("one");
            let call = agent.next();
            assert!(call.asked.body.contains(r#""n":"one""#), "{:?}", call.asked);
            let working = shown("WORKING");
            call.json(&bound(rest, &format!(r#"{{"task":{working}}}"#)));
            assert_eq!(first.answer().status(), 200);

            let polls = gets(&gateway, "ann", R10);
            shows(&agent, rest, "COMPLETED");
            let mut hangs = agent.next();
            assert!(subscribes(&hangs, rest));
            let polls = (!leaves).then_some(polls);
            if leaves {
                hangs.closed();
            }
            let mut next = says("two");
            let call = agent.next(); // and no question for the task
            assert!(call.asked.body.contains(r#""n":"two""#), "{:?}", call.asked);
            let done = shown("COMPLETED").replace("t1", "t2");
            call.json(&bound(rest, &format!(r#"{{"task":{done}}}"#)));
            assert_eq!(next.answer().status(), 200);
            if let Some(mut polls) = polls {
                tell(hangs, rest);
                is_whole(R10, &polls.answer());
            }
        }
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let agent = Agent::start();
    let gateway = gateway(&agent, true, "", "limits: {replays: 300}");
    for _ in 0..3 {
        let mut client = gets(&gateway, "ann", R10);
        shows(&agent, true, "COMPLETED");
        let call = agent.next();
        assert!(subscribes(&call, true), "it is too large to be kept");
        tell(call, true);
        is_whole(R10, &client.answer());
    }
}

#[test]
fn without_the_setting_and_with_the_face_tasks_are_as_the_agent_shows_them() {
    for (backend, more) in [
        ("hydrate_tasks: false", ""),
        ("", "face: memorylake"),
        (
            "hydrate_tasks: true",
            "face: {like: memorylake, product_errors: false}",
        ),
    ] {
        let agent = Agent::start();
        let gateway = gateway(&agent, true, backend, more);
        for speak in [R10, J10, J03] {
            let mut client = gets(&gateway, "ann", speak);
            shows(&agent, true, "COMPLETED");
            is_bare(speak, &client.answer());
        }
        assert!(agent.is_left_alone_now());
    }
}
