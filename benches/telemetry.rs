//! What telemetry costs: a send of 1 KB through a gateway that tells nothing, through one that counts (`/metrics` is there,
//! as by default where `admin` is set), and through one that counts and traces one call in a hundred.
//!
//! The last lines are what to read, as in `policies`: what a gateway that tells carries of what one that does not does, the
//! middle one of rounds that take turns, with 32 calls under way. Each is to be 0.95 or more by the time that the gateways'
//! own threads have worked, those that send traces among them. It is known on Linux only.
use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use a2a_gateway::{
    a2a::Dialect,
    config::{Binding, Config, Overrides},
    run,
};
use bytes::Bytes;
use criterion::{Criterion, Throughput};
use futures_util::future::join_all;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Mutex,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

#[path = "support/agent.rs"]
mod agent;
#[path = "support/bodies.rs"]
#[expect(dead_code, reason = "other benches use the rest")]
mod bodies;
#[path = "support/client.rs"]
mod client;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KILOBYTE: usize = 1024;
/// Connections, with one call each.
const AT_ONCE: u64 = 32;
const ROUNDS: usize = 41;
/// Calls of a connection in a round.
const CALLS: u64 = 64;

/// Nothing, though there is an admin address, for which callers have names.
const OFF: &str = "admin: 127.0.0.1:0\ntelemetry: {metrics: {prometheus: false}}";
/// Metrics alone.
const METRICS: &str = "admin: 127.0.0.1:0";

fn main() {
    let stop = CancellationToken::new();
    let (agent, at) = agent::start(words(), stop.clone()).expect("a thread and a port");
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the client");
    let collector = collector();
    let traced = format!(
        "{METRICS}\ntelemetry: {{traces: {{otlp: true, sample: 0.01}}, otlp: {{endpoint: 'http://{collector}'}}}}"
    );
    let sides = [("off", OFF), ("metrics", METRICS), ("traced", &traced)]
        .map(|(name, told)| (name, Side::new(&runtime, settings(at, told))));
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut group = criterion.benchmark_group("telemetry");
    group.throughput(Throughput::Elements(AT_ONCE));
    for (name, side) in &sides {
        group.bench_function(*name, |b| b.iter_custom(|n| side.calls(&runtime, n)));
    }
    group.finish();
    criterion.final_summary();
    if std::env::args().any(|a| a == "--bench") && !std::env::args().any(|a| a == "--test") {
        let [(_, off), (_, metrics), (_, traced)] = &sides;
        compare(&runtime, "metrics on", off, metrics);
        compare(&runtime, "metrics on and 1 % traced", off, traced);
    }
    for (_, side) in sides {
        drop(side.callers);
        side.served.telemetry.close(Duration::from_secs(5));
        side.served.running.drain();
        side.served.running.wait();
    }
    stop.cancel();
    agent.join().expect("the agent ends well");
}

/// One that takes all that comes and keeps nothing.
fn collector() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for io in listener.incoming().flatten() {
            thread::spawn(move || take(io));
        }
    });
    at
}

fn take(mut io: std::net::TcpStream) -> Option<()> {
    let mut bytes = vec![];
    let mut more = vec![0; 64 * 1024];
    loop {
        let read = io.read(&mut more).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&more[..read]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let (_, length) = head.split_once("content-length: ")?;
        let length: usize = length.lines().next()?.parse().ok()?;
        if bytes.len() >= end + 4 + length {
            bytes.drain(..end + 4 + length);
            io.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .ok()?;
        }
    }
}

/// Rounds of both, which take turns, so that what else the machine does meets both.
fn compare(runtime: &Runtime, what: &str, off: &Side, on: &Side) {
    let (mut throughput, mut work) = (vec![], vec![]);
    for round in 0..ROUNDS {
        let measure = |side: &Side| {
            let before = side.worked();
            let took = side.calls(runtime, CALLS).as_secs_f64();
            (took, side.worked().zip(before).map(|(a, b)| a - b))
        };
        let (off, on) = if round % 2 == 0 {
            (measure(off), measure(on))
        } else {
            let on = measure(on);
            (measure(off), on)
        };
        throughput.push(off.0 / on.0);
        work.extend(off.1.zip(on.1).map(|(off, on)| off / on));
    }
    println!("{what}, of the gateway that tells nothing (at least 0.95):");
    println!("  throughput      {}", spread(throughput));
    println!("  time of threads {}", spread(work));
}

/// The middle one, and where half of them lie.
fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    let at = |part: usize| all.get(all.len() * part / 4).copied().unwrap_or(f64::NAN);
    format!("{:.3} ({:.3} to {:.3})", at(2), at(1), at(3))
}

/// A gateway and its callers.
struct Side {
    served: run::Served,
    threads: BTreeSet<u32>,
    callers: Vec<Mutex<Caller>>,
}

struct Caller {
    connection: client::Connection,
    key: String,
    context: String,
}

impl Side {
    fn new(runtime: &Runtime, settings: Config) -> Self {
        let others = threads();
        let served = run::start(settings).expect("the gateway starts");
        let to = served.running.local_addr;
        let callers = (0..AT_ONCE).map(|number| {
            let connection = runtime.block_on(client::connect(runtime, to));
            Mutex::new(Caller {
                connection: connection.expect("a connection"),
                key: key(number),
                context: format!("ctx-{number}"),
            })
        });
        Self {
            callers: callers.collect(),
            threads: &threads() - &others,
            served,
        }
    }

    /// So many calls by each caller, all callers at once. Each is a new message in the caller's own conversation.
    fn calls(&self, runtime: &Runtime, each: u64) -> Duration {
        let template = bodies::request(Dialect::J03, KILOBYTE);
        let begun = Instant::now();
        runtime.block_on(join_all(self.callers.iter().map(async |caller| {
            let caller = &mut *caller.lock().await;
            for _ in 0..each {
                let body = message(&template, &caller.context);
                let length = client::send(&mut caller.connection, "/", &caller.key, body).await;
                assert!(length > KILOBYTE / 2, "the answer is too short");
            }
        })));
        begun.elapsed()
    }

    /// For how long its threads have worked, in nanoseconds.
    fn worked(&self) -> Option<f64> {
        let of = |thread: &u32| {
            let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
            text.ok()?.split(' ').next()?.parse::<f64>().ok()
        };
        let all: Vec<f64> = self.threads.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum())
    }
}

/// The threads of this process, where that can be asked.
fn threads() -> BTreeSet<u32> {
    let all = fs::read_dir("/proc/self/task").into_iter().flatten();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A message that was not sent before, of this conversation.
fn message(template: &str, context: &str) -> Bytes {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let id = format!("msg-{:016x}", SENT.fetch_add(1, Relaxed));
    template
        .replacen("msg-1", &id, 1)
        .replacen("ctx-1", context, 1)
        .into()
}

/// Each task is new, and in the conversation of its message: tenants would find others' otherwise.
fn words() -> agent::Words {
    let template = bodies::answer(Dialect::R10, KILOBYTE);
    let tasks = AtomicU64::new(0);
    agent::Words {
        answer: Box::new(move |message| {
            let text = String::from_utf8_lossy(message);
            let context = text.split_once(r#""contextId":""#);
            let context = context.and_then(|(_, rest)| rest.split_once('"'));
            let (context, _) = context.expect("the message names its conversation");
            let task = format!("run-{:012x}", tasks.fetch_add(1, Relaxed));
            let text = template.replace("ctx-1", context);
            text.replace("run-e21fffe8d536", &task).into()
        }),
        events: Bytes::new(),
    }
}

fn settings(agent: SocketAddr, told: &str) -> Config {
    let overrides = Overrides {
        backend: Some(format!("http://{agent}")),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0)).into()),
        binding: Some(Binding::Rest),
        ..Overrides::default()
    };
    Config::parse(&format!("workers: 1\n{told}"), overrides).expect("good settings")
}

fn key(number: u64) -> String {
    format!("k-5b0c7b8f1d2e4a68905b0c7b8f1d2e4a6890-{number:08}")
}
