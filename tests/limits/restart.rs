//! What survives a restart.
use std::fs;

use tempfile::TempDir;

use crate::support::{
    message::{Message, Refusal},
    stage::{ANN, Stage},
};

const RULES: &str = "auth: [anyone]\nlimits: {rules: [
  {name: daily, key: [caller], match: {operations: [SendMessage]}, quota: {limit: 2, per: month}},
  {name: streams, key: [caller], match: {operations: [SendStreamingMessage]}, quota: {limit: 1, per: rolling 24h}},
  {name: looks, key: [caller], match: {operations: [GetTask]}, rate: {limit: 1, per: 24h}},
  {name: at-once, key: [caller], concurrency: {limit: 1}}]}";

fn stage(folder: &TempDir) -> Stage {
    let path = folder.path().join("state.redb");
    Stage::set(
        false,
        &format!("state: {{persist: '{}'}}\n{RULES}", path.display()),
    )
}

fn is_spent(stage: &Stage, message: Message<'_>) -> bool {
    stage.stopped(ANN, message).reason == "QUOTA_EXCEEDED"
}

#[test]
fn quotas_survive_a_restart_and_what_is_held_does_not() {
    let folder = TempDir::new().unwrap();
    let first = stage(&folder);
    first.ends(first.talk(ANN, Message::send("m1").of("c1")), "t1", "c1");
    first.ends(first.talk(ANN, Message::stream("m2").of("c1")), "t2", "c1");
    assert_eq!(first.looks(ANN, "t1").status(), 200);
    let (client, seen) = first.talk(ANN, Message::send("m3").of("c3"));
    first.gateway.served().rules.close();
    let second = stage(&folder);
    drop((client, seen, first));
    assert!(is_spent(&second, Message::send("m4").of("c4")));
    assert!(is_spent(&second, Message::stream("m5").of("c4")));
    let (line, body) = ANN.speak.get();
    let answer = second.writes(ANN, line, &body).answer();
    assert_eq!(Refusal::read(ANN.speak, &answer).reason, "RATE_LIMITED");
}

#[test]
fn a_file_that_cannot_be_read_is_moved_aside() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    fs::write(
        &path,
        "this is no store at all, but a text that somebody wrote",
    )
    .unwrap();
    let stage = stage(&folder);
    stage.ends(stage.talk(ANN, Message::send("m1").of("c1")), "t1", "c1");
    let aside = fs::read(folder.path().join("state.redb.unreadable-1")).unwrap();
    assert!(aside.starts_with(b"this is no store"));
}
