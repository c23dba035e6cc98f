//! The JSON-RPC binding: the envelope around params and results (JSON-RPC 2.0; v1.0 9, v0.3 6.11).
use bytes::Bytes;

use super::{
    fault::{Fault, Kind},
    op::{OPS, Op},
    shape::{Shape, Version},
};
use crate::json::{self, As, Form, Limits, Member, Node, Obj};

/// The id of a request as it came, which every answer repeats digit by digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(Bytes);

impl Id {
    /// For a request whose id is not known.
    pub const NULL: Self = Self(Bytes::from_static(b"null"));
    /// Where nobody gave one.
    pub const ONE: Self = Self(Bytes::from_static(b"1"));

    /// Its JSON text.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

/// A request, opened.
#[derive(Debug)]
pub struct Request<'a> {
    /// Its id.
    pub id: Id,
    /// The operation that it names.
    pub op: Op,
    /// The version whose name it uses.
    pub version: Version,
    /// Its params, opened by the version's form.
    pub params: Obj<'a>,
}

static ENVELOPE: Form = Form::of(&[
    ("jsonrpc", As::Text),
    ("id", As::Text),
    ("method", As::Text),
    ("params", As::By(params_by_method)),
]);

/// The form of `params`, if the method stands before it, as it mostly does. Else they are opened afterwards.
fn params_by_method(before: &[Member<'_>]) -> As {
    let method = before.iter().find(|m| *m.0 == *"method");
    let Some((_, Node::Text(name))) = method else {
        return As::Text;
    };
    let name = name.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
    match name.and_then(named) {
        Some((op, version)) => As::One(shape(version).request_form(op)),
        None => As::Text,
    }
}

const fn shape(version: Version) -> Shape {
    match version {
        Version::V03 => Shape::V03Kind,
        Version::V10 => Shape::V10,
    }
}

fn named(method: &str) -> Option<(Op, Version)> {
    OPS.iter().find_map(|row| {
        if row.v10.rpc == method {
            return Some((row.op, Version::V10));
        }
        (row.v03.rpc == method).then_some((row.op, Version::V03))
    })
}

/// Reads a request. With a fault comes the id, as far as it could be read.
pub fn read(body: &Bytes, limits: Limits) -> Result<Request<'_>, (Id, Fault)> {
    let unread = |fault| (Id::NULL, fault);
    let text = simdutf8::basic::from_utf8(body)
        .map_err(|_| unread(Fault::new(Kind::Parse, "the body is not UTF-8")))?;
    if text.trim_start().starts_with('[') {
        return Err(unread(Fault::new(
            Kind::InvalidRequest,
            "batches are not supported; send one request",
        )));
    }
    let mut envelope = match Obj::open(text, &ENVELOPE, limits) {
        Ok(envelope) => envelope,
        Err(error) => return Err(refused(body, text, &error, limits)),
    };
    let id = id_of(&envelope, body).map_err(unread)?;
    let fail = |kind, message: &'static str| Err((id.clone(), Fault::new(kind, message)));
    if envelope.string("jsonrpc").as_deref() != Some("2.0") {
        return fail(Kind::InvalidRequest, "`jsonrpc` is not \"2.0\"");
    }
    let Some(method) = envelope.string("method") else {
        return fail(Kind::InvalidRequest, "`method` is missing or not a string");
    };
    let Some((op, version)) = named(&method) else {
        return fail(Kind::MethodNotFound, "there is no such method");
    };
    drop(method);
    let params = match envelope.take("params") {
        None | Some(Node::Text("null")) => Ok(Obj::default()),
        Some(Node::Obj(params)) => Ok(params),
        Some(Node::Text(t)) if t.starts_with('{') => {
            Obj::open(t, shape(version).request_form(op), limits)
        }
        Some(_) => return fail(Kind::InvalidParams, "`params` is not an object"),
    };
    match params {
        Ok(params) => Ok(Request {
            id,
            op,
            version,
            params,
        }),
        Err(error) => Err((id, Fault::params(error.to_string()))),
    }
}

/// JSON that we do not take is told with its id, if that can be found; other text is not JSON.
fn refused(body: &Bytes, text: &str, error: &json::Error, limits: Limits) -> (Id, Fault) {
    if let Ok(envelope) = Obj::open(text, &Form::FLAT, limits) {
        let id = id_of(&envelope, body).unwrap_or(Id::NULL);
        return (id, Fault::params(error.to_string()));
    }
    if json::is_json(text) {
        return (
            Id::NULL,
            Fault::new(Kind::InvalidRequest, error.to_string()),
        );
    }
    (Id::NULL, Fault::new(Kind::Parse, error.to_string()))
}

/// Every event of a stream repeats the id, so that a long one would multiply.
const LONGEST_ID: usize = 1024;
/// A body up to this is kept for the sake of its id.
const SMALL: usize = 4096;

/// The id as it stands in the body. A request without one is answered with `null`: no method is a notification.
fn id_of(envelope: &Obj<'_>, body: &Bytes) -> Result<Id, Fault> {
    match envelope.raw("id") {
        None => match envelope.get("id") {
            None => Ok(Id::NULL),
            Some(_) => Err(bad_id()),
        },
        Some(id) if id.starts_with(['{', '[', 't', 'f']) => Err(bad_id()),
        Some(id) if id.len() > LONGEST_ID => Err(Fault::new(
            Kind::InvalidRequest,
            "`id` is longer than 1024 bytes",
        )),
        // A slice keeps the whole body, and a stream keeps its id for hours.
        Some(id) if body.len() > SMALL => Ok(Id(Bytes::copy_from_slice(id.as_bytes()))),
        Some(id) => Ok(Id(body.slice_ref(id.as_bytes()))),
    }
}

fn bad_id() -> Fault {
    Fault::new(
        Kind::InvalidRequest,
        "`id` is neither a string nor a number",
    )
}

/// The id of any envelope, `null` if it has none that can be used.
pub fn id_in(body: &Bytes) -> Id {
    let envelope = std::str::from_utf8(body)
        .ok()
        .and_then(|text| Obj::open(text, &Form::FLAT, Limits::default()).ok());
    envelope
        .and_then(|e| id_of(&e, body).ok())
        .unwrap_or(Id::NULL)
}

/// Appends the start of a response, up to its result or error.
pub fn write_head(id: &Id, member: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.text());
    out.extend_from_slice(b",\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Our own request to an agent. One request a connection at a time, so that the id needs to be no other.
pub fn write_request(method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + 96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(b"\",\"params\":");
    out.extend_from_slice(params);
    out.push(b'}');
    out
}
