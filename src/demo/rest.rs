//! The REST binding: method, path and query say which operation it is and name the task.

use hyper::{Method, Response, StatusCode, body::Incoming, http::request::Parts};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{
    call::{Call, GetTask, ListPushes, ListTasks, OnePush, OneTask, read},
    desk::{Answer, Desk},
    object::PushConfig,
    refusal::{Fault, Refusal},
    wire::{self, Body, Frames},
};

/// Events stand bare in the stream.
struct Bare;

impl Frames for Bare {
    fn frame(&self, event: &str) -> String {
        event.to_owned()
    }
}

/// Answers one request.
pub(super) async fn respond(desk: &Desk, head: &Parts, body: Incoming) -> Response<Body> {
    match answer(desk, head, body).await {
        Ok(Answer::One(text)) => wire::document(StatusCode::OK, "application/a2a+json", text),
        Ok(Answer::Events(events)) => wire::events(events, Bare),
        Err(refusal) => {
            let text = format!(r#"{{"error":{}}}"#, refusal.rest());
            wire::document(refusal.status(), "application/json", text)
        }
    }
}

async fn answer(desk: &Desk, head: &Parts, body: Incoming) -> Result<Answer, Refusal> {
    let path: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    let route = Route::of(&head.method, &path);
    let unknown = || {
        Fault::MethodNotFound.because(format!("there is no {} {}", head.method, head.uri.path()))
    };
    let route = route.ok_or_else(unknown)?;
    wire::check_version(&head.headers, head.uri.query())?;
    // A GET has no body to speak of, whatever clients send with it.
    let text = if head.method == Method::POST {
        wire::check_type(&head.headers)?;
        wire::read(body).await?
    } else {
        String::new()
    };
    let mut query = Query::of(head.uri.query())?;
    let call = route.call(&mut query, &text)?;
    query.end()?;
    desk.answer(call).await
}

/// The operation a method and path name, with the path's ids still percent-encoded.
enum Route<'a> {
    Send,
    Stream,
    Get(&'a str),
    List,
    Cancel(&'a str),
    Subscribe(&'a str),
    PushCreate(&'a str),
    PushGet(&'a str, &'a str),
    PushList(&'a str),
    PushDelete(&'a str, &'a str),
    ExtendedCard,
}

impl<'a> Route<'a> {
    fn of(method: &Method, path: &[&'a str]) -> Option<Route<'a>> {
        const PUSHES: &str = "pushNotificationConfigs";
        Some(match (method.as_str(), path) {
            ("POST", ["message:send"]) => Self::Send,
            ("POST", ["message:stream"]) => Self::Stream,
            ("GET", ["extendedAgentCard"]) => Self::ExtendedCard,
            ("GET", ["tasks"]) => Self::List,
            // An id may hold a colon; what follows the last one is an action only when it is one.
            ("GET" | "POST", ["tasks", last]) => match (method.as_str(), last.rsplit_once(':')) {
                ("POST", Some((id, "cancel"))) => Self::Cancel(id),
                (_, Some((id, "subscribe"))) => Self::Subscribe(id),
                ("GET", _) => Self::Get(last),
                _ => return None,
            },
            ("POST", ["tasks", task, PUSHES]) => Self::PushCreate(task),
            ("GET", ["tasks", task, PUSHES]) => Self::PushList(task),
            ("GET", ["tasks", task, PUSHES, id]) => Self::PushGet(task, id),
            ("DELETE", ["tasks", task, PUSHES, id]) => Self::PushDelete(task, id),
            _ => return None,
        })
    }

    fn call(self, query: &mut Query, body: &str) -> Result<Call, Refusal> {
        Ok(match self {
            Self::Send => Call::Send(document(body)?),
            Self::Stream => Call::Stream(document(body)?),
            Self::Get(id) => Call::Get(GetTask {
                id: decoded(id)?,
                history_length: query.read("historyLength")?,
                ..GetTask::default()
            }),
            Self::List => Call::List(ListTasks {
                context_id: query.take("contextId"),
                status: query.word("status")?,
                page_size: query.read("pageSize")?,
                page_token: query.take("pageToken"),
                history_length: query.read("historyLength")?,
                status_timestamp_after: query.take("statusTimestampAfter"),
                include_artifacts: query.read("includeArtifacts")?,
                ..ListTasks::default()
            }),
            Self::Cancel(id) => Call::Cancel(one_task(id, body)?),
            Self::Subscribe(id) => Call::Subscribe(one_task(id, body)?),
            Self::PushCreate(task) => {
                let mut push: PushConfig = document(body)?;
                push.task_id = agreed("taskId", decoded(task)?, &push.task_id)?;
                Call::PushCreate(push)
            }
            Self::PushGet(task, id) => Call::PushGet(one_push(task, id)?),
            Self::PushDelete(task, id) => Call::PushDelete(one_push(task, id)?),
            Self::PushList(task) => Call::PushList(ListPushes {
                task_id: decoded(task)?,
                page_size: query.read("pageSize")?,
                page_token: query.take("pageToken"),
                ..ListPushes::default()
            }),
            Self::ExtendedCard => Call::ExtendedCard,
        })
    }
}

/// A body that must be there; text that is not JSON is a fault of its own.
fn document<T: DeserializeOwned>(body: &str) -> Result<T, Refusal> {
    serde_json::from_str::<&serde_json::value::RawValue>(body)
        .map_err(|error| Fault::Parse.because(error.to_string()))?;
    read(body)
}

/// A body that may be left out.
fn one_task(id: &str, body: &str) -> Result<OneTask, Refusal> {
    let mut task: OneTask = if matches!(body.trim(), "" | "null") {
        OneTask::default()
    } else {
        document(body)?
    };
    task.id = agreed("id", decoded(id)?, &task.id)?;
    Ok(task)
}

fn one_push(task: &str, id: &str) -> Result<OnePush, Refusal> {
    Ok(OnePush {
        task_id: decoded(task)?,
        id: decoded(id)?,
        ..OnePush::default()
    })
}

/// The path decides; a body that says something else is a mistake.
fn agreed(name: &str, path: String, body: &str) -> Result<String, Refusal> {
    if body.is_empty() || body == path {
        return Ok(path);
    }
    Err(Fault::InvalidParams.because(format!(
        "{name} is {path:?} in the path and {body:?} in the body"
    )))
}

fn decoded(text: &str) -> Result<String, Refusal> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into)
        .map_err(|_| Fault::InvalidParams.because("the path or query is not UTF-8"))
}

/// The query parameters that nobody has asked for yet.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(query: Option<&str>) -> Result<Query, Refusal> {
        let pairs = query
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(&value.replace('+', " "))?))
        });
        let mut query = Query(pairs.collect::<Result<_, _>>()?);
        query
            .0
            .retain(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"));
        Ok(query)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// A number or a boolean.
    fn read<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let value = serde_json::from_str(&text);
        value
            .map(Some)
            .map_err(|_| Fault::InvalidParams.because(format!("{name} cannot be {text:?}")))
    }

    /// One of a set of words.
    fn word<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let value = serde_json::from_value(serde_json::Value::String(text.clone()));
        value
            .map(Some)
            .map_err(|_| Fault::InvalidParams.because(format!("{name} cannot be {text:?}")))
    }

    /// What is left is a mistake, a repeated parameter too.
    fn end(self) -> Result<(), Refusal> {
        match self.0.first() {
            Some((name, _)) => {
                Err(Fault::InvalidParams
                    .because(format!("the parameter {name:?} is not known here")))
            }
            None => Ok(()),
        }
    }
}
