//! The gateway as a process of its own.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part of these tools, and nothing is outside of a test"
)]

use std::{
    fs::{self, File},
    io::Read as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::support::{
    client::{Answer, Client},
    until,
};

pub const TOKEN: &str = "a token of sufficient length";

/// A gateway that serves what is in a folder: `gateway.yaml`, `token`, and its log in `stderr`. Killed when dropped.
pub struct Program {
    pub addr: SocketAddr,
    pub admin: SocketAddr,
    child: Child,
    folder: PathBuf,
}

/// Settings of a gateway before an agent, with a free port for each of its addresses.
pub fn settings(folder: &Path, agent: SocketAddr, rest: &str) -> String {
    let token = folder.join("token");
    format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nadmin_token_file: '{}'\nbackend: {{url: 'http://{agent}'}}\n{rest}\n",
        token.display()
    )
}

/// Writes settings and the token into a folder, as a whole file each.
pub fn write(folder: &Path, yaml: &str) -> PathBuf {
    fs::write(folder.join("token"), TOKEN).unwrap();
    let file = folder.join("gateway.yaml");
    let beside = folder.join("beside.yaml");
    fs::write(&beside, yaml).unwrap();
    fs::rename(beside, &file).unwrap();
    file
}

impl Program {
    pub fn start(folder: &Path, yaml: &str) -> Self {
        let file = write(folder, yaml);
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        command.arg("serve").arg("--config").arg(file);
        command.stdout(Stdio::null());
        command.stderr(File::create(folder.join("stderr")).unwrap());
        let child = command.spawn().unwrap();
        let log = || fs::read_to_string(folder.join("stderr")).unwrap();
        let address = |name: &str| -> Option<SocketAddr> {
            let log = log();
            let (_, rest) = log.split_once(name)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        until("it serves", || log().contains("a2a-gateway serves"));
        Self {
            addr: address("listen=").unwrap(),
            admin: address("admin=").unwrap(),
            child,
            folder: folder.to_owned(),
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let name = format!("-{name}");
        let sent = Command::new("kill").args([name, pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Its exit code, once it has ended, which must be soon.
    pub fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("it ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// Whether it runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    pub fn ask_admin(&self, line: &str) -> Answer {
        let fields = format!("authorization: Bearer {TOKEN}\r\n");
        Client::connect(self.admin).ask(line, &fields, "")
    }

    /// `GET /v1/drain`.
    pub fn drain_state(&self) -> Value {
        self.ask_admin("GET /v1/drain").json()
    }

    /// Runs another command of the program; its code, and what it said.
    pub fn command(arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        command.args(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut status = None;
        until("the command ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        let mut said = String::new();
        child.stdout.unwrap().read_to_string(&mut said).unwrap();
        child.stderr.unwrap().read_to_string(&mut said).unwrap();
        (status.unwrap().code(), said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        self.child.wait().unwrap();
    }
}
