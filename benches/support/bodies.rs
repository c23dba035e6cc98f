//! Requests, answers and events in every dialect, of a wanted size, with what real ones have in them: prose with
//! escapes and other letters, structured data, metadata, history, and a file where there is room for one.
use a2a_gateway::a2a::{Binding, Dialect, Shape};
use serde_json::{Value, json};

const PROSE: &str = "The report shows growth in \"Région Nord\" of 12.5 %,\nwhile costs in the South stayed flat. \
    See the table for details — figures are in k€ and rounded. ";

/// Parts grow in steps of about this many bytes.
const PART: usize = 1500;

/// The body of a send.
pub(crate) fn request(dialect: Dialect, size: usize) -> String {
    let wait = match dialect.shape {
        Shape::V10 => json!({"returnImmediately": false, "historyLength": 10}),
        Shape::V03Kind | Shape::V03Snake | Shape::V03Proto => {
            json!({"blocking": true, "historyLength": 10})
        }
    };
    let metadata = json!({"memory": {"actor": "actor-33d6b73298fb", "projects": ["proj-b93e", "proj-cd2e"],
        "overrides": {"model": "large", "temperature": 0.20}}});
    grown(size, |parts| {
        let message = message(dialect.shape, false, parts);
        let params = json!({"message": message, "configuration": wait, "metadata": metadata});
        match dialect.binding {
            Binding::Rest => params.to_string(),
            Binding::Rpc => {
                let method = match dialect.shape {
                    Shape::V10 => "SendMessage",
                    Shape::V03Kind | Shape::V03Snake | Shape::V03Proto => "message/send",
                };
                format!(r#"{{"jsonrpc":"2.0","id":"1","method":"{method}","params":{params}}}"#)
            }
        }
    })
}

/// The answer of a v1.0 agent to a send: a task with an artifact and a short history.
pub(crate) fn answer(agent: Dialect, size: usize) -> String {
    grown(size, |parts| {
        let parts: Vec<_> = parts.iter().map(|p| part(Shape::V10, p)).collect();
        let history = [
            message(Shape::V10, false, &[Part::Text(40)]),
            message(Shape::V10, true, &[Part::Text(80)]),
        ];
        let task = json!({"task": {"id": "run-e21fffe8d536", "contextId": "ctx-1",
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-29T12:00:00.000Z"},
            "artifacts": [{"artifactId": "result-1", "name": "result", "parts": parts, "metadata": {}}],
            "history": history}});
        result(agent, &task)
    })
}

/// The data of one event of a v1.0 agent, whose task goes on.
pub(crate) fn event(agent: Dialect, size: usize) -> String {
    update(agent, "TASK_STATE_WORKING", size)
}

/// The data of a stream's last event: its task is done.
pub(crate) fn last_event(agent: Dialect, size: usize) -> String {
    update(agent, "TASK_STATE_COMPLETED", size)
}

fn update(agent: Dialect, state: &str, size: usize) -> String {
    grown(size, |parts| {
        let message = message(Shape::V10, true, parts);
        let status = json!({"state": state, "message": message});
        let update = json!({"taskId": "run-e21fffe8d536", "contextId": "ctx-1", "status": status});
        result(agent, &json!({"statusUpdate": update}))
    })
}

fn result(agent: Dialect, result: &Value) -> String {
    match agent.binding {
        Binding::Rest => result.to_string(),
        Binding::Rpc => format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#),
    }
}

/// What a part holds, in about so many bytes.
enum Part {
    Text(usize),
    Data(usize),
    File(usize),
}

/// A document with as many parts as make it about `size` bytes long.
fn grown(size: usize, document: impl Fn(&[Part]) -> String) -> String {
    let mut left = size.saturating_sub(document(&[]).len());
    let mut parts = vec![];
    if size > 64 * PART {
        parts.push(Part::File(size / 5));
        left -= size / 5;
    }
    while left > 60 {
        let step = left.min(PART);
        let text = parts.len() % 2 == 0 || step < 300;
        parts.push(if text {
            Part::Text(step - 40)
        } else {
            Part::Data(step - 60)
        });
        left -= step;
    }
    document(&parts)
}

fn message(shape: Shape, agent: bool, parts: &[Part]) -> Value {
    let role = match (shape, agent) {
        (Shape::V03Kind | Shape::V03Snake, false) => "user",
        (Shape::V03Kind | Shape::V03Snake, true) => "agent",
        (Shape::V03Proto | Shape::V10, false) => "ROLE_USER",
        (Shape::V03Proto | Shape::V10, true) => "ROLE_AGENT",
    };
    let parts: Vec<_> = parts.iter().map(|p| part(shape, p)).collect();
    let mut message = json!({"messageId": "msg-1", "contextId": "ctx-1", "role": role});
    match shape {
        Shape::V03Proto => message["content"] = parts.into(),
        Shape::V03Kind | Shape::V03Snake => {
            message["kind"] = "message".into();
            message["parts"] = parts.into();
        }
        Shape::V10 => message["parts"] = parts.into(),
    }
    message
}

fn part(shape: Shape, part: &Part) -> Value {
    let kind = matches!(shape, Shape::V03Kind | Shape::V03Snake);
    match part {
        Part::Text(size) if kind => json!({"kind": "text", "text": prose(*size)}),
        Part::Text(size) => json!({"text": prose(*size)}),
        Part::Data(size) => {
            let metadata = json!({"origin": "function_call"});
            match shape {
                Shape::V03Kind | Shape::V03Snake => {
                    json!({"kind": "data", "data": rows(*size), "metadata": metadata})
                }
                Shape::V03Proto => json!({"data": {"data": rows(*size)}, "metadata": metadata}),
                Shape::V10 => json!({"data": rows(*size), "metadata": metadata}),
            }
        }
        Part::File(size) => {
            let bytes = "QUJDREVGR0hJSktM".repeat(size / 16);
            match shape {
                Shape::V03Kind | Shape::V03Snake => {
                    json!({"kind": "file", "file": {"bytes": bytes, "mimeType": "image/png", "name": "chart.png"}})
                }
                Shape::V03Proto => {
                    json!({"file": {"fileWithBytes": bytes, "mimeType": "image/png", "name": "chart.png"}})
                }
                Shape::V10 => {
                    json!({"raw": bytes, "mediaType": "image/png", "filename": "chart.png"})
                }
            }
        }
    }
}

fn prose(size: usize) -> String {
    PROSE.chars().cycle().take(size).collect()
}

fn rows(size: usize) -> Value {
    let row = |rank: usize| {
        json!({"id": format!("row-{rank}"), "name": "web_search", "score": 0.25, "rank": rank, "ok": true,
            "url": "https://example.org/wiki/Paris?q=1", "tags": ["a", "bé"], "next": null})
    };
    let count = (size / row(0).to_string().len()).max(1);
    json!({"rows": (0..count).map(row).collect::<Vec<_>>()})
}
