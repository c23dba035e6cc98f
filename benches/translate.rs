//! What translating one document costs, for every pair of dialects that occurs with a v1.0 agent.
//!
//! Compare figures of one run only, and as ratios: `R10-R10` passes the text as it came, so it is the price of
//! checking alone, and each other pair is to be read as a multiple of it. Bytes are those that come in.
use std::{hint::black_box, time::Duration};

use a2a_gateway::a2a::{
    Binding, Dialect, Op, Version,
    answer::{self, Public},
    detect::Accepts,
    reply::ReplyTo,
    request::{self, Outgoing, Read, Reading},
    rest::Found,
    shape::Options,
};
use bytes::Bytes;
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use http::Method;

#[path = "support/bodies.rs"]
#[expect(dead_code, reason = "other benches use the rest")]
mod bodies;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLIENTS: [Dialect; 5] = [
    Dialect::J03,
    Dialect::R03P,
    Dialect::R03K,
    Dialect::J10,
    Dialect::R10,
];
const AGENTS: [Dialect; 2] = [Dialect::J10, Dialect::R10];
const KILOBYTES: [usize; 3] = [1, 16, 256];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    each(&mut criterion, "request", &KILOBYTES, requests);
    each(&mut criterion, "answer", &KILOBYTES, answers);
    each(&mut criterion, "event", &[1], events);
    criterion.final_summary();
}

type Bench = fn(&mut BenchmarkGroup<'_, WallTime>, String, Dialect, Dialect, usize);

fn each(criterion: &mut Criterion, name: &str, kilobytes: &[usize], bench: Bench) {
    let mut group = criterion.benchmark_group(name);
    for size in kilobytes {
        for client in CLIENTS {
            for agent in AGENTS {
                let id = format!("{}-{}/{size}K", client.name(), agent.name());
                bench(&mut group, id, client, agent, size * 1024);
            }
        }
    }
    group.finish();
}

/// A client's send, read and written for the agent.
fn requests(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: String,
    client: Dialect,
    agent: Dialect,
    size: usize,
) {
    let body = Bytes::from(bodies::request(client, size));
    let (accepts, options) = (Accepts::default(), Options::default());
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function(id, |b| {
        b.iter(|| {
            let (read, _) = read(client, black_box(&body), &accepts, &options);
            write(&read, agent, &options)
        });
    });
}

fn read(client: Dialect, body: &Bytes, accepts: &Accepts, options: &Options) -> (Read, ReplyTo) {
    let mut to = ReplyTo::new(client);
    let read = match client.binding {
        Binding::Rpc => request::read_rpc(body, &Reading::new(None, accepts, options), &mut to),
        Binding::Rest => {
            let found = Found {
                op: Op::Send,
                version: client.shape.version(),
                tenant: None,
                id: None,
                config: None,
            };
            request::read_rest(
                &found,
                None,
                body,
                &Reading::new(None, accepts, options),
                &mut to,
            )
        }
    };
    let read = read.expect("the bench writes good requests");
    assert_eq!(to.dialect, client);
    (read, to)
}

fn write(read: &Read, agent: Dialect, options: &Options) -> Outgoing {
    let mut lost = vec![];
    request::write(&read.call, agent, &Method::POST, options, &mut lost)
        .expect("what was read can be written")
}

/// The agent's answer, in the client's words.
fn answers(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: String,
    client: Dialect,
    agent: Dialect,
    size: usize,
) {
    let body = Bytes::from(bodies::answer(agent, size));
    let options = Options::default();
    let public = Public {
        interfaces: vec![],
        push: false,
        security: None,
    };
    let mut to = ReplyTo::new(client);
    to.op = Some(Op::Send);
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function(id, |b| {
        b.iter(|| answer::document(&to, agent, Op::Send, black_box(&body), &public, &options));
    });
    let document = answer::document(&to, agent, Op::Send, &body, &public, &options);
    let document = document.expect("the bench writes good answers");
    let kept = to.dialect.shape.version() == Version::V10 || document.body != Some(body);
    assert!(kept, "nothing was translated");
}

/// One event, in the client's words.
fn events(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: String,
    client: Dialect,
    agent: Dialect,
    size: usize,
) {
    let data = bodies::event(agent, size);
    let options = Options::default();
    let mut to = ReplyTo::new(client);
    to.op = Some(Op::Stream);
    let (mut lost, mut out) = (vec![], vec![]);
    group.throughput(Throughput::Bytes(data.len() as u64));
    group.bench_function(id, |b| {
        b.iter(|| {
            out.clear();
            let data = black_box(data.as_bytes());
            answer::event(&mut to, agent, data, false, &options, &mut lost, &mut out)
        });
    });
    assert!(out.starts_with(b"data: "), "the bench writes good events");
}
