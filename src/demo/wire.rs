//! HTTP, both ways: which binding a request is for, its body within limits, and answers as documents or streams.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use tokio::time::timeout;

use super::{
    desk::{Desk, Events},
    refusal::{Fault, Refusal},
    rest, rpc,
};

/// The largest request body, and how long it may take.
const BODY_BYTES: usize = 1024 * 1024;
const BODY_LIMIT: Duration = Duration::from_secs(30);
/// A stream that has been silent for this long says so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const CARD: &str = "/.well-known/agent-card.json";

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How a binding writes one stream event around its JSON.
pub(super) trait Frames: Send + 'static {
    fn frame(&self, event: &str) -> String;
}

/// Answers one request.
pub(super) async fn respond(desk: &Arc<Desk>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::GET, CARD) => document(StatusCode::OK, "application/json", desk.card()),
        (&Method::POST, "/") => rpc::respond(desk, &head, body).await,
        _ => rest::respond(desk, &head, body).await,
    }
}

/// The body as text.
pub(super) async fn read(body: Incoming) -> Result<String, Refusal> {
    let whole = timeout(BODY_LIMIT, Limited::new(body, BODY_BYTES).collect()).await;
    let whole = whole.map_err(|_| Fault::InvalidRequest.because("the body took too long"))?;
    let whole = whole.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            Fault::TooLarge.because(format!("a body may have at most {BODY_BYTES} bytes"))
        } else {
            Fault::InvalidRequest.because("the body broke off")
        }
    })?;
    String::from_utf8(whole.to_bytes().into())
        .map_err(|_| Fault::Parse.because("the body is not UTF-8"))
}

/// Refuses a body of another type. None said is fine: some clients do not, least of all without a body.
pub(super) fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(said) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let said = said
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if ["application/json", "application/a2a+json"]
        .iter()
        .any(|known| said.eq_ignore_ascii_case(known))
    {
        return Ok(());
    }
    Err(Fault::ContentTypeNotSupported.because(format!(
        "the content type is {said:?}, not application/json"
    )))
}

/// Refuses every version but 1.0; none said is 0.3 (v1.0 3.6.2).
pub(super) fn check_version(headers: &HeaderMap, query: Option<&str>) -> Result<(), Refusal> {
    let header = headers
        .get("a2a-version")
        .and_then(|value| value.to_str().ok());
    let said = header
        .or_else(|| query.and_then(version_in))
        .unwrap_or("")
        .trim();
    let mut numbers = said.split('.');
    if let (Some("1"), None | Some("0")) = (numbers.next(), numbers.next()) {
        return Ok(());
    }
    let said = if said.is_empty() { "0.3" } else { said };
    Err(Fault::VersionNotSupported.because(format!("version {said} is not spoken here, only 1.0")))
}

/// A query parameter stands in for the header (v1.0 3.6.1).
fn version_in(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"))
        .map(|(_, value)| value)
}

/// A whole answer.
pub(super) fn document(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer that comes event by event.
pub(super) fn events(events: Events, frames: impl Frames) -> Response<Body> {
    let chunks = stream::unfold((events, frames), async |(mut events, frames)| {
        let text = match timeout(KEEP_ALIVE, events.next()).await {
            // Free-form parts may be spread over lines, and an event is one line. Between JSON tokens a space says
            // the same as a line break, and inside strings there are none.
            Ok(Some(event)) => format!(
                "data: {}\n\n",
                frames.frame(&event).replace(['\r', '\n'], " ")
            ),
            Ok(None) => return None,
            Err(_) => ": keep-alive\n\n".to_owned(),
        };
        Some((Ok(Frame::data(Bytes::from(text))), (events, frames)))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(chunks)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
