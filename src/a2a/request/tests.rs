use http::Method;

use super::*;

fn rest(
    method: &Method,
    target: &str,
    body: &'static str,
    said: Option<Version>,
    accepts: &Accepts,
) -> Result<(Read, ReplyTo), Fault> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let found = rest::find(method, path)?;
    let mut to = ReplyTo::new(Dialect::R10);
    let body = Bytes::from_static(body.as_bytes());
    let options = Options::default();
    let read = read_rest(
        &found,
        query,
        &body,
        &Reading::new(said, accepts, &options),
        &mut to,
    )?;
    Ok((read, to))
}

fn send(target: &str, body: &'static str, accepts: &Accepts) -> Result<(Read, ReplyTo), Kind> {
    rest(&Method::POST, target, body, None, accepts).map_err(|f| f.kind)
}

const NEW: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","contextId":"c","parts":[{"text":"a"}]},"configuration":{"historyLength":3}}"#;
const PROTO: &str =
    r#"{"message":{"role":"ROLE_USER","content":[{"file":{"fileWithBytes":"QUFFPQ=="}}]}}"#;
const KIND: &str = r#"{"message":{"role":"user","parts":[{"kind":"text","text":"a"}]}}"#;
const SNAKE: &str = r#"{"message":{"kind":"message","message_id":"m","context_id":"c","role":"user","parts":[{"kind":"text","text":"a"}]},"configuration":{"history_length":2,"push_notification_config":{"url":"u"}}}"#;

#[test]
fn a_request_tells_how_to_answer_it() {
    let all = Accepts::default();
    let (read, to) = send("/message:send", NEW, &all).unwrap();
    assert_eq!((to.dialect, to.op), (Dialect::R10, Some(Op::Send)));
    assert_eq!((to.history, to.context.as_deref()), (Some(3), Some("c")));
    assert_eq!(read.call.facts.message.as_deref(), Some("m"));
    // Nothing to mend: the very bytes go on.
    assert_eq!(read.call.params.text().as_ptr(), NEW.as_ptr());
    let (read, to) = send("/v1/message:send", PROTO, &all).unwrap();
    assert_eq!((to.dialect, to.twice), (Dialect::R03P, Some(true)));
    assert!(read.call.facts.at_once);
    let (read, to) = send("/v1/message:send", KIND, &all).unwrap();
    assert_eq!(to.dialect, Dialect::R03K);
    assert!(!read.call.facts.at_once);
}

#[test]
fn shapes_that_are_switched_off_are_refused() {
    let off = |proto, kind| Accepts {
        proto,
        kind,
        ..Accepts::default()
    };
    assert!(send("/v1/message:send", PROTO, &off(true, false)).is_ok());
    assert!(send("/v1/message:send", KIND, &off(false, true)).is_ok());
    for (body, accepts) in [(PROTO, off(false, true)), (KIND, off(true, false))] {
        let refused = send("/v1/message:send", body, &accepts);
        assert_eq!(refused.err(), Some(Kind::InvalidParams));
    }
    let old = Accepts {
        v10: false,
        ..Accepts::default()
    };
    let refused = send("/message:send", NEW, &old);
    assert_eq!(refused.err(), Some(Kind::VersionNotSupported));
}

#[test]
fn snake_case_without_v1_is_known_by_its_body_where_it_is_taken() {
    let on = Accepts {
        snake: true,
        ..Accepts::default()
    };
    let (read, to) = send("/message:send", SNAKE, &on).unwrap();
    assert_eq!(to.dialect, Dialect::R03S);
    let facts = &read.call.facts;
    assert_eq!(
        (facts.context.as_deref(), facts.history),
        (Some("c"), Some(2))
    );
    assert!(facts.webhook && read.lost.is_empty());
    assert_eq!(
        send("/message:send", SNAKE, &Accepts::default()).err(),
        Some(Kind::InvalidParams)
    );
    let said_new = rest(
        &Method::POST,
        "/message:send",
        SNAKE,
        Some(Version::V10),
        &on,
    );
    assert_eq!(
        said_new.map_err(|f| f.kind).err(),
        Some(Kind::InvalidParams)
    );
    let (_, to) = send("/message:send", NEW, &on).unwrap();
    assert_eq!(to.dialect, Dialect::R10);
}

#[test]
fn a_version_that_contradicts_the_path_is_refused() {
    let all = Accepts::default();
    for (target, body, said) in [
        ("/message:send", NEW, Version::V03),
        ("/v1/message:send", PROTO, Version::V10),
    ] {
        let refused = rest(&Method::POST, target, body, Some(said), &all);
        assert_eq!(
            refused.map_err(|f| f.kind).err(),
            Some(Kind::VersionNotSupported)
        );
    }
}

#[test]
fn a_message_without_an_id_gets_one_unless_the_agent_gives_it() {
    let mut options = Options::default();
    let found = rest::find(&Method::POST, "/v1/message:send").unwrap();
    let id = |options: &Options| {
        let mut to = ReplyTo::new(Dialect::R03P);
        let body = Bytes::from_static(PROTO.as_bytes());
        let accepts = Accepts::default();
        let read = read_rest(
            &found,
            None,
            &body,
            &Reading::new(None, &accepts, options),
            &mut to,
        );
        read.unwrap().call.facts.message
    };
    let (a, b) = (id(&options), id(&options));
    assert_eq!(a.as_ref().map(String::len), Some(36));
    assert_ne!(a, b);
    options.generate_message_id = false;
    assert_eq!(id(&options), None);
}

#[test]
fn what_is_refused_in_json_rpc_is_told_with_its_id_and_in_its_version() {
    let options = Options::default();
    let read = |body: &'static str, said| {
        let mut to = ReplyTo::new(Dialect::J03);
        let body = Bytes::from_static(body.as_bytes());
        let read = read_rpc(
            &body,
            &Reading::new(said, &Accepts::default(), &options),
            &mut to,
        );
        let id = String::from_utf8(to.id.text().to_vec()).unwrap();
        (read.map_err(|f| f.kind).err(), to.dialect, id)
    };
    let params =
        r#"{"jsonrpc":"2.0","id":10000000000000000001,"method":"SendMessage","params":{}}"#;
    assert_eq!(
        read(params, None),
        (
            Some(Kind::InvalidParams),
            Dialect::J10,
            "10000000000000000001".into()
        )
    );
    let old = r#"{"id":"a\u00e9","params":{"id":"t"},"method":"tasks/get","jsonrpc":"2.0"}"#;
    assert_eq!(read(old, None), (None, Dialect::J03, r#""a\u00e9""#.into()));
    assert_eq!(
        read(old, Some(Version::V10)).0,
        Some(Kind::VersionNotSupported)
    );
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#;
    assert_eq!(read(list, None).0, Some(Kind::MethodNotFound));
    let none = r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"t"}}"#;
    assert_eq!(read(none, None), (None, Dialect::J10, "null".into()));
}

#[test]
fn calls_without_a_body_take_the_first_shape_that_is_on() {
    let kind = Accepts {
        proto: false,
        ..Accepts::default()
    };
    for (accepts, dialect) in [(Accepts::default(), Dialect::R03P), (kind, Dialect::R03K)] {
        let (_, to) = rest(&Method::GET, "/v1/tasks/t", "", None, &accepts).unwrap();
        assert_eq!(to.dialect, dialect);
    }
    let refused = rest(
        &Method::GET,
        "/v1/tasks/t?x=1&x=2",
        "",
        None,
        &Accepts::default(),
    );
    assert_eq!(refused.map_err(|f| f.kind).err(), Some(Kind::InvalidParams));
}
