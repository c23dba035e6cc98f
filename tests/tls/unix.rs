//! Unix sockets, on either side.
use std::{
    fs,
    io::{BufReader, Read, Write},
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    thread,
};

use super::{backend::request, house::says};
use crate::support::{
    PATIENCE,
    agent::{Agent, answer},
    gateway::Gateway,
    message::Refusal,
    words::{ALL, R10, result, wrapped},
};
use a2a_gateway::{
    config::{Config, Overrides},
    run,
};

fn config(socket: &Path, agent: &str, more: &str) -> Config {
    let yaml = format!(
        "listen: 'unix:{}'\nworkers: 2\nbackend: {{url: '{agent}'}}\n{more}",
        socket.display()
    );
    Config::parse(&yaml, Overrides::default()).unwrap()
}

/// One request, and all that comes until the end.
fn ask(socket: &Path, line: &str, body: &str) -> std::io::Result<String> {
    let mut io = UnixStream::connect(socket)?;
    io.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        io,
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\na2a-version: 1.0\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    io.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn clients_come_by_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gw.sock");
    let admin = folder.path().join("admin.sock");
    let (agent, log) = Agent::always(says);
    let agent = format!("http://{agent}");
    // One that a gateway left behind that was killed.
    drop(UnixListener::bind(&socket).unwrap());
    let more = format!(
        "admin: 'unix:{}'\nhttp: {{trusted_proxies: [127.0.0.1]}}",
        admin.display()
    );
    let served = run::start(config(&socket, &agent, &more)).unwrap();
    let there = fs::symlink_metadata(&socket).unwrap();
    assert!(there.file_type().is_socket());
    assert_eq!(there.permissions().mode() & 0o777, 0o660);
    assert_eq!(
        served.running.place().to_string(),
        format!("unix:{}", socket.display())
    );
    let (line, body) = R10.send();
    for _ in 0..3 {
        let text = ask(&socket, line, &body).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 ") && text.contains("t1"),
            "{text}"
        );
    }
    assert_eq!(log.all()[0].head.get("x-forwarded-for"), Some("127.0.0.1"));
    assert!(
        ask(&admin, "GET /readyz", "")
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    // Nobody takes it from who listens.
    let second = run::start(config(&socket, &agent, ""));
    assert!(
        second
            .err()
            .unwrap()
            .to_string()
            .contains("somebody listens there already")
    );
    served.running.drain();
    assert!(served.running.wait().clean());
    assert!(!socket.exists(), "the socket is left behind");
    let admin_runs = served.admin.unwrap();
    admin_runs.drain();
    admin_runs.wait();
    assert!(!admin.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_socket_stays_and_a_newer_socket_too() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gw.sock");
    fs::write(&socket, "a letter").unwrap();
    let refused = run::start(config(&socket, "http://127.0.0.1:1", ""));
    assert!(refused.err().unwrap().to_string().contains("no socket"));
    assert_eq!(fs::read_to_string(&socket).unwrap(), "a letter");
    fs::remove_file(&socket).unwrap();
    let served = run::start(config(&socket, "http://127.0.0.1:1", "")).unwrap();
    fs::remove_file(&socket).unwrap();
    let other = UnixListener::bind(&socket).unwrap();
    served.running.drain();
    served.running.wait();
    assert!(socket.exists());
    drop(other);
}

#[test]
fn an_agent_is_reached_by_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let gateway = Gateway::of(&format!(
        "workers: 1\nbackend: {{url: 'unix:{}'}}",
        socket.display()
    ));
    let send = |speak: crate::support::words::Speak| {
        let (line, body) = speak.send();
        let version = super::client::version(speak);
        gateway.ask(
            line,
            &format!("content-type: application/json\r\na2a-version: {version}\r\n"),
            &body,
        )
    };
    let refusal = Refusal::read(R10, &send(R10));
    assert_eq!(
        (refusal.status, refusal.reason.as_str()),
        (502, "BACKEND_UNREACHABLE")
    );
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for io in listener.incoming() {
            let mut io = BufReader::new(io.unwrap());
            thread::spawn(move || {
                while let Some(()) = request(&mut io) {
                    let text = answer(
                        200,
                        "content-type: application/json\r\n",
                        result(&wrapped()),
                    );
                    io.get_mut().write_all(&text).unwrap();
                }
            });
        }
    });
    for speak in ALL {
        assert_eq!(send(speak).status(), 200, "{speak:?}");
    }
}
