//! A client that writes bytes and reads bytes.
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::{Head, Wire, agent::Agent};

pub struct Client {
    pub wire: Wire,
    /// The rest of a chunk that held more than one event.
    events: Vec<u8>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub body: String,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).unwrap())
    }

    pub fn over(io: TcpStream) -> Self {
        Self {
            wire: Wire::new(io),
            events: vec![],
        }
    }

    /// Sends a request; `fields` is whole lines.
    pub fn send(&mut self, line: &str, fields: &str, body: &str) {
        let length = if body.is_empty() && !line.starts_with("POST") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let host = if fields.starts_with("host:") || fields.contains("\nhost:") {
            ""
        } else {
            "host: gateway.test\r\n"
        };
        let text = format!("{line} HTTP/1.1\r\n{host}{fields}{length}\r\n{body}");
        self.wire.write(text);
    }

    pub fn head(&mut self) -> Head {
        self.wire.head().expect("an answer comes")
    }

    /// The whole answer, by its length or its chunks.
    pub fn answer(&mut self) -> Answer {
        let head = self.head();
        let none = matches!(head.status(), 204 | 304);
        let body = match (head.get("content-length"), head.get("transfer-encoding")) {
            _ if none => vec![],
            (Some(length), _) => self.wire.exactly(length.parse().unwrap()).unwrap(),
            (None, Some(_)) => {
                let mut body = vec![];
                loop {
                    let chunk = self.wire.chunk().expect("the body ends well");
                    if chunk.is_empty() {
                        break;
                    }
                    body.extend_from_slice(&chunk);
                }
                body
            }
            (None, None) => vec![],
        };
        Answer {
            head,
            body: String::from_utf8(body).unwrap(),
        }
    }

    pub fn ask(&mut self, line: &str, fields: &str, body: &str) -> Answer {
        self.send(line, fields, body);
        self.answer()
    }

    /// Asks while the agent answers 503; the status of the answer.
    pub fn ask_refusing(&mut self, agent: &Agent, line: &str) -> u16 {
        self.send(line, "", "");
        let answered = self.wire.io.try_clone().unwrap();
        answered.set_nonblocking(true).unwrap();
        agent.refuse_while(|| answered.peek(&mut [0]).is_err());
        answered.set_nonblocking(false).unwrap();
        self.answer().status()
    }

    /// The next event or comment of a stream, without the blank line; `None` at its clean end.
    pub fn event(&mut self) -> Option<String> {
        loop {
            let end = self.events.windows(2).position(|w| w == b"\n\n");
            if let Some(end) = end {
                let event = self.events.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(event).unwrap());
            }
            let chunk = self.wire.chunk().expect("the stream ends well");
            if chunk.is_empty() {
                assert!(self.events.is_empty(), "half an event at the end");
                return None;
            }
            self.events.extend_from_slice(&chunk);
        }
    }

    /// All events that are left, up to the clean end.
    pub fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.event()).collect()
    }
}
