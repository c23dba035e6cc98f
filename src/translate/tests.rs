use super::*;

const SEND: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;

#[test]
fn requests_are_read_with_and_without_a_first_line() {
    let (from, to) = (DialectName::V10Rest, DialectName::V03Jsonrpc);
    let run = |op, input: &str| run(from, to, Document::Request, op, input);
    let wanted = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"text":"hi","kind":"text"}],"kind":"message"}}}"#;
    for (op, input) in [
        (None, format!("POST /message:send\n\n{SEND}")),
        (None, format!("POST /message:send\r\n\r\n{SEND}\n")),
        (Some("message/send"), SEND.to_owned()),
        (Some("SendMessage"), SEND.to_owned()),
    ] {
        assert_eq!(run(op, &input).unwrap().output, wanted, "{input}");
    }
    assert!(run(None, SEND).is_err());
    assert!(run(Some("SendNothing"), SEND).is_err());
    let get = run(None, "GET /tasks/a%20b?historyLength=2").unwrap();
    assert_eq!(
        get.output,
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"a b","historyLength":2}}"#
    );
}

#[test]
fn the_id_of_a_call_is_kept() {
    let (from, to) = (DialectName::V10Jsonrpc, DialectName::V03Jsonrpc);
    let request = r#"{"jsonrpc":"2.0","id":1e2,"method":"GetTask","params":{"id":"t"}}"#;
    let output = run(from, to, Document::Request, None, request)
        .unwrap()
        .output;
    assert!(output.contains(r#""id":1e2"#), "{output}");
    let response = r#"{"jsonrpc":"2.0","id":"7","result":{"id":"t","contextId":"c"}}"#;
    let output = run(from, to, Document::Response, Some("GetTask"), response);
    assert!(output.unwrap().output.contains(r#""id":"7""#));
}

#[test]
fn an_error_needs_its_status_only_where_its_body_says_too_little() {
    let (from, to) = (DialectName::V03Rest, DialectName::V10Jsonrpc);
    for input in [
        r#"{"code":-32001,"message":"gone"}"#,
        "HTTP/1.1 404 Not Found\n\n{\"message\":\"gone\"}",
    ] {
        let output = run(from, to, Document::Error, None, input).unwrap().output;
        assert!(output.contains("TASK_NOT_FOUND"), "{output}");
    }
}

#[test]
fn losses_are_lines_of_json() {
    let (from, to) = (DialectName::V10Jsonrpc, DialectName::V03Jsonrpc);
    let input = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t","tenant":"x"}}"#;
    let losses = run(from, to, Document::Request, None, input)
        .unwrap()
        .losses;
    let lines: Vec<_> = losses.iter().map(line).collect();
    assert_eq!(
        lines,
        [r#"{"path":"request.tenant","why":"v0.3 has no tenants"}"#]
    );
}
