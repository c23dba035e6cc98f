//! `a2a-gateway drain`, as a preStop hook runs it.
use std::{fs, net::TcpListener, time::Duration};

use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    program::{Program, settings},
    support::{
        agent::{Agent, Call},
        client::Client,
        message::Message,
        until,
        words::{self, J10},
    },
};

fn start(folder: &TempDir, agent: &Agent, drain: &str) -> Program {
    let rest = format!("workers: 1\ndrain: {{{drain}}}");
    Program::start(folder.path(), &settings(folder.path(), agent.addr, &rest))
}

fn runs(program: &Program, agent: &Agent) -> (Client, Call) {
    let mut client = program.client();
    let (line, body) = Message::send("runs").words(J10);
    client.send(line, "content-type: application/json\r\n", &body);
    (client, agent.next())
}

/// The command, by the settings file, with the port that the program took.
fn drain(program: &Program, folder: &TempDir, more: &[&str]) -> (Option<i32>, String) {
    let admin = program.admin.to_string();
    let file = folder.path().join("gateway.yaml");
    let mut arguments = vec![
        "drain",
        "--config",
        file.to_str().unwrap(),
        "--admin",
        &admin,
    ];
    arguments.extend(more);
    Program::command(&arguments)
}

#[test]
fn it_waits_until_all_has_ended_and_the_gateway_waits_to_be_stopped() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 30s");
    let (mut client, call) = runs(&program, &agent);
    let (code, said) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| drain(&program, &folder, &[]));
        until("it drains", || program.drain_state()["state"] == "draining");
        assert_eq!(program.ask_admin("GET /readyz").status(), 503);
        call.json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
        asked.join().unwrap()
    });
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("all calls have ended"), "{said}");
    assert!(program.runs(), "whoever stops it finds it there");
    let state = program.drain_state();
    assert_eq!(
        (&state["state"], &state["clean"]),
        (&"drained".into(), &true.into())
    );
    assert_eq!(program.ask_admin("GET /livez").status(), 200);
    // Asked again, it is drained still.
    assert_eq!(drain(&program, &folder, &[]).0, Some(0));
    let began = Instant::now();
    program.signal("TERM");
    assert_eq!(program.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn it_tells_what_was_cut() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 300ms");
    let (_client, _call) = runs(&program, &agent);
    let (code, said) = drain(&program, &folder, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("some calls were cut"), "{said}");
    program.signal("TERM");
    assert_eq!(program.code(), Some(1));
}

#[test]
fn it_waits_no_longer_than_it_is_to() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 60s");
    let (mut client, call) = runs(&program, &agent);
    let began = Instant::now();
    let (code, said) = drain(&program, &folder, &["--wait", "500ms"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("calls still run"), "{said}");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(500) && took < Duration::from_secs(5),
        "{took:?}"
    );
    // SIGTERM is the second word then, and no signal came before: it still leaves in order.
    program.signal("TERM");
    until("it hears the signal", || program.log().contains("leaving"));
    call.json(&words::result(&words::wrapped()));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(program.code(), Some(0));
}

#[test]
fn a_second_signal_after_it_was_asked_cuts() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let mut program = start(&folder, &agent, "grace: 60s");
    let (_client, _call) = runs(&program, &agent);
    assert_eq!(drain(&program, &folder, &["--wait", "100ms"]).0, Some(1));
    let began = Instant::now();
    program.signal("TERM");
    until("it hears the signal", || program.log().contains("leaving"));
    program.signal("INT");
    assert_eq!(program.code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_stops_it_from_asking_is_told() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let program = start(&folder, &agent, "grace: 1s");
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, "another token of sufficient length").unwrap();
    let (code, said) = drain(
        &program,
        &folder,
        &["--token-file", wrong.to_str().unwrap()],
    );
    assert_eq!(code, Some(2));
    assert!(said.contains("does not take the token"), "{said}");
    assert_eq!(program.drain_state()["state"], "serving");

    let admin = program.admin.to_string();
    let (code, said) = Program::command(&["drain", "--admin", &admin]);
    assert_eq!(code, Some(2));
    assert!(said.contains("needs the admin token"), "{said}");
    let (code, said) = Program::command(&["drain", "--token-file", wrong.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--admin"), "{said}");

    // Nobody is there, and somebody who says nothing.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = taken.local_addr().unwrap().to_string();
    let began = Instant::now();
    let right = folder.path().join("token");
    let right = right.to_str().unwrap();
    let asked = ["drain", "--admin", &silent, "--token-file", right];
    let (code, said) = Program::command(&asked);
    assert_eq!(code, Some(2));
    assert!(said.contains("does not answer"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(8));
    drop(taken);
    let (code, said) = Program::command(&asked);
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot be asked"), "{said}");
}
