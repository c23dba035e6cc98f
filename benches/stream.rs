//! What a stream costs: events a second through `reply::Stream`, and what an open one holds.
//!
//! `bulk` has many events in what arrives at once, `lone` has one; the ratio of the two is what a write for each
//! event costs before any socket is in it. The bytes of an open stream, printed at first, are what the process
//! grew by for each of many streams that each have translated one event: absolute, and near enough the same from
//! run to run. Connections, which hold more than that, are not in it.
use std::{
    convert::Infallible,
    hint::black_box,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use a2a_gateway::{
    a2a::{Dialect, Op, reply::ReplyTo, shape::Options},
    budget::Budget,
    reply::{Speech, Stream},
};
use bytes::Bytes;
use criterion::{Criterion, Throughput};
use http_body::{Body, Frame};
use tokio_util::sync::CancellationToken;

#[path = "support/bodies.rs"]
#[expect(dead_code, reason = "other benches use the rest")]
mod bodies;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of a stream.
const EVENTS: usize = 1000;
/// Events that arrive at once in bulk.
const BULK: usize = 50;
/// About the bytes of one event.
const SIZE: usize = 400;
/// So many streams are opened at once, to see what one holds.
const OPEN: usize = 10_000;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    report_held(); // first, while nothing that was freed can be used again
    let mut group = criterion.benchmark_group("stream");
    for client in [Dialect::J03, Dialect::R03P, Dialect::J10, Dialect::R10] {
        for (name, at_once) in [("bulk", BULK), ("lone", 1)] {
            let chunk = chunk(at_once);
            group.throughput(Throughput::Elements(EVENTS as u64));
            group.bench_function(format!("{name}/{}-R10", client.name()), |b| {
                b.iter(|| {
                    let body = Chunks::new(&chunk, EVENTS / at_once);
                    black_box(drain(open(client, body)))
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
}

fn chunk(events: usize) -> Bytes {
    let data = bodies::event(Dialect::R10, SIZE);
    Bytes::from(format!("data: {data}\n\n").repeat(events))
}

fn open(client: Dialect, body: Chunks) -> Stream<Chunks> {
    let speech = Speech {
        from: Dialect::R10,
        options: Arc::new(Options::default()),
        final_grace: Duration::from_millis(100),
        keep_alive: Duration::ZERO,
        idle: Duration::from_mins(5),
        event: 1 << 20,
    };
    let mut to = ReplyTo::new(client);
    to.op = Some(Op::Stream);
    let stop = CancellationToken::new().cancelled_owned();
    Stream::new(
        body,
        to,
        Arc::new(speech),
        Budget::new(1 << 20).hold(),
        stop,
    )
}

/// Reads a stream to its end.
fn drain(mut stream: Stream<Chunks>) -> usize {
    let mut context = Context::from_waker(Waker::noop());
    let mut bytes = 0;
    while let Poll::Ready(Some(frame)) = stream.poll(&mut context) {
        bytes += frame.len();
    }
    assert!(bytes > EVENTS * SIZE / 2, "the events did not come through");
    bytes
}

fn report_held() {
    let mut streams = vec![];
    for client in [Dialect::J03, Dialect::R10] {
        match held(client, &mut streams) {
            Some(bytes) => println!("an open stream {}-R10 holds {bytes} bytes", client.name()),
            None => println!("what an open stream holds can be seen on Linux only"),
        }
    }
}

/// What one of many streams holds after its first event. A counting allocator would need unsafe code, so the
/// process is asked.
fn held(client: Dialect, streams: &mut Vec<Stream<Chunks>>) -> Option<usize> {
    let chunk = chunk(1);
    let mut context = Context::from_waker(Waker::noop());
    let before = resident()?;
    streams.reserve_exact(OPEN);
    for _ in 0..OPEN {
        let mut stream = open(client, Chunks::new(&chunk, 2));
        let first = stream.poll(&mut context);
        assert!(matches!(first, Poll::Ready(Some(_))));
        streams.push(stream);
    }
    let after = resident()?;
    Some(after.saturating_sub(before) / OPEN)
}

/// The resident bytes of this process that are not of files.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("RssAnon:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Some chunks, each after a pause, so that nothing of the next has arrived with it.
struct Chunks {
    chunk: Bytes,
    left: usize,
    pause: bool,
}

impl Chunks {
    fn new(chunk: &Bytes, count: usize) -> Self {
        Self {
            chunk: chunk.clone(),
            left: count,
            pause: false,
        }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::take(&mut self.pause) {
            return Poll::Pending; // the reader has something to hand on, so it need not be woken
        }
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        self.pause = true;
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}
