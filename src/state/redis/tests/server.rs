//! A redis-server of a test's own.
use std::{
    fs,
    io::ErrorKind,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use redis::{Client, Connection};
use tempfile::TempDir;
use tokio::time::Instant;

/// How long a test waits for anything at all.
pub(in super::super) const PATIENCE: Duration = Duration::from_secs(20);

/// Asks until it is so.
pub(in super::super) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let by = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < by, "never: {what}");
        thread::sleep(Duration::from_millis(2)); // between two looks
    }
}

/// A server without persistence, killed when dropped.
pub(crate) struct RedisServer {
    child: Option<Child>,
    dir: TempDir,
    args: Vec<String>,
}

impl RedisServer {
    /// One that listens at a socket in a directory of its own.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same with further arguments.
    pub(in super::super) fn with(args: &[&str]) -> Self {
        let mut server = Self {
            child: None,
            dir: TempDir::new().unwrap(),
            args: args.iter().map(ToString::to_string).collect(),
        };
        server.begin();
        server
    }

    /// Starts it (again), empty.
    pub(in super::super) fn begin(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(self.dir.path());
        command.args(&self.args).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => self.child = Some(child),
            Err(e) if e.kind() == ErrorKind::NotFound => panic!(
                "redis-server is missing, and these tests mean nothing without one: \
                 apt-get install --no-install-recommends redis-server"
            ),
            Err(e) => panic!("redis-server: {e}"),
        }
        eventually("redis-server listens", || {
            UnixStream::connect(self.socket()).is_ok()
        });
    }

    /// Kills it; its data is gone.
    pub(in super::super) fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // It has had no time to remove its socket.
        let _ = fs::remove_file(self.socket());
    }

    pub(in super::super) fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// A connection of the test's own.
    pub(crate) fn connection(&self) -> Connection {
        Client::open(self.url()).unwrap().get_connection().unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.end();
    }
}
