//! Any bytes as a stream, whole and in pieces: the same events, as a plain reading of the standard has them, and
//! the same stream for the client.
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use a2a_gateway::{
    a2a::{Dialect, Op, answer},
    budget::Budget,
    reply::{Speech, Stream},
    sse::{Reader, TooLong},
};
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio_util::sync::CancellationToken;

use super::{AGENTS, CLIENTS, asked, must_be_event, must_be_told, options_for, plain};

/// Longer than any input that is made up.
const LIMIT: usize = 1 << 24;
/// Input up to this length is also read byte by byte, and translated.
const SHORT: usize = 1024;

pub(super) fn any(bytes: &[u8]) {
    let whole = read(&[bytes]);
    assert_eq!(
        whole.events,
        by_the_book(bytes),
        "not what the standard says"
    );
    let mut ended = bytes.to_vec();
    ended.extend_from_slice(b"\n\n\n");
    let heads = read(&[&ended]).heads;
    for size in [1, 2, 7, 64] {
        if size == 1 && bytes.len() > SHORT {
            continue;
        }
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        let split = read(&pieces);
        assert_eq!(split.events, whole.events, "in pieces of {size}");
        assert_eq!(split.rest, whole.rest, "in pieces of {size}");
        let pieces: Vec<&[u8]> = ended.chunks(size).collect();
        assert_eq!(read(&pieces).heads, heads, "in pieces of {size}");
        read_within(&pieces, 32);
    }
    if bytes.len() <= SHORT {
        whole.events.iter().for_each(|e| event(&e.data));
        for from in AGENTS {
            for client in [Dialect::J03, Dialect::R10] {
                stream(from, client, bytes);
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Event {
    data: Vec<u8>,
    error: bool,
    other: bool,
}

#[derive(Debug)]
struct Seen {
    events: Vec<Event>,
    heads: Vec<u8>,
    rest: Option<Vec<u8>>,
}

/// All of a stream, unless an event of it is too long.
fn read(pieces: &[&[u8]]) -> Seen {
    read_within(pieces, LIMIT).expect("the limit is far away")
}

fn read_within(pieces: &[&[u8]], limit: usize) -> Option<Seen> {
    let mut reader = Reader::new(limit);
    let (mut events, mut heads) = (vec![], vec![]);
    for piece in pieces {
        reader.push(piece);
        loop {
            let event = match reader.event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(TooLong) => return None,
            };
            heads.extend_from_slice(event.head);
            if let Some(data) = event.data {
                assert!(data.len() <= limit, "longer than its limit");
                events.push(Event {
                    data: data.to_vec(),
                    error: event.error,
                    other: event.other,
                });
            }
        }
    }
    let rest = reader.rest().and_then(|e| Some(e.data?.to_vec()));
    Some(Seen {
        events,
        heads,
        rest,
    })
}

/// The events by WHATWG HTML 9.2.6, with the whole text at hand.
fn by_the_book(bytes: &[u8]) -> Vec<Event> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut events, mut data, mut label) = (vec![], None::<Vec<u8>>, &b""[..]);
    let mut from = 0;
    while let Some(length) = bytes[from..]
        .iter()
        .position(|b| matches!(b, b'\n' | b'\r'))
    {
        let to = from + length;
        let line = &bytes[from..to];
        let pair = bytes[to..].starts_with(b"\r\n");
        from = to + 1 + usize::from(pair);
        if line.is_empty() {
            if let Some(data) = data.take() {
                let (error, plain) = (label == b"error", matches!(label, b"" | b"message"));
                events.push(Event {
                    data,
                    error,
                    other: !error && !plain,
                });
            }
            label = b"";
            continue;
        }
        let colon = line.iter().position(|b| *b == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" => label = value,
            _ => {}
        }
    }
    events
}

/// One event in every client's words.
fn event(data: &[u8]) {
    let options = options_for(data);
    for from in AGENTS.into_iter().chain([Dialect::R03K]) {
        for client in CLIENTS {
            let mut to = asked(client, Op::Stream);
            let (mut lost, mut out) = (vec![], vec![]);
            match answer::event(&mut to, from, data, true, &options, &mut lost, &mut out) {
                Ok(_) => must_be_event(&out, "an event"),
                Err(fault) => {
                    assert!(out.is_empty(), "half an event was left");
                    must_be_told(&to, &fault);
                    break;
                }
            }
        }
    }
}

/// The stream as the client gets it. Only where comments stand may differ, as they do not wait.
fn stream(from: Dialect, client: Dialect, bytes: &[u8]) {
    let whole = said(from, client, vec![Bytes::copy_from_slice(bytes)]);
    let seen = read(&[&whole]);
    assert_eq!(seen.rest, None, "{}", String::from_utf8_lossy(&whole));
    for event in &seen.events {
        super::must_be_json(&event.data, "an event of a stream");
    }
    let pieces = bytes.chunks(5).map(Bytes::copy_from_slice).collect();
    let split = said(from, client, pieces);
    assert_eq!(read(&[&split]).events, seen.events);
}

fn said(from: Dialect, client: Dialect, pieces: Vec<Bytes>) -> Vec<u8> {
    let mut options = plain();
    options.generate_message_id = false; // a made-up id is another one each time
    let speech = Speech {
        from,
        options: Arc::new(options),
        final_grace: Duration::from_secs(1),
        keep_alive: Duration::ZERO,
        idle: Duration::from_mins(1),
        event: LIMIT,
    };
    let mut stream = Stream::new(
        Pieces(pieces.into()),
        asked(client, Op::Stream),
        Arc::new(speech),
        Budget::new(LIMIT).hold(),
        CancellationToken::new().cancelled_owned(),
    );
    let mut context = Context::from_waker(Waker::noop());
    let mut out = vec![];
    while let Poll::Ready(Some(bytes)) = stream.poll(&mut context) {
        out.extend_from_slice(&bytes);
    }
    out
}

/// A body that is always ready, so that no clock is needed.
struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|bytes| Ok(Frame::data(bytes))))
    }
}
