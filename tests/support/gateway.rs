//! A gateway in this process, in front of one agent.
use std::net::SocketAddr;

use a2a_gateway::{
    config::{Config, Overrides},
    reload::Source,
    run::{self, Served},
};
use tempfile::NamedTempFile;

use super::client::{Answer, Client};

pub struct Gateway {
    pub addr: SocketAddr,
    served: Option<Served>,
    /// What its settings name.
    files: Vec<NamedTempFile>,
}

impl Gateway {
    /// In front of a v1.0 JSON-RPC agent.
    pub fn before(agent: SocketAddr) -> Self {
        Self::with(agent, "", "")
    }

    /// In front of a v1.0 REST agent.
    pub fn before_rest(agent: SocketAddr) -> Self {
        Self::with(agent, "binding: rest", "")
    }

    /// `backend` is more settings of it, `rest` is more YAML.
    pub fn with(agent: SocketAddr, backend: &str, rest: &str) -> Self {
        Self::of(&format!(
            "workers: 1\nbackend: {{url: 'http://{agent}', {backend}}}\n{rest}"
        ))
    }

    pub fn of(yaml: &str) -> Self {
        let yaml = format!("listen: 127.0.0.1:0\n{yaml}");
        let config = Config::parse(&yaml, Overrides::default());
        Self::run(config.unwrap_or_else(|e| panic!("{e}\n{yaml}")))
    }

    pub fn run(config: Config) -> Self {
        Self::serving(run::start(config).unwrap())
    }

    /// One with a settings file, which it reads again.
    pub fn from_file(file: &std::path::Path) -> Self {
        let source = Source {
            file: Some(file.to_owned()),
            ..Source::default()
        };
        let config = Config::load(Some(file), Overrides::default());
        let config = config.unwrap_or_else(|e| panic!("{e}"));
        Self::serving(run::start_from(config, source).unwrap())
    }

    pub fn serving(served: Served) -> Self {
        Self {
            addr: served.running.local_addr,
            served: Some(served),
            files: vec![],
        }
    }

    /// Files that stay for as long as it does.
    pub fn keeping<const N: usize>(mut self, files: [NamedTempFile; N]) -> Self {
        self.files.extend(files);
        self
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// One request on a connection of its own.
    pub fn ask(&self, line: &str, fields: &str, body: &str) -> Answer {
        self.client().ask(line, fields, body)
    }

    /// Waits until so many clients are connected: the gateway knows then that the others have gone.
    pub fn until_connected(&self, clients: usize) {
        let counts = self.served().running.counts();
        super::until("so many are connected", || counts.connections() == clients);
    }

    /// One request on a connection to its admin address.
    pub fn ask_admin(&self, line: &str, fields: &str) -> Answer {
        let admin = self.served().admin.as_ref().unwrap();
        Client::connect(admin.local_addr).ask(line, fields, "")
    }

    pub fn served(&self) -> &Served {
        self.served.as_ref().unwrap()
    }

    /// Drains and waits. True if all could end by itself.
    pub fn end(mut self) -> bool {
        let served = self.served.take().unwrap();
        served.running.drain();
        if let Some(admin) = &served.admin {
            admin.drain();
        }
        served.running.wait().clean()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            served.running.cut();
            if let Some(admin) = &served.admin {
                admin.cut();
            }
        }
    }
}
