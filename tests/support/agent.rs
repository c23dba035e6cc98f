//! The agent: each request to it is handed to the test, which answers it.
use std::{
    cell::Cell,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{Head, PATIENCE, Wire};

pub struct Agent {
    pub addr: SocketAddr,
    calls: Receiver<Call>,
    seen: Arc<AtomicUsize>,
    taken: Cell<usize>,
}

impl Agent {
    /// An agent whose calls are taken by [`Agent::next`].
    pub fn start() -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn listen(listener: TcpListener) -> Self {
        let addr = listener.local_addr().unwrap();
        let (to, calls) = channel();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = seen.clone();
        thread::spawn(move || {
            for io in listener.incoming() {
                serve(Wire::new(io.unwrap()), to.clone(), count.clone());
            }
        });
        Self {
            addr,
            calls,
            seen,
            taken: Cell::new(0),
        }
    }

    /// An agent that answers every request by itself.
    pub fn always(answer: impl Fn(&Asked) -> Vec<u8> + Send + 'static) -> (SocketAddr, Log) {
        let agent = Self::start();
        let (addr, log) = (agent.addr, Log::default());
        let kept = log.clone();
        thread::spawn(move || {
            while let Ok(mut call) = agent.calls.recv() {
                let text = answer(&call.asked);
                kept.0.lock().unwrap().push(call.asked.clone());
                call.write(text);
                call.done();
            }
        });
        (addr, log)
    }

    /// An agent that answers by itself what `answer` has an answer for, and leaves the rest to the test.
    pub fn answering(answer: impl Fn(&Asked) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let inner = Self::start();
        let (to, calls) = channel();
        let seen = Arc::new(AtomicUsize::new(0));
        let (addr, count) = (inner.addr, seen.clone());
        thread::spawn(move || {
            while let Ok(mut call) = inner.calls.recv() {
                if let Some(text) = answer(&call.asked) {
                    call.write(text);
                    call.done();
                } else {
                    count.fetch_add(1, SeqCst);
                    let _test_is_over = to.send(call);
                }
            }
        });
        Self {
            addr,
            calls,
            seen,
            taken: Cell::new(0),
        }
    }

    /// The next request, if it comes within a millisecond.
    pub fn next_soon(&self) -> Option<Call> {
        let call = self.calls.recv_timeout(Duration::from_millis(1)).ok()?;
        self.taken.set(self.taken.get() + 1);
        Some(call)
    }

    /// The next request.
    pub fn next(&self) -> Call {
        self.taken.set(self.taken.get() + 1);
        self.calls
            .recv_timeout(PATIENCE)
            .expect("the agent is asked something")
    }

    /// Whether a request came within a short while. Only to show that none does.
    pub fn is_left_alone(&self) -> bool {
        let short = Duration::from_millis(100);
        matches!(
            self.calls.recv_timeout(short),
            Err(RecvTimeoutError::Timeout)
        )
    }

    /// Whether no request waits to be taken at this moment.
    pub fn is_left_alone_now(&self) -> bool {
        self.seen() == self.taken.get()
    }

    /// Answers what comes with 503 for as long as `more`.
    pub fn refuse_while(&self, mut more: impl FnMut() -> bool) {
        while more() {
            if let Ok(call) = self.calls.recv_timeout(Duration::from_millis(1)) {
                self.taken.set(self.taken.get() + 1);
                call.answer(503, "", "");
            }
        }
    }

    /// Requests so far.
    pub fn seen(&self) -> usize {
        self.seen.load(SeqCst)
    }
}

/// What an agent was asked.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    pub fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }
}

fn serve(mut wire: Wire, to: Sender<Call>, count: Arc<AtomicUsize>) {
    thread::spawn(move || {
        // An idle connection may be kept for long.
        wire.io.set_read_timeout(None).unwrap();
        let Some(asked) = Asked::read(&mut wire) else {
            return;
        };
        wire.io.set_read_timeout(Some(PATIENCE)).unwrap();
        count.fetch_add(1, SeqCst);
        let call = Call {
            asked,
            wire,
            again: to.clone(),
            count,
        };
        let _test_is_over = to.send(call);
    });
}

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub head: Head,
    pub body: String,
}

impl Asked {
    fn read(wire: &mut Wire) -> Option<Self> {
        let head = wire.head()?;
        let length = head.get("content-length").map_or(0, |l| l.parse().unwrap());
        let body = wire.exactly(length)?;
        Some(Self {
            head,
            body: String::from_utf8(body).unwrap(),
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn is(&self, start: &str) -> bool {
        self.head.line.starts_with(start)
    }
}

/// A request that waits for its answer. Dropped, it closes its connection.
pub struct Call {
    pub asked: Asked,
    pub wire: Wire,
    again: Sender<Call>,
    count: Arc<AtomicUsize>,
}

impl Call {
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.wire.write(bytes)
    }

    /// Answers with one document, and takes the next request on this connection.
    pub fn answer(mut self, status: u16, fields: &str, body: impl AsRef<[u8]>) {
        self.write(answer(status, fields, body));
        self.done();
    }

    /// Answers 200 with JSON.
    pub fn json(self, body: &str) {
        self.answer(200, "content-type: application/json\r\n", body);
    }

    /// Begins a stream of events.
    pub fn begin(&mut self) {
        self.write(STREAM);
    }

    pub fn chunk(&mut self, data: impl AsRef<[u8]>) -> bool {
        self.write(chunk(data))
    }

    pub fn event(&mut self, data: &str) {
        self.chunk(format!("data: {data}\n\n"));
    }

    /// Ends a stream well.
    pub fn end(mut self) {
        self.write("0\r\n\r\n");
        self.done();
    }

    pub fn done(self) {
        serve(self.wire, self.again, self.count);
    }

    /// Waits until the gateway has closed the connection.
    pub fn closed(&mut self) {
        self.wire.closed();
    }

    /// Whether the gateway still waits for the answer.
    pub fn is_open(&mut self) -> bool {
        self.wire.is_open()
    }

    /// Closes with a reset instead of a polite end.
    pub fn reset(self) {
        let io: TcpStream = self.wire.io;
        set_linger_zero(&io);
    }
}

/// A close with unread bytes in the receive buffer is a reset; a lingering time of nothing is the surer way,
/// which the standard library does not offer, so tokio's is used.
fn set_linger_zero(io: &TcpStream) {
    let copy = io.try_clone().unwrap();
    copy.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let copy = tokio::net::TcpStream::from_std(copy).unwrap();
    copy.set_zero_linger().unwrap();
}

pub const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    let mut out = format!("{:x}\r\n", data.len()).into_bytes();
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
    out
}

pub fn answer(status: u16, fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = match status {
        204 | 304 => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let mut out = format!("HTTP/1.1 {status} Whatever\r\n{fields}{length}\r\n").into_bytes();
    out.extend_from_slice(body);
    out
}
