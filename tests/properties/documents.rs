//! Generated documents: canonical ones with odd values in their free-form places, and hostile ones.
use a2a_gateway::a2a::Op;
use proptest::{prelude::*, sample::select};

use super::tree::Tree;

/// What stands in a document besides what every version has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extra {
    /// Only what all versions can carry, in their own members or in those that are kept.
    Kept,
    /// Members that nobody knows as well.
    Strangers,
}

/// A value that parsers like to change.
pub(crate) fn odd() -> impl Strategy<Value = String> {
    let numbers = [
        "1.10",
        "1e2",
        "123456789012345678901234567890",
        "-0",
        "1E400",
        "1.0",
        "-0.0e-0",
        "9007199254740993",
    ];
    let words = [
        r#""\ud800""#,
        r#""\u00e9é\/\b""#,
        r#""\ud83d\ude00 😀""#,
        "null",
        "true",
        "\"\"",
        r#""TASK_STATE_CANCELED""#,
    ];
    prop_oneof![select(numbers.to_vec()), select(words.to_vec())]
        .prop_map(str::to_owned)
        .prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3)
                    .prop_map(|all| format!("[{}]", all.join(" , "))),
                object(inner),
            ]
        })
}

/// An object with odd values, odd white space, names of ours and the same name twice.
pub(crate) fn wild_object() -> impl Strategy<Value = String> {
    object(odd())
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let name = select(vec![
        "a",
        "a",
        "kind",
        "context_id",
        "contextId",
        "messageId",
        "é\\u00e9",
        "metadata",
        "",
        "stränge r",
    ]);
    proptest::collection::vec((name, value), 0..4).prop_map(|members| {
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("\"{name}\" :{value}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Metadata with each name once, so that what v0.3 has no place for can be kept in it. Never empty: beside what
/// is kept, empty metadata and none cannot be told apart again.
fn metadata() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        odd().prop_map(|v| format!(r#","metadata":{{"one": {v},"context_id":"x"}}"#)),
    ]
}

fn stranger(extra: Extra) -> BoxedStrategy<String> {
    match extra {
        Extra::Kept => Just(String::new()).boxed(),
        Extra::Strangers => prop_oneof![
            2 => Just(String::new()),
            1 => Just(r#","stranger":1.10"#.to_owned()),
            1 => Just(r#","stranger":{"kind":"x"}"#.to_owned()),
        ]
        .boxed(),
    }
}

fn part(extra: Extra) -> impl Strategy<Value = String> {
    let media = select(vec![
        "",
        r#","mediaType":"text/markdown""#,
        r#","filename":"f é.md""#,
        r#","mediaType":"x/y","filename":"f""#,
    ]);
    let content = prop_oneof![
        select(vec!["", "hi", "\\ud800 é \\u00e9", "\\n"]).prop_map(|t| format!(r#""text":"{t}""#)),
        Just(r#""url":"https://x.example/a?b=c%20d""#.to_owned()),
        select(vec!["", "AAECA/8=", "aGVsbG8gd29ybGQ="]).prop_map(|b| format!(r#""raw":"{b}""#)),
        wild_object().prop_map(|d| format!(r#""data":{d}"#)),
        odd().prop_map(|d| format!(r#""data":{d}"#)),
    ];
    (content, media, metadata(), stranger(extra))
        .prop_map(|(content, media, metadata, stranger)| {
            format!("{{{content}{media}{metadata}{stranger}}}")
        })
        .prop_filter("a mark of the SDKs would be ours", |p| {
            !p.contains("\"data_part_compat\"")
        })
}

fn parts(extra: Extra) -> impl Strategy<Value = String> {
    proptest::collection::vec(part(extra), 1..4).prop_map(|all| format!("[{}]", all.join(",")))
}

/// A message in v1.0.
pub(crate) fn message(extra: Extra) -> impl Strategy<Value = String> {
    let ids = select(vec![
        "",
        r#","contextId":"c-1""#,
        r#","contextId":"c-1","taskId":"t \" 1""#,
    ]);
    let more = select(vec![
        "",
        r#","extensions":["https://e.example/1"]"#,
        r#","referenceTaskIds":["r-1","r-2"]"#,
    ]);
    let role = select(vec!["ROLE_USER", "ROLE_AGENT"]);
    let all = (ids, role, parts(extra), more, metadata(), stranger(extra));
    all.prop_map(|(ids, role, parts, more, metadata, stranger)| {
        format!(
            r#"{{"messageId":"m-1"{ids},"role":"{role}","parts":{parts}{more}{metadata}{stranger}}}"#
        )
    })
}

fn status(extra: Extra) -> impl Strategy<Value = String> {
    let states = select(vec![
        "UNSPECIFIED",
        "SUBMITTED",
        "WORKING",
        "COMPLETED",
        "FAILED",
        "CANCELED",
        "INPUT_REQUIRED",
        "REJECTED",
        "AUTH_REQUIRED",
    ]);
    let message = prop_oneof![
        Just(String::new()),
        message(extra).prop_map(|m| format!(r#","message":{m}"#)),
    ];
    let time = select(vec!["", r#","timestamp":"2026-03-01T10:00:00.123Z""#]);
    let all = (states, message, time, stranger(extra));
    all.prop_map(|(state, message, time, stranger)| {
        format!(r#"{{"state":"TASK_STATE_{state}"{message}{time}{stranger}}}"#)
    })
}

fn artifact(extra: Extra) -> impl Strategy<Value = String> {
    let names = select(vec!["", r#","name":"n","description":"d""#]);
    let all = (names, parts(extra), metadata(), stranger(extra));
    all.prop_map(|(names, parts, metadata, stranger)| {
        format!(r#"{{"artifactId":"a-1"{names},"parts":{parts}{metadata}{stranger}}}"#)
    })
}

/// A task in v1.0.
pub(crate) fn task(extra: Extra) -> impl Strategy<Value = String> {
    let artifacts = list("artifacts", artifact(extra));
    let history = list("history", message(extra));
    let all = (
        status(extra),
        artifacts,
        history,
        metadata(),
        stranger(extra),
    );
    all.prop_map(|(status, artifacts, history, metadata, stranger)| {
        format!(
            r#"{{"id":"t-1","contextId":"c-1","status":{status}{artifacts}{history}{metadata}{stranger}}}"#
        )
    })
}

fn list(name: &'static str, item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::vec(item, 0..3).prop_map(move |all| {
        if all.is_empty() {
            return String::new(); // an empty list is none in v0.3
        }
        format!(r#","{name}":[{}]"#, all.join(","))
    })
}

/// A stream event in v1.0.
pub(crate) fn update(extra: Extra) -> impl Strategy<Value = String> {
    let ids = r#""taskId":"t-1","contextId":"c-1""#;
    let flags = select(vec![
        "",
        r#","append":true,"lastChunk":false"#,
        r#","lastChunk":true"#,
    ]);
    prop_oneof![
        task(extra).prop_map(|t| format!(r#"{{"task":{t}}}"#)),
        message(extra).prop_map(|m| format!(r#"{{"message":{m}}}"#)),
        (status(extra), metadata(), stranger(extra)).prop_map(move |(s, m, x)| {
            format!(r#"{{"statusUpdate":{{{ids},"status":{s}{m}{x}}}}}"#)
        }),
        (artifact(extra), flags, metadata(), stranger(extra)).prop_map(move |(a, f, m, x)| {
            format!(r#"{{"artifactUpdate":{{{ids},"artifact":{a}{f}{m}{x}}}}}"#)
        }),
    ]
}

// ---- What readers of v0.3 ProtoJSON take, written down apart from the code ------------------------------

fn members<'t>(tree: &'t Tree, allowed: &[&str]) -> &'t [(String, Tree)] {
    let Tree::Object(all) = tree else {
        panic!("{tree:?} is not an object")
    };
    for (name, _) in all {
        assert!(allowed.contains(&name.as_str()), "{name} in {tree:?}");
    }
    all
}

fn each(all: &[(String, Tree)], name: &str, check: fn(&Tree)) {
    let found = all.iter().filter(|m| m.0 == name).map(|m| &m.1);
    for value in found {
        match value {
            Tree::List(items) => items.iter().for_each(check),
            Tree::Object(_) => check(value),
            Tree::One(_) => panic!("{name} is {value:?}"),
        }
    }
}

/// An event, or the result of a send.
pub(crate) fn proto_event(tree: &Tree) {
    let all = members(tree, &["task", "message", "statusUpdate", "artifactUpdate"]);
    each(all, "task", proto_task);
    each(all, "message", proto_message);
    each(all, "statusUpdate", |u| {
        let known = ["taskId", "contextId", "status", "final", "metadata"];
        each(members(u, &known), "status", proto_status);
    });
    each(all, "artifactUpdate", |u| {
        let known = [
            "taskId",
            "contextId",
            "artifact",
            "append",
            "lastChunk",
            "metadata",
        ];
        each(members(u, &known), "artifact", proto_artifact);
    });
}

/// A task.
pub(crate) fn proto_task(tree: &Tree) {
    let known = [
        "id",
        "contextId",
        "status",
        "artifacts",
        "history",
        "metadata",
    ];
    let all = members(tree, &known);
    each(all, "status", proto_status);
    each(all, "artifacts", proto_artifact);
    each(all, "history", proto_message);
}

fn proto_status(tree: &Tree) {
    each(
        members(tree, &["state", "message", "timestamp"]),
        "message",
        proto_message,
    );
}

fn proto_artifact(tree: &Tree) {
    let known = [
        "artifactId",
        "name",
        "description",
        "parts",
        "metadata",
        "extensions",
    ];
    each(members(tree, &known), "parts", proto_part);
}

fn proto_message(tree: &Tree) {
    let known = [
        "messageId",
        "contextId",
        "taskId",
        "role",
        "content",
        "metadata",
        "extensions",
    ];
    each(members(tree, &known), "content", proto_part);
}

fn proto_part(tree: &Tree) {
    let all = members(tree, &["text", "file", "data", "metadata"]);
    each(all, "file", |f| {
        members(f, &["fileWithUri", "fileWithBytes", "mimeType", "name"]);
    });
    each(all, "data", |d| {
        members(d, &["data"]);
    });
}

// ---- Hostile documents -----------------------------------------------------------------------------------

/// Names that readers look for.
#[rustfmt::skip]
const NAMES: [&str; 78] = [
    "message", "parts", "content", "kind", "role", "messageId", "message_id", "contextId", "taskId",
    "text", "raw", "url", "data", "file", "fileWithBytes", "fileWithUri", "bytes", "uri",
    "metadata", "mediaType", "filename", "name", "status", "state", "update", "timestamp",
    "artifacts", "artifact", "history", "task", "statusUpdate", "status_update", "artifactUpdate",
    "result", "error", "code", "details", "reason", "configuration", "blocking", "historyLength",
    "history_length", "returnImmediately", "pushNotification", "pushNotificationConfig",
    "push_notification_config", "taskPushNotificationConfig", "authentication", "schemes", "scheme",
    "config", "configId", "configs", "tasks", "id", "parent", "tenant", "securitySchemes",
    "security", "securityRequirements", "type", "flows", "oauth2SecurityScheme",
    "authorizationCode", "supportedInterfaces", "supported_interfaces", "additionalInterfaces",
    "capabilities", "skills", "protocolVersion", "in", "location", "a2a-gateway/mediaType",
    "data_part_compat", "value", "referenceTaskIds", "request", "msg",
];

/// Values that they look at.
#[rustfmt::skip]
const WORDS: [&str; 33] = [
    "null", "true", "false", "0", "1", "-1", "1.5", "1e400", "\"\"", "[]", "{}", "\"5\"", "\"007\"",
    "\"user\"", "\"ROLE_USER\"", "\"task\"", "\"message\"", "\"status-update\"", "\"text\"",
    "\"file\"", "\"data\"", "\"working\"", "\"TASK_STATE_CANCELED\"", "\"AAE=\"", "\"QUFFPQ==\"",
    "\"!\"", "\"\\ud800\"", "\"2026-03-01T10:00:00+02:00\"", "\"oauth2\"", "\"apiKey\"", "\"x\"",
    "\"tasks/t/pushNotificationConfigs/c\"", "\"9999-99-99\"",
];

/// JSON with names and words of ours in places where they do not belong.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    select(&WORDS[..])
        .prop_map(str::to_owned)
        .prop_recursive(6, 60, 6, |inner| {
            let members = proptest::collection::vec((select(&NAMES[..]), inner.clone()), 0..6);
            prop_oneof![
                proptest::collection::vec(inner, 0..4)
                    .prop_map(|all| format!("[{}]", all.join(","))),
                members.prop_map(|mut all| {
                    all.sort_by_key(|m| m.0);
                    all.dedup_by_key(|m| m.0); // two of one name are refused soon
                    let all: Vec<_> = all.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
                    format!("{{{}}}", all.join(","))
                }),
            ]
        })
}

/// A text by itself, in envelopes, and where it gets deeper in.
pub(crate) fn wrappings(text: &str, op: Op) -> Vec<String> {
    let row = op.row();
    vec![
        text.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{text},"result":{text}}}"#,
            row.v10.rpc
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{text},"result":{text}}}"#,
            row.v03.rpc
        ),
        format!(r#"{{"message":{text},"task":{text}}}"#),
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{text}],"metadata":{text}}}}}"#
        ),
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","content":[{text}]}},"configuration":{text}}}"#
        ),
        format!(r#"{{"kind":"task","id":"t","status":{text},"artifacts":[{{"parts":[{text}]}}]}}"#),
        format!(r#"{{"error":{text}}}"#),
    ]
}
