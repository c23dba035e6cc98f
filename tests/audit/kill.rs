//! The program itself, killed while it serves: what it had answered is in the log, and the log goes on.
use std::{
    collections::HashSet,
    fs::{self, File},
    net::SocketAddr,
    process::{Child, Command, Output},
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    place::Place,
    support::{
        PATIENCE,
        agent::{Agent, answer},
        client::Client,
        message::Message,
        until, words,
        words::J10,
    },
};

const FLUSH: Duration = Duration::from_millis(200);
const CLIENTS: usize = 4;

/// A gateway in a process of its own, killed when dropped. Its stdout is kept.
struct Program {
    child: Child,
    addr: SocketAddr,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Program {
    fn start(place: &Place, agent: SocketAddr, more: &str) -> Self {
        let dir = place.0.path();
        let section = place.section(&format!(
            "flush: {}ms, checkpoint: 50ms, {more}",
            FLUSH.as_millis()
        ));
        let yaml = format!(
            "listen: 127.0.0.1:0\nworkers: 1\nbackend: {{url: 'http://{agent}'}}\n{section}"
        );
        fs::write(dir.join("gateway.yaml"), yaml).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        command
            .arg("serve")
            .arg("--config")
            .arg(dir.join("gateway.yaml"));
        let mut options = File::options();
        let stdout = options.append(true).create(true).open(dir.join("stdout"));
        command.stdout(stdout.unwrap());
        command.stderr(File::create(dir.join("stderr")).unwrap());
        let child = command.spawn().unwrap();
        let mut addr = None;
        until("it serves", || {
            let log = fs::read_to_string(dir.join("stderr")).unwrap();
            addr = log
                .split_once("listen=")
                .and_then(|(_, rest)| rest.split_once(' ')?.0.parse().ok());
            addr.is_some()
        });
        let addr = addr.unwrap();
        Self { child, addr }
    }

    /// SIGTERM, and its exit code.
    fn stop(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

/// An answered message, and when the client had the whole answer.
type Answered = (String, Instant);

/// Sends until the gateway is gone.
fn send(addr: SocketAddr, name: &str, answered: &Sender<Answered>) {
    let mut client = Client::connect(addr);
    for number in 0.. {
        let id = format!("{name}-{number}");
        let (line, body) = Message::send(&id).words(J10);
        client.send(line, "", &body);
        let Some(head) = client.wire.head() else {
            return;
        };
        let length = head.get("content-length").unwrap().parse().unwrap();
        if client.wire.exactly(length).is_none() {
            return;
        }
        answered.send((id, Instant::now())).unwrap();
    }
}

fn agent() -> SocketAddr {
    let body = words::result(r#"{"message":{"messageId":"r","role":"ROLE_AGENT","parts":[]}}"#);
    let whole = answer(200, "content-type: application/json\r\n", body);
    Agent::always(move |_| whole.clone()).0
}

fn verify(place: &Place, anchor: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
    command
        .args(["audit", "verify", "--key"])
        .arg(place.key_file());
    if anchor {
        command.arg("--anchor").arg(place.0.path().join("stdout"));
    }
    command.arg(place.folder()).output().unwrap()
}

/// Kills it once it has answered so many, and looks for them.
fn killed(calls: usize, more: &str) -> Place {
    let place = Place::new();
    let agent = agent();
    let mut program = Program::start(&place, agent, more);
    let (to, answered) = channel();
    for n in 0..CLIENTS {
        let (to, addr) = (to.clone(), program.addr);
        thread::spawn(move || send(addr, &format!("m{n}"), &to));
    }
    drop(to);
    let begun = Instant::now();
    let mut all: Vec<Answered> = vec![];
    while all.len() < calls || begun.elapsed() < FLUSH * 5 {
        all.push(answered.recv_timeout(PATIENCE).unwrap());
    }
    let killed = Instant::now();
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    all.extend(answered);
    let recorded = place.calls();
    let recorded: HashSet<&str> = recorded
        .iter()
        .filter_map(|call| call["message"].as_str())
        .collect();
    let old = all
        .iter()
        .filter(|(_, answered)| *answered + FLUSH < killed);
    let (old, lost): (Vec<_>, Vec<_>) = old.partition(|(id, _)| recorded.contains(&**id));
    assert!(
        lost.is_empty(),
        "{} of {} are not there: {lost:?}",
        lost.len(),
        old.len() + lost.len()
    );
    assert!(
        old.len() >= calls / 2,
        "{} were answered in time",
        old.len()
    );
    let verified = verify(&place, true);
    assert!(verified.status.success(), "{verified:?}");
    place
}

#[test]
fn what_was_answered_before_a_kill_is_in_the_log_which_goes_on() {
    let place = killed(500, "rotate_size: 64KiB");
    let before = place.calls().len();
    assert!(place.files().len() > 2);
    let mut program = Program::start(&place, agent(), "");
    let addr = program.addr;
    let (line, body) = J10.send();
    for _ in 0..10 {
        assert_eq!(Client::connect(addr).ask(line, "", &body).status(), 200);
    }
    assert_eq!(program.stop(), Some(0));
    let calls = place.calls();
    assert_eq!(
        calls.len(),
        before + 10,
        "none is lost when it is told to stop"
    );
    let verified = verify(&place, true);
    assert!(verified.status.success(), "{verified:?}");

    // Its last words on stdout are how far it got, so that a cut is seen.
    let last = place.files().pop().unwrap();
    let text = fs::read_to_string(&last).unwrap();
    let cut = text.trim_end().rsplit_once('\n').unwrap().0;
    fs::write(&last, format!("{cut}\n")).unwrap();
    assert!(verify(&place, false).status.success());
    let verified = verify(&place, true);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    let says = String::from_utf8(verified.stdout).unwrap();
    assert!(says.contains("missing at the end"), "{says}");

    // And what is changed is told with its file and line.
    fs::write(&last, text.replacen("SendMessage", "GetTask", 1)).unwrap();
    let verified = verify(&place, true);
    let says = String::from_utf8(verified.stdout).unwrap();
    let at = format!("{}: line 2: was changed", last.display());
    assert!(says.starts_with(&at), "{says}");
}

#[test]
#[ignore = "minutes; see tests/soak/audit"]
fn a_hundred_thousand_calls_outlive_a_kill() {
    killed(100_000, "rotate_size: 8MiB");
}

#[test]
fn the_log_may_go_to_stdout_as_well() {
    let place = Place::new();
    let mut program = Program::start(&place, agent(), "stdout: true");
    let (line, body) = J10.send();
    for _ in 0..3 {
        assert_eq!(
            Client::connect(program.addr).ask(line, "", &body).status(),
            200
        );
    }
    assert_eq!(program.stop(), Some(0));
    let stdout = fs::read_to_string(place.0.path().join("stdout")).unwrap();
    let is_checkpoint =
        |line: &&str| serde_json::from_str::<Value>(line).unwrap()["kind"] == "checkpoint";
    let (checkpoints, lines): (Vec<_>, Vec<_>) = stdout.lines().partition(is_checkpoint);
    let file = fs::read_to_string(&place.files()[0]).unwrap();
    assert_eq!(lines, file.lines().collect::<Vec<_>>());
    let last: Value = serde_json::from_str(checkpoints.last().unwrap()).unwrap();
    assert_eq!(last["seq"], 4);
}

#[test]
fn the_digest_of_a_body_can_be_told_again() {
    let place = Place::new();
    let body = place.0.path().join("body");
    fs::write(&body, "what was sent").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
    command
        .args(["audit", "digest", "--key"])
        .arg(place.key_file())
        .arg(&body);
    let output = command.output().unwrap();
    let key = a2a_gateway::audit::Key::read(&place.key_file()).unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.trim(), key.digest(b"what was sent"));
}
