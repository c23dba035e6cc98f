//! What an agent knows of its tasks: it answers questions about them while the test takes the messages.
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use super::agent::{Asked, answer};

/// What is asked of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
}

/// A request to the agent, read by either binding.
#[derive(Clone, Debug)]
pub struct Question {
    pub ask: Ask,
    pub rest: bool,
    /// What comes with it: the params, or what of them is in a body.
    pub params: Value,
    pub context: Option<String>,
    pub task: Option<String>,
    pub authorization: Option<String>,
}

impl Question {
    pub fn read(asked: &Asked) -> Self {
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let rest = body.get("jsonrpc").is_none();
        let authorization = asked.head.get("authorization").map(str::to_owned);
        let (ask, params, task, context) = if rest {
            by_rest(asked, body)
        } else {
            by_rpc(&body)
        };
        Self {
            ask,
            rest,
            params,
            context,
            task,
            authorization,
        }
    }
}

type Parts = (Ask, Value, Option<String>, Option<String>);

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn by_rpc(body: &Value) -> Parts {
    let params = body["params"].clone();
    let ask = match body["method"].as_str().unwrap() {
        "SendMessage" => Ask::Send,
        "SendStreamingMessage" => Ask::Stream,
        "GetTask" => Ask::Get,
        "ListTasks" => Ask::List,
        "CancelTask" => Ask::Cancel,
        "SubscribeToTask" => Ask::Subscribe,
        other => panic!("{other} is not expected"),
    };
    let (task, context) = match ask {
        Ask::Send | Ask::Stream => of_message(&params),
        Ask::Get | Ask::List | Ask::Cancel | Ask::Subscribe => {
            (text(&params["id"]), text(&params["contextId"]))
        }
    };
    (ask, params, task, context)
}

fn of_message(params: &Value) -> (Option<String>, Option<String>) {
    let message = &params["message"];
    (text(&message["taskId"]), text(&message["contextId"]))
}

fn by_rest(asked: &Asked, body: Value) -> Parts {
    let target = asked.head.line.split(' ').nth(1).unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let last = path.rsplit('/').next().unwrap();
    let (last, verb) = last.split_once(':').unwrap_or((last, ""));
    let ask = match (last, verb) {
        ("message", "send") => Ask::Send,
        ("message", "stream") => Ask::Stream,
        ("tasks", "") => Ask::List,
        (_, "") => Ask::Get,
        (_, "cancel") => Ask::Cancel,
        (_, "subscribe") => Ask::Subscribe,
        _ => panic!("{target} is not expected"),
    };
    let (task, context) = match ask {
        Ask::Send | Ask::Stream => of_message(&body),
        Ask::List => {
            let mut pairs = query.split('&').filter_map(|p| p.split_once('='));
            let context = pairs.find(|(k, _)| *k == "contextId");
            (None, context.map(|(_, v)| v.to_owned()))
        }
        Ask::Get | Ask::Cancel | Ask::Subscribe => (Some(last.to_owned()), None),
    };
    (ask, body, task, context)
}

/// What the agent knows, and what it was asked.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    tasks: Vec<Task>,
    by_hand: bool,
    fails: Option<u16>,
    no_list: bool,
    asked: Vec<Question>,
}

struct Task {
    id: String,
    context: String,
    state: &'static str,
    /// Who alone may see it.
    owner: Option<String>,
}

impl Desk {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    /// From now on the task is in this state.
    pub fn knows(&self, id: &str, context: &str, state: &'static str) {
        let mut known = self.known();
        if let Some(task) = known.tasks.iter_mut().find(|t| t.id == id) {
            task.state = state;
            return;
        }
        known.tasks.push(Task {
            id: id.to_owned(),
            context: context.to_owned(),
            state,
            owner: None,
        });
    }

    /// From now on only the one with this token sees the task.
    pub fn is_of(&self, id: &str, token: &str) {
        let mut known = self.known();
        let task = known.tasks.iter_mut().find(|t| t.id == id).unwrap();
        task.owner = Some(format!("Bearer {token}"));
    }

    /// From now on the task is not there.
    pub fn forgets(&self, id: &str) {
        self.known().tasks.retain(|t| t.id != id);
    }

    /// From now on the test answers questions, too.
    pub fn by_hand(&self, by_hand: bool) {
        self.known().by_hand = by_hand;
    }

    /// From now on every question gets this status.
    pub fn fails(&self, status: Option<u16>) {
        self.known().fails = status;
    }

    /// From now on tasks cannot be listed.
    pub fn cannot_list(&self) {
        self.known().no_list = true;
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<Question> {
        self.known().asked.clone()
    }

    /// An answer, if the desk gives it.
    pub fn answer(&self, asked: &Asked) -> Option<Vec<u8>> {
        let question = Question::read(asked);
        if !matches!(question.ask, Ask::Get | Ask::List) {
            return None;
        }
        let mut known = self.known();
        known.asked.push(question.clone());
        if known.by_hand {
            return None;
        }
        if let Some(status) = known.fails {
            return Some(answer(status, "", ""));
        }
        let may_see = |t: &&Task| t.owner.is_none() || t.owner == question.authorization;
        let mut seen = known.tasks.iter().filter(may_see);
        if question.ask == Ask::Get {
            let task = seen.find(|t| Some(&t.id) == question.task.as_ref());
            return Some(match task {
                Some(task) => document(question.rest, &task.json()),
                None => refusal(question.rest, NOT_FOUND),
            });
        }
        if known.no_list {
            return Some(refusal(question.rest, NO_SUCH_METHOD));
        }
        let of = |t: &&Task| Some(&t.context) == question.context.as_ref();
        let tasks: Vec<_> = seen.filter(of).map(Task::json).collect();
        let size = tasks.len();
        let page = json!({"tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": size});
        Some(document(question.rest, &page))
    }
}

impl Task {
    fn json(&self) -> Value {
        task(&self.id, &self.context, self.state)
    }
}

/// A task. The state is its name without what all of them begin with.
pub fn task(id: &str, context: &str, state: &str) -> Value {
    let state = format!("TASK_STATE_{state}");
    json!({"id": id, "contextId": context, "status": {"state": state}})
}

/// A status update.
pub fn update(id: &str, context: &str, state: &str) -> Value {
    let state = format!("TASK_STATE_{state}");
    json!({"statusUpdate": {"taskId": id, "contextId": context, "status": {"state": state}}})
}

/// An error: JSON-RPC code, HTTP status, gRPC status, reason.
pub type Error = (i64, u16, &'static str, &'static str);

pub const NOT_FOUND: Error = (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND");
pub const NO_SUCH_METHOD: Error = (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND");

/// How either binding says what `canonical` is.
pub fn said(rest: bool, canonical: &Value) -> String {
    if rest {
        canonical.to_string()
    } else {
        json!({"jsonrpc": "2.0", "id": 1, "result": canonical}).to_string()
    }
}

const JSON: &str = "content-type: application/json\r\n";

/// A whole answer.
pub fn document(rest: bool, canonical: &Value) -> Vec<u8> {
    answer(200, JSON, said(rest, canonical))
}

/// How either binding tells an error.
pub fn error(rest: bool, (code, status, grpc, reason): Error) -> String {
    let info = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason, "domain": "a2a-protocol.org", "metadata": {},
    }]);
    let error = if rest {
        json!({"error": {"code": status, "status": grpc, "message": "no", "details": info}})
    } else {
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": info}})
    };
    error.to_string()
}

/// An answer that is an error.
pub fn refusal(rest: bool, of: Error) -> Vec<u8> {
    let status = if rest { of.1 } else { 200 };
    answer(status, JSON, error(rest, of))
}
