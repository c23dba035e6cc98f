//! Calls while a gateway ends: taken during the delay, refused afterwards in the caller's dialect, and those that run end.
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    program::{Program, settings},
    support::{
        agent::Agent,
        client::{Answer, Client},
        message::Message,
        until,
        words::{self, ALL, J03, J10, R03K, R03P, R10, Speak},
    },
};

const JSON: &str = "content-type: application/json\r\n";

fn start(folder: &TempDir, agent: &Agent, drain: &str) -> Program {
    let rest = format!("workers: 2\ndrain: {{{drain}}}");
    Program::start(folder.path(), &settings(folder.path(), agent.addr, &rest))
}

fn ready(program: &Program) -> u16 {
    program.ask_admin("GET /readyz").status()
}

/// Begins a call that its agent keeps.
fn runs(program: &Program, agent: &Agent) -> (Client, crate::support::agent::Call) {
    let mut client = program.client();
    let (line, body) = Message::send("runs").words(J10);
    client.send(line, JSON, &body);
    (client, agent.next())
}

fn is_refused(answer: &Answer, speak: Speak) {
    assert_eq!(answer.status(), 503, "{speak:?}: {}", answer.body);
    assert_eq!(answer.head.get("connection"), Some("close"), "{speak:?}");
    assert_eq!(answer.head.get("retry-after"), Some("1"), "{speak:?}");
    let body: Value = answer.json();
    let code = match speak {
        R10 => 503,
        J03 | R03P | R03K | J10 => -32603,
    };
    assert_eq!(speak.code(&body), code, "{body}");
    assert!(speak.message_of(&body).contains("stopping"), "{body}");
}

#[test]
fn new_calls_are_refused_and_running_ones_end() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 10s");
    let mut idle = program.client();
    idle.ask("GET /nothing/here", "", "");
    let (mut client, call) = runs(&program, &agent);
    assert_eq!(ready(&program), 200);
    program.signal("TERM");
    idle.wire.closed();
    assert_eq!(ready(&program), 503);
    for speak in ALL {
        let (line, body) = speak.send();
        let mut late = program.client();
        is_refused(&late.ask(line, JSON, &body), speak);
        late.wire.closed();
    }
    let card = program
        .client()
        .ask("GET /.well-known/agent-card.json", "", "");
    assert_eq!(card.status(), 503);
    assert!(agent.is_left_alone_now());
    call.json(&words::result(&words::wrapped()));
    let answer = client.answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.head.get("connection"), Some("close"));
    assert_eq!(program.code(), Some(0));
    assert!(!program.log().contains(" WARN "), "{}", program.log());
}

#[test]
fn calls_are_taken_during_the_delay() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "delay: 1500ms, grace: 10s");
    let (mut running, held) = runs(&program, &agent);
    let mut client = program.client();
    let began = Instant::now();
    program.signal("TERM");
    until("it is not ready", || ready(&program) == 503);
    assert!(began.elapsed() < Duration::from_secs(1), "at once");
    assert_eq!(program.drain_state()["state"], "leaving");
    let (line, body) = Message::send("m1").words(J10);
    for client in [&mut client, &mut program.client()] {
        client.send(line, JSON, &body);
        agent.next().json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
    }
    until("the delay is over", || {
        program.drain_state()["state"] == "draining"
    });
    assert!(began.elapsed() >= Duration::from_millis(1500));
    is_refused(&program.client().ask(line, JSON, &body), J10);
    held.json(&words::result(&words::wrapped()));
    assert_eq!(running.answer().status(), 200);
    assert_eq!(program.code(), Some(0));
}

#[test]
fn without_calls_it_ends_at_once() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 60s");
    let idle = program.client();
    let began = Instant::now();
    program.signal("INT");
    assert_eq!(program.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(idle);
}

#[test]
fn what_does_not_end_is_cut_after_the_grace() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 1s");
    let (mut client, call) = runs(&program, &agent);
    let began = Instant::now();
    program.signal("TERM");
    assert_eq!(program.code(), Some(1));
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(2),
        "{took:?}: the grace, and a goodbye"
    );
    assert!(took < Duration::from_secs(6), "{took:?}");
    client.wire.closed();
    assert!(program.log().contains("calls were cut"));
    drop(call);
}

#[test]
fn a_second_signal_cuts() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    for delay in ["0s", "30s"] {
        let mut program = start(&folder, &agent, &format!("delay: {delay}, grace: 60s"));
        let (mut client, call) = runs(&program, &agent);
        program.signal("TERM");
        until("it leaves", || ready(&program) == 503);
        let began = Instant::now();
        program.signal("TERM");
        assert_eq!(program.code(), Some(1), "{delay}");
        assert!(began.elapsed() < Duration::from_secs(5));
        client.wire.closed();
        drop(call);
    }
}
