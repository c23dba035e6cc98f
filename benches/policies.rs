//! What all policies together cost: a send of 1 KB through a bare gateway, and through one that asks for a key, shows a
//! credential of its own, keeps tenants apart, counts by three rules, writes metadata and records each call.
//!
//! The last lines are what to read. `throughput` is what the gateway with policies carries of what the bare one does,
//! the middle one of rounds that take turns, with 32 calls under way: it is to be 0.85 or more. Client and agent share
//! the machine's cores and cost both gateways the same, which flatters it where they do not have cores of their own.
//! `time of threads` is the same by the time that the gateways' own threads have worked (the audit log's thread with
//! them): nothing flatters it, nor does it matter what else the machine does. It is known on Linux only.
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use a2a_gateway::{
    a2a::Dialect,
    config::{Binding, Config, Overrides},
    run,
};
use aws_lc_rs::digest::{SHA256, digest};
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
/// Tenants, whose callers take turns.
const TENANTS: u64 = 2;
const ROUNDS: usize = 41;
/// Calls of a connection in a round.
const CALLS: u64 = 64;

fn main() {
    let stop = CancellationToken::new();
    let (agent, at) = agent::start(words(), stop.clone()).expect("a thread and a port");
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the client");
    let bare = Side::new(&runtime, settings(at, ""));
    let on = Side::new(&runtime, settings(at, &policies(folder.path())));
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut group = criterion.benchmark_group("policies");
    group.throughput(Throughput::Elements(AT_ONCE));
    for (name, side) in [("bare", &bare), ("on", &on)] {
        group.bench_function(name, |b| b.iter_custom(|n| side.calls(&runtime, n)));
    }
    group.finish();
    criterion.final_summary();
    if std::env::args().any(|a| a == "--bench") && !std::env::args().any(|a| a == "--test") {
        compare(&runtime, &bare, &on);
    }
    for side in [bare, on] {
        drop(side.callers);
        side.served.running.drain();
        side.served.running.wait();
        side.served.audit.close(Duration::from_secs(5));
    }
    stop.cancel();
    agent.join().expect("the agent ends well");
}

/// Rounds of both, which take turns, so that what else the machine does meets both.
fn compare(runtime: &Runtime, bare: &Side, on: &Side) {
    let (mut throughput, mut work) = (vec![], vec![]);
    for round in 0..ROUNDS {
        let measure = |side: &Side| {
            let before = side.worked();
            let took = side.calls(runtime, CALLS).as_secs_f64();
            (took, side.worked().zip(before).map(|(a, b)| a - b))
        };
        let (bare, on) = if round % 2 == 0 {
            (measure(bare), measure(on))
        } else {
            let on = measure(on);
            (measure(bare), on)
        };
        throughput.push(bare.0 / on.0);
        work.extend(bare.1.zip(on.1).map(|(bare, on)| bare / on));
    }
    println!("policies on, of the bare gateway (at least 0.85):");
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

fn settings(agent: SocketAddr, policies: &str) -> Config {
    let overrides = Overrides {
        backend: Some(format!("http://{agent}")),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0)).into()),
        binding: Some(Binding::Rest),
        ..Overrides::default()
    };
    Config::parse(&format!("workers: 1\n{policies}"), overrides).expect("good settings")
}

/// Every policy, none of which ever refuses anything here.
fn policies(folder: &Path) -> String {
    let file = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).expect("a file in the folder");
        file.display().to_string()
    };
    let mut keys = String::new();
    for number in 0..AT_ONCE {
        let digest = digest(&SHA256, key(number).as_bytes());
        let digest: [u8; 32] = digest.as_ref().try_into().expect("32 bytes");
        let hex = blake3::Hash::from_bytes(digest).to_hex();
        let tenant = number % TENANTS;
        let item = format!("- {{name: n{number}, tenant: t{tenant}, digest: 'sha256:{hex}'}}");
        let _infallible = writeln!(keys, "{item}");
    }
    let keys = file("keys.yaml", &keys);
    let secret = file("secret", "Bearer of-the-gateway");
    let audit_key = file("audit-key", "a key of thirty-two characters or more");
    let audit = folder.join("audit");
    let audit = audit.display();
    format!(
        "auth: [{{api_keys: {{file: '{keys}'}}}}]
backend: {{credentials: {{header: {{name: authorization, file: '{secret}'}}}}}}
ownership: {{by: tenant}}
metadata: [{{path: memory.source, set: {{constant: gateway}}}}]
limits:
  rules:
    - {{name: calls, key: [caller], rate: {{limit: 1000000, per: 1s}}}}
    - {{name: daily, key: [tenant], quota: {{of: messages, limit: 1000000000, per: day}}}}
    - {{name: at-once, key: [caller], concurrency: {{of: sends, limit: 100}}}}
audit: {{folder: '{audit}', key_file: '{audit_key}'}}
"
    )
}

fn key(number: u64) -> String {
    format!("k-5b0c7b8f1d2e4a68905b0c7b8f1d2e4a6890-{number:08}")
}
