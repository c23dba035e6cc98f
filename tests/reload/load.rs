//! Many reloads while calls and streams run: none of them fails, and nothing is left behind.
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    Place,
    program::{Program, settings, write},
    support::{
        agent::{STREAM, answer, chunk},
        client::Client,
        message::Message,
        until,
        words::{self, ALL, DONE, Speak, WORKING, data},
    },
};

const JSON: &str = "content-type: application/json\r\n";

/// A v1.0 JSON-RPC agent that answers at once, each connection on a thread of its own.
fn agent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for io in listener.incoming() {
            thread::spawn(move || serve(io.unwrap()));
        }
    });
    addr
}

fn serve(mut io: TcpStream) {
    io.set_nodelay(true).unwrap();
    let whole = answer(200, JSON, words::result(&words::wrapped()));
    let event = |text: &str| chunk(format!("data: {}\n\n", words::result(text)));
    let mut stream = STREAM.as_bytes().to_vec();
    for text in [&words::wrapped(), WORKING, DONE] {
        stream.extend(event(text));
    }
    stream.extend(b"0\r\n\r\n");
    let mut bytes = vec![];
    let mut more = [0; 16 * 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let whole_request = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            (body.len() >= length).then_some(head.len() + 4 + length)
        });
        if let Some(length) = whole_request {
            bytes.drain(..length);
            let said = if text.contains("SendStreamingMessage") {
                &stream
            } else {
                &whole
            };
            if io.write_all(said).is_err() {
                return;
            }
            continue;
        }
        match io.read(&mut more) {
            Ok(0) | Err(_) => return,
            Ok(n) => bytes.extend_from_slice(&more[..n]),
        }
    }
}

/// Callers that go on until they are told to stop.
struct Callers {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Callers {
    /// Each dialect twice: one caller of documents, one of streams.
    fn start(addr: SocketAddr) -> Self {
        let (stop, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let kinds = ALL
            .iter()
            .flat_map(|speak| [(*speak, false), (*speak, true)]);
        let threads = kinds.map(|(speak, streams)| {
            let (stop, calls) = (stop.clone(), calls.clone());
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                for n in 0.. {
                    if stop.load(SeqCst) {
                        return;
                    }
                    call(&mut client, speak, streams, n);
                    calls.fetch_add(1, SeqCst);
                }
            })
        });
        let threads = threads.collect();
        Self {
            stop,
            calls,
            threads,
        }
    }

    fn so_far(&self) -> usize {
        self.calls.load(SeqCst)
    }

    fn end(self) {
        self.stop.store(true, SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// One call, which must not fail.
fn call(client: &mut Client, speak: Speak, streams: bool, n: usize) {
    let id = format!("{speak:?}-{n}");
    let message = if streams {
        Message::stream(&id)
    } else {
        Message::send(&id)
    };
    let (line, body) = message.words(speak);
    client.send(line, JSON, &body);
    if streams {
        assert_eq!(client.head().status(), 200, "{speak:?}");
        let events = client.rest();
        assert_eq!(events.len(), 3, "{speak:?}: {events:?}");
        assert!(events.iter().all(|event| !data(event).1), "{events:?}");
        return;
    }
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{speak:?}: {}", answer.body);
    assert!(!answer.body.contains("\"error\""), "{}", answer.body);
}

/// Settings of every kind that callers do not feel.
fn settings_of(n: usize) -> String {
    let many = 1_000_000 + n;
    let on = n.is_multiple_of(2);
    format!(
        "drain: {{grace: {}s}}\nhttp: {{cors: {{origins: ['https://{n}.example']}}}}\n\
         limits: {{rules: [{{name: all, key: [global], quota: {{of: messages, limit: {many}000, per: month}}}}], \
         followers: {many}, connect: {}s, buffered: {many}KiB, max_keys: {many}}}\n\
         conversation: {{max_waiting: {many}}}\ncompat: {{generate_message_id: {on}}}\n\
         auth: [{}]\nlog: {}\n",
        1 + n % 20,
        4 + n % 3,
        if on { "passthrough" } else { "anyone" },
        if on { "info" } else { "warn" },
    )
}

#[test]
fn more_than_a_hundred_reloads_under_load() {
    let place = Place::new(agent(), &settings_of(0));
    let front = &place.gateway.served().front;
    let life = front.setup().life();
    let callers = Callers::start(place.gateway.addr);
    for n in 1..=120 {
        let before = callers.so_far();
        place.takes(&settings_of(n));
        until("calls go on", || callers.so_far() > before);
    }
    assert!(callers.so_far() > 500);
    callers.end();
    until("all settings from before have gone", || {
        front.earlier() == 0
    });
    assert!(life.upgrade().is_none());
    assert_eq!(place.gateway.served().reloads.status().now().ok, 120);
    assert_eq!(place.gateway.served().budget.used(), 0);
}

/// What a process has open, and holds.
#[derive(Clone, Copy, Debug)]
struct Weight {
    descriptors: usize,
    threads: u64,
    kilobytes: u64,
}

impl Weight {
    fn of(id: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find(|l| l.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Self {
            descriptors: fs::read_dir(format!("/proc/{id}/fd")).unwrap().count(),
            threads: number("Threads:"),
            kilobytes: number("VmRSS:"),
        }
    }
}

/// A number from the environment, or the usual one.
#[expect(clippy::disallowed_methods, reason = "the script says how long")]
fn given(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// `tests/soak/reload` runs it: 1,000 reloads in a minute, of a process of its own, three ways of asking in turn.
#[test]
#[ignore = "it takes more than a minute"]
fn soak() {
    let (reloads, seconds) = (given("RELOADS", 1000), given("SECONDS_LONG", 60));
    let folder = TempDir::new().unwrap();
    let agent = agent();
    let yaml = |n| settings(folder.path(), agent, &settings_of(n));
    let mut program = Program::start(folder.path(), &yaml(0));
    let callers = Callers::start(program.addr);
    until("calls come", || callers.so_far() > 1000);
    let beat = Duration::from_secs(seconds as u64) / u32::try_from(reloads).unwrap();
    let began = Instant::now();
    let warm = reloads / 4;
    let mut first = None;
    for n in 1..=reloads {
        write(folder.path(), &yaml(n));
        if n % 3 == 0 {
            program.signal("HUP");
        } else {
            let answer = program.ask_admin("POST /v1/reload");
            assert_eq!(answer.status(), 200, "{}", answer.body);
        }
        if n == warm {
            first = Some(Weight::of(program.id()));
        }
        let due = beat * u32::try_from(n).unwrap();
        thread::park_timeout(due.saturating_sub(began.elapsed()));
    }
    let took = began.elapsed();
    let calls = callers.so_far();
    let last = Weight::of(program.id());
    callers.end();
    let first = first.unwrap();
    println!("{reloads} reloads in {took:.1?}, {calls} calls and streams, none failed");
    println!("after {warm}: {first:?}\nat the end: {last:?}");
    assert!(took.as_secs() < seconds as u64 + 30);
    assert!(
        last.descriptors <= first.descriptors + 16,
        "descriptors grow"
    );
    assert!(last.threads <= first.threads + 1, "threads grow");
    assert!(
        last.kilobytes <= first.kilobytes + first.kilobytes / 5 + 4096,
        "memory grows"
    );
    until("all settings from before have gone", || {
        let detail = program.ask_admin("GET /readyz?verbose").body;
        detail.contains("calls still go by: 0")
    });
    assert_eq!(program.log().matches("panicked").count(), 0);
    program.signal("TERM");
    assert_eq!(program.code(), Some(0));
}
