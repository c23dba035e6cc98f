//! Which operation a request asks for, and in which of the four families of routes. A path below `/v1/` is v0.3; over
//! JSON-RPC the method's name tells the version, whatever the header says.
use http::Method;
use serde_json::Value;

use super::{API, refusal::Refusal};

/// A family of routes: a transport and a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tongue {
    R10,
    R03,
    J10,
    J03,
}

impl Tongue {
    pub const ALL: [Self; 4] = [Self::R10, Self::R03, Self::J10, Self::J03];

    pub fn is_rpc(self) -> bool {
        matches!(self, Self::J10 | Self::J03)
    }

    pub fn is_old(self) -> bool {
        matches!(self, Self::R03 | Self::J03)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
    Card,
}

/// Method names of v1.0 and v0.3.
const METHODS: [(&str, &str, Op); 5] = [
    ("SendMessage", "message/send", Op::Send),
    ("SendStreamingMessage", "message/stream", Op::Stream),
    ("GetTask", "tasks/get", Op::Get),
    ("CancelTask", "tasks/cancel", Op::Cancel),
    ("SubscribeToTask", "tasks/resubscribe", Op::Subscribe),
];

/// What is asked, of whom.
#[derive(Clone, Debug)]
pub struct Call {
    pub workspace: String,
    pub agent: String,
    pub tongue: Tongue,
    pub op: Op,
    /// The id of a JSON-RPC call.
    pub id: Value,
    /// The body of REST, the params of JSON-RPC.
    pub params: Value,
    pub task: Option<String>,
}

/// A call, or why it is none, in the words of the transport.
pub type Read<T = Call> = Result<T, (Tongue, Value, Refusal)>;

pub fn read(method: &Method, path: &str, body: &[u8]) -> Read {
    let no_route = || Refusal::missing(path.to_owned());
    let Some((workspace, agent, tail)) = below(path) else {
        return Err((Tongue::R10, Value::Null, no_route()));
    };
    let call = |tongue, op, task: Option<&str>| Call {
        workspace: workspace.to_owned(),
        agent: agent.to_owned(),
        tongue,
        op,
        id: Value::Null,
        params: Value::Null,
        task: task.map(str::to_owned),
    };
    if tail.is_empty() && method == Method::POST {
        return by_rpc(call(Tongue::J10, Op::Send, None), body);
    }
    if tail == "/.well-known/agent-card.json" && method == Method::GET {
        return Ok(call(Tongue::R10, Op::Card, None));
    }
    let (tongue, tail) = match tail.strip_prefix("/v1/") {
        Some(tail) => (Tongue::R03, tail),
        None => (Tongue::R10, tail.strip_prefix('/').unwrap_or(tail)),
    };
    let (op, task) = match (method, tail) {
        (&Method::POST, "message:send") => (Op::Send, None),
        (&Method::POST, "message:stream") => (Op::Stream, None),
        _ => {
            let task = tail.strip_prefix("tasks/").filter(|t| !t.contains('/'));
            let (task, verb) = task.map_or(("", ""), |t| t.split_once(':').unwrap_or((t, "")));
            let op = match (method, verb) {
                _ if task.is_empty() => None,
                (&Method::GET, "") => Some(Op::Get),
                (&Method::GET, "subscribe") => Some(Op::Subscribe),
                (&Method::POST, "cancel") => Some(Op::Cancel),
                _ => None,
            };
            let op = op.ok_or_else(|| (tongue, Value::Null, no_route()))?;
            (op, Some(task))
        }
    };
    let mut call = call(tongue, op, task);
    if matches!(op, Op::Send | Op::Stream) {
        call.params = serde_json::from_slice(body).map_err(|e| {
            let why = Refusal::invalid(format!("the body is no JSON: {e}"));
            (tongue, Value::Null, why)
        })?;
    }
    Ok(call)
}

/// Workspace, agent, and what follows the base URL.
fn below(path: &str) -> Option<(&str, &str, &str)> {
    let rest = path.strip_prefix(API)?.strip_prefix("/workspaces/")?;
    let (workspace, rest) = rest.split_once("/agents/")?;
    let (agent, rest) = rest.split_once('/')?;
    let tail = rest.strip_prefix("a2a")?;
    (tail.is_empty() || tail.starts_with('/')).then_some((workspace, agent, tail))
}

fn by_rpc(mut call: Call, body: &[u8]) -> Read {
    let no = |tongue, id, code, message: String| {
        Err((tongue, id, Refusal::invalid(message).of_agent(code)))
    };
    let mut body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(e) => return no(Tongue::J10, Value::Null, -32700, format!("no JSON: {e}")),
    };
    call.id = body["id"].take();
    if body["jsonrpc"] != "2.0" {
        let why = "jsonrpc has to be 2.0".to_owned();
        return no(Tongue::J10, call.id, -32600, why);
    }
    let method = body["method"].as_str().unwrap_or_default();
    let found = METHODS.iter().find_map(|&(new, old, op)| {
        let tongue = match method {
            m if m == new => Tongue::J10,
            m if m == old => Tongue::J03,
            _ => return None,
        };
        Some((tongue, op))
    });
    let Some((tongue, op)) = found else {
        let why = format!("there is no method {method}");
        return no(Tongue::J10, call.id, -32601, why);
    };
    (call.tongue, call.op) = (tongue, op);
    call.params = body["params"].take();
    if !matches!(op, Op::Send | Op::Stream) {
        let Some(task) = call.params["id"].as_str() else {
            return no(tongue, call.id, -32602, "params.id is missing".to_owned());
        };
        call.task = Some(task.to_owned());
    }
    Ok(call)
}
