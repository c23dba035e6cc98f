//! What socket tests are made of: an agent that does what the test says, clients that send bytes, and a gateway
//! between them. All are blocking, so that a test reads from top to bottom; every wait has a deadline.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part of these tools, and nothing is outside of a test"
)]

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

pub mod agent;
pub mod client;
pub mod collector;
pub mod desk;
pub mod gateway;
pub mod issuer;
pub mod keys;
pub mod message;
pub mod place;
pub mod seen;
pub mod stage;
pub mod words;

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = tokio::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

/// A head and what follows it, read from a socket bit by bit.
pub struct Wire {
    pub io: TcpStream,
    bytes: Vec<u8>,
    at: usize,
}

impl Wire {
    pub fn new(io: TcpStream) -> Self {
        io.set_read_timeout(Some(PATIENCE)).unwrap();
        io.set_write_timeout(Some(PATIENCE)).unwrap();
        io.set_nodelay(true).unwrap();
        Self {
            io,
            bytes: vec![],
            at: 0,
        }
    }

    /// Writes; a peer that has gone is a matter for what is read afterwards.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.io.write_all(bytes.as_ref()).is_ok()
    }

    /// More bytes; false at the end or after a reset.
    fn fill(&mut self) -> bool {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        let mut more = [0; 16 * 1024];
        match self.io.read(&mut more) {
            Ok(0) => false,
            Ok(n) => {
                self.bytes.extend_from_slice(&more[..n]);
                true
            }
            Err(e) => {
                let late = matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(!late, "nothing came within {PATIENCE:?}");
                false
            }
        }
    }

    /// Everything up to and with `end`; `None` if the peer closed before.
    pub fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            let rest = &self.bytes[self.at..];
            if let Some(found) = rest.windows(end.len()).position(|w| w == end) {
                let text = rest[..found + end.len()].to_vec();
                self.at += text.len();
                return Some(text);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Just so many bytes; `None` if the peer closed before.
    pub fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.bytes.len() - self.at < count {
            if !self.fill() {
                return None;
            }
        }
        let taken = self.bytes[self.at..self.at + count].to_vec();
        self.at += count;
        Some(taken)
    }

    /// All until the peer closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        self.bytes.split_off(self.at)
    }

    /// Waits until the peer has closed, whatever it said before; fails the test if it does not.
    pub fn closed(&mut self) {
        while self.fill() {
            self.at = self.bytes.len();
        }
    }

    /// Whether the peer is there and has said nothing that was not read.
    pub fn is_open(&self) -> bool {
        self.io.set_nonblocking(true).unwrap();
        let silent = self.io.peek(&mut [0]);
        self.io.set_nonblocking(false).unwrap();
        silent.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    }

    pub fn head(&mut self) -> Option<Head> {
        Head::parse(&self.until(b"\r\n\r\n")?)
    }

    /// The next chunk of a chunked body, empty at its end; `None` if it is cut.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.until(b"\r\n")?;
        let size = std::str::from_utf8(&size).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        let mut data = self.exactly(size + 2)?;
        data.truncate(size);
        Some(data)
    }
}

/// The head of a request or a response.
#[derive(Clone, Debug)]
pub struct Head {
    pub line: String,
    pub fields: Vec<(String, String)>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.trim_end().split("\r\n");
        let line = lines.next()?.to_owned();
        let field = |l: &str| {
            let (name, value) = l.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Some(Self {
            line,
            fields: lines.filter_map(field).collect(),
        })
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.as_str())
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.fields.iter().filter(|(n, _)| n == name);
        found.map(|(_, v)| v.as_str()).collect()
    }

    /// The status of a response.
    pub fn status(&self) -> u16 {
        self.line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
