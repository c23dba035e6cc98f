//! What an agent of MemoryLake says, and a gateway before one.
use crate::support::{
    agent::{Agent, Call},
    client::Answer,
    gateway::Gateway,
    words::Speak,
};

/// Before a REST agent or a JSON-RPC one. `backend` is more settings of it, `more` is more YAML.
pub(crate) fn gateway(agent: &Agent, rest: bool, backend: &str, more: &str) -> Gateway {
    let binding = if rest { "rest" } else { "jsonrpc" };
    let backend = format!("preset: memorylake, binding: {binding}, {backend}");
    Gateway::with(agent.addr, &backend, more)
}

/// In the envelope of the agent's binding.
pub(crate) fn bound(rest: bool, result: &str) -> String {
    if rest {
        return result.to_owned();
    }
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

/// The body of its refusals.
pub(crate) fn refusal(code: &str) -> String {
    format!(r#"{{"success": false, "message": "no such luck", "error_code": "{code}"}}"#)
}

/// The task as it shows it to who asks for it.
pub(crate) fn shown(state: &str) -> String {
    format!(
        r#"{{"id":"t1","contextId":"c1","status":{{"state":"TASK_STATE_{state}","timestamp":"2026-01-02T03:04:05.000Z"}}}}"#
    )
}

pub(crate) const CALL: &str = r#"{"data":{"id":"call_1","name":"web_search","args":{"n":2.0}},"metadata":{"adk_type":"function_call"}}"#;

fn update(state: &str, message: &str) -> String {
    format!(
        r#"{{"statusUpdate":{{"taskId":"t1","contextId":"c1","status":{{"state":"TASK_STATE_{state}"{message}}}}}}}"#
    )
}

fn says(id: &str, part: &str) -> String {
    let message = format!(
        r#","message":{{"messageId":"t1-{id}","contextId":"c1","taskId":"t1","role":"ROLE_AGENT","parts":[{part}]}}"#
    );
    update("WORKING", &message)
}

/// The replay of the task, without the task before it.
pub(crate) fn replay() -> Vec<String> {
    vec![
        update("WORKING", ""),
        says("3", r#"{"text":"hm","metadata":{"adk_thought":true}}"#),
        says("8-call", CALL),
        says("11", r#"{"text":"Paris is"}"#),
        says("12", r#"{"text":" the capital."}"#),
        r#"{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"result-t1","name":"result","parts":[{"text":"Paris is the capital."}],"metadata":{}},"lastChunk":true}}"#.to_owned(),
        update("COMPLETED", ""),
    ]
}

/// Answers a subscription with all of the replay.
pub(crate) fn tell(mut call: Call, rest: bool) {
    call.begin();
    call.chunk(": keep-alive\n\n");
    for event in replay() {
        call.event(&bound(rest, &event));
    }
    call.end();
}

/// Whether it is a subscription, as this agent is asked for one.
pub(crate) fn subscribes(call: &Call, rest: bool) -> bool {
    let events = call.asked.head.get("accept") == Some("text/event-stream");
    let by_get = call.asked.is("GET /tasks/t1:subscribe ");
    let by_rpc = call.asked.body.contains(r#""method":"SubscribeToTask""#);
    events && if rest { by_get } else { by_rpc }
}

/// The task in an answer to `GetTask`.
pub(crate) fn task(speak: Speak, answer: &Answer) -> serde_json::Value {
    assert_eq!(answer.status(), 200, "{answer:?}");
    let value = answer.json();
    if speak.is_rpc() {
        return value["result"].clone();
    }
    value
}
