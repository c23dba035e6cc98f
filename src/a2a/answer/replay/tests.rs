use super::*;

const TASK: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05Z"}}"#;
const DONE: &str =
    r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

fn of(text: &str) -> Option<Bare> {
    bare(
        Dialect::R10,
        &Bytes::copy_from_slice(text.as_bytes()),
        &Options::default(),
    )
    .unwrap()
}

fn said(id: &str, part: &str) -> String {
    format!(
        r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING","message":{{"messageId":"{id}","role":"ROLE_AGENT","parts":[{part}]}}}}}}}}"#
    )
}

fn artifact(parts: &str, more: &str) -> String {
    format!(
        r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"a","parts":[{parts}],"metadata":{{}}}}{more}}}}}"#
    )
}

fn tell(replay: &mut Replay, event: &str, room: &mut Room<'_>) -> Result<bool, Fault> {
    replay.event(Dialect::R10, event.as_bytes(), &Options::default(), room)
}

fn folded(events: &[String]) -> Result<String, Fault> {
    let mut replay = Replay::new("t");
    for event in events {
        tell(&mut replay, event, &mut |_| true)?;
    }
    let whole = replay.done()?.fill(&of(TASK).unwrap())?;
    Ok(String::from_utf8(whole.to_vec()).unwrap())
}

#[test]
fn only_a_task_that_ended_well_and_shows_nothing_is_bare() {
    assert!(of(TASK).is_some());
    for state in [
        "WORKING",
        "FAILED",
        "CANCELED",
        "REJECTED",
        "INPUT_REQUIRED",
    ] {
        assert!(of(&TASK.replace("COMPLETED", state)).is_none(), "{state}");
    }
    for more in [
        r#","history":[{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}]"#,
        r#","artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]"#,
    ] {
        let full = TASK.replace(r#","status""#, &format!(r#"{more},"status""#));
        assert!(of(&full).is_none(), "{full}");
    }
    let empty = TASK.replace(r#","status""#, r#","history":[],"artifacts":[],"status""#);
    assert!(of(&empty).is_some());
}

#[test]
fn chunks_of_one_text_become_one_message_and_odd_values_stay() {
    let call = r#"{"data":{"id":"call_1","args":{"n":2.0,"big":123456789012345678901234567890}},"metadata":{"adk_type":"function_call"}}"#;
    let whole = folded(&[
        said("m3", r#"{"text":"Let me "}"#),
        said("m4", r#"{"text":"look \"up\"."}"#),
        said("m5", r#"{"text":"hm","metadata":{"adk_thought":true}}"#),
        said("m6", r#"{"text":"m","metadata":{"adk_thought":true}}"#),
        said("m8-call", call),
        said("m11", r#"{"text":"Paris"}"#),
        artifact(
            r#"{"text":"Paris."},{"data":{"kind":"recommended_questions","n":1.50}}"#,
            r#","lastChunk":true"#,
        ),
        DONE.to_owned(),
    ])
    .unwrap();
    let message = |id: &str, part: &str| {
        format!(r#"{{"messageId":"{id}","role":"ROLE_AGENT","parts":[{part}]}}"#)
    };
    let history = [
        message("m3", r#"{"text":"Let me look \"up\"."}"#),
        message("m5", r#"{"text":"hmm","metadata":{"adk_thought":true}}"#),
        message("m8-call", call),
        message("m11", r#"{"text":"Paris"}"#),
    ]
    .join(",");
    let bare = TASK.strip_suffix('}').unwrap();
    let artifacts = r#"[{"artifactId":"a","parts":[{"text":"Paris."},{"data":{"kind":"recommended_questions","n":1.50}}],"metadata":{}}]"#;
    assert_eq!(
        whole,
        format!(r#"{bare},"artifacts":{artifacts},"history":[{history}]}}"#)
    );
}

#[test]
fn a_task_in_the_replay_begins_the_history_and_artifacts_grow_or_are_replaced() {
    let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"},"history":[{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a"}]}]}}"#;
    let whole = folded(&[
        task.to_owned(),
        said("m2", r#"{"text":"b"}"#),
        artifact(r#"{"text":"old"}"#, ""),
        artifact(r#"{"text":"x"}"#, ""),
        artifact(r#"{"text":"y"}"#, r#","append":true"#),
        DONE.to_owned(),
    ])
    .unwrap();
    assert!(
        whole.contains(r#""parts":[{"text":"x"},{"text":"y"}]"#),
        "{whole}"
    );
    assert!(!whole.contains("old"), "{whole}");
    let user = whole.find("ROLE_USER").unwrap();
    assert!(user < whole.find("ROLE_AGENT").unwrap(), "{whole}");
}

#[test]
fn files_on_the_way_are_no_part_of_the_history() {
    let whole = folded(&[
        said("m1", r#"{"text":"a"}"#),
        said(
            "m2",
            r#"{"url":"https://files.example/x","mediaType":"text/plain"}"#,
        ),
        said("m3", r#"{"raw":"eA=="}"#),
        DONE.to_owned(),
    ])
    .unwrap();
    assert_eq!(whole.matches("messageId").count(), 1, "{whole}");
}

#[test]
fn messages_that_differ_in_more_than_their_id_stay_apart() {
    let agent = |id: &str, more: &str| {
        said(id, r#"{"text":"x"}"#).replace(r#""parts""#, &format!(r#"{more}"parts""#))
    };
    let whole = folded(&[
        agent("m1", ""),
        agent("m2", r#""metadata":{"a":1},"#),
        said("m3", r#"{"text":"x"},{"text":"y"}"#),
        said("m4", r#"{"text":"x","mediaType":"text/markdown"}"#),
        DONE.to_owned(),
    ])
    .unwrap();
    assert_eq!(whole.matches("messageId").count(), 4, "{whole}");
}

#[test]
fn the_message_of_the_last_status_stays_there() {
    let done = DONE.replace(
        r#"COMPLETED""#,
        r#"COMPLETED","message":{"messageId":"m9","role":"ROLE_AGENT","parts":[{"text":"bye"}]}"#,
    );
    let whole = folded(&[done]).unwrap();
    let status = r#""status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05Z","message":{"messageId":"m9""#;
    assert!(whole.contains(status), "{whole}");
    assert!(!whole.contains("history"), "{whole}");
}

#[test]
fn a_replay_that_is_none_of_this_task_gives_nothing() {
    let other = said("m", r#"{"text":"x"}"#).replace(r#""t""#, r#""u""#);
    let nobody = said("m", r#"{"text":"x"}"#).replace(r#""taskId":"t","#, "");
    let failed = DONE.replace("COMPLETED", "FAILED");
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#;
    for events in [
        vec![other, DONE.to_owned()],
        vec![nobody, DONE.to_owned()],
        vec![failed],
        vec![message.to_owned(), DONE.to_owned()],
        vec![said("m", r#"{"text":"x"}"#)],
        vec!["{".to_owned()],
    ] {
        assert!(folded(&events).is_err(), "{events:?}");
    }
}

/// An agent of the old version may be behind it: its events are folded in v1.0.
#[test]
fn events_of_every_dialect_are_folded() {
    let mut replay = Replay::new("t");
    let options = Options::default();
    let update = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"t","contextId":"c","final":false,"status":{"state":"working","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"x"}]}}}}"#;
    let done = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"t","contextId":"c","final":true,"status":{"state":"completed"}}}"#;
    assert!(
        !replay
            .event(Dialect::J03, update.as_bytes(), &options, &mut |_| true)
            .unwrap()
    );
    assert!(
        replay
            .event(Dialect::J03, done.as_bytes(), &options, &mut |_| true)
            .unwrap()
    );
    let whole = replay.done().unwrap().fill(&of(TASK).unwrap()).unwrap();
    let whole = String::from_utf8(whole.to_vec()).unwrap();
    assert!(
        whole.contains(r#""role":"ROLE_AGENT","parts":[{"text":"x"}]"#),
        "{whole}"
    );
}

fn artifact_of(id: usize, text: &str, append: bool) -> String {
    artifact(
        &format!(r#"{{"text":"{text}"}}"#),
        &format!(r#","append":{append}"#),
    )
    .replace(r#""artifactId":"a""#, &format!(r#""artifactId":"a{id}""#))
}

#[test]
fn many_artifacts_are_found_by_their_ids_and_stay_in_their_order() {
    const MANY: usize = 20_000;
    let mut replay = Replay::new("t");
    for (text, append) in [("old", false), ("x", false), ("y", true)] {
        for id in 0..MANY {
            tell(&mut replay, &artifact_of(id, text, append), &mut |_| true).unwrap();
        }
    }
    tell(&mut replay, DONE, &mut |_| true).unwrap();
    let folded = replay.done().unwrap();
    let all: serde_json::Value = serde_json::from_str(folded.artifacts.as_ref().unwrap()).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), MANY);
    for (id, artifact) in all.iter().enumerate() {
        assert_eq!(artifact["artifactId"], format!("a{id}"));
        let parts = serde_json::json!([{"text": "x"}, {"text": "y"}]);
        assert_eq!(artifact["parts"], parts);
    }
}

/// A small event may hold a great many things that are next to nothing.
#[test]
fn nothing_is_kept_that_there_is_no_room_for() {
    let empty = ["{}"; 1000].join(",");
    let task = |list: &str, items: &str| {
        format!(
            r#"{{"task":{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING"}},"{list}":[{items}]}}}}"#
        )
    };
    let parts = format!(
        r#"{{"artifactUpdate":{{"taskId":"t","artifact":{{"artifactId":"a","parts":[{empty}]}}}}}}"#
    );
    let ids: Vec<String> = (0..1000)
        .map(|id| format!(r#"{{"artifactId":"{id}"}}"#))
        .collect();
    let long = said("m", &format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000)));
    for event in [
        task("history", &empty),
        task("artifacts", &ids.join(",")),
        parts,
        long,
    ] {
        let mut replay = Replay::new("t");
        let mut left = 50_000_usize;
        let mut room = |more: usize| {
            let rest = left.checked_sub(more);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let fault = tell(&mut replay, &event, &mut room).unwrap_err();
        assert_eq!(fault.kind, Kind::Overloaded, "{fault}");
        assert!(replay.size() <= 50_000);
        // And it is counted as it was asked for.
        assert_eq!(replay.size(), 50_000 - left);
    }
}

#[test]
fn what_is_around_a_text_is_kept_once() {
    let metadata = "x".repeat(10_000);
    let around = |id: &str| {
        let more = format!(r#""metadata":{{"x":"{metadata}"}},"parts""#);
        said(id, r#"{"text":"a"}"#).replacen(r#""parts""#, &more, 1)
    };
    let mut replay = Replay::new("t");
    let mut asked = 0;
    for id in ["m1", "m2", "m3"] {
        let mut room = |more| {
            asked += more;
            true
        };
        tell(&mut replay, &around(id), &mut room).unwrap();
    }
    assert!((10_000..11_000).contains(&asked), "{asked}");
    assert_eq!(replay.size(), asked);
    tell(&mut replay, DONE, &mut |_| true).unwrap();
    let whole = replay.done().unwrap().history.unwrap();
    assert!(whole.starts_with(r#"[{"messageId":"m1","role":"ROLE_AGENT","metadata""#));
    assert!(whole.ends_with(r#""parts":[{"text":"aaa"}]}]"#));
}

#[test]
fn what_is_replaced_is_given_back() {
    let mut replay = Replay::new("t");
    let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"},"history":[{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a"}]},{}],"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}}"#;
    tell(&mut replay, task, &mut |_| true).unwrap();
    let once = replay.size();
    for _ in 0..3 {
        tell(&mut replay, task, &mut |_| true).unwrap();
        assert_eq!(replay.size(), once);
    }
}
