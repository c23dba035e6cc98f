//! ADK-Rust's A2A v1.0 service as the agent, with `backend.preset: adk-rust`: what it does in its own way, and what a
//! plain client sees of that. The agent here answers as that service was seen to; the real one is in `tests/interop/adk`.
use serde_json::{Value, json};

use crate::support::{
    agent::{Agent, Call},
    client::{Answer, Client},
    gateway::Gateway,
    words::{ALL, J03, J10, R03K, R03P, R10, Speak, result},
};

#[path = "adk/errors.rs"]
mod errors;
#[path = "adk/messages.rs"]
mod messages;

const BINDINGS: [bool; 2] = [false, true];
/// What it sends with all it answers, whatever version was asked for.
const FIELDS: &str = "content-type: application/a2a+json\r\na2a-version: 0.3\r\n";
const PLAIN: &str = "content-type: text/plain; charset=utf-8\r\na2a-version: 1.0\r\n";
/// A task with three messages of history.
const TASK: &str = r#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-03-01T10:00:00Z"},"artifacts":[{"artifactId":"a1","parts":[{"text":"hello"}]}],"history":[{"messageId":"h1","role":"ROLE_USER","parts":[{"text":"1"}]},{"messageId":"h2","role":"ROLE_USER","parts":[{"text":"2"}]},{"messageId":"h3","role":"ROLE_USER","parts":[{"text":"3"}]}]}"#;

/// JSON-RPC's code, the status, and HTTP's name of that.
type How = (i64, u16, &'static str);

struct Adk {
    rest: bool,
    agent: Agent,
    gateway: Gateway,
}

impl Adk {
    fn start(rest: bool) -> Self {
        let agent = Agent::start();
        let binding = if rest { "rest" } else { "jsonrpc" };
        let backend = format!("binding: {binding}, preset: adk-rust");
        let gateway = Gateway::with(agent.addr, &backend, "conversation: {on_busy: 'off'}");
        Self {
            rest,
            agent,
            gateway,
        }
    }

    fn asks(&self, (line, body): (&str, &str)) -> Client {
        let mut client = self.gateway.client();
        client.send(line, "content-type: application/json\r\n", body);
        client
    }

    fn asks_rpc(&self, method: &str, params: &Value) -> Client {
        let call = json!({"jsonrpc": "2.0", "id": "q1", "method": method, "params": params});
        self.asks(("POST /", &call.to_string()))
    }

    /// The next call, which has the version that this service takes, to the letter.
    fn next(&self) -> Call {
        let call = self.agent.next();
        assert_eq!(call.asked.head.all("a2a-version"), ["1.0"]);
        call
    }

    /// What the call says, without its envelope.
    fn said(&self, call: &Call) -> Value {
        let mut said = call.asked.json();
        if self.rest {
            said
        } else {
            said["params"].take()
        }
    }

    fn answers(&self, call: Call, text: &str) {
        let body = if self.rest {
            text.to_owned()
        } else {
            result(text)
        };
        call.answer(200, FIELDS, body);
    }

    /// Refuses as it does: by REST with the names of HTTP's statuses in place of gRPC's.
    fn refuses(&self, call: Call, (code, status, name): How, reason: &str, meta: &Value) {
        let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org", "metadata": meta}]);
        if self.rest {
            let error = json!({"code": status, "status": name, "message": "no", "details": info});
            let json = "content-type: application/json\r\na2a-version: 1.0\r\n";
            call.answer(status, json, json!({ "error": error }).to_string());
        } else {
            let error = json!({"code": code, "message": "no", "data": info});
            let body = json!({"jsonrpc": "2.0", "id": 1, "error": error});
            call.answer(200, FIELDS, body.to_string());
        }
    }
}

fn words(speak: Speak, of: impl Fn(Speak) -> (&'static str, String)) -> (&'static str, String) {
    of(speak)
}

#[test]
fn what_is_done_to_a_task_has_a_path_of_slashes() {
    let adk = Adk::start(true);
    for (line, wanted) in [
        ("POST /tasks/t1:cancel", "POST /tasks/t1/cancel "),
        ("POST /v1/tasks/t1:cancel", "POST /tasks/t1/cancel "),
        ("GET /tasks/t1", "GET /tasks/t1 "),
        ("GET /tasks", "GET /tasks "),
    ] {
        let mut client = adk.asks((line, ""));
        let call = adk.next();
        assert!(call.asked.is(wanted), "{:?}", call.asked.head);
        let text = if line.ends_with("tasks") { "[]" } else { TASK };
        adk.answers(call, text);
        assert_eq!(client.answer().status(), 200);
    }
    for line in [
        "POST /tasks/t1:subscribe",
        "GET /tasks/t1:subscribe",
        "POST /v1/tasks/t1:subscribe",
    ] {
        let mut client = adk.asks((line, ""));
        let mut call = adk.next();
        assert!(call.asked.is("POST /tasks/t1/subscribe "));
        call.begin();
        assert_eq!(client.head().status(), 200);
        call.end();
        assert_eq!(client.event(), None);
    }
    let mut client = adk.asks(("DELETE /tasks/t1/pushNotificationConfigs/p1", ""));
    let call = adk.next();
    assert!(
        call.asked
            .is("DELETE /tasks/t1/pushNotificationConfigs/p1 ")
    );
    call.answer(204, "a2a-version: 1.0\r\n", "");
    assert_eq!(client.answer().json(), json!({}));
}

fn task_of(speak: Speak, answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{speak:?}: {answer:?}");
    // What its answers say of a version is not what they are written in.
    let version = if speak.is_old() { "0.3" } else { "1.0" };
    assert_eq!(answer.head.all("a2a-version"), [version], "{speak:?}");
    let mut body = answer.json();
    match speak {
        J10 => body["result"]["task"].take(),
        J03 => body["result"].take(),
        R10 | R03P => body["task"].take(),
        R03K => body,
    }
}

#[test]
fn a_bare_task_is_a_send_s_answer_in_every_dialect() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        for speak in ALL {
            let (line, body) = words(speak, Speak::send);
            let mut client = adk.asks((line, &body));
            let call = adk.next();
            let wanted = if rest {
                "POST /message:send "
            } else {
                "POST / "
            };
            assert!(call.asked.is(wanted));
            adk.answers(call, TASK);
            let task = task_of(speak, &client.answer());
            assert_eq!(task["id"], "t1", "{speak:?}: {task}");
            let state = match speak {
                J03 | R03K => "completed",
                R03P | J10 | R10 => "TASK_STATE_COMPLETED",
            };
            assert_eq!(task["status"]["state"], state);
        }
    }
}

#[test]
fn bare_arrays_are_lists() {
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        let mut client = adk.asks_rpc("ListTasks", &json!({"contextId": "c1"}));
        adk.answers(adk.next(), &format!("[{TASK}]"));
        let list = client.answer().json()["result"].take();
        let (page, total) = (&list["pageSize"], &list["totalSize"]);
        assert_eq!(
            (page, total, &list["nextPageToken"]),
            (&json!(1), &json!(1), &json!(""))
        );
        assert_eq!(list["tasks"][0]["id"], "t1");

        let mut client = adk.asks(("GET /tasks/t1/pushNotificationConfigs", ""));
        adk.answers(
            adk.next(),
            r#"[{"taskId":"t1","id":"p1","url":"http://a"}]"#,
        );
        let list = client.answer().json();
        assert_eq!(list["configs"][0]["id"], "p1", "{list}");

        let old = "tasks/pushNotificationConfig/list";
        let mut client = adk.asks_rpc(old, &json!({"id": "t1"}));
        adk.answers(
            adk.next(),
            r#"[{"taskId":"t1","id":"p1","url":"http://a"}]"#,
        );
        let list = client.answer().json();
        assert_eq!(
            list["result"][0]["pushNotificationConfig"]["id"], "p1",
            "{list}"
        );
    }
}

fn message() -> Value {
    json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]})
}

#[test]
fn a_stream_is_read_to_its_end_after_its_client_left() {
    // It runs only for as long as somebody reads, and would leave the task working for ever.
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        let (line, body) = words(J10, Speak::stream);
        let mut client = adk.asks((line, &body));
        let mut call = adk.next();
        call.begin();
        let event = |text: &str| if rest { text.to_owned() } else { result(text) };
        call.event(&event(
            r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}"#,
        ));
        assert_eq!(client.head().status(), 200);
        client.event().unwrap();
        drop(client);
        adk.gateway.until_connected(0);
        assert!(call.is_open());
        call.event(&event(r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#));
        call.end();
    }
}

#[test]
fn its_card_is_of_v10_in_spite_of_its_url() {
    let adk = Adk::start(false);
    let url = format!("http://{}/jsonrpc", adk.agent.addr);
    let card = json!({
        "name": "ADK", "url": url, "description": "d", "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
        "capabilities": {"streaming": true, "pushNotifications": true},
    })
    .to_string();
    let mut client = adk.asks(("GET /.well-known/agent-card.json", ""));
    let call = adk.agent.next();
    assert!(call.asked.is("GET /.well-known/agent-card.json "));
    call.json(&card);
    let answer = client.answer();
    let shown = answer.json();
    let faces = shown["supportedInterfaces"].as_array().unwrap();
    let spoken = |binding: &str, version: &str| {
        faces
            .iter()
            .any(|f| f["protocolBinding"] == binding && f["protocolVersion"] == version)
    };
    for version in ["1.0", "0.3"] {
        assert!(
            spoken("JSONRPC", version) && spoken("HTTP+JSON", version),
            "{shown}"
        );
    }
    assert!(
        !answer.body.contains(&adk.agent.addr.to_string()),
        "{shown}"
    );

    // The extended card is the public one over again.
    for rest in BINDINGS {
        let adk = Adk::start(rest);
        let mut client = adk.asks(("GET /extendedAgentCard", ""));
        adk.answers(adk.next(), &card.replace("/jsonrpc", "/hidden"));
        let answer = client.answer();
        assert_eq!(answer.json()["name"], "ADK", "{answer:?}");
        assert!(!answer.body.contains("hidden"), "{answer:?}");
    }
}
