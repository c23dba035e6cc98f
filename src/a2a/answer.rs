//! The agent's answers in the client's words: documents, events, and what its errors mean.
use std::borrow::Cow;

use bytes::Bytes;

use super::{
    Binding, Dialect,
    fault::{Fault, Kind},
    op::Op,
    reply::{ReplyTo, one_line},
    request::SPARE,
    rpc,
    shape::{
        Loss, Notes, Options, Shape, Version, View,
        card::{self, Interface, Security},
    },
};
use crate::json::{self, As, Form, Node, Obj};

mod errors;
mod listed;
mod replay;
mod seen;

pub use errors::{from_status, read as read_fault};
pub use listed::{Listed, TaskPage, task_page, tasks_listed};
pub use replay::{Bare, Folded, Replay, Room, bare};
pub use seen::{Named, Seen, running_task, task_seen};

use seen::{lifted, seen_in};

/// What the gateway says of itself in a card.
#[derive(Clone, Debug)]
pub struct Public {
    /// Its interfaces, the preferred one first.
    pub interfaces: Vec<Interface>,
    /// Whether it lets webhooks be registered.
    pub push: bool,
    /// What it asks for before it lets anybody in, where the agent alone does not decide.
    pub security: Option<Security>,
}

/// A document for the client.
#[derive(Debug)]
pub struct Document {
    /// The body; `None` for a v0.3 REST delete, which is answered 204.
    pub body: Option<Bytes>,
    /// What the result says of its task.
    pub seen: Seen,
    /// What the client's shape could not carry.
    pub lost: Vec<Loss>,
    /// The page that comes after this one, of a list of webhooks.
    pub next: Option<String>,
}

static ENVELOPE: Form = Form::of(&[
    ("jsonrpc", As::Text),
    ("id", As::Text),
    ("result", As::Asked),
    ("error", As::Text),
]);

/// A successful answer to `sent`, which differs from what was asked where one operation stands in for another.
pub fn document(
    to: &ReplyTo,
    from: Dialect,
    sent: Op,
    body: &Bytes,
    public: &Public,
    options: &Options,
) -> Result<Document, Fault> {
    let text = text_of(body)?;
    let mut notes = notes(to, options);
    let result = result_of(from, sent, text, options)?;
    let asked = to.op.unwrap_or(sent);
    let mut canonical = from
        .shape
        .lift_result(sent, result, &mut notes)
        .map_err(|e| bad(&e))?;
    if asked == Op::ExtendedCard {
        return extended_card(to, canonical, public, notes);
    }
    let next = (sent == Op::ListPush)
        .then(|| canonical.string("nextPageToken").map(Cow::into_owned))
        .flatten()
        .filter(|t| !t.is_empty());
    if asked == Op::GetPush && sent == Op::ListPush {
        canonical = first_config(canonical)?;
    }
    if asked.sends() && sent == Op::Get {
        canonical.wrap("task"); // the task of a message that was sent before
    }
    let seen = seen_in(asked, &canonical, to.learn);
    let untimed = to.face.v03_rest_no_timestamp && to.dialect.shape == Shape::V03Proto;
    if untimed && asked == Op::Get {
        let drop_time = |s: &mut Obj<'_>| {
            s.take("timestamp");
            Ok(())
        };
        canonical.within("status", drop_time).map_err(|e| bad(&e))?;
    }
    let same = from.shape == Shape::V10 && to.dialect.shape == Shape::V10;
    if same && let Some(text) = canonical.unchanged() {
        return Ok(Document {
            body: Some(wrap_text(to, body, text)),
            seen,
            lost: notes.lost,
            next,
        });
    }
    let node = to
        .dialect
        .shape
        .lower_result(asked, canonical, &mut notes)
        .map_err(|e| bad(&e))?;
    let old_delete = asked == Op::DeletePush && to.dialect.shape.version() == Version::V03;
    let body = match to.dialect.binding {
        Binding::Rest if old_delete => None,
        Binding::Rest | Binding::Rpc => Some(wrap(to, &node, body.len())),
    };
    Ok(Document {
        body,
        seen,
        lost: notes.lost,
        next,
    })
}

fn notes<'o>(to: &ReplyTo, options: &'o Options) -> Notes<'o> {
    let mut notes = Notes::new(options);
    notes.twice = to.twice;
    notes.history = to.history;
    notes.context.clone_from(&to.context);
    notes
}

fn text_of(body: &[u8]) -> Result<&str, Fault> {
    simdutf8::basic::from_utf8(body).map_err(|_| Fault::answer("it is not UTF-8"))
}

fn bad(error: &json::Error) -> Fault {
    Fault::answer(error.to_string())
}

/// The result out of its binding.
fn result_of<'a>(
    from: Dialect,
    sent: Op,
    text: &'a str,
    options: &Options,
) -> Result<Node<'a>, Fault> {
    let form = from.shape.result_form(sent);
    if from.binding == Binding::Rest {
        if text.trim().is_empty() && sent == Op::DeletePush {
            return Ok(Node::Text("null"));
        }
        return Node::open(text, form, options.limits).map_err(|e| bad(&e));
    }
    let mut envelope =
        Obj::open_asking(text, &ENVELOPE, form, options.limits).map_err(|e| bad(&e))?;
    if envelope.raw("error").is_some_and(|e| e != "null") {
        return Err(errors::read(200, text, sent));
    }
    match envelope.take("result") {
        Some(node) => Ok(node),
        // a2a-python drops a null result.
        None if sent == Op::DeletePush => Ok(Node::Text("null")),
        None => Err(Fault::answer("it has neither result nor error")),
    }
}

fn first_config(mut list: Obj<'_>) -> Result<Obj<'_>, Fault> {
    let configs = list.take_list("configs").map_err(|e| bad(&e))?;
    let first = configs.into_iter().flatten().next();
    first.ok_or_else(|| Fault::new(Kind::TaskNotFound, "the task has no push config"))
}

/// What a canonical result says of its task.
fn wrap(to: &ReplyTo, node: &Node<'_>, size: usize) -> Bytes {
    let mut out = Vec::with_capacity(size + size / 8 + SPARE);
    match to.dialect.binding {
        Binding::Rest => node.write(&mut out),
        Binding::Rpc => {
            rpc::write_head(&to.id, "result", &mut out);
            node.write(&mut out);
            out.push(b'}');
        }
    }
    out.into()
}

/// The same for text that passes as it came; REST needs no copy of it.
fn wrap_text(to: &ReplyTo, body: &Bytes, text: &str) -> Bytes {
    match to.dialect.binding {
        Binding::Rest => body.slice_ref(text.as_bytes()),
        Binding::Rpc => {
            let mut out = Vec::with_capacity(text.len() + SPARE);
            rpc::write_head(&to.id, "result", &mut out);
            out.extend_from_slice(text.as_bytes());
            out.push(b'}');
            out.into()
        }
    }
}

fn extended_card(
    to: &ReplyTo,
    mut card: Obj<'_>,
    public: &Public,
    mut notes: Notes<'_>,
) -> Result<Document, Fault> {
    let view = match to.dialect.shape {
        Shape::V10 => View::V10,
        Shape::V03Proto => View::V03Proto,
        Shape::V03Kind | Shape::V03Snake => View::V03,
    };
    lower_card(&mut card, Some(public), view, &mut notes).map_err(|e| bad(&e))?;
    Ok(Document {
        body: Some(wrap(to, &Node::Obj(card), 1024)),
        seen: Seen::default(),
        lost: notes.lost,
        next: None,
    })
}

fn lower_card(
    card: &mut Obj<'_>,
    public: Option<&Public>,
    view: View,
    notes: &mut Notes<'_>,
) -> json::Result {
    card::lift(card, notes)?;
    if let Some(public) = public {
        card::rewrite(card, &public.interfaces, public.push)?;
        if let Some(security) = &public.security {
            card::secure(card, security)?;
        }
    }
    card::lower(card, view, notes)
}

/// A public card for its readers. Without `public` only the shape changes.
pub fn card(
    text: &str,
    public: Option<&Public>,
    view: View,
    options: &Options,
) -> Result<(Vec<u8>, Vec<Loss>), Fault> {
    let mut notes = Notes::new(options);
    let mut card = Obj::open(text, &card::CARD, options.limits).map_err(|e| bad(&e))?;
    lower_card(&mut card, public, view, &mut notes).map_err(|e| bad(&e))?;
    let mut out = Vec::with_capacity(text.len() * 2);
    card.write(&mut out);
    Ok((out, notes.lost))
}

/// One event in the client's words, appended as one `data:` line and a blank line. `ends` says whether an
/// interrupted state ends the stream (streams 4). An error of the agent is a fault.
pub fn event(
    to: &mut ReplyTo,
    from: Dialect,
    data: &[u8],
    ends: bool,
    options: &Options,
    lost: &mut Vec<Loss>,
    out: &mut Vec<u8>,
) -> Result<Seen, Fault> {
    let text = text_of(data)?;
    let mut e = open_event(from, to.op.unwrap_or(Op::Stream), text, options)?;
    let mut found = notes(to, options);
    found.last = ends;
    let done = translate(to, from, &mut e, &mut found, data, out);
    to.context = found.context;
    lost.append(&mut found.lost);
    done
}

fn open_event<'a>(
    from: Dialect,
    op: Op,
    text: &'a str,
    options: &Options,
) -> Result<Obj<'a>, Fault> {
    let form = from.shape.event_form();
    let (event, error) = if from.binding == Binding::Rest {
        let e = Obj::open(text, form, options.limits).map_err(|e| bad(&e))?;
        let error = e.has("error");
        (Some(e), error)
    } else {
        let mut envelope = Obj::open_asking(text, &ENVELOPE, As::One(form), options.limits)
            .map_err(|e| bad(&e))?;
        let error = envelope.raw("error").is_some_and(|e| e != "null");
        match envelope.take("result") {
            Some(Node::Obj(e)) => (Some(e), error),
            _ => (None, error),
        }
    };
    match event {
        _ if error => Err(errors::read(200, text, op)),
        Some(e) => Ok(e),
        None => Err(Fault::answer("an event is not an object")),
    }
}

fn translate(
    to: &ReplyTo,
    from: Dialect,
    e: &mut Obj<'_>,
    notes: &mut Notes<'_>,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<Seen, Fault> {
    from.shape.lift_event(e, notes).map_err(|e| bad(&e))?;
    let seen = seen_in(Op::Stream, e, to.learn);
    let same = from.shape == Shape::V10 && to.dialect.shape == Shape::V10;
    write_event(to, e, same, notes, data, out)?;
    Ok(seen)
}

/// The agent's answer to `GetTask` as an event, appended as `event` does, and what it says.
pub fn task_event(
    to: &ReplyTo,
    from: Dialect,
    body: &[u8],
    options: &Options,
    out: &mut Vec<u8>,
) -> Result<Seen, Fault> {
    let mut notes = notes(to, options);
    let result = result_of(from, Op::Get, text_of(body)?, options)?;
    let task = from.shape.lift_result(Op::Get, result, &mut notes);
    let mut e = Obj::default();
    e.put("task", Node::Obj(task.map_err(|e| bad(&e))?));
    let seen = seen_in(Op::Subscribe, &e, to.learn);
    write_event(to, &mut e, false, &mut notes, body, out)?;
    Ok(seen)
}

/// A canonical event, lowered and framed. `same` says that it is in the client's shape already, and `data` is
/// what it was made of.
fn write_event(
    to: &ReplyTo,
    e: &mut Obj<'_>,
    same: bool,
    notes: &mut Notes<'_>,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let start = out.len();
    let end = |out: &mut Vec<u8>| {
        if memchr::memchr(b'\n', data).is_some() {
            one_line(&mut out[start..]);
        }
        out.extend_from_slice(b"\n\n");
    };
    out.reserve(data.len() + SPARE);
    out.extend_from_slice(b"data: ");
    let rpc = to.dialect.binding == Binding::Rpc;
    if rpc {
        rpc::write_head(&to.id, "result", out);
    }
    if same && let Some(text) = e.unchanged() {
        out.extend_from_slice(text.as_bytes());
    } else {
        if let Err(error) = to.dialect.shape.lower_event(e, notes) {
            out.truncate(start);
            return Err(bad(&error));
        }
        e.write(out);
    }
    if rpc {
        out.push(b'}');
    }
    end(out);
    Ok(())
}

#[cfg(test)]
mod tests;
