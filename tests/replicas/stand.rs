//! The processes: a redis-server without persistence and two gateways that share it. Each is ended by its own handle.
use std::{
    fs::{self, File},
    io::ErrorKind,
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::Instant;

/// How long a process may take until it serves.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks until it is so.
fn eventually<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + PATIENCE;
    loop {
        if let Some(is) = is() {
            return is;
        }
        assert!(Instant::now() < by, "never: {what}");
        thread::sleep(Duration::from_millis(2)); // between two looks
    }
}

/// A process, killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _has_ended = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// The store. Its socket is a file, so that nobody else can take its place while it is down.
pub struct Redis {
    dir: TempDir,
    process: Option<Process>,
}

impl Redis {
    pub fn start() -> Self {
        let mut redis = Self {
            dir: TempDir::new().unwrap(),
            process: None,
        };
        redis.begin();
        redis
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// Starts it, empty.
    pub fn begin(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(self.dir.path());
        match command.stdout(Stdio::null()).spawn() {
            Ok(child) => self.process = Some(Process(child)),
            Err(e) if e.kind() == ErrorKind::NotFound => panic!(
                "redis-server is missing, and this means nothing without one: \
                 apt-get install --no-install-recommends redis-server"
            ),
            Err(e) => panic!("redis-server: {e}"),
        }
        eventually("redis-server listens", || {
            UnixStream::connect(self.socket()).ok()
        });
    }

    /// Kills it; its data is gone.
    pub fn end(&mut self) {
        self.process = None;
        let _ = fs::remove_file(self.socket()); // it had no time to do so
    }
}

/// A gateway that can be killed and started again; it has another port then.
pub struct Replica {
    pub name: &'static str,
    dir: TempDir,
    running: Mutex<Option<(Process, SocketAddr)>>,
}

impl Replica {
    fn start(name: &'static str, yaml: &str) -> Arc<Self> {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("gateway.yaml"), yaml).unwrap();
        let running = Mutex::new(None);
        let replica = Self { name, dir, running };
        replica.begin();
        Arc::new(replica)
    }

    pub fn begin(&self) {
        let log = self.dir.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        command.arg("serve").arg("--config");
        command.arg(self.dir.path().join("gateway.yaml"));
        command.stdout(Stdio::null());
        command.stderr(File::create(&log).unwrap());
        let process = Process(command.spawn().unwrap());
        let addr = eventually("a gateway serves", || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let (_, rest) = log.split_once("listen=")?;
            rest.split_once(' ')?.0.parse().ok()
        });
        *self.running.lock().unwrap() = Some((process, addr));
    }

    /// SIGKILL: it has no time to say anything.
    pub fn kill(&self) {
        *self.running.lock().unwrap() = None;
    }

    /// Where it listens, while it is there.
    pub fn addr(&self) -> Option<SocketAddr> {
        let running = self.running.lock().unwrap();
        running.as_ref().map(|(_, addr)| *addr)
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

/// Two gateways before one agent.
pub type Replicas = [Arc<Replica>; 2];

/// `rest` is more settings of both.
pub fn replicas(agent: SocketAddr, redis: &Redis, conversation: &str, state: &str) -> Replicas {
    let store = redis.socket();
    let yaml = format!(
        "listen: 127.0.0.1:0\nworkers: 1\nbackend: {{url: 'http://{agent}', binding: rest}}\n\
         conversation: {{{conversation}}}\nstate: {{store: 'redis+unix://{}', {state}}}\n",
        store.display(),
    );
    ["a", "b"].map(|name| Replica::start(name, &yaml))
}
