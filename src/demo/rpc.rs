//! The JSON-RPC binding: the envelope, and the method that says which operation it is.

use hyper::{Response, StatusCode, body::Incoming, http::request::Parts};
use serde::Deserialize;
use serde_json::{error::Category, value::RawValue};

use super::{
    call::{Call, NoParams, read},
    desk::{Answer, Desk},
    refusal::{Fault, Refusal},
    wire::{self, Body, Frames},
};

/// The members are raw so that one wrong member does not hide the others, least of all the id.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Reads the params of one method.
type Reader = fn(&str) -> Result<Call, Refusal>;

/// The id as the client wrote it.
struct Id(String);

impl Frames for Id {
    fn frame(&self, event: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{event}}}"#, self.0)
    }
}

/// Answers one request; errors have HTTP status 200 as well.
pub(super) async fn respond(desk: &Desk, head: &Parts, body: Incoming) -> Response<Body> {
    let mut id = Id("null".to_owned());
    let text = match answer(desk, head, body, &mut id).await {
        Ok(Answer::Events(events)) => return wire::events(events, id),
        Ok(Answer::One(text)) => id.frame(&text),
        Err(refusal) => format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#,
            id.0,
            refusal.rpc()
        ),
    };
    wire::document(StatusCode::OK, "application/json", text)
}

async fn answer(desk: &Desk, head: &Parts, body: Incoming, id: &mut Id) -> Result<Answer, Refusal> {
    wire::check_type(&head.headers)?;
    let text = wire::read(body).await?;
    let envelope = open(&text, id)?;
    let method = envelope
        .method
        .and_then(|method| serde_json::from_str::<String>(method.get()).ok());
    let method =
        method.ok_or_else(|| Fault::InvalidRequest.because("method is missing or not a string"))?;
    let read = reader(&method)
        .ok_or_else(|| Fault::MethodNotFound.because(format!("there is no method {method:?}")))?;
    wire::check_version(&head.headers, head.uri.query())?;
    desk.answer(read(envelope.params.map_or("{}", RawValue::get))?)
        .await
}

/// The envelope, when it is one; its id is kept as soon as it is known.
fn open<'a>(text: &'a str, id: &mut Id) -> Result<Envelope<'a>, Refusal> {
    if text.trim_start().starts_with('[') {
        return Err(Fault::InvalidRequest.because("batches are not supported"));
    }
    let envelope: Envelope<'a> =
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => Fault::InvalidRequest.because(error.to_string()),
            Category::Io | Category::Syntax | Category::Eof => {
                Fault::Parse.because(error.to_string())
            }
        })?;
    if let Some(given) = envelope.id {
        if given.get().starts_with(['{', '[', 't', 'f']) {
            return Err(Fault::InvalidRequest.because("id is not a string or number"));
        }
        given.get().clone_into(&mut id.0);
    }
    if envelope
        .jsonrpc
        .is_none_or(|version| version.get() != r#""2.0""#)
    {
        return Err(Fault::InvalidRequest.because("jsonrpc is not \"2.0\""));
    }
    Ok(envelope)
}

/// The table of methods: what reads the params of each.
fn reader(method: &str) -> Option<Reader> {
    Some(match method {
        "SendMessage" => |params| read(params).map(Call::Send),
        "SendStreamingMessage" => |params| read(params).map(Call::Stream),
        "GetTask" => |params| read(params).map(Call::Get),
        "ListTasks" => |params| read(params).map(Call::List),
        "CancelTask" => |params| read(params).map(Call::Cancel),
        "SubscribeToTask" => |params| read(params).map(Call::Subscribe),
        "CreateTaskPushNotificationConfig" => |params| read(params).map(Call::PushCreate),
        "GetTaskPushNotificationConfig" => |params| read(params).map(Call::PushGet),
        "ListTaskPushNotificationConfigs" => |params| read(params).map(Call::PushList),
        "DeleteTaskPushNotificationConfig" => |params| read(params).map(Call::PushDelete),
        "GetExtendedAgentCard" => |params| read::<NoParams>(params).map(|_| Call::ExtendedCard),
        _ => return None,
    })
}
