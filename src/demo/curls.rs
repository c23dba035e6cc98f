//! Commands to paste: every combination of version, binding and delivery, against a gateway.

use std::fmt::Write;

/// The eight commands, each under a line that says what it is, for a gateway at `base`.
pub fn curls(base: &str) -> String {
    let base = base.trim_end_matches('/');
    let kind = r#""message":{"kind":"message","messageId":"try-1","role":"user","parts":[{"kind":"text","text":"TEXT"}]}"#;
    let proto = r#""message":{"messageId":"try-1","role":"ROLE_USER","content":[{"text":"TEXT"}]}"#;
    let v10 = r#""message":{"messageId":"try-1","role":"ROLE_USER","parts":[{"text":"TEXT"}]}"#;
    let rpc = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
    };
    let rows = [
        ("v0.3 JSON-RPC, send", "", rpc("message/send", kind)),
        ("v0.3 JSON-RPC, stream", "", rpc("message/stream", kind)),
        // Without `blocking`, v0.3 REST returns at once.
        (
            "v0.3 REST, send",
            "/v1/message:send",
            format!(r#"{{{proto},"configuration":{{"blocking":true}}}}"#),
        ),
        (
            "v0.3 REST, stream",
            "/v1/message:stream",
            format!("{{{proto}}}"),
        ),
        ("v1.0 JSON-RPC, send", "", rpc("SendMessage", v10)),
        (
            "v1.0 JSON-RPC, stream",
            "",
            rpc("SendStreamingMessage", v10),
        ),
        ("v1.0 REST, send", "/message:send", format!("{{{v10}}}")),
        ("v1.0 REST, stream", "/message:stream", format!("{{{v10}}}")),
    ];
    let mut page = String::new();
    for (at, (name, path, body)) in rows.into_iter().enumerate() {
        let streams = name.ends_with("stream");
        let curl = if streams { "curl -sSN" } else { "curl -sS" };
        let version = if name.starts_with("v1.0") {
            " -H 'A2A-Version: 1.0'"
        } else {
            ""
        };
        let body = body
            .replace("TEXT", if streams { "stream 3" } else { "hello" })
            .replace("try-1", &format!("try-{}", at + 1));
        let _ = write!(
            page,
            "# {name}\n{curl} '{base}{path}' -H 'Content-Type: application/json'{version} -d '{body}'\n"
        );
    }
    page
}
