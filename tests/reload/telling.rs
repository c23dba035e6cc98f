//! What is said about settings: to whoever asks, in the log and by readiness. And what makes them be read again.
use std::{fs, os::unix::fs::symlink};

use a2a_gateway::reload::Said;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    Place,
    program::{Program, TOKEN, settings, write},
    support::{
        agent::{Agent, answer},
        gateway::Gateway,
        keys::item,
        message::Message,
        until,
        words::{self, J03, J10},
    },
};

fn agent() -> std::net::SocketAddr {
    let body = words::result(&words::wrapped());
    let whole = answer(200, "content-type: application/json\r\n", body);
    Agent::always(move |_| whole.clone()).0
}

fn said(place: &Place) -> Said {
    place.gateway.served().reloads.status().now()
}

fn detail(place: &Place) -> (u16, String) {
    let answer = place.gateway.ask_admin("GET /readyz?verbose", "");
    (answer.status(), answer.body)
}

#[test]
fn a_reload_needs_the_token() {
    let place = Place::new(agent(), "");
    place.write("dialects: {v03: false}");
    for token in [None, Some("another token of sufficient length"), Some("")] {
        assert_eq!(place.post(token).status(), 401);
    }
    assert_eq!(said(&place).ok, 0);
    let get = place.gateway.ask_admin("GET /v1/reload", "");
    assert_eq!(get.status(), 405);
    assert_eq!(place.post(Some(TOKEN)).json()["result"], "taken");
    let status = said(&place);
    assert_eq!((status.ok, status.failed, status.valid), (1, 0, true));
}

#[test]
fn without_a_token_file_nobody_may() {
    let folder = TempDir::new().unwrap();
    let yaml = settings(folder.path(), agent(), "");
    let yaml: String = yaml
        .lines()
        .filter(|l| !l.starts_with("admin_token"))
        .fold(String::new(), |all, line| all + line + "\n");
    let gateway = Gateway::from_file(&write(folder.path(), &yaml));
    let fields = format!("authorization: Bearer {TOKEN}\r\n");
    for fields in ["", &fields] {
        assert_eq!(gateway.ask_admin("POST /v1/reload", fields).status(), 401);
        assert_eq!(gateway.ask_admin("POST /v1/drain", fields).status(), 401);
    }
}

#[test]
fn without_a_file_there_is_nothing_to_read() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "");
    let yaml = settings(folder.path(), agent(), "").replace("listen: 127.0.0.1:0\n", "");
    let gateway = Gateway::of(&yaml);
    let fields = format!("authorization: Bearer {TOKEN}\r\n");
    let answer = gateway.ask_admin("POST /v1/reload", &fields);
    assert_eq!(answer.status(), 409);
}

#[test]
fn a_bad_file_changes_nothing_and_all_is_told() {
    let place = Place::new(agent(), "");
    let asks = |wanted: &str| {
        let (line, body) = J03.send();
        let answer = place
            .gateway
            .ask(line, "content-type: application/json\r\n", &body);
        assert!(answer.json()[wanted].is_object(), "{}", answer.body);
    };
    place.write("dialects: {v03: false}\nworkers: many\nlimits: {body: 1 pint}\nnonsense: 1");
    let answer = place.post(Some(TOKEN));
    assert_eq!(answer.status(), 422);
    let answer = answer.json();
    assert_eq!(answer["result"], "refused");
    let mistakes = answer["mistakes"].to_string();
    for key in ["workers: line", "limits.body: line", "nonsense"] {
        assert!(mistakes.contains(key), "{mistakes}");
    }
    asks("result");
    let status = said(&place);
    assert_eq!((status.ok, status.failed, status.valid), (0, 1, false));
    let (ready, text) = detail(&place);
    assert_eq!(ready, 200, "it serves as before");
    assert!(text.starts_with("ok\nsettings: the file is bad"), "{text}");

    // What is right by itself, but lacks a file.
    place.write("dialects: {v03: false}\nauth: [{api_keys: {file: /nowhere/keys}}]");
    let answer = place.post(Some(TOKEN));
    assert_eq!(answer.status(), 422);
    assert!(answer.body.contains("/nowhere/keys"), "{}", answer.body);
    asks("result");

    place.takes("dialects: {v03: false}");
    asks("error");
    let status = said(&place);
    assert_eq!((status.ok, status.failed, status.valid), (1, 2, true));
    assert!(detail(&place).1.starts_with("ok\nsettings: those of 2"));
}

#[test]
fn what_needs_a_restart_is_told_and_all_else_is_taken() {
    let place = Place::new(agent(), "");
    let yaml = settings(
        place.folder.path(),
        place.agent,
        "dialects: {v03: false}\nworkers: 7",
    );
    let yaml = yaml.replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:1");
    let more = "state: {persist: /nowhere/state}\naudit: {stdout: true, key_file: /nowhere/key}\n";
    write(place.folder.path(), &(yaml + more));
    let answer = place.post(Some(TOKEN)).json();
    let names = [
        "listen",
        "workers",
        "state.persist",
        "audit.stdout",
        "audit.key_file",
    ];
    assert_eq!(answer["needsRestart"], json!(names));
    assert_eq!(answer["changed"], json!(["dialects"]));
    assert_eq!(said(&place).needs_restart, names);
    let (ready, text) = detail(&place);
    assert_eq!(ready, 200);
    let wanted =
        "a restart is needed for listen, workers, state.persist, audit.stdout, audit.key_file";
    assert!(text.contains(wanted), "{text}");
    let (line, body) = J03.send();
    let refused = place
        .gateway
        .ask(line, "content-type: application/json\r\n", &body);
    assert!(refused.json()["error"].is_object());
    // Taken back, nothing is left to say.
    assert_eq!(
        place.takes("dialects: {v03: false}")["needsRestart"],
        json!([])
    );
    assert!(!detail(&place).1.contains("restart"));
}

#[test]
fn a_change_of_the_file_is_seen() {
    let place = Place::new(agent(), "");
    place.write("drain: {grace: 7s}");
    until("it is taken", || said(&place).ok == 1);
    assert_eq!(
        place
            .gateway
            .served()
            .front
            .setup()
            .config()
            .drain
            .grace
            .as_secs(),
        7
    );
    place.write("drain: {grace: long}");
    until("it is refused", || said(&place).failed == 1);
    assert!(!said(&place).valid);
    fs::remove_file(&place.file).unwrap();
    until("it is missed", || said(&place).failed == 2);
    place.write("drain: {grace: 7s}");
    until("it is there again", || said(&place).valid);
    assert_eq!(said(&place).ok, 1, "and says what it said");
    // A key that is mounted a moment after the settings that name it.
    let keys = place.folder.path().join("keys");
    let auth = format!("auth: [{{api_keys: {{file: '{}'}}}}]", keys.display());
    place.write(&auth);
    until("it lacks the keys", || said(&place).failed == 3);
    fs::write(&keys, item("ann", "a-key-of-sufficient-length", "")).unwrap();
    until("they are there", || said(&place).ok == 2);
    assert!(said(&place).valid);
}

#[test]
fn a_swapped_link_is_a_change() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let agent = agent();
    // As Kubernetes mounts what may change: the file is a link into a folder that is a link.
    for (name, grace) in [("one", 5), ("two", 6)] {
        fs::create_dir(at(name)).unwrap();
        let text = settings(folder.path(), agent, &format!("drain: {{grace: {grace}s}}"));
        fs::write(at(name).join("gateway.yaml"), text).unwrap();
    }
    fs::write(at("token"), TOKEN).unwrap();
    symlink("one", at("data")).unwrap();
    symlink("data/gateway.yaml", at("gateway.yaml")).unwrap();
    let gateway = Gateway::from_file(&at("gateway.yaml"));
    let grace = || {
        gateway
            .served()
            .front
            .setup()
            .config()
            .drain
            .grace
            .as_secs()
    };
    assert_eq!(grace(), 5);
    symlink("two", at("next")).unwrap();
    fs::rename(at("next"), at("data")).unwrap();
    until("the other is taken", || grace() == 6);
}

#[test]
fn a_hang_up_reads_them_again() {
    let folder = TempDir::new().unwrap();
    let agent = agent();
    let program = Program::start(folder.path(), &settings(folder.path(), agent, ""));
    let mut client = program.client();
    let (line, body) = Message::send("m1").words(J10);
    assert_eq!(
        client
            .ask(line, "content-type: application/json\r\n", &body)
            .status(),
        200
    );
    write(
        folder.path(),
        &settings(folder.path(), agent, "dialects: {v10: false}"),
    );
    program.signal("HUP");
    until("they are taken", || {
        program.log().contains("the settings were read again")
    });
    let refused = client
        .ask(line, "content-type: application/json\r\n", &body)
        .json();
    assert!(refused["error"].is_object(), "{refused}");
    // A bad one is logged once, with all its mistakes, however often it is read.
    write(
        folder.path(),
        &settings(folder.path(), agent, "dialects: {v10: maybe}\nworkers: all"),
    );
    for _ in 0..3 {
        let answer = program.ask_admin("POST /v1/reload");
        assert_eq!(answer.status(), 422);
    }
    let log = program.log();
    assert_eq!(log.matches("is not taken").count(), 1, "{log}");
    assert!(
        log.contains("dialects.v10") && log.contains("workers"),
        "{log}"
    );
}

#[test]
fn a_file_that_does_not_come_holds_up_neither_probes_nor_the_end() {
    use std::os::unix::fs::OpenOptionsExt as _;
    const O_NONBLOCK: i32 = 0o4000;

    let folder = TempDir::new().unwrap();
    let yaml = settings(folder.path(), agent(), "");
    let mut program = Program::start(folder.path(), &yaml);
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let token = folder.path().join("token");
    let hangs = yaml.replace(token.to_str().unwrap(), pipe.to_str().unwrap());
    write(folder.path(), &hangs);
    program.signal("HUP");
    // A pipe can be opened for writing like this once somebody reads it.
    let mut writing = None;
    until("it is being read", || {
        let mut how = fs::OpenOptions::new();
        writing = how.write(true).custom_flags(O_NONBLOCK).open(&pipe).ok();
        writing.is_some()
    });
    assert_eq!(program.ask_admin("GET /readyz?verbose").status(), 200);
    program.signal("TERM");
    assert_eq!(program.code(), Some(0));
    drop(writing);
}
