//! A gateway that speaks TLS before an agent that answers all, and what is logged.
use std::{
    io::Write,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
};

use tracing_subscriber::fmt::MakeWriter;

use super::{
    client::Caller,
    pki::{Authority, Issued, Mounted},
};
use crate::support::{
    agent::{Agent, Asked, Log, answer},
    gateway::Gateway,
    words::{TASK, result, wrapped},
};

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
    /// Its own certificate, and what it trusts.
    pub(super) files: Mounted,
    pub(super) authority: Authority,
    /// Of clients.
    pub(super) vouches: Authority,
    pub(super) own: Issued,
}

pub(super) const OWN: [&str; 2] = ["localhost", "127.0.0.1"];

impl House {
    /// `clients` is more settings of TLS, with `{D}` for the folder, and `rest` is more YAML.
    pub(super) fn build(clients: &str, rest: &str) -> Self {
        let (agent, log) = Agent::always(says);
        Self::before(agent, log, clients, rest)
    }

    pub(super) fn before(agent: SocketAddr, log: Log, clients: &str, rest: &str) -> Self {
        Self::with(agent, log, "", clients, rest)
    }

    pub(super) fn with(
        agent: SocketAddr,
        log: Log,
        backend: &str,
        clients: &str,
        rest: &str,
    ) -> Self {
        listen();
        let (authority, vouches) = (Authority::new("house"), Authority::new("people"));
        let own = authority.issue(&OWN);
        let files = Mounted::new(&[
            ("tls.crt", &own.cert),
            ("tls.key", &own.key),
            ("ca.crt", &vouches.pem()),
            ("crl.pem", &vouches.list(&[])),
        ]);
        let folder = files.path("").display().to_string();
        let clients = clients.replace("{D}", folder.trim_end_matches('/'));
        let tls = format!(
            "tls: {{cert_file: '{}', key_file: '{}'{clients}}}",
            files.path("tls.crt").display(),
            files.path("tls.key").display()
        );
        Self {
            gateway: Gateway::with(agent, backend, &format!("{tls}\n{rest}")),
            agent: log,
            files,
            authority,
            vouches,
            own,
        }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.gateway.addr
    }

    /// Somebody who trusts it and shows nothing.
    pub(super) fn stranger(&self) -> Caller {
        Caller::new(&self.authority.pem(), None)
    }

    /// The same without TLS 1.3.
    pub(super) fn old(&self) -> Caller {
        Caller::old(&self.authority.pem(), None)
    }

    /// Somebody who shows this.
    pub(super) fn showing(&self, issued: &Issued) -> Caller {
        Caller::new(&self.authority.pem(), Some(issued))
    }

    /// Other files: its own certificate, and the list of what was revoked.
    pub(super) fn put(&self, own: &Issued, authority: &str, list: &str) {
        self.files.put(&[
            ("tls.crt", &own.cert),
            ("tls.key", &own.key),
            ("ca.crt", authority),
            ("crl.pem", list),
        ]);
    }
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
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO);
        log.with_writer(lines.clone()).with_ansi(false).init();
        lines
    })
}

/// The log so far.
pub(super) fn log() -> String {
    String::from_utf8(listen().0.lock().unwrap().clone()).unwrap()
}
