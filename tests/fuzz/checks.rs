//! What must hold for any bytes, whoever sends them. The fuzz targets run these checks on what they make up, and
//! `tests/corpora.rs` runs them on every input that is kept.
use a2a_gateway::{
    a2a::{
        Dialect, Fault, Op,
        detect::Accepts,
        reply::{Framing, ReplyTo},
        shape::{FileBytes, Options},
    },
    json::Limits,
    sse,
};
use serde_json::value::RawValue;

#[path = "checks/answers.rs"]
mod answers;
#[path = "checks/events.rs"]
mod events;
#[path = "checks/head.rs"]
mod head;
#[path = "checks/json.rs"]
mod json;
#[path = "checks/requests.rs"]
mod requests;

/// Any bytes as the body of a request, an answer, an error and a card.
pub(crate) fn body(bytes: &[u8]) {
    let options = options_for(bytes);
    requests::any(bytes, &options);
    answers::any(bytes, &options);
}

/// Any bytes as a stream of events.
pub(crate) fn sse(bytes: &[u8]) {
    events::any(bytes);
}

/// Any bytes as the head of a request.
pub(crate) fn head(bytes: &[u8]) {
    head::any(bytes);
}

/// Any bytes as JSON.
pub(crate) fn json(bytes: &[u8]) {
    json::any(bytes);
}

/// How clients may speak.
const CLIENTS: [Dialect; 6] = [
    Dialect::J03,
    Dialect::R03P,
    Dialect::R03K,
    Dialect::R03S,
    Dialect::J10,
    Dialect::R10,
];

/// How an agent may speak.
const AGENTS: [Dialect; 4] = [Dialect::J10, Dialect::R10, Dialect::J03, Dialect::R03P];

/// What is written by us is read again under these limits, which leave room for an envelope and for members that
/// another dialect adds.
const ROOMY: Limits = Limits::CHECKED;

/// What is read at first.
const TIGHT: Limits = Limits {
    depth: 150,
    members: 500,
};

fn plain() -> Options {
    Options {
        limits: TIGHT,
        ..Options::default()
    }
}

/// All choices made the other way.
fn odd() -> Options {
    Options {
        file_bytes: FileBytes::Single,
        strict_030: true,
        preserve_lossy: false,
        generate_message_id: false,
        v03_rest_blocking: true,
        v10_accept_blocking: true,
        slash_paths: true,
        limits: TIGHT,
    }
}

/// One space more, and it is the other choice.
fn options_for(bytes: &[u8]) -> Options {
    if bytes.len().is_multiple_of(2) {
        plain()
    } else {
        odd()
    }
}

fn roomy(options: &Options) -> Options {
    Options {
        limits: ROOMY,
        ..options.clone()
    }
}

/// Everything that can be switched on.
fn accepts(snake: bool) -> Accepts {
    Accepts {
        snake,
        v03_list: true,
        versions: vec!["1.1".to_owned()],
        rpc_path: "/rpc".to_owned(),
        agent_json: true,
        ..Accepts::default()
    }
}

fn asked(dialect: Dialect, op: Op) -> ReplyTo {
    let mut to = ReplyTo::new(dialect);
    to.op = Some(op);
    to
}

/// A file's bytes are for their reader; only v0.3 REST makes us look into them, so what passed as it came may be
/// refused there.
fn is_of_bytes(fault: &Fault) -> bool {
    fault.to_string().contains("is not base64")
}

fn must_be_json(text: &[u8], what: &str) {
    if let Err(error) = serde_json::from_slice::<&RawValue>(text) {
        panic!("{what}: {error} in {}", String::from_utf8_lossy(text));
    }
}

/// Whatever fails is told in one way that its client can read.
fn must_be_told(to: &ReplyTo, fault: &Fault) {
    let told = to.fault(fault);
    match told.framing {
        Framing::Json => must_be_json(&told.body, "a fault"),
        Framing::Events => must_be_event(&told.body, "a fault as event"),
    }
    let mut frame = vec![];
    to.frame(fault, &mut frame);
    must_be_event(&frame, "the last frame");
}

/// Exactly one event, and JSON in it.
fn must_be_event(text: &[u8], what: &str) {
    let shown = String::from_utf8_lossy(text);
    let mut reader = sse::Reader::new(usize::MAX);
    reader.push(text);
    match reader.event() {
        Ok(Some(event)) => match event.data {
            Some(data) => must_be_json(data, what),
            None => panic!("{what} has no data: {shown}"),
        },
        other => panic!("{what} is no event but {other:?}: {shown}"),
    }
    assert_eq!(reader.event(), Ok(None), "{what} is more than one: {shown}");
    assert_eq!(reader.rest(), None, "{what} has more after it: {shown}");
}
