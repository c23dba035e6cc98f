//! Settings that change under a gateway that runs: the next call goes by them, on whichever connection it comes, and what
//! runs already goes by those that it began with.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;

#[path = "reload/each.rs"]
mod each;
#[path = "reload/load.rs"]
mod load;
#[path = "reload/telling.rs"]
mod telling;
#[path = "reload/under_way.rs"]
mod under_way;

use std::{net::SocketAddr, path::PathBuf};

use program::{TOKEN, settings, write};
use serde_json::Value;
use support::{client::Answer, gateway::Gateway};
use tempfile::TempDir;

/// A gateway with a settings file in a folder of its own.
struct Place {
    folder: TempDir,
    file: PathBuf,
    agent: SocketAddr,
    gateway: Gateway,
}

impl Place {
    /// `rest` is more YAML.
    fn new(agent: SocketAddr, rest: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = write(folder.path(), &settings(folder.path(), agent, rest));
        let gateway = Gateway::from_file(&file);
        Self {
            folder,
            file,
            agent,
            gateway,
        }
    }

    fn write(&self, rest: &str) {
        write(
            self.folder.path(),
            &settings(self.folder.path(), self.agent, rest),
        );
    }

    fn post(&self, token: Option<&str>) -> Answer {
        let fields = token.map_or(String::new(), |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        self.gateway.ask_admin("POST /v1/reload", &fields)
    }

    /// Writes these and has them taken; the answer.
    fn takes(&self, rest: &str) -> Value {
        self.write(rest);
        let answer = self.post(Some(TOKEN));
        assert_eq!(answer.status(), 200, "{}", answer.body);
        answer.json()
    }
}
