//! A folder for a log and the key beside it, and what stands in the log in the end.
use std::{fs, net::SocketAddr, path::PathBuf};

use a2a_gateway::audit::{self, Key, verify};
use serde_json::Value;
use tempfile::TempDir;

use super::{PATIENCE, gateway::Gateway};

pub const KEY: &str = "0d5e-a key that is in nothing but its own file-77aa";

pub struct Place(pub TempDir);

impl Place {
    pub fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::write(place.key_file(), format!("{KEY}\n")).unwrap();
        place
    }

    pub fn key_file(&self) -> PathBuf {
        self.0.path().join("key")
    }

    pub fn folder(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// The section; `more` is further settings of it.
    pub fn section(&self, more: &str) -> String {
        let (folder, key) = (self.folder(), self.key_file());
        let (folder, key) = (folder.display(), key.display());
        format!("audit: {{folder: '{folder}', key_file: '{key}', {more}}}\n")
    }

    /// A gateway that records what it does. Nothing is told on stdout.
    pub fn gateway(&self, agent: SocketAddr, more: &str, rest: &str) -> Gateway {
        let section = self.section(&format!("flush: 10ms, checkpoint: 0, {more}"));
        Gateway::with(agent, "", &format!("{section}{rest}"))
    }

    pub fn files(&self) -> Vec<PathBuf> {
        audit::files_in(&self.folder()).unwrap_or_default()
    }

    /// All whole lines so far.
    pub fn lines(&self) -> Vec<Value> {
        let texts = self
            .files()
            .into_iter()
            .map(|file| fs::read_to_string(file).unwrap());
        let mut all = vec![];
        for text in texts {
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            all.extend(
                whole
                    .lines()
                    .map(|line| serde_json::from_str::<Value>(line).unwrap()),
            );
        }
        all
    }

    /// The records of calls so far.
    pub fn calls(&self) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["kind"] == "call");
        lines
    }

    /// The records of all calls, after the gateway's end; the log is whole.
    pub fn ends(&self, gateway: Gateway) -> Vec<Value> {
        let audit = gateway.served().audit.clone();
        assert!(gateway.end(), "nothing was cut");
        assert!(audit.close(PATIENCE));
        let key = Key::read(&self.key_file()).unwrap();
        let report = verify::verify(&self.files(), Some(&key), None).unwrap();
        assert!(report.is_good(), "{report}");
        self.calls()
    }
}
