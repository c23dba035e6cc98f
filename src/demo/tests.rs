//! Every word and every operation over a real socket, by both bindings.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{Agent, curls};

mod refused;
mod tasks;
mod words;

/// No answer may take longer; all of them take milliseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// A running agent; it ends with the test's runtime.
struct Demo {
    addr: SocketAddr,
    stop: CancellationToken,
    run: JoinHandle<()>,
}

/// What came back.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The events of a stream.
    fn events(&self) -> Vec<Value> {
        assert!(self.head.contains("text/event-stream"), "{}", self.head);
        let lines = self.body.split_terminator("\n\n");
        let data = lines.map(|line| line.strip_prefix("data: ").expect("one line of data"));
        data.map(|text| serde_json::from_str(text).expect("JSON"))
            .collect()
    }
}

impl Demo {
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    async fn start() -> Demo {
        let agent = Agent::bind().await.expect("a free port");
        let (addr, stop) = (agent.addr(), CancellationToken::new());
        let run = tokio::spawn(agent.run(stop.clone()));
        Demo { addr, stop, run }
    }

    /// One exchange by HTTP/1.0, whose answers end with the connection.
    async fn http(&self, method: &str, path: &str, extra: &str, body: &str) -> Reply {
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.0\r\n{extra}Content-Length: {length}\r\n\r\n{body}");
        let exchange = async {
            let mut socket = TcpStream::connect(self.addr).await?;
            socket.write_all(request.as_bytes()).await?;
            let mut reply = String::new();
            socket.read_to_string(&mut reply).await?;
            std::io::Result::Ok(reply)
        };
        let reply = timeout(LIMIT, exchange)
            .await
            .expect("in time")
            .expect("an answer");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
        Reply {
            status: head[9..12].parse().expect("a status"),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    async fn rpc_text(&self, body: &str) -> Reply {
        let reply = self.http("POST", "/", "A2A-Version: 1.0\r\n", body).await;
        assert_eq!(reply.status, 200);
        reply
    }

    async fn rpc(&self, method: &str, params: Value) -> Reply {
        let body = json!({ "jsonrpc": "2.0", "id": "one", "method": method, "params": params });
        self.rpc_text(&body.to_string()).await
    }

    /// The result of a JSON-RPC call.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let reply = self.rpc(method, params).await.json();
        assert_eq!(reply["id"], "one", "{reply}");
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    async fn rest(&self, method: &str, path: &str, body: &str) -> Reply {
        self.http(method, path, "A2A-Version: 1.0\r\n", body).await
    }

    /// The result of a REST call.
    async fn fetch(&self, method: &str, path: &str, body: &str) -> Value {
        let reply = self.rest(method, path, body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    }

    /// Sends a text and waits for its task.
    async fn send(&self, text: &str) -> Value {
        self.ask("SendMessage", said(text)).await["task"].clone()
    }

    /// Sends a text and gets the task that was made of it at once; the id of it.
    async fn leave(&self, text: &str) -> String {
        let mut params = said(text);
        params["configuration"] = json!({ "returnImmediately": true });
        let task = self.ask("SendMessage", params).await["task"].clone();
        task["id"].as_str().expect("an id").to_owned()
    }

    /// The events of a stream, without the envelope.
    async fn streamed(&self, method: &str, params: Value) -> Vec<Value> {
        let events = self.rpc(method, params).await.events();
        let bare = |event: Value| {
            assert_eq!(
                (&event["jsonrpc"], &event["id"]),
                (&json!("2.0"), &json!("one"))
            );
            event["result"].clone()
        };
        events.into_iter().map(bare).collect()
    }
}

fn said(text: &str) -> Value {
    said_with(text, &json!({}))
}

/// A message with further members.
fn said_with(text: &str, more: &Value) -> Value {
    let mut message =
        json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }] });
    for (name, value) in more.as_object().expect("members") {
        message[name] = value.clone();
    }
    json!({ "message": message })
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().expect("a state")
}

#[tokio::test]
async fn ends_with_open_streams_when_told_to() {
    let demo = Demo::start().await;
    demo.leave("slow 60").await;
    let mut socket = TcpStream::connect(demo.addr).await.expect("a connection");
    let body = said("slow 60").to_string();
    let request = format!(
        "POST /message:stream HTTP/1.1\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    assert!(socket.read_u8().await.is_ok());
    demo.stop.cancel();
    timeout(LIMIT, demo.run)
        .await
        .expect("in time")
        .expect("an end");
}

#[test]
fn curls_are_eight_and_their_bodies_are_json() {
    let page = curls("http://127.0.0.1:1/base/");
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines.len(), 16);
    for pair in lines.chunks(2) {
        assert!(pair[0].starts_with("# v"));
        let curl = if pair[0].ends_with("stream") {
            "curl -sSN '"
        } else {
            "curl -sS '"
        };
        assert!(pair[1].starts_with(curl), "{}", pair[1]);
        assert!(pair[1].contains("'http://127.0.0.1:1/base"));
        assert_eq!(
            pair[1].contains("A2A-Version: 1.0"),
            pair[0].contains("v1.0")
        );
        let body = pair[1]
            .split(" -d '")
            .nth(1)
            .and_then(|rest| rest.strip_suffix('\''));
        let body: Value = serde_json::from_str(body.expect("a body")).expect("JSON");
        assert!(body.is_object());
    }
    assert!(
        page.contains(r#"/v1/message:send' -H 'Content-Type: application/json' -d '{"message":{"#)
    );
}

#[tokio::test]
async fn commands_for_v10_are_answered() {
    let demo = Demo::start().await;
    for line in curls("")
        .lines()
        .filter(|line| line.contains("A2A-Version"))
    {
        let (path, body) = line.split_once("' -H").expect("a path");
        let path = path
            .rsplit('\'')
            .next()
            .filter(|path| !path.is_empty())
            .unwrap_or("/");
        let body = body
            .split(" -d '")
            .nth(1)
            .expect("a body")
            .trim_end_matches('\'');
        let reply = demo.rest("POST", path, body).await;
        assert_eq!(reply.status, 200);
        assert!(
            reply.body.contains("TASK_STATE_COMPLETED"),
            "{line}: {}",
            reply.body
        );
    }
}
