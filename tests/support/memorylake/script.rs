//! What the agent does for the text of a message, as its first word says:
//!
//! | Word | What happens |
//! |---|---|
//! | `What is the capital of France?` | the two runs that the page shows: sent, an answer; streamed, with a search |
//! | `echo TEXT`, anything else | the text in two chunks, and an artifact with it and the other parts, as they came |
//! | `stream N [MS]` | N chunks of text, MS apart (3, and 50 ms) |
//! | `slow SECONDS` | works that long |
//! | `hold` | works until it is told to go on, or is canceled |
//! | `release TASK` | tells a task to go on |
//! | `fail`, `fail late` | the task fails, at once or after some text |
//! | `nothing` | the task completes without an answer |
//! | `tools` | thinking, a call with a signature, its result; a call that fails, and one that fails with a code |
//! | `file` | makes a file, and answers with attachments, one of which could not be saved |
//! | `data` | an answer with numbers, and with data parts that nobody knows |
use std::time::Duration;

use serde_json::{Value, json};

use super::{read::floats, world::World};

/// The longest `slow`, and the most chunks of `stream`: a task must end one day.
const LONGEST: f64 = 60.0;
const MOST_CHUNKS: u64 = 1000;
const LONGEST_PAUSE: u64 = 1000;

/// One thing that the agent does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Tells one part, in a message with this number (and this ending).
    Tell(u32, &'static str, Value),
    Pause(Duration),
    /// Waits to be told to go on.
    Hold,
}

#[derive(Clone, Debug)]
pub enum End {
    /// With an artifact of these parts, or without one when there are none.
    Completed(Vec<Value>),
    Failed(String),
}

pub type Script = (Vec<Step>, End);

/// The script for a message with this text, as the model sees it.
pub fn of(world: &World, text: &str, message: &Value, streams: bool) -> Script {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let end = |answer: &str| End::Completed(vec![json!({"text": answer})]);
    match first {
        "What" if text == "What is the capital of France?" => capital(streams),
        "stream" => chunks(rest),
        "slow" => {
            let seconds = rest.parse().unwrap_or(1.0_f64).clamp(0.0, LONGEST);
            let pause = Step::Pause(Duration::from_secs_f64(seconds));
            (vec![pause], end(&format!("slept {seconds}")))
        }
        "hold" => {
            let steps = vec![said(3, "holding"), Step::Hold, said(4, " no more")];
            (steps, end("holding no more"))
        }
        "release" => {
            if let Some(task) = world.task(rest) {
                task.release();
            }
            (vec![], end("released"))
        }
        "fail" if rest == "late" => {
            let steps = vec![said(3, "so far")];
            (steps, End::Failed("it failed late".to_owned()))
        }
        "fail" => (vec![], End::Failed("it failed".to_owned())),
        "nothing" => (vec![], End::Completed(vec![])),
        "tools" => tools(),
        "file" => file(),
        "data" => data(),
        "echo" => echo(rest, message),
        _ => echo(text, message),
    }
}

fn said(number: u32, text: &str) -> Step {
    Step::Tell(number, "", json!({"text": text}))
}

fn thought(number: u32, text: &str) -> Step {
    let part = json!({"text": text, "metadata": {"adk_thought": true}});
    Step::Tell(number, "", part)
}

fn called(number: u32, id: &str, name: &str, args: &Value) -> Step {
    let data = json!({"id": id, "name": name, "args": floats(args)});
    let part = json!({"data": data, "metadata": {"adk_type": "function_call"}});
    Step::Tell(number, "-call", part)
}

fn resulted(number: u32, id: &str, name: &str, response: &Value) -> Step {
    let data = json!({"id": id, "name": name, "response": floats(response)});
    let part = json!({"data": data, "metadata": {"adk_type": "function_response"}});
    Step::Tell(number, "-response", part)
}

fn asks(question: &str) -> Value {
    json!({"data": {"kind": "recommended_questions", "questions": [question]}})
}

fn capital(streams: bool) -> Script {
    let answer = json!({"text": "Paris is the capital of France."});
    if !streams {
        let steps = vec![said(3, "Paris is the capital of France.")];
        return (steps, End::Completed(vec![answer]));
    }
    let found =
        r#"{"results": [{"title": "Paris", "url": "https://en.wikipedia.org/wiki/Paris"}]}"#;
    let steps = vec![
        said(3, "Let me look that up."),
        called(
            8,
            "call_1",
            "web_search",
            &json!({"query": "capital of France"}),
        ),
        resulted(9, "call_1", "web_search", &json!(found)),
        said(11, "Paris is"),
        said(12, " the capital of France."),
    ];
    let end = End::Completed(vec![answer, asks("What is the population of Paris?")]);
    (steps, end)
}

fn chunks(rest: &str) -> Script {
    let mut numbers = rest.split_whitespace().map(|n| n.parse::<u64>().ok());
    let count = numbers.next().flatten().unwrap_or(3).min(MOST_CHUNKS);
    let pause = numbers.next().flatten().unwrap_or(50).min(LONGEST_PAUSE);
    let (mut steps, mut all) = (vec![], String::new());
    for (n, number) in (0..count).zip(3..) {
        let text = format!("chunk {n} ");
        if n > 0 && pause > 0 {
            steps.push(Step::Pause(Duration::from_millis(pause)));
        }
        steps.push(said(number, &text));
        all += &text;
    }
    (steps, End::Completed(vec![json!({"text": all})]))
}

fn echo(text: &str, message: &Value) -> Script {
    let half = text.len() / 2;
    let half = (half..=text.len()).find(|at| text.is_char_boundary(*at));
    let (one, two) = text.split_at(half.unwrap_or(text.len()));
    let told = [(3, one), (4, two)];
    let told = told.iter().filter(|(_, text)| !text.is_empty());
    let steps = told.map(|(number, text)| said(*number, text)).collect();
    let mut parts = vec![json!({"text": text})];
    let given = message["parts"].as_array().into_iter().flatten();
    let mut texts = 0;
    for part in given {
        texts += usize::from(part.get("text").is_some());
        if texts != 1 || part.get("text").is_none() {
            parts.push(part.clone());
        }
    }
    (steps, End::Completed(parts))
}

fn tools() -> Script {
    let signed = json!({
        "data": {"id": "call_1", "name": "add", "args": floats(&json!({"a": 2, "b": [1, 0.5]}))},
        "metadata": {"adk_type": "function_call", "adk_thought_signature": "c2lnbmVk"},
    });
    let steps = vec![
        thought(3, "I have to "),
        thought(4, "add."),
        said(5, "Adding. "),
        Step::Tell(6, "-call", signed),
        resulted(7, "call_1", "add", &json!({"sum": 3})),
        called(8, "call_2", "divide", &json!({"by": 0})),
        resulted(9, "call_2", "divide", &json!({"error": "by zero"})),
        called(10, "call_3", "fetch", &json!({})),
        resulted(
            11,
            "call_3",
            "fetch",
            &json!({"error": "gone", "code": 410}),
        ),
        said(12, "The sum "),
        said(13, "is 3."),
    ];
    (
        steps,
        End::Completed(vec![json!({"text": "The sum is 3."})]),
    )
}

fn file() -> Script {
    let made = json!({
        "url": "https://files.example/report.pdf",
        "mediaType": "application/pdf",
        "filename": "report.pdf",
    });
    let attachments = json!({"data": {"kind": "attachments", "attachments": [
        {"name": "report.pdf", "mime_type": "application/pdf", "description": "the report",
            "presign_url": "https://files.example/report.pdf?signed=1"},
        {"name": "chart.png", "mime_type": "image/png", "description": "the chart",
            "presign_url": "", "committed": false, "error": "no room"},
    ]}});
    let steps = vec![said(3, "Here it is."), Step::Tell(4, "", made)];
    let answer = json!({"text": "Here it is."});
    let end = End::Completed(vec![answer, attachments, asks("Another one?")]);
    (steps, end)
}

fn data() -> Script {
    let numbers = json!({
        "int": 42, "float": 2.5, "null": null, "true": true, "list": [1, "two", null, {"three": 3}],
        "empty": {}, "unicode": "Grüße, 世界 🌍", "kind": "a key named kind",
    });
    let answer = vec![
        json!({"data": floats(&numbers)}),
        json!({"text": "numbers"}),
        json!({"data": floats(&json!({"nobody": "knows", "number": 1}))}),
    ];
    let steps = vec![Step::Tell(3, "", answer[0].clone()), said(4, "numbers")];
    (steps, End::Completed(answer))
}
