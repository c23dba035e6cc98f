use super::*;
use crate::a2a::shape::State;

const NOBODY: Public = Public {
    interfaces: vec![],
    push: true,
    security: None,
};

fn told(to: &ReplyTo, from: Dialect, sent: Op, body: &'static str) -> Result<Document, Fault> {
    let body = Bytes::from_static(body.as_bytes());
    document(to, from, sent, &body, &NOBODY, &Options::default())
}

fn text(document: &Document) -> &str {
    std::str::from_utf8(document.body.as_ref().unwrap()).unwrap()
}

fn asked(dialect: Dialect, op: Op) -> ReplyTo {
    let mut to = ReplyTo::new(dialect);
    to.op = Some(op);
    to
}

/// v0.3 may leave out the id of a push config, v1.0 may not: the list is asked for (decision 16).
#[test]
fn the_first_of_a_list_stands_for_a_push_config_without_id() {
    let to = asked(Dialect::J03, Op::GetPush);
    let list = r#"{"configs":[{"id":"a","taskId":"t","url":"u"},{"id":"b","taskId":"t","url":"v"}],"nextPageToken":"n"}"#;
    let first = told(&to, Dialect::R10, Op::ListPush, list).unwrap();
    assert_eq!(
        text(&first),
        r#"{"jsonrpc":"2.0","id":null,"result":{"taskId":"t","pushNotificationConfig":{"id":"a","url":"u"}}}"#
    );
    let none = told(&to, Dialect::R10, Op::ListPush, "{}");
    assert_eq!(none.map_err(|f| f.kind).err(), Some(Kind::TaskNotFound));
    let all = told(
        &asked(Dialect::J03, Op::ListPush),
        Dialect::R10,
        Op::ListPush,
        list,
    )
    .unwrap();
    assert_eq!(all.next.as_deref(), Some("n"));
}

#[test]
fn an_answer_in_the_same_version_passes_as_it_came() {
    let body = r#"{ "task" : {"id":"t","status":{"state":"TASK_STATE_WORKING"},"new":1.10}}"#;
    let to = asked(Dialect::R10, Op::Send);
    let same = told(&to, Dialect::R10, Op::Send, body).unwrap();
    assert_eq!(same.body.as_ref().unwrap().as_ptr(), body.as_ptr());
    assert_eq!(same.seen.state, Some(State::Running));
    let to = asked(Dialect::J10, Op::Send);
    let wrapped = told(&to, Dialect::R10, Op::Send, body).unwrap();
    assert!(text(&wrapped).contains(body));
}

#[test]
fn what_the_client_said_fills_in_what_v03_requires() {
    let mut to = asked(Dialect::J03, Op::Send);
    to.context = Some("c".into());
    let body = r#"{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
    let filled = told(&to, Dialect::R10, Op::Send, body).unwrap();
    assert!(text(&filled).contains(r#""contextId":"c""#));
    assert_eq!(filled.seen.state, Some(State::Terminal));
}

#[test]
fn a_stream_remembers_the_context_that_its_first_event_named() {
    let options = Options::default();
    let mut to = asked(Dialect::J03, Op::Stream);
    let mut told = |data: &str, ends| {
        let (mut lost, mut out) = (vec![], vec![]);
        let seen = event(
            &mut to,
            Dialect::R10,
            data.as_bytes(),
            ends,
            &options,
            &mut lost,
            &mut out,
        );
        (seen.unwrap(), String::from_utf8(out).unwrap())
    };
    told(
        r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
        false,
    );
    let update = r#"{"statusUpdate":{"taskId":"t",
        "status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
    let (seen, out) = told(update, false);
    assert!(
        out.contains(r#""contextId":"c""#) && out.contains(r#""final":false"#),
        "{out}"
    );
    assert_eq!((seen.state, seen.update), (Some(State::Interrupted), true));
    // One line, whatever the agent wrote: clients of v0.3 keep the last line only.
    assert!(out.starts_with("data: ") && out.ends_with("\n\n"));
    assert_eq!(out.trim_end().lines().count(), 1);
    assert!(told(update, true).1.contains(r#""final":true"#));
    let (seen, _) = told(
        r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}"#,
        false,
    );
    assert!(seen.message);
}

#[test]
fn nothing_is_written_of_an_event_that_cannot_be_told() {
    let options = Options::default();
    for data in [
        &b"{}"[..],
        b"\xff",
        br#"{"message":{"parts":1}}"#,
        br#"{"error":{"code":404}}"#,
    ] {
        let mut to = asked(Dialect::R03P, Op::Stream);
        let (mut lost, mut out) = (vec![], vec![]);
        let seen = event(
            &mut to,
            Dialect::R10,
            data,
            false,
            &options,
            &mut lost,
            &mut out,
        );
        assert!(seen.is_err() && out.is_empty());
    }
}

/// How many were asked for, and file bytes as this client writes them.
#[test]
fn an_answer_heeds_how_the_client_asked() {
    let mut to = asked(Dialect::R03P, Op::Get);
    to.twice = Some(false);
    to.history = Some(1);
    let body = r#"{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"raw":"AAE="}]}],"history":[{"messageId":"1","role":"ROLE_USER","parts":[]},{"messageId":"2","role":"ROLE_USER","parts":[]}]}"#;
    let once = told(&to, Dialect::R10, Op::Get, body).unwrap();
    assert!(text(&once).contains(r#""fileWithBytes":"AAE=""#));
    assert!(
        !text(&once).contains(r#""messageId":"1""#) && text(&once).contains(r#""messageId":"2""#)
    );
    to.twice = None;
    let twice = told(&to, Dialect::R10, Op::Get, body).unwrap();
    assert!(text(&twice).contains(r#""fileWithBytes":"QUFFPQ==""#));
}

#[test]
fn an_error_in_a_successful_answer_is_a_fault() {
    let to = asked(Dialect::R10, Op::Get);
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}"#;
    let fault = told(&to, Dialect::J10, Op::Get, body).unwrap_err();
    assert_eq!((fault.kind, &*fault.message), (Kind::TaskNotFound, "gone"));
}
