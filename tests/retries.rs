//! Messages that are sent again, over real sockets: what the agent sees of them, and what their callers hear.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "retries/replicas.rs"]
mod replicas;

use serde_json::Value;

use support::{
    agent::{Agent, Call},
    client::{Answer, Client},
    gateway::Gateway,
    words::{self, ALL, DONE, J03, J10, R10, Speak, TASK, WORKING, Words, result, wrapped},
};

const ON: &str = "retry: {message_id: 'on'}";
const ENDED: &str =
    r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
const HELLO: &str =
    r#"{"message":{"messageId":"r1","role":"ROLE_AGENT","parts":[{"text":"hello"}]}}"#;

fn start() -> (Agent, Gateway) {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ON);
    (agent, gateway)
}

fn asked(gateway: &Gateway, (line, body): Words) -> Client {
    asked_as(gateway, "", (line, body))
}

fn asked_as(gateway: &Gateway, fields: &str, (line, body): Words) -> Client {
    let mut client = gateway.client();
    let fields = format!(
        "content-type: application/json\r\n{}{fields}",
        version(line, &body)
    );
    client.send(line, &fields, &body);
    client
}

fn version(line: &str, body: &str) -> &'static str {
    if line.contains("/v1/") || body.contains("message/") {
        ""
    } else {
        "a2a-version: 1.0\r\n"
    }
}

fn method(call: &Call) -> String {
    call.asked.json()["method"].as_str().unwrap().to_owned()
}

/// The next request, which has to be this one.
fn next(agent: &Agent, wanted: &str) -> Call {
    let call = agent.next();
    assert_eq!(method(&call), wanted);
    call
}

/// What a send's answer or an event of this dialect says, without what is around it.
fn inner(speak: Speak, said: &Value) -> Value {
    let said = if speak.is_rpc() {
        &said["result"]
    } else {
        said
    };
    let named = ["task", "message"]
        .into_iter()
        .find_map(|key| said.get(key));
    named.unwrap_or(said).clone()
}

/// The only event of an answer that is whole.
fn lone_event(client: &mut Client) -> Value {
    let answer = client.answer();
    assert_eq!(answer.head.get("content-type"), Some("text/event-stream"));
    let event = answer.body.strip_suffix("\n\n").unwrap();
    assert!(!event.contains("\n\n"), "{event}");
    words::data(event).0
}

#[track_caller]
fn is_refused(speak: Speak, answer: &Answer, status: u16, code: i64, reason: &str) {
    assert!(answer.body.contains(reason), "{}", answer.body);
    let status = if speak.is_rpc() { 200 } else { status };
    assert_eq!(answer.status(), status);
    let code = if speak == R10 {
        i64::from(status)
    } else {
        code
    };
    assert_eq!(speak.code(&answer.json()), code);
}

#[test]
fn a_send_that_runs_is_joined_and_each_hears_it_in_its_own_words() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J03.send());
    let call = next(&agent, "SendMessage");
    let mut others: Vec<_> = ALL.map(|s| (s, asked(&gateway, s.send()))).into();
    let (line, body) = J10.send();
    let mut renamed = asked(&gateway, (line, body.replace(r#""q1""#, "7")));
    assert!(agent.is_left_alone());
    call.json(&result(ENDED));

    assert_eq!(first.answer().json()["result"]["kind"], "task");
    for (speak, client) in &mut others {
        let answer = client.answer();
        assert_eq!(answer.status(), 200, "{speak:?}");
        let json = answer.json();
        assert_eq!(inner(*speak, &json)["id"], "t1", "{speak:?}: {json}");
        if speak.is_rpc() {
            assert_eq!(json["id"], "q1");
        }
    }
    assert_eq!(renamed.answer().json()["id"], 7);
    assert_eq!(agent.seen(), 1);
}

#[test]
fn a_fault_is_shared_by_those_that_joined() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J10.send());
    let call = next(&agent, "SendMessage");
    let mut second = asked(&gateway, R10.send());
    assert!(agent.is_left_alone());
    call.reset();
    is_refused(J10, &first.answer(), 502, -32603, "BACKEND_BROKEN");
    is_refused(R10, &second.answer(), 502, -32603, "BACKEND_BROKEN");
}

#[test]
fn a_stream_that_runs_is_joined_by_subscribing() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J10.stream());
    let mut call = next(&agent, "SendStreamingMessage");
    call.begin();
    let mut second = asked(&gateway, J03.stream());
    assert!(agent.is_left_alone(), "the task is not known yet");
    call.event(&result(&wrapped()));
    first.head();
    assert!(first.event().unwrap().contains("t1"));

    let mut joined = next(&agent, "SubscribeToTask");
    assert_eq!(joined.asked.json()["params"]["id"], "t1");
    joined.begin();
    for event in [&wrapped(), WORKING, DONE] {
        joined.event(&result(event));
    }
    joined.end();
    assert_eq!(second.head().get("content-type"), Some("text/event-stream"));
    let events: Vec<_> = second.rest().iter().map(|e| words::data(e).0).collect();
    assert_eq!(events[0]["result"]["kind"], "task");
    assert_eq!(events[0]["id"], "q1");
    assert_eq!(events[2]["result"]["final"], true);

    call.event(&result(DONE));
    call.end();
    assert_eq!(first.rest().len(), 1);
    // At rest: as it is now, and nothing more.
    let mut third = asked(&gateway, R10.stream());
    let get = next(&agent, "GetTask");
    get.json(&result(TASK));
    assert_eq!(lone_event(&mut third)["task"]["id"], "t1");
    assert_eq!(agent.seen(), 3);
}

#[test]
fn a_task_that_is_known_is_told_as_it_is_now() {
    for speak in ALL {
        let (agent, gateway) = start();
        let mut first = asked(&gateway, J03.send());
        next(&agent, "SendMessage").json(&result(&wrapped()));
        assert_eq!(
            first.answer().json()["result"]["status"]["state"],
            "working"
        );

        let mut second = asked(&gateway, speak.send());
        let get = next(&agent, "GetTask");
        assert_eq!(get.asked.json()["params"]["id"], "t1");
        let now = TASK.replace("WORKING", "COMPLETED");
        get.json(&result(&now));
        let answer = second.answer();
        assert_eq!(answer.status(), 200);
        let json = answer.json();
        let state = inner(speak, &json)["status"]["state"].to_string();
        assert!(state.to_lowercase().contains("completed"), "{json}");
        if matches!(speak, J10) {
            assert_eq!(json["result"]["task"]["id"], "t1");
        }
        assert_eq!(agent.seen(), 2);
        // What was told freed the conversation as well.
        let _next = asked(&gateway, said(R10, r#""contextId":"c1","#, "m2", "on"));
        next(&agent, "SendMessage");
    }
}

/// A message of R10 or J10 with another id or text; `more` is further members.
fn said(speak: Speak, more: &str, id: &str, text: &str) -> Words {
    let (line, body) = speak.send();
    let body = body.replace(
        r#""messageId":"m1","#,
        &format!(r#""messageId":"{id}",{more}"#),
    );
    (line, body.replace(r#""hi""#, &format!("{text:?}")))
}

#[test]
fn a_stream_and_a_send_answer_for_each_other() {
    // A stream that runs, sent again as a send.
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.stream());
    let mut call = next(&agent, "SendStreamingMessage");
    call.begin();
    call.event(&result(&wrapped()));
    first.head();
    first.event();
    let mut second = asked(&gateway, R10.send());
    next(&agent, "GetTask").json(&result(TASK));
    assert_eq!(second.answer().json()["task"]["id"], "t1");

    // A send whose task goes on, sent again as a stream.
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.send());
    next(&agent, "SendMessage").json(&result(&wrapped()));
    first.answer();
    let mut second = asked(&gateway, R10.stream());
    next(&agent, "GetTask").json(&result(TASK));
    let mut call = next(&agent, "SubscribeToTask");
    call.begin();
    call.event(&result(&wrapped()));
    call.event(&result(DONE));
    call.end();
    second.head();
    let events = second.rest();
    assert_eq!(events.len(), 2, "{events:?}");

    // The same, at rest.
    let mut third = asked(&gateway, J03.stream());
    next(&agent, "GetTask").json(&result(&TASK.replace("WORKING", "COMPLETED")));
    assert_eq!(lone_event(&mut third)["result"]["kind"], "task");
}

#[test]
fn a_bare_message_is_told_again_without_its_agent() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J03.send());
    next(&agent, "SendMessage").json(&result(HELLO));
    assert_eq!(first.answer().json()["result"]["messageId"], "r1");
    for speak in ALL {
        let answer = asked(&gateway, speak.send()).answer();
        let json = answer.json();
        assert_eq!(answer.status(), 200);
        assert_eq!(inner(speak, &json)["messageId"], "r1", "{json}");
        let event = lone_event(&mut asked(&gateway, speak.stream()));
        assert_eq!(inner(speak, &event)["messageId"], "r1", "{event}");
    }
    assert_eq!(agent.seen(), 1);

    // One that came as an event.
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J03.stream());
    let mut call = next(&agent, "SendStreamingMessage");
    call.begin();
    call.event(&result(HELLO));
    call.end();
    first.head();
    assert_eq!(first.rest().len(), 1);
    let json = asked(&gateway, R10.send()).answer().json();
    assert_eq!(json["message"]["messageId"], "r1", "{json}");
    assert_eq!(agent.seen(), 1);
}

#[test]
fn a_bare_message_too_large_to_keep_is_not_asked_for_again() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, J10.send());
    let large = HELLO.replace("hello", &"x".repeat(64 * 1024));
    next(&agent, "SendMessage").json(&result(&large));
    assert_eq!(first.answer().status(), 200);
    let answer = asked(&gateway, R10.send()).answer();
    is_refused(R10, &answer, 400, -32602, "DUPLICATE_MESSAGE");
    assert_eq!(agent.seen(), 1);
}

#[test]
fn the_id_of_a_message_that_said_something_else_is_refused() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.send());
    let call = next(&agent, "SendMessage");
    for speak in [J10, R10] {
        let answer = asked(&gateway, said(speak, "", "m1", "bye")).answer();
        is_refused(speak, &answer, 400, -32602, "DUPLICATE_MESSAGE");
    }
    let (line, body) = J03.stream();
    let mut stream = asked(&gateway, (line, body.replace(r#""hi""#, r#""bye""#)));
    let told = lone_event(&mut stream);
    assert_eq!(told["error"]["data"]["reason"], "DUPLICATE_MESSAGE");
    call.json(&result(ENDED));
    assert_eq!(first.answer().status(), 200);
    let answer = asked(&gateway, said(R10, "", "m1", "bye")).answer();
    is_refused(R10, &answer, 400, -32602, "DUPLICATE_MESSAGE");
    // The same, said in other words.
    let same = said(R10, r#""extensions":[],"metadata":{},"#, "m1", "hi");
    let mut second = asked(&gateway, same);
    next(&agent, "GetTask").json(&result(TASK));
    assert_eq!(second.answer().status(), 200);
}

#[test]
fn what_may_have_begun_is_never_sent_again() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.send());
    next(&agent, "SendMessage").reset();
    is_refused(R10, &first.answer(), 502, -32603, "BACKEND_BROKEN");
    for speak in ALL {
        let answer = asked(&gateway, speak.send()).answer();
        is_refused(speak, &answer, 502, -32603, "OUTCOME_UNKNOWN");
    }
    assert_eq!(agent.seen(), 1);

    // Nor what the agent failed at.
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.send());
    next(&agent, "SendMessage").answer(500, "", "");
    assert_eq!(first.answer().status(), 500);
    let answer = asked(&gateway, R10.send()).answer();
    is_refused(R10, &answer, 502, -32603, "OUTCOME_UNKNOWN");
    assert_eq!(agent.seen(), 1);
}

#[test]
fn a_stream_that_broke_is_answered_by_its_task() {
    let (agent, gateway) = start();
    let mut first = asked(&gateway, R10.stream());
    let mut call = next(&agent, "SendStreamingMessage");
    call.begin();
    call.event(&result(&wrapped()));
    first.head();
    first.event();
    call.reset();
    assert!(first.rest()[0].contains("BACKEND_BROKEN"));
    let mut second = asked(&gateway, R10.stream());
    next(&agent, "GetTask").json(&result(&TASK.replace("WORKING", "FAILED")));
    let task = &lone_event(&mut second)["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
}

#[test]
fn what_was_not_begun_is_sent_again() {
    let (agent, gateway) = start();
    for status in [400, 401, 429] {
        let mut first = asked(&gateway, R10.send());
        next(&agent, "SendMessage").answer(status, "", "");
        assert_eq!(first.answer().status(), status);
    }
    let mut again = asked(&gateway, R10.send());
    next(&agent, "SendMessage").json(&result(ENDED));
    assert_eq!(again.answer().status(), 200);
}

#[test]
fn another_caller_sends_another_message() {
    let (agent, gateway) = start();
    let _one = asked_as(&gateway, "authorization: Bearer one\r\n", R10.send());
    let _first = next(&agent, "SendMessage");
    let mut two = asked_as(&gateway, "authorization: Bearer two\r\n", R10.send());
    let second = next(&agent, "SendMessage");
    second.json(&result(ENDED));
    assert_eq!(two.answer().status(), 200);
}

#[test]
fn a_message_without_an_id_and_any_where_it_is_off_is_new() {
    let (agent, gateway) = start();
    let (line, body) = R10.send();
    let nameless = (line, body.replace(r#""messageId":"m1","#, ""));
    let _one = asked(&gateway, nameless.clone());
    let one = next(&agent, "SendMessage");
    let _two = asked(&gateway, nameless);
    let two = next(&agent, "SendMessage");
    let id = |c: &Call| c.asked.json()["params"]["message"]["messageId"].clone();
    assert!(id(&one).is_string() && id(&one) != id(&two));

    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let _one = asked(&gateway, R10.send());
    let _first = next(&agent, "SendMessage");
    let _two = asked(&gateway, R10.send());
    next(&agent, "SendMessage");
}

#[test]
fn a_busy_conversation_does_not_refuse_its_own_message() {
    let (agent, gateway) = start();
    let words = |id| said(R10, r#""contextId":"c1","#, id, "hi");
    let mut first = asked(&gateway, words("m1"));
    let call = next(&agent, "SendMessage");
    let mut again = asked(&gateway, words("m1"));
    let other = asked(&gateway, words("m2")).answer();
    is_refused(R10, &other, 400, -32602, "CONVERSATION_BUSY");
    call.json(&result(ENDED));
    assert_eq!(first.answer().status(), 200);
    assert_eq!(again.answer().status(), 200);
    assert_eq!(agent.seen(), 1);
    // What was refused as busy was not sent, and may be sent now.
    let _other = asked(&gateway, words("m2"));
    next(&agent, "SendMessage");
}

#[test]
fn a_caller_that_left_finds_its_answer() {
    let (agent, gateway) = start();
    let first = asked(&gateway, R10.send());
    let call = next(&agent, "SendMessage");
    drop(first);
    let mut again = asked(&gateway, R10.send());
    assert!(agent.is_left_alone());
    call.json(&result(ENDED));
    assert_eq!(again.answer().json()["task"]["id"], "t1");

    // A stream, left before its first event, even before its head.
    for headless in [true, false] {
        let (agent, gateway) = start();
        let mut first = asked(&gateway, R10.stream());
        let mut call = next(&agent, "SendStreamingMessage");
        if !headless {
            call.begin();
            first.head();
        }
        drop(first);
        let _again = asked(&gateway, R10.stream());
        assert!(agent.is_left_alone());
        if headless {
            call.begin();
        }
        call.event(&result(&wrapped()));
        // By the task, whichever comes first: that it is named, or that nobody reads on.
        let method = method(&agent.next());
        assert!(
            ["GetTask", "SubscribeToTask"].contains(&&*method),
            "{method}"
        );
    }
}

#[test]
fn with_conversations_off_messages_are_known_again_all_the_same() {
    let agent = Agent::start();
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!("conversation: {{on_busy: 'off'}}\n{ON}"),
    );
    let mut first = asked(&gateway, R10.send());
    next(&agent, "SendMessage").json(&result(ENDED));
    first.answer();
    let mut second = asked(&gateway, R10.send());
    next(&agent, "GetTask").json(&result(TASK));
    assert_eq!(second.answer().json()["task"]["id"], "t1");
}

#[test]
fn an_agent_of_another_dialect_is_asked_in_its_own() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "binding: rest, version: '0.3'", ON);
    let mut first = asked(&gateway, J10.send());
    let call = agent.next();
    assert!(
        call.asked.is("POST /v1/message:send"),
        "{}",
        call.asked.head.line
    );
    let task = r#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}"#;
    call.json(&format!(r#"{{"task":{task}}}"#));
    first.answer();
    let mut second = asked(&gateway, J03.stream());
    let get = agent.next();
    assert!(get.asked.is("GET /v1/tasks/t1"), "{}", get.asked.head.line);
    assert_eq!(get.asked.head.get("accept"), Some("application/json"));
    get.json(task);
    let mut call = agent.next();
    assert!(
        call.asked.head.line.contains("/v1/tasks/t1:subscribe"),
        "{}",
        call.asked.head.line
    );
    assert_eq!(call.asked.head.get("accept"), Some("text/event-stream"));
    call.begin();
    call.event(&format!(r#"{{"task":{task}}}"#));
    call.end();
    second.head();
    let event = words::data(&second.event().unwrap()).0;
    assert_eq!(event["result"]["id"], "t1", "{event}");
}
