//! A round trip over loopback through the gateway, against the same straight to the agent.
//!
//! Read each figure as a multiple of `straight` in the same run. Client, gateway and agent share the machine's
//! cores here, and one call is under way at a time, so that this shows latency; what a core can carry is another
//! question, which needs a load generator on another one.
use std::{net::SocketAddr, time::Duration};

use a2a_gateway::{
    a2a::Dialect,
    config::{Config, Overrides},
    run,
};
use bytes::Bytes;
use criterion::{Criterion, Throughput};
use tokio::{runtime::Builder, sync::Mutex};
use tokio_util::sync::CancellationToken;

#[path = "support/agent.rs"]
mod agent;
#[path = "support/bodies.rs"]
mod bodies;
#[path = "support/client.rs"]
mod client;

use agent::Words;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of the stream.
const EVENTS: usize = 1000;
const KILOBYTE: usize = 1024;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let stop = CancellationToken::new();
    let (agent, at) =
        agent::start(words(), stop.clone()).expect("a thread and a port for the agent");
    let served = run::start(settings(at)).expect("the gateway starts");
    let gateway = served.running.local_addr;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the client");
    for (group, stream) in [("unary", false), ("stream", true)] {
        let mut group = criterion.benchmark_group(group);
        if stream {
            group.throughput(Throughput::Elements(EVENTS as u64));
        }
        for (name, to, dialect) in [
            ("straight", at, Dialect::R10),
            ("R10", gateway, Dialect::R10),
            ("J03", gateway, Dialect::J03),
            ("R03P", gateway, Dialect::R03P),
        ] {
            let connection = runtime.block_on(client::connect(&runtime, to));
            let connection = Mutex::new(connection.expect("a connection"));
            let (path, body) = request(dialect, stream);
            group.bench_function(name, |b| {
                b.to_async(&runtime).iter(|| async {
                    let mut connection = connection.lock().await;
                    let length = client::send(&mut connection, path, "", body.clone()).await;
                    assert!(length > KILOBYTE / 2, "the answer is too short");
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
    served.running.drain();
    served.running.wait();
    stop.cancel();
    agent.join().expect("the agent ends well");
}

fn settings(agent: SocketAddr) -> Config {
    let overrides = Overrides {
        backend: Some(format!("http://{agent}")),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0)).into()),
        binding: Some(a2a_gateway::config::Binding::Rest),
        ..Overrides::default()
    };
    Config::parse("workers: 1", overrides).expect("good settings")
}

fn request(dialect: Dialect, stream: bool) -> (&'static str, Bytes) {
    let mut body = bodies::request(dialect, KILOBYTE);
    if stream {
        body = body.replace("message/send", "message/stream");
    }
    let path = match (dialect == Dialect::J03, dialect == Dialect::R10, stream) {
        (true, ..) => "/",
        (_, true, false) => "/message:send",
        (_, true, true) => "/message:stream",
        (_, _, false) => "/v1/message:send",
        (_, _, true) => "/v1/message:stream",
    };
    (path, body.into())
}

fn words() -> Words {
    let event = format!("data: {}\n\n", bodies::event(Dialect::R10, 400));
    let last = format!("data: {}\n\n", bodies::last_event(Dialect::R10, 400));
    let answer = Bytes::from(bodies::answer(Dialect::R10, KILOBYTE));
    Words {
        answer: Box::new(move |_| answer.clone()),
        events: (event.repeat(EVENTS - 1) + &last).into(), // at rest: the next message is let in
    }
}
