//! What the agent does for the first word of a message:
//!
//! | Word | What happens |
//! |---|---|
//! | `echo TEXT`, anything else | an artifact with the text and the other parts, as they came |
//! | `stream N [MS]` | N chunks of one artifact, MS apart (3, and 50 ms) |
//! | `slow SECONDS` | works that long |
//! | `file` | an artifact with a file by url and a file by bytes |
//! | `data` | an artifact with numbers and characters that are easily damaged |
//! | `fail`, `reject` | the task ends so |
//! | `input` | asks a question; the next message on the task completes it |
//! | `message TEXT` | a bare message, no task |

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{
    object::{Artifact, Message, Part, State},
    refusal::{Fault, Refusal},
    store::Store,
};

/// The longest `stream`, its longest pause, and the longest `slow`: a task must end one day.
const MOST_CHUNKS: u32 = 1_000;
const LONGEST_PAUSE_MS: u64 = 1_000;
const LONGEST_SLOW: f64 = 60.0;

/// Text that comes back changed from whoever reads numbers as floats or sorts keys.
const DATA: &str = concat!(
    r#"{"int":42,"float":2.5,"beyond_double":9007199254740993,"trailing_zero":1.10,"exponent":1e2,"minus_zero":-0.0,"#,
    r#""null":null,"true":true,"false":false,"list":[1,"two",null,{"three":3.0}],"empty":{},"nothing":[],"#,
    r#""unicode":"Grüße, 世界 🌍","escaped":"\u00e9 \ud83c\udf0d \"quoted\" \\ \/","kind":"a key named kind"}"#,
);

/// A message's first word, with what follows it.
#[derive(Debug)]
pub(super) enum Word {
    Echo(Vec<Part>),
    Stream {
        chunks: u32,
        pause: Duration,
    },
    Slow(Duration),
    File,
    Data,
    Fail,
    Reject,
    Input,
    Message(String),
    /// The answer to the question of `input`.
    Resume(String),
}

impl Word {
    /// What a message asks for.
    pub(super) fn of(message: &Message) -> Result<Word, Refusal> {
        let text = first_text(message);
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim_start();
        Ok(match word {
            "stream" => stream(rest)?,
            "slow" => slow(rest)?,
            "file" => Word::File,
            "data" => Word::Data,
            "fail" => Word::Fail,
            "reject" => Word::Reject,
            "input" => Word::Input,
            "message" => Word::Message(if rest.is_empty() { "hi" } else { rest }.to_owned()),
            "echo" => Word::Echo(echoed(message, rest)),
            _ => Word::Echo(echoed(message, text)),
        })
    }

    /// What a message on an interrupted task asks for.
    pub(super) fn resuming(message: &Message) -> Word {
        Word::Resume(first_text(message).to_owned())
    }

    /// Does it, telling the store as it goes; stops early when the task has been ended by somebody else.
    pub(super) async fn perform(self, store: &Store, task: &str) {
        if !store.turn(task, State::Working, None) {
            return;
        }
        match self {
            Word::Echo(parts) => finish(store, task, Some("echo"), parts, None),
            Word::Stream { chunks, pause } => chunked(store, task, chunks, pause).await,
            Word::Slow(time) => {
                sleep(time).await;
                let parts = vec![Part::text(format!("slept {}", time.as_secs_f64()))];
                finish(store, task, Some("slow"), parts, None);
            }
            Word::File => finish(store, task, Some("file"), files(), None),
            Word::Data => finish(store, task, Some("data"), data(), None),
            Word::Fail => _ = store.turn(task, State::Failed, Some("it failed")),
            Word::Reject => _ = store.turn(task, State::Rejected, Some("not my job")),
            Word::Input => _ = store.turn(task, State::InputRequired, Some("which one?")),
            Word::Message(text) => finish(store, task, None, Vec::new(), Some(&text)),
            Word::Resume(text) => {
                let parts = vec![Part::text(format!("resumed with: {text}"))];
                finish(store, task, Some("resumed"), parts, Some("thank you"));
            }
        }
    }
}

fn first_text(message: &Message) -> &str {
    message
        .parts
        .iter()
        .find_map(|part| part.text.as_deref())
        .unwrap_or("")
        .trim()
}

/// The parts to send back: the first text as given, all others as they came.
fn echoed(message: &Message, text: &str) -> Vec<Part> {
    let mut parts = message.parts.clone();
    if let Some(part) = parts.iter_mut().find(|part| part.text.is_some()) {
        part.text = Some(text.to_owned());
    }
    parts
}

fn stream(rest: &str) -> Result<Word, Refusal> {
    let mut numbers = rest.split_whitespace();
    let chunks = numbers
        .next()
        .map_or(Ok(3), str::parse)
        .ok()
        .filter(|n| (1..=MOST_CHUNKS).contains(n));
    let pause = numbers
        .next()
        .map_or(Ok(50), str::parse)
        .ok()
        .filter(|ms| *ms <= LONGEST_PAUSE_MS);
    let (Some(chunks), Some(pause)) = (chunks, pause) else {
        let most =
            format!("stream N MS takes N from 1 to {MOST_CHUNKS} and MS up to {LONGEST_PAUSE_MS}");
        return Err(Fault::InvalidParams.because(most));
    };
    Ok(Word::Stream {
        chunks,
        pause: Duration::from_millis(pause),
    })
}

fn slow(rest: &str) -> Result<Word, Refusal> {
    let seconds = if rest.is_empty() {
        Some(1.0)
    } else {
        rest.parse::<f64>().ok()
    };
    match seconds {
        Some(seconds) if (0.0..=LONGEST_SLOW).contains(&seconds) => {
            Ok(Word::Slow(Duration::from_secs_f64(seconds)))
        }
        _ => {
            Err(Fault::InvalidParams.because(format!("slow SECONDS takes at most {LONGEST_SLOW}")))
        }
    }
}

async fn chunked(store: &Store, task: &str, chunks: u32, pause: Duration) {
    for at in 0..chunks {
        if at > 0 {
            sleep(pause).await;
        }
        let chunk = artifact("stream", vec![Part::text(format!("chunk {at} "))]);
        if !store.add(task, chunk, at > 0, at + 1 == chunks) {
            return;
        }
    }
    store.turn(task, State::Completed, Some(&format!("streamed {chunks}")));
}

fn finish(store: &Store, task: &str, name: Option<&str>, parts: Vec<Part>, say: Option<&str>) {
    if let Some(name) = name {
        store.add(task, artifact(name, parts), false, true);
    }
    store.turn(task, State::Completed, say);
}

/// Each word makes one artifact, so the word can be its id.
fn artifact(name: &str, parts: Vec<Part>) -> Artifact {
    Artifact {
        id: name.to_owned(),
        name: name.to_owned(),
        parts,
    }
}

fn files() -> Vec<Part> {
    let by_url = Part {
        url: Some("https://example.com/report.pdf".to_owned()),
        filename: Some("report.pdf".to_owned()),
        media_type: Some("application/pdf".to_owned()),
        ..Part::default()
    };
    let by_bytes = Part {
        raw: Some("AAECaGVsbG///g==".to_owned()),
        filename: Some("blob.bin".to_owned()),
        media_type: Some("application/octet-stream".to_owned()),
        ..Part::default()
    };
    vec![by_url, by_bytes]
}

fn data() -> Vec<Part> {
    let text = RawValue::from_string(DATA.to_owned()).expect("DATA is JSON; a test reads it");
    vec![Part {
        data: Some(text),
        ..Part::default()
    }]
}
