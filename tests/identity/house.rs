//! A gateway with a door, before an agent that answers all by itself, and everything that was logged of it.
use std::{
    io::Write,
    sync::{Arc, Mutex, OnceLock},
};

use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

pub(super) use crate::support::keys::{api_key, bearer, file, item, keys_way, overwrite};
use crate::support::{
    agent::{Agent, Asked, Log, answer},
    client::Answer,
    gateway::Gateway,
    words::{J10, R10, Speak, TASK, result, wrapped},
};

pub(super) const KEY: &str = "k-5b0c7b8f1d2e4a6890-billing";
pub(super) const OLD_KEY: &str = "k-5b0c7b8f1d2e4a6890-expired";
pub(super) const READER: &str = "k-5b0c7b8f1d2e4a6890-readers";

pub(super) fn usual_keys() -> String {
    item("billing", KEY, "tenant: acme")
        + &item("old", OLD_KEY, "expires: 2020-01-01T00:00:00Z")
        + &item("reader", READER, "operations: [GetTask]")
}

/// A v1.0 JSON-RPC agent.
pub(super) fn says(asked: &Asked) -> Vec<u8> {
    let text = if asked.body.contains("GetTask") {
        result(TASK)
    } else {
        result(&wrapped())
    };
    answer(200, "content-type: application/json\r\n", text)
}

pub(super) struct House {
    pub(super) gateway: Gateway,
    pub(super) agent: Log,
}

impl House {
    /// `backend` is more settings of it, `rest` is more YAML.
    pub(super) fn build(backend: &str, rest: &str) -> Self {
        Self::before(says, backend, rest)
    }

    pub(super) fn before(
        agent: impl Fn(&Asked) -> Vec<u8> + Send + 'static,
        backend: &str,
        rest: &str,
    ) -> Self {
        listen();
        let (addr, log) = Agent::always(agent);
        Self {
            gateway: Gateway::with(addr, backend, rest),
            agent: log,
        }
    }

    /// Somebody sends a message, with these fields.
    pub(super) fn send(&self, speak: Speak, fields: &str) -> Answer {
        let (line, body) = speak.send();
        self.ask(speak, line, fields, &body)
    }

    pub(super) fn ask(&self, speak: Speak, line: &str, fields: &str, body: &str) -> Answer {
        let fields = format!("{fields}{}", head(speak));
        self.gateway.ask(line, &fields, body)
    }

    /// How often the agent was asked so far.
    pub(super) fn asked(&self) -> usize {
        self.agent.all().len()
    }
}

/// What a client of this dialect always says.
pub(super) fn head(speak: Speak) -> String {
    let version = if matches!(speak, J10 | R10) {
        "1.0"
    } else {
        "0.3"
    };
    format!("a2a-version: {version}\r\ncontent-type: application/json\r\n")
}

/// What all gateways of this process have logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn listen() -> &'static Lines {
    static LINES: OnceLock<Lines> = OnceLock::new();
    LINES.get_or_init(|| {
        let lines = Lines::default();
        let all = EnvFilter::new("debug,a2a_gateway=trace");
        let log = tracing_subscriber::fmt().with_env_filter(all);
        log.with_writer(lines.clone()).with_ansi(false).init();
        lines
    })
}

/// The log so far.
pub(super) fn log() -> String {
    String::from_utf8(listen().0.lock().unwrap().clone()).unwrap()
}
