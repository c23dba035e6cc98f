//! A client's request to canonical, and canonical to the agent's words.
use std::borrow::Cow;

use bytes::Bytes;
use http::Method;

use super::{
    Binding, Call, Canonical, Dialect, Facts,
    detect::Accepts,
    fault::{Fault, Kind},
    headers,
    op::Op,
    reply::ReplyTo,
    rest::{self, Found},
    rpc,
    shape::{Loss, Notes, Options, Shape, Version},
};
use crate::json::{self, Node, Obj};

/// What was read: the call, and what its canonical form could not carry.
#[derive(Debug)]
pub struct Read {
    /// The call.
    pub call: Call,
    /// What got lost on the way.
    pub lost: Vec<Loss>,
}

/// Reads a JSON-RPC request. `to` learns the id and the method's version, also from one that is refused.
pub fn read_rpc(
    body: &Bytes,
    said: Option<Version>,
    accepts: &Accepts,
    options: &Options,
    to: &mut ReplyTo,
) -> Result<Read, Fault> {
    let request = rpc::read(body, options.limits).map_err(|(id, fault)| {
        to.id = id;
        fault
    })?;
    to.id = request.id;
    let shape = match request.version {
        Version::V03 => Shape::V03Kind,
        Version::V10 => Shape::V10,
    };
    let hidden = request.version == Version::V03 && request.op == Op::List && !accepts.v03_list;
    if hidden {
        return Err(Fault::new(
            Kind::MethodNotFound,
            "v0.3 has no list of tasks",
        ));
    }
    to.dialect = Dialect {
        binding: Binding::Rpc,
        shape,
    };
    to.op = Some(request.op);
    accepts.version(request.version)?;
    headers::check(said, request.version)?;
    lift(request.op, request.params, body, options, to)
}

/// Reads a REST request. `to` learns which shape the body has.
pub fn read_rest(
    found: &Found,
    query: Option<&str>,
    body: &Bytes,
    said: Option<Version>,
    accepts: &Accepts,
    options: &Options,
    to: &mut ReplyTo,
) -> Result<Read, Fault> {
    to.op = Some(found.op);
    let snake = accepts.snake && found.version == Version::V10 && said == Some(Version::V03);
    let version = if snake { Version::V03 } else { found.version };
    to.dialect = match (version, snake) {
        (_, true) => Dialect::R03S,
        (Version::V03, _) if accepts.proto => Dialect::R03P,
        (Version::V03, _) => Dialect::R03K,
        (Version::V10, _) => Dialect::R10,
    };
    accepts.version(version)?;
    headers::check(said, version)?;
    let mut r = open(found.op, to.dialect.shape, body, options)?;
    if found.op.sends() && version == Version::V03 && !snake {
        to.dialect.shape = sniff(&r, accepts)?;
    } else if found.op.sends() && accepts.snake && looks_snake(&r) {
        to.dialect = Dialect::R03S;
    }
    rest::put_path(&mut r, found)?;
    let reads_query = matches!(found.op, Op::Get | Op::List | Op::ListPush);
    if let (true, Some(query)) = (reads_query, query) {
        rest::put_query(&mut r, query)?;
    }
    lift(found.op, r, body, options, to)
}

/// The body of a REST request. Calls that need none may have none, or `null`, whatever their content type is.
fn open<'a>(op: Op, shape: Shape, body: &'a Bytes, options: &Options) -> Result<Obj<'a>, Fault> {
    let text =
        std::str::from_utf8(body).map_err(|_| Fault::new(Kind::Parse, "the body is not UTF-8"))?;
    let bare = text.trim();
    if bare.is_empty() || bare == "null" {
        return if op.sends() || op == Op::CreatePush {
            Err(Fault::new(Kind::Parse, "a body is required"))
        } else {
            Ok(Obj::default())
        };
    }
    Obj::open(text, shape.request_form(op), options.limits).map_err(|e| refused(&e, text))
}

fn refused(error: &json::Error, text: &str) -> Fault {
    let kind = if json::is_json(text) {
        Kind::InvalidParams
    } else {
        Kind::Parse
    };
    Fault::new(kind, error.to_string())
}

/// Which of the shapes of v0.3 REST a message has (operations 4). What is neither is refused, not guessed.
fn sniff(r: &Obj<'_>, accepts: &Accepts) -> Result<Shape, Fault> {
    let message = r.inside("message").or_else(|| r.inside("request"));
    let Some(message) = message else {
        return Err(Fault::params("`message` is required and is an object"));
    };
    let old_role = matches!(message.string("role").as_deref(), Some("user" | "agent"));
    let has_kind = |parts: &[Obj<'_>]| parts.iter().any(|p| p.has("kind"));
    let kind = message.has("kind") || old_role || message.list("parts").is_some_and(has_kind);
    let (proto, parts) = (
        message.has("content") || r.has("request"),
        message.has("parts"),
    );
    match (proto, parts, kind) {
        (true, false, _) if accepts.proto => Ok(Shape::V03Proto),
        (false, true, true) if accepts.kind => Ok(Shape::V03Kind),
        (false, true, false) => Err(Fault::params(
            "this is a v1.0 message on a v0.3 path; v0.3 REST has `content`",
        )),
        (false, false, _) => Err(Fault::params(
            "the message has neither `content` nor `parts`",
        )),
        (true, true, _) => Err(Fault::params("the message has both `content` and `parts`")),
        _ => Err(Fault::params(
            "this shape of v0.3 REST is switched off here",
        )),
    }
}

/// R03S shares its paths with v1.0.
fn looks_snake(r: &Obj<'_>) -> bool {
    let Some(m) = r.inside("message") else {
        return false;
    };
    let snake = ["message_id", "context_id", "task_id"];
    let old = m.has("kind") || matches!(m.string("role").as_deref(), Some("user" | "agent"));
    old && snake.iter().any(|k| m.has(k))
}

fn lift(
    op: Op,
    mut r: Obj<'_>,
    body: &Bytes,
    options: &Options,
    to: &mut ReplyTo,
) -> Result<Read, Fault> {
    let mut notes = Notes::new(options);
    notes.strict = true;
    to.dialect
        .shape
        .lift_request(op, &mut r, &mut notes)
        .map_err(|e| Fault::params(e.to_string()))?;
    let facts = Facts::read(op, &r);
    needs(op, &facts)?;
    to.twice = notes.twice;
    to.history = facts.history;
    to.context.clone_from(&facts.context);
    let params = match r.unchanged() {
        Some(text) => body.slice_ref(text.as_bytes()),
        None => {
            let mut out = Vec::with_capacity(body.len() + SPARE);
            r.write(&mut out);
            Bytes::from(out)
        }
    };
    let call = Call {
        op,
        facts,
        params: Canonical(params),
    };
    Ok(Read {
        call,
        lost: notes.lost,
    })
}

/// How much longer a document may get without a second allocation.
pub(super) const SPARE: usize = 128;

fn needs(op: Op, facts: &Facts) -> Result<(), Fault> {
    let task = matches!(op, Op::Get | Op::Cancel | Op::Subscribe) || op.is_push();
    if task && facts.task.is_none() {
        return Err(Fault::params("the task's id is missing"));
    }
    if op == Op::DeletePush && facts.config.is_none() {
        return Err(Fault::params("the push config's id is missing"));
    }
    if facts.context.as_ref().is_some_and(|c| c.len() > CONTEXT) {
        return Err(Fault::params("`contextId` is longer than 1024 bytes"));
    }
    Ok(())
}

/// The longest contextId taken, in bytes.
const CONTEXT: usize = 1024;

/// A request in the agent's words.
#[derive(Debug)]
pub struct Outgoing {
    /// The verb.
    pub method: Method,
    /// Path below the interface URL, with its query; empty for JSON-RPC.
    pub path: String,
    /// The body, where there is one.
    pub body: Option<Bytes>,
}

/// A call in the agent's dialect. `verb` is for subscribing over REST, where agents differ.
pub fn write(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    options: &Options,
    lost: &mut Vec<Loss>,
) -> Result<Outgoing, Fault> {
    if dialect.shape.version() == Version::V03 && call.op == Op::List {
        return Err(Fault::new(
            Kind::UnsupportedOperation,
            "the agent speaks v0.3, which has no list of tasks",
        ));
    }
    match (dialect.binding, dialect.shape) {
        (Binding::Rpc, Shape::V10) => Ok(envelope(call.op.row().v10.rpc, call.params.text())),
        (Binding::Rest, Shape::V10) if call.op.sends() && call.facts.tenant.is_none() => {
            Ok(Outgoing {
                method: Method::POST,
                path: call.op.row().v10.rest.path.to_owned(),
                body: Some(call.params.text().clone()),
            })
        }
        _ => lower(call, dialect, verb, options, lost),
    }
}

fn envelope(method: &str, params: &[u8]) -> Outgoing {
    Outgoing {
        method: Method::POST,
        path: String::new(),
        body: Some(rpc::write_request(method, params).into()),
    }
}

fn lower(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    options: &Options,
    lost: &mut Vec<Loss>,
) -> Result<Outgoing, Fault> {
    let inner = |e: String| {
        Fault::new(
            Kind::Internal,
            "the request could not be written for the agent",
        )
        .because(e)
    };
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    let mut notes = Notes::new(options);
    dialect
        .shape
        .lower_request(call.op, &mut r, &mut notes)
        .map_err(|e| Fault::params(e.to_string()))?;
    lost.append(&mut notes.lost);
    if dialect.binding == Binding::Rpc {
        return Ok(envelope(call.op.row().v03.rpc, &written(&r, text.len())));
    }
    rest_request(call, dialect, verb, r, text.len())
}

fn rest_request(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    mut r: Obj<'_>,
    size: usize,
) -> Result<Outgoing, Fault> {
    let version = dialect.shape.version();
    let facts = &call.facts;
    let tenant = facts.tenant.as_deref().filter(|_| version == Version::V10);
    let place = rest::Place {
        op: call.op,
        version,
        id: facts.task.as_deref().map(Cow::Borrowed),
        config: facts.config.as_deref().map(Cow::Borrowed),
        tenant: tenant.map(Cow::Borrowed),
    };
    let mut path = place.path()?;
    r.take("tenant");
    let row = call.op.row();
    let names = match version {
        Version::V03 => &row.v03,
        Version::V10 => &row.v10,
    };
    let method = if call.op == Op::Subscribe {
        verb.clone()
    } else {
        names.rest.verbs[0].clone()
    };
    // The path says these; a create keeps its own id, which no path has.
    match call.op {
        Op::Get | Op::Cancel | Op::Subscribe => drop(r.take("id")),
        Op::GetPush | Op::ListPush | Op::DeletePush => {
            r.take("taskId");
            r.take("pushNotificationConfigId");
            r.take("id");
        }
        Op::CreatePush => drop(r.take("taskId")),
        Op::Send | Op::Stream | Op::List | Op::ExtendedCard => {}
    }
    let body = match call.op {
        Op::Send | Op::Stream => Some(written(&r, size)),
        Op::CreatePush if dialect.shape == Shape::V03Proto => Some(create_body(facts, r)),
        Op::CreatePush => Some(written(&r, size)),
        Op::Cancel if dialect.shape == Shape::V03Proto => {
            let id = facts.task.as_deref().unwrap_or_default();
            let mut named = Obj::default();
            named.put("name", Node::string(format!("tasks/{}", rest::segment(id))));
            Some(written(&named, size))
        }
        Op::Cancel => Some(written(&r, size)),
        Op::Get | Op::List | Op::ListPush => {
            rest::write_query(&mut path, &r);
            None
        }
        Op::Subscribe | Op::GetPush | Op::DeletePush | Op::ExtendedCard => None,
    };
    Ok(Outgoing {
        method,
        path,
        body: body.map(Bytes::from),
    })
}

/// The form in which Python's v0.3 server takes a webhook; it is the only one of those seen that some server
/// takes at all.
fn create_body(facts: &Facts, resource: Obj<'_>) -> Vec<u8> {
    let task = facts.task.as_deref().unwrap_or_default();
    let mut outer = Obj::default();
    outer.put(
        "parent",
        Node::string(format!("tasks/{}", rest::segment(task))),
    );
    if let Some(config) = &facts.config {
        outer.put("configId", Node::string(config.as_str()));
    }
    outer.put("config", Node::Obj(resource));
    written(&outer, 256)
}

fn written(r: &Obj<'_>, size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + SPARE);
    r.write(&mut out);
    out
}

/// The question for the task of another call.
pub fn get_task(call: &Call) -> Call {
    let facts = Facts {
        task: call.facts.task.clone(),
        tenant: call.facts.tenant.clone(),
        ..Facts::default()
    };
    let mut r = Obj::default();
    for (key, value) in [("tenant", &facts.tenant), ("id", &facts.task)] {
        if let Some(value) = value {
            r.put(key, Node::string(value.as_str()));
        }
    }
    let params = Canonical(written(&r, 0).into());
    Call {
        op: Op::Get,
        facts,
        params,
    }
}

/// The same list of webhooks, from another page on.
pub fn next_page(call: &Call, token: &str, options: &Options) -> Result<Canonical, Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the next page cannot be asked for").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(Op::ListPush);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    r.put("pageToken", Node::string(token));
    Ok(Canonical(written(&r, text.len()).into()))
}
