//! What an agent's error means. Many shapes are about; the reason decides first, then a code, then the status
//! (errors 5, decision 5 of the design), since four A2A errors share 400 and 1.0.0 and 1.0.1 differ.
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{super::face::Product, Fault, Kind, Op};
use crate::json::{self, Limits};

/// The members that error bodies are seen with.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    /// An object in v1.0 and JSON-RPC; a class name from Java's v0.3.
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// A number: JSON-RPC code of JS's v0.3 REST.
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    /// A class name of Python 1's v0.3 layer, or the URI of `problem+json`.
    r#type: Option<Value>,
    message: Option<Value>,
    /// `problem+json`, and `FastAPI`'s own errors.
    detail: Option<Value>,
    title: Option<Value>,
    /// `MemoryLake`.
    error_code: Option<Value>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inner<'a> {
    code: Option<i64>,
    status: Option<Value>,
    message: Option<Value>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Longer messages are cut: they are for a person.
const MESSAGE: usize = 1000;

/// The fault that an error body of an agent tells, whatever its dialect.
pub fn read(status: u16, text: &str, op: Op) -> Fault {
    if json::check(text, Limits::default()).is_err() {
        return from_status(status, op, None);
    }
    let Ok(body) = serde_json::from_str::<Body<'_>>(text) else {
        return from_status(status, op, None);
    };
    let inner = body
        .error
        .and_then(|e| serde_json::from_str::<Inner<'_>>(e.get()).ok());
    let mut fault = match inner {
        Some(inner) => of_object(status, &inner, op),
        None => of_flat(status, &body, op),
    };
    if body.error_code.as_ref().is_some_and(Value::is_string) && status >= 400 {
        fault.more.product = Some(Product {
            status,
            text: text.to_owned(),
            before_agent: true,
        });
    }
    normalised(fault, op)
}

/// `{error: {code, …}}`: JSON-RPC and v1.0 REST.
fn of_object(status: u16, e: &Inner<'_>, op: Op) -> Fault {
    let said = e.details.or(e.data).map(RawValue::get);
    let details = said.filter(|d| d.starts_with('['));
    let code = e.code.and_then(|c| i32::try_from(c).ok());
    let rpc = code.filter(|c| *c < 0);
    let http = code.and_then(|c| u16::try_from(c).ok()).unwrap_or(status);
    let transition = of_transition(said, op);
    let kind = transition
        .or_else(|| reason_in(said))
        .or_else(|| named(e).and_then(Kind::of_reason))
        .or_else(|| {
            rpc.and_then(Kind::of_code)
                .filter(|k| says_more(*k, status))
        })
        .or_else(|| plain_status(status));
    let message = words(e.message.as_ref());
    let kind = kind.unwrap_or_else(|| match rpc {
        Some(code) => Kind::Foreign {
            code,
            status: if status < 400 { 500 } else { status },
        },
        // Four A2A errors share this one, so that it does not tell which.
        None if named(e) == Some("FAILED_PRECONDITION") => Kind::Foreign {
            code: -32603,
            status: http,
        },
        None => from_status(http, op, message.clone()).kind,
    });
    let mut fault = Fault::new(kind, message.unwrap_or_else(|| said_nothing(kind)));
    if transition.is_none() {
        fault.more.details = details.and_then(for_clients);
    }
    fault
}

/// What ADK-Rust means by a state that a task cannot get to; its JSON-RPC code and its status (409) disagree about it.
/// Only a send may have begun: one whose task ended before it does nothing, one whose task was ended under it fails.
fn of_transition(details: Option<&str>, op: Op) -> Option<Kind> {
    let details = details.filter(|d| d.contains("\"INVALID_STATE_TRANSITION\""))?;
    let infos: Vec<Value> = serde_json::from_str(details).ok()?;
    let info = infos
        .iter()
        .find(|info| info["reason"] == "INVALID_STATE_TRANSITION")?;
    Some(match op {
        Op::Cancel => Kind::TaskNotCancelable,
        Op::Subscribe => Kind::UnsupportedOperation,
        Op::Send | Op::Stream if info["metadata"]["to"] == "WORKING" => Kind::UnsupportedOperation,
        Op::Send
        | Op::Stream
        | Op::Get
        | Op::List
        | Op::CreatePush
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => Kind::Internal,
    })
}

/// The name in `error.status`, of gRPC or HTTP.
fn named<'a>(e: &'a Inner<'_>) -> Option<&'a str> {
    e.status.as_ref()?.as_str()
}

/// Details as clients can read them: `metadata` of an `ErrorInfo` has strings only (Go reads a map of them),
/// stack traces are nobody's business, and what is no object is no detail. As they came where there is nothing to mend.
fn for_clients(details: &str) -> Option<String> {
    let mut all: Vec<Value> = serde_json::from_str(details).ok()?;
    let count = all.len();
    all.retain(|d| d.is_object() && !says_type(d, "google.rpc.DebugInfo"));
    let mut mended = all.len() != count;
    let infos = all
        .iter_mut()
        .filter(|d| says_type(d, "google.rpc.ErrorInfo"));
    for value in infos
        .filter_map(|d| d.get_mut("metadata")?.as_object_mut())
        .flat_map(|metadata| metadata.values_mut())
        .filter(|value| !value.is_string())
    {
        *value = value.to_string().into();
        mended = true;
    }
    Some(if mended {
        Value::Array(all).to_string()
    } else {
        details.to_owned()
    })
}

fn says_type(detail: &Value, name: &str) -> bool {
    let said = detail.get("@type").and_then(Value::as_str);
    said.is_some_and(|t| t.ends_with(name))
}

/// Bodies without an inner object: v0.3 REST of all SDKs, `problem+json`, `MemoryLake`.
fn of_flat(status: u16, b: &Body<'_>, op: Op) -> Fault {
    let text = |v: &Option<Value>| v.as_ref().and_then(Value::as_str).map(str::to_owned);
    let class = b
        .error
        .and_then(|e| serde_json::from_str::<String>(e.get()).ok());
    let kind = reason_in(b.data.map(RawValue::get))
        .or_else(|| class.as_deref().and_then(Kind::of_class))
        .or_else(|| text(&b.r#type).as_deref().and_then(Kind::of_class))
        .or_else(|| Kind::of_code(b.code?.get().parse().ok()?))
        .filter(|k| says_more(*k, status))
        .or_else(|| memorylake(&text(&b.error_code)?, op));
    let message = words(b.message.as_ref())
        .or_else(|| words(b.detail.as_ref()))
        .or_else(|| words(b.title.as_ref()));
    match kind {
        Some(kind) => Fault::new(kind, message.unwrap_or_else(|| said_nothing(kind))),
        None => from_status(status, op, message),
    }
}

fn memorylake(code: &str, op: Op) -> Option<Kind> {
    match code {
        "INVALID_ARGUMENT" | "STATE_NOT_READY" | "ACTOR_INACTIVE" => Some(Kind::InvalidParams),
        "NOT_FOUND" if !op.sends() => Some(Kind::TaskNotFound),
        _ => Kind::of_reason(code),
    }
}

/// `ErrorInfo.reason` among details, or `reason` in the free `data` of v0.3.
fn reason_in(details: Option<&str>) -> Option<Kind> {
    let details: Value = serde_json::from_str(details?).ok()?;
    let infos = match &details {
        Value::Array(all) => all.as_slice(),
        Value::Object(_) => std::slice::from_ref(&details),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    };
    infos
        .iter()
        .filter_map(|d| d.get("reason")?.as_str())
        .find_map(Kind::of_reason)
}

/// `Internal` stands for all that has no code of its own, such as no room, which the status tells.
fn says_more(kind: Kind, status: u16) -> bool {
    kind != Kind::Internal || plain_status(status).is_none()
}

fn words(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    let short: String = text.chars().take(MESSAGE).collect();
    Some(short).filter(|t| !t.is_empty())
}

fn said_nothing(kind: Kind) -> String {
    format!("the agent answered {}", kind.wire().reason)
}

/// Statuses that say enough by themselves, on any binding.
fn plain_status(status: u16) -> Option<Kind> {
    match status {
        401 => Some(Kind::Unauthenticated),
        402 => Some(Kind::QuotaExceeded),
        403 => Some(Kind::AccessDenied),
        413 => Some(Kind::TooLarge),
        429 => Some(Kind::RateLimited),
        503 => Some(Kind::Overloaded),
        _ => None,
    }
}

/// The fault for a status whose body says nothing that we can read; `message` if it said something.
pub fn from_status(status: u16, op: Op, message: Option<String>) -> Fault {
    let read = message.is_some();
    let task = matches!(op, Op::Get | Op::Cancel | Op::Subscribe) || op.is_push();
    let kind = plain_status(status).unwrap_or(match status {
        400 | 422 if read => Kind::InvalidParams,
        404 if read && task => Kind::TaskNotFound,
        404 if read => Kind::MethodNotFound,
        405 | 501 if read => Kind::UnsupportedOperation,
        409 if read && op == Op::Cancel => Kind::TaskNotCancelable,
        415 if read => Kind::ContentTypeNotSupported,
        502 => Kind::BackendUnreachable,
        504 => Kind::BackendTimeout,
        200..=399 => Kind::InvalidAgentResponse,
        _ => Kind::Foreign {
            code: -32603,
            status,
        },
    });
    Fault::new(
        kind,
        message.unwrap_or_else(|| format!("the agent answered with HTTP status {status}")),
    )
    .of_agent()
}

/// Where agents name one thing differently.
fn normalised(mut fault: Fault, op: Op) -> Fault {
    let cannot_follow = op == Op::Subscribe && fault.kind == Kind::TaskNotCancelable;
    if cannot_follow {
        fault.kind = Kind::UnsupportedOperation; // ADK's word for a task that has ended
        fault.more.details = None;
    }
    fault.of_task = op.sends() || op == Op::Subscribe;
    fault.of_agent()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, text: &str, op: Op) -> Kind {
        read(status, text, op).kind
    }

    #[test]
    fn the_reason_comes_before_the_status() {
        let body = r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"m","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org"}]}}"#;
        assert_eq!(kind(400, body, Op::Cancel), Kind::TaskNotCancelable);
        let rpc = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":[{"reason":"TASK_NOT_FOUND"}]}}"#;
        assert_eq!(kind(200, rpc, Op::Get), Kind::TaskNotFound);
    }

    #[test]
    fn what_an_agent_says_is_not_the_gateway_s_fault() {
        use crate::a2a::fault::Blame;
        let internal = r#"{"error":{"code":-32603,"message":"x"}}"#;
        assert_eq!(read(200, internal, Op::Get).blame, Blame::Agent);
        assert_eq!(from_status(503, Op::Get, None).blame, Blame::Agent);
        let params = r#"{"error":{"code":-32602,"message":"x"}}"#;
        assert_eq!(read(200, params, Op::Get).blame, Blame::Caller);
    }

    #[test]
    fn every_shape_in_the_wild_is_understood() {
        for (status, body, op, wanted) in [
            (404, r#"{"message":"gone"}"#, Op::Get, Kind::TaskNotFound),
            (
                404,
                r#"{"code":-32001,"message":"gone"}"#,
                Op::Get,
                Kind::TaskNotFound,
            ),
            (
                409,
                r#"{"error":"io.a2a.spec.TaskNotCancelableError","message":"no"}"#,
                Op::Cancel,
                Kind::TaskNotCancelable,
            ),
            (
                400,
                r#"{"type":"UnsupportedOperationError","message":"no"}"#,
                Op::Get,
                Kind::UnsupportedOperation,
            ),
            (
                400,
                r#"{"title":"Bad","detail":"no","status":400}"#,
                Op::Send,
                Kind::InvalidParams,
            ),
            (
                402,
                r#"{"success":false,"message":"no","error_code":"QUOTA_EXCEEDED"}"#,
                Op::Send,
                Kind::QuotaExceeded,
            ),
            (
                404,
                r#"{"success":false,"message":"no","error_code":"NOT_FOUND"}"#,
                Op::Get,
                Kind::TaskNotFound,
            ),
            (
                400,
                r#"{"error":{"code":400,"status":"BAD_REQUEST","message":"x"}}"#,
                Op::Send,
                Kind::InvalidParams,
            ),
            (
                400,
                r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"x"}}"#,
                Op::Send,
                Kind::Foreign {
                    code: -32603,
                    status: 400,
                },
            ),
            (
                200,
                r#"{"jsonrpc":"2.0","error":{"code":-32050,"message":"x"}}"#,
                Op::Send,
                Kind::Foreign {
                    code: -32050,
                    status: 500,
                },
            ),
            (
                502,
                "<html>Bad Gateway</html>",
                Op::Send,
                Kind::BackendUnreachable,
            ),
            (
                404,
                "<html></html>",
                Op::Get,
                Kind::Foreign {
                    code: -32603,
                    status: 404,
                },
            ),
            (401, "", Op::Get, Kind::Unauthenticated),
            (
                413,
                "Failed to buffer the request body: length limit exceeded",
                Op::Send,
                Kind::TooLarge,
            ),
        ] {
            assert_eq!(kind(status, body, op), wanted, "{body}");
        }
        assert_eq!(
            kind(
                200,
                r#"{"error":{"code":-32002,"message":"x"}}"#,
                Op::Subscribe
            ),
            Kind::UnsupportedOperation
        );
    }
}
