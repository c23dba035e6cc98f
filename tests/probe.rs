//! `a2a-gateway probe`: against the gateway, against agents that speak one version only, and against agents that do one
//! thing wrong each.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
use std::{net::TcpListener, thread, time::Duration};

use a2a_gateway::{
    cli, demo,
    probe::{self, Report, Verdict},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;

use program::Program;
use support::{
    agent::{Agent, Asked, STREAM, answer, chunk},
    gateway::Gateway,
};

const JSON: &str = "content-type: application/json\r\n";

fn asking(url: &str) -> cli::Probe {
    cli::Probe {
        url: url.to_owned(),
        headers: vec![],
        header_file: None,
        ca_file: None,
        timeout: Duration::from_mins(1),
        message: "hello".to_owned(),
        json: false,
    }
}

fn probed(agent: &Agent) -> Report {
    probe::probe(&asking(&format!("http://{}", agent.addr))).unwrap()
}

/// The matrix in one letter for each row: ok, wrong, not spoken.
fn letters(report: &Report) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = vec![];
    for row in report.rows.iter().filter(|row| row.group != "card") {
        let letter = match row.verdict {
            Verdict::Ok => 'o',
            Verdict::Wrong => 'W',
            Verdict::NotSpoken => '-',
        };
        match lines.last_mut().filter(|(way, _)| *way == row.way) {
            Some((_, line)) => line.push(letter),
            None => lines.push((row.way, letter.to_string())),
        }
    }
    let lines = lines.into_iter();
    lines.map(|(way, line)| format!("{way}: {line}")).collect()
}

/// The only wrong row: its check, what is wrong, what would be right.
fn only_wrong(report: &Report) -> (String, String, &'static str) {
    let wrong = report.rows.iter().filter(|r| r.verdict == Verdict::Wrong);
    let wrong: Vec<_> = wrong.collect();
    assert_eq!(wrong.len(), 1, "{report}");
    assert!(!report.ok);
    let name = format!("{} {}", wrong[0].way, wrong[0].check);
    let name = name.trim().to_owned();
    (
        name,
        wrong[0].wrong.clone().unwrap(),
        wrong[0].right.unwrap(),
    )
}

/// The built-in agent, until the test ends.
struct DemoAgent {
    addr: std::net::SocketAddr,
    stop: CancellationToken,
}

impl DemoAgent {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let agent = runtime.block_on(demo::Agent::bind()).unwrap();
        let (addr, stop) = (agent.addr(), CancellationToken::new());
        let ends = stop.clone();
        thread::spawn(move || runtime.block_on(agent.run(ends)));
        Self { addr, stop }
    }
}

impl Drop for DemoAgent {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[test]
fn all_works_at_the_gateway() {
    let agent = DemoAgent::start();
    let gateway = Gateway::before(agent.addr);
    let report = probe::probe(&asking(&format!("http://{}", gateway.addr))).unwrap();
    assert!(report.ok, "{report}");
    let all = ["v0.3 JSON-RPC", "v0.3 REST", "v1.0 JSON-RPC", "v1.0 REST"];
    let all: Vec<_> = all.iter().map(|way| format!("{way}: oooo")).collect();
    assert_eq!(letters(&report), all, "{report}");
    assert!(report.rows.iter().all(|row| row.verdict == Verdict::Ok));
    assert!(report.rows.iter().all(|row| row.offered), "{report}");
    assert_eq!(report.agent.as_deref(), Some("Demo agent"));
}

#[test]
fn what_an_agent_does_not_speak_is_no_mistake() {
    let agent = DemoAgent::start();
    let report = probe::probe(&asking(&format!("http://{}", agent.addr))).unwrap();
    assert!(report.ok, "{report}");
    let expected = [
        "v0.3 JSON-RPC: ----",
        "v0.3 REST: ----",
        "v1.0 JSON-RPC: oooo",
        "v1.0 REST: oooo",
    ];
    assert_eq!(letters(&report), expected, "{report}");
}

/// An agent that speaks v0.3 JSON-RPC, all of it right but what `bend` makes of it; what that leaves out hangs.
fn bent(bend: impl Fn(&Asked, Vec<u8>) -> Option<Vec<u8>> + Send + 'static) -> Agent {
    Agent::answering(move |asked| bend(asked, good(asked)))
}

fn good(asked: &Asked) -> Vec<u8> {
    if asked.is("GET /.well-known/agent-card.json") {
        return answer(200, JSON, card(asked.head.get("host").unwrap()).to_string());
    }
    if !asked.is("POST / ") {
        return answer(404, JSON, r#"{"message":"there is nothing here"}"#);
    }
    let request = asked.json();
    let envelope =
        |key: &str, value: Value| json!({"jsonrpc": "2.0", "id": request["id"], key: value});
    let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}});
    let error = |code: i32| {
        let error = json!({"code": code, "message": "no"});
        answer(200, JSON, envelope("error", error).to_string())
    };
    match request["method"].as_str().unwrap() {
        "message/send" => {
            let mut task = task;
            task["status"]["state"] = json!("completed");
            answer(200, JSON, envelope("result", task).to_string())
        }
        "message/stream" => {
            let last = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
                "status": {"state": "completed"}});
            let mut out = STREAM.as_bytes().to_vec();
            for event in [task, last] {
                let event = envelope("result", event);
                out.extend(chunk(format!("data: {event}\n\n")));
            }
            out.extend(b"0\r\n\r\n");
            out
        }
        "tasks/get" => error(-32001),
        _ => error(-32601),
    }
}

fn card(host: &str) -> Value {
    json!({
        "name": "Scripted", "description": "does as it is told", "version": "1", "protocolVersion": "0.3.0",
        "url": format!("http://{host}/"), "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

fn method(asked: &Asked) -> String {
    let request: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    request["method"].as_str().unwrap_or_default().to_owned()
}

/// With some bytes replaced by as many others.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.contains(from), "{text}");
    text.replace(from, to).into_bytes()
}

/// The only wrong row of an agent that answers one method otherwise.
fn with(of: &'static str, from: &'static str, to: &'static str) -> (String, String, &'static str) {
    let agent = bent(move |asked, good| {
        Some(if method(asked) == of {
            replaced(&good, from, to)
        } else {
            good
        })
    });
    only_wrong(&probed(&agent))
}

#[test]
fn an_agent_of_v03_alone_is_well() {
    let report = probed(&bent(|_, good| Some(good)));
    assert!(report.ok, "{report}");
    assert_eq!(letters(&report)[0], "v0.3 JSON-RPC: oooo");
    assert_eq!(
        letters(&report)[1..],
        ["v0.3 REST: ----", "v1.0 JSON-RPC: ----", "v1.0 REST: ----"]
    );
}

#[test]
fn a_wrong_content_type_is_told() {
    let (row, wrong, right) = with("message/send", "application/json", "application/text");
    assert_eq!(row, "v0.3 JSON-RPC send");
    assert_eq!(wrong, "the content type is application/text");
    assert!(right.contains("application/json"), "{right}");
    let (row, wrong, _) = with("message/stream", "text/event-stream", "text/event-streem");
    assert_eq!(row, "v0.3 JSON-RPC stream");
    assert_eq!(wrong, "the content type is text/event-streem");
}

#[test]
fn an_id_that_is_not_repeated_is_told() {
    let (row, wrong, right) = with("message/send", "\"id\":\"probe", "\"ID\":\"probe");
    assert_eq!(
        (row.as_str(), wrong.as_str()),
        ("v0.3 JSON-RPC send", "there is no id")
    );
    assert!(right.contains("JSON-RPC 2.0 5"), "{right}");
    let (row, wrong, _) = with("message/stream", "\"id\":\"probe", "\"id\":\"other");
    assert_eq!(row, "v0.3 JSON-RPC stream");
    assert!(wrong.starts_with("the id is \"other"), "{wrong}");
}

#[test]
fn broken_framing_is_told() {
    let (row, wrong, right) = with("message/stream", "data: {", "data: [");
    assert_eq!(row, "v0.3 JSON-RPC stream");
    assert!(wrong.contains("of event 1 is not JSON"), "{wrong}");
    assert!(right.contains("9.4.2"), "{right}");
    let agent = bent(|asked, good| {
        let streams = method(asked) == "message/stream";
        Some(if streams {
            let event = format!(
                "data: {}",
                json!({"jsonrpc": "2.0", "id": asked.json()["id"]})
            );
            [STREAM.as_bytes(), &chunk(event), b"0\r\n\r\n"].concat()
        } else {
            good
        })
    });
    let (_, wrong, _) = only_wrong(&probed(&agent));
    assert_eq!(wrong, "the last event has no blank line after it");
}

#[test]
fn a_missing_final_is_told() {
    let (row, wrong, right) = with("message/stream", "\"final\":true", "\"finel\":true");
    assert_eq!(row, "v0.3 JSON-RPC stream");
    assert_eq!(wrong, "a status update has no `final`");
    assert!(right.contains("v0.3 7.2.2"), "{right}");
}

#[test]
fn a_stream_that_ends_too_early_is_told() {
    let (row, wrong, _) = with("message/stream", "completed", "submitted");
    assert_eq!(row, "v0.3 JSON-RPC stream");
    assert_eq!(wrong, "the stream ended while the task runs");
}

#[test]
fn a_wrong_error_code_is_told() {
    let (row, wrong, right) = with("tasks/get", "-32001", "-32602");
    assert_eq!(row, "v0.3 JSON-RPC unknown task");
    assert_eq!(wrong, "error.code is -32602");
    assert!(right.contains("-32001"), "{right}");
    let (row, wrong, _) = with("probe/unknown", "-32601", "-32000");
    assert_eq!(row, "v0.3 JSON-RPC unknown method");
    assert_eq!(wrong, "error.code is -32000");
}

#[test]
fn a_card_without_interfaces_is_told() {
    let agent = bent(|asked, good| {
        let mut bare = card("x");
        bare.as_object_mut().unwrap().remove("url");
        Some(if asked.is("GET /.well-known/agent-card") {
            answer(200, JSON, bare.to_string())
        } else {
            good
        })
    });
    let report = probed(&agent);
    let (row, wrong, right) = only_wrong(&report);
    assert_eq!(row, "v1.0 card");
    assert_eq!(wrong, "it has no supportedInterfaces");
    assert!(right.contains("v1.0 4.4.6"), "{right}");
    assert_eq!(
        letters(&report)[0],
        "v0.3 JSON-RPC: oooo",
        "it works all the same"
    );
}

#[test]
fn an_agent_without_a_card_is_told() {
    let agent = bent(|asked, good| {
        let card = asked.is("GET /.well-known");
        Some(if card { answer(404, "", "") } else { good })
    });
    let report = probed(&agent);
    assert_eq!(only_wrong(&report).0, "card");
    assert_eq!(letters(&report)[0], "v0.3 JSON-RPC: oooo");
}

#[test]
fn what_hangs_ends_in_time() {
    let agent = bent(|asked, good| (method(asked) != "message/send").then_some(good));
    let mut asked = asking(&format!("http://{}", agent.addr));
    asked.timeout = Duration::from_secs(8);
    let report = probe::probe(&asked).unwrap();
    let (row, wrong, _) = only_wrong(&report);
    assert_eq!(
        (row.as_str(), wrong.as_str()),
        ("v0.3 JSON-RPC send", "no answer in time")
    );
}

#[test]
fn a_huge_answer_is_not_held() {
    let agent = bent(|asked, good| {
        let sends = method(asked) == "message/send";
        let huge = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{";
        Some(if sends { huge.into() } else { good })
    });
    let (row, wrong, _) = only_wrong(&probed(&agent));
    assert_eq!(row, "v0.3 JSON-RPC send");
    assert!(wrong.contains("too large"), "{wrong}");
}

#[test]
fn headers_go_with_every_question_and_are_not_shown() {
    let agent = bent(|asked, good| {
        let known =
            asked.head.get("x-key") == Some("hidden") && asked.head.get("x-more") == Some("1");
        Some(if known { good } else { answer(401, "", "") })
    });
    let mut asked = asking(&format!("http://{}", agent.addr));
    asked.headers = vec!["x-more: 1".to_owned()];
    let refused = probe::probe(&asked).unwrap();
    assert_eq!(only_wrong(&refused).0, "card");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "# the key\nx-key: hidden\n").unwrap();
    asked.header_file = Some(file.path().to_owned());
    let report = probe::probe(&asked).unwrap();
    assert!(report.ok, "{report}");
    assert!(!format!("{report}{}", report.json()).contains("hidden"));
    asked.headers.push("secret without a name".to_owned());
    let says = probe::probe(&asked).unwrap_err();
    assert!(!says.contains("secret"), "{says}");
}

#[test]
fn the_program_prints_json() {
    let agent = bent(|asked, good| {
        let get = method(asked) == "tasks/get";
        Some(if get {
            replaced(&good, "-32001", "-32602")
        } else {
            good
        })
    });
    let url = format!("http://{}", agent.addr);
    let (code, said) = Program::command(&["probe", &url, "--json"]);
    assert_eq!(code, Some(1), "{said}");
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["url"], url);
    assert_eq!(report["ok"], false);
    assert_eq!(report["agent"], "Scripted");
    assert_eq!(report["signed"], false);
    let interface = json!({"url": format!("{url}/"), "binding": "JSONRPC", "version": "0.3.0"});
    assert_eq!(report["interfaces"], json!([interface]));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 + 16);
    let row = |way: &str, check: &str| rows.iter().find(|r| r["way"] == way && r["check"] == check);
    assert_eq!(
        *row("v0.3 JSON-RPC", "send").unwrap(),
        json!({
            "group": "call", "way": "v0.3 JSON-RPC", "check": "send", "offered": true,
            "sent": "POST / message/send", "came": "200 application/json, task completed", "verdict": "ok",
        })
    );
    assert_eq!(
        *row("v0.3 JSON-RPC", "unknown task").unwrap(),
        json!({
            "group": "error", "way": "v0.3 JSON-RPC", "check": "unknown task", "offered": true,
            "sent": "POST / tasks/get", "came": "200 application/json", "verdict": "wrong",
            "wrong": "error.code is -32602",
            "right": "TaskNotFoundError: 200, error.code -32001 (v1.0 5.4, 9.5; v0.3 8.2)",
        })
    );
    let row = row("v1.0 REST", "stream").unwrap();
    assert_eq!(row["verdict"], "not_spoken");
    assert!(row.get("wrong").is_none(), "{row}");
    let came = row["came"].as_str().unwrap();
    assert!(
        came.starts_with("404 application/json, refused: "),
        "{came}"
    );
}

#[test]
fn the_program_says_by_its_code_how_it_went() {
    let agent = DemoAgent::start();
    let (code, said) = Program::command(&["probe", &format!("http://{}", agent.addr)]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("all that is offered works"), "{said}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = nobody.local_addr().unwrap();
    drop(nobody);
    let (code, said) = Program::command(&["probe", &format!("http://{addr}")]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("unreachable"), "{said}");
    let (code, _) = Program::command(&["probe", "no address"]);
    assert_eq!(code, Some(2));
}
