//! A client's request to canonical, and canonical to the agent's words (`outgoing`).
use bytes::Bytes;

use super::{
    Binding, Call, Canonical, Dialect, Facts,
    detect::Accepts,
    fault::{Fault, Kind},
    headers,
    op::Op,
    reply::ReplyTo,
    rest::{self, Found},
    rpc,
    shape::{Loss, Notes, Options, Shape, Version, old::Old},
};
use crate::json::{self, Node, Obj};

mod configuration;
mod metadata;
mod outgoing;
mod owned;

pub use configuration::configure;
pub use metadata::{Edit, What};
pub use outgoing::{
    Outgoing, ask_now, ask_task, ask_tasks, fill_context, fill_output_modes, get_task, next_page,
    subscribe, write,
};
pub use owned::{Paging, list_page, paging, tasks_named};

/// What was read: the call, and what its canonical form could not carry.
#[derive(Debug)]
pub struct Read {
    /// The call.
    pub call: Call,
    /// What got lost on the way.
    pub lost: Vec<Loss>,
    /// Its message's id is one of ours: whoever sends the message again cannot know it.
    pub made_id: bool,
    /// What of it is written as it was before.
    pub old: Old,
    /// The edits of its metadata could not be made: what to tell its caller, if nothing else stands against it.
    pub unedited: Option<Box<Fault>>,
}

/// How a request is read.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The version that its head says.
    pub said: Option<Version>,
    /// What clients may speak.
    pub accepts: &'a Accepts,
    /// Choices of the shapes, and limits.
    pub options: &'a Options,
    /// What becomes of the metadata of a message; asked once for each.
    pub edits: Option<&'a dyn Fn() -> Result<Vec<Edit<'a>>, Fault>>,
}

impl<'a> Reading<'a> {
    /// As it is, with metadata left alone.
    pub const fn new(said: Option<Version>, accepts: &'a Accepts, options: &'a Options) -> Self {
        Self {
            said,
            accepts,
            options,
            edits: None,
        }
    }
}

/// Reads a JSON-RPC request. `to` learns the id and the method's version, also from one that is refused.
pub fn read_rpc(body: &Bytes, reading: &Reading<'_>, to: &mut ReplyTo) -> Result<Read, Fault> {
    let Reading { said, accepts, .. } = *reading;
    let request = rpc::read(body, reading.options.limits).map_err(|(id, fault)| {
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
    lift(request.op, request.params, body, reading, to)
}

/// Reads a REST request. `to` learns which shape the body has.
pub fn read_rest(
    found: &Found,
    query: Option<&str>,
    body: &Bytes,
    reading: &Reading<'_>,
    to: &mut ReplyTo,
) -> Result<Read, Fault> {
    let Reading { said, accepts, .. } = *reading;
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
    let mut r = open(found.op, to.dialect.shape, body, reading.options)?;
    if found.op.sends() && version == Version::V03 && !snake {
        to.dialect.shape = sniff(&r, accepts)?;
    } else if found.op.sends() && accepts.snake && accepts.v03 && said.is_none() && looks_snake(&r)
    {
        to.dialect = Dialect::R03S;
    }
    rest::put_path(&mut r, found, to.dialect.shape.version())?;
    let reads_query = matches!(found.op, Op::Get | Op::List | Op::ListPush);
    if let (true, Some(query)) = (reads_query, query) {
        rest::put_query(&mut r, query)?;
    }
    lift(found.op, r, body, reading, to)
}

/// The body of a REST request. Calls that need none may have none, or `null`, whatever their content type is.
fn open<'a>(op: Op, shape: Shape, body: &'a Bytes, options: &Options) -> Result<Obj<'a>, Fault> {
    let text = simdutf8::basic::from_utf8(body)
        .map_err(|_| Fault::new(Kind::Parse, "the body is not UTF-8"))?;
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
    reading: &Reading<'_>,
    to: &mut ReplyTo,
) -> Result<Read, Fault> {
    let mut notes = Notes::new(reading.options);
    notes.strict = true;
    to.dialect
        .shape
        .lift_request(op, &mut r, &mut notes)
        .map_err(|e| Fault::params(e.to_string()))?;
    let quiet = to.face.v03_rest_no_history && to.dialect.shape == Shape::V03Proto;
    if quiet && op.sends() {
        no_history_unless_told(&mut r)?;
    }
    let facts = Facts::read(op, &r)?;
    needs(op, &facts)?;
    to.twice = notes.twice;
    to.history = facts.history;
    to.context.clone_from(&facts.context);
    let unedited = match reading.edits {
        Some(edits) if op.sends() => edits().and_then(|all| metadata::edit(&mut r, &all)).err(),
        Some(_) | None => None,
    };
    let params = if let Some(text) = r.unchanged() {
        body.slice_ref(text.as_bytes())
    } else {
        written(&r, body.len()).into()
    };
    let call = Call {
        op,
        facts,
        params: Canonical(params),
    };
    Ok(Read {
        call,
        lost: notes.lost,
        made_id: notes.made_id,
        old: notes.old,
        unedited: unedited.map(Box::new),
    })
}

/// The product's v0.3 REST leaves the history out, where v1.0 gives all of it.
fn no_history_unless_told(r: &mut Obj<'_>) -> Result<(), Fault> {
    if !r.has("configuration") {
        r.put("configuration", Node::Obj(Obj::default()));
    }
    r.within("configuration", |c| {
        if !c.has("historyLength") {
            c.put("historyLength", Node::Text("0"));
        }
        Ok(())
    })
    .map_err(|e| Fault::params(e.to_string()))
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

fn written(r: &Obj<'_>, size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + SPARE);
    r.write(&mut out);
    out
}

#[cfg(test)]
mod tests;
