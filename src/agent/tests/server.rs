//! A scripted agent: plain sockets and threads, so that it does nothing by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    seen: AtomicUsize,
}

pub(super) struct Server {
    port: u16,
    counts: Arc<Counts>,
}

impl Server {
    /// Runs `script` for each connection, on a thread of its own.
    pub(super) fn start(script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let script = Arc::new(script);
        Self::listen(move |stream, index, counts| {
            let peer = Peer {
                reader: BufReader::new(stream),
                index,
                counts,
            };
            let script = Arc::clone(&script);
            std::thread::spawn(move || script(peer));
        })
    }

    /// Speaks HTTP/2 and answers with what it was asked.
    pub(super) fn start_http2() -> Self {
        Self::listen(|stream, _, counts| {
            std::thread::spawn(move || serve_http2(stream, counts));
        })
    }

    /// Hands each connection to `serve`, which must not wait.
    fn listen(serve: impl Fn(TcpStream, usize, Arc<Counts>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counts = Arc::new(Counts::default());
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            counts: Arc::clone(&counts),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let index = counts.accepted.fetch_add(1, Ordering::SeqCst);
                serve(stream.unwrap(), index, Arc::clone(&counts));
            }
        });
        server
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Connections so far.
    pub(super) fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// Requests read whole so far.
    pub(super) fn seen(&self) -> usize {
        self.counts.seen.load(Ordering::SeqCst)
    }
}

/// The agent's end of one connection; dropping it closes the connection.
pub(super) struct Peer {
    reader: BufReader<TcpStream>,
    index: usize,
    counts: Arc<Counts>,
}

impl Peer {
    /// How many connections came before.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn port(&self) -> u16 {
        self.reader.get_ref().local_addr().unwrap().port()
    }

    /// Head and body of the next request, or `None` at the end.
    pub(super) fn read_request(&mut self) -> Option<String> {
        let request = read_request(&mut self.reader)?;
        self.counts.seen.fetch_add(1, Ordering::SeqCst);
        Some(request)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        // A client that has gone is a matter for the test, not for the script.
        let _ = self.reader.get_mut().write_all(bytes);
    }

    /// Returns when the client has closed.
    pub(super) fn wait_for_end(&mut self) {
        let _ = self.reader.read_to_end(&mut Vec::new());
    }
}

/// One request with its body, by its `Content-Length`.
pub(super) fn read_request(reader: &mut impl BufRead) -> Option<String> {
    let mut request = String::new();
    let mut length = 0;
    loop {
        let start = request.len();
        if reader.read_line(&mut request).ok()? == 0 {
            return None;
        }
        let line = &request[start..];
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.push_str(std::str::from_utf8(&body).unwrap());
    Some(request)
}

/// `data` as one chunk of a chunked body.
pub(super) fn chunk(data: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn serve_http2(stream: TcpStream, counts: Arc<Counts>) {
    stream.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let io = TokioIo::new(tokio::net::TcpStream::from_std(stream).unwrap());
        let echo = service_fn(move |request: Request<Incoming>| {
            let counts = Arc::clone(&counts);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                counts.seen.fetch_add(1, Ordering::SeqCst);
                let text = format!("{} {} {}", head.method, head.uri, body.escape_ascii());
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(text))))
            }
        });
        let _ = http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(None)
            .serve_connection(io, echo)
            .await;
    });
}
