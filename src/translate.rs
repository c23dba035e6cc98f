//! Translates one document by itself, without a client or an agent: the command `translate`, and the tests that
//! run every pair of dialects. A REST request is written as `POST /path?query`, a blank line and the body; an
//! event is the data of one server-sent event; a REST error may begin with its status line.
use bytes::Bytes;
use http::Method;

use crate::{
    a2a::{
        Binding, Dialect, Face, Fault, Kind, Op, Shape, Version,
        answer::{self, Public},
        detect::Accepts,
        reply::ReplyTo,
        request::{self, Outgoing, Read, Reading},
        rest::{self, Found},
        rpc,
        shape::{Loss, Options, View},
    },
    cli::{DialectName, Document},
    json::{As, Form, Node, Obj},
};

/// A document in the other dialect.
#[derive(Debug)]
pub struct Translated {
    /// The document; empty for the answer to a v0.3 REST delete.
    pub output: String,
    /// What it could not carry.
    pub losses: Vec<Loss>,
}

/// A loss as one line of JSON.
pub fn line(loss: &Loss) -> String {
    serde_json::json!({"path": loss.path(), "why": loss.why}).to_string()
}

/// Translates `input`. `operation` is needed where the document does not tell it: for responses, and for REST
/// requests without their first line.
pub fn run(
    from: DialectName,
    to: DialectName,
    document: Document,
    operation: Option<&str>,
    input: &str,
) -> Result<Translated, Fault> {
    let op = match operation {
        None => None,
        Some(name) => Some(
            Op::named(name)
                .ok_or_else(|| Fault::params(format!("there is no operation {name}")))?,
        ),
    };
    let mut job = Job::new(dialect(from), dialect(to));
    job.op = op;
    job.run(document, input)
}

const fn dialect(name: DialectName) -> Dialect {
    match name {
        DialectName::V03Jsonrpc => Dialect::J03,
        DialectName::V03Rest => Dialect::R03P,
        DialectName::V03RestKind => Dialect::R03K,
        DialectName::V10Jsonrpc => Dialect::J10,
        DialectName::V10Rest => Dialect::R10,
    }
}

/// A translation, with all that a running gateway would know besides the document.
#[derive(Debug)]
pub struct Job {
    /// The dialect of the document.
    pub from: Dialect,
    /// The dialect to write it in.
    pub to: Dialect,
    /// The operation that it belongs to.
    pub op: Option<Op>,
    /// What an operator may choose.
    pub options: Options,
    /// What the client is used to.
    pub face: Face,
    /// How many messages of history the client asked for.
    pub history: Option<u64>,
    /// Whether an event is the last of its stream.
    pub ends: bool,
}

impl Job {
    /// With the defaults of everything but the dialects.
    pub fn new(from: Dialect, to: Dialect) -> Self {
        Self {
            from,
            to,
            op: None,
            options: Options::default(),
            face: Face::A2A,
            history: None,
            ends: false,
        }
    }

    /// Translates one document.
    pub fn run(&self, document: Document, input: &str) -> Result<Translated, Fault> {
        match document {
            Document::Request => self.request(input),
            Document::Response => self.response(input),
            Document::Event => self.event(input),
            Document::Error => self.error(input).map(|(_, told)| told),
            Document::Card => self.card(input),
        }
    }

    fn request(&self, input: &str) -> Result<Translated, Fault> {
        let (head, body) = parted(input);
        let body = Bytes::copy_from_slice(body.as_bytes());
        let Read { call, mut lost, .. } = match self.from.binding {
            Binding::Rpc => self.read_rpc(&body)?,
            Binding::Rest => self.read_rest(head, &body)?,
        };
        if self.op.is_some_and(|op| op != call.op) {
            return Err(Fault::params("the request is of another operation"));
        }
        let verb = &Method::POST;
        let out = request::write(&call, self.to, verb, &self.options, &mut lost)?;
        Ok(Translated {
            output: self.written(&out, &body)?,
            losses: lost,
        })
    }

    fn read_rpc(&self, body: &Bytes) -> Result<Read, Fault> {
        let accepts = self.accepts();
        let mut to = ReplyTo::new(self.from);
        to.face = self.face;
        let read = request::read_rpc(body, &Reading::new(None, &accepts, &self.options), &mut to)?;
        if to.dialect != self.from {
            return Err(Fault::params("the method is of another version"));
        }
        Ok(read)
    }

    fn read_rest(&self, head: Option<&str>, body: &Bytes) -> Result<Read, Fault> {
        let accepts = self.accepts();
        let (found, query) = match (head, self.op) {
            (Some(head), _) => request_line(head)?,
            (None, Some(op)) => (self.bare(op), None),
            (None, None) => {
                return Err(Fault::params(
                    "a REST request begins with its method and path, or its operation is named",
                ));
            }
        };
        let said = Some(self.from.shape.version());
        let mut to = ReplyTo::new(self.from);
        to.face = self.face;
        let reading = Reading::new(said, &accepts, &self.options);
        let read = request::read_rest(&found, query, body, &reading, &mut to)?;
        if to.dialect != self.from {
            return Err(Fault::params("the request is of another dialect"));
        }
        Ok(read)
    }

    /// A request whose path is not known: what the path would say stands in the body.
    const fn bare(&self, op: Op) -> Found {
        Found {
            op,
            version: match self.from.shape {
                Shape::V03Kind | Shape::V03Proto => Version::V03,
                Shape::V03Snake | Shape::V10 => Version::V10,
            },
            tenant: None,
            id: None,
            config: None,
        }
    }

    fn accepts(&self) -> Accepts {
        Accepts {
            proto: self.from.shape == Shape::V03Proto,
            kind: self.from.shape == Shape::V03Kind,
            snake: self.from.shape == Shape::V03Snake,
            v03_list: true,
            ..Accepts::default()
        }
    }

    fn written(&self, out: &Outgoing, came: &Bytes) -> Result<String, Fault> {
        let body = text(out.body.as_deref().unwrap_or_default())?;
        match (self.from.binding, self.to.binding) {
            (Binding::Rpc, Binding::Rpc) => with_id(&body, &rpc::id_in(came)),
            (Binding::Rest, Binding::Rpc) => Ok(body),
            (_, Binding::Rest) => Ok(format!("{} {}\n\n{body}", out.method, out.path)),
        }
    }

    fn reply_to(&self, came: &Bytes) -> ReplyTo {
        let mut to = ReplyTo::new(self.to);
        to.face = self.face;
        to.id = match self.from.binding {
            Binding::Rpc => rpc::id_in(came),
            Binding::Rest => rpc::Id::ONE,
        };
        to.op = self.op;
        to.history = self.history;
        to
    }

    fn response(&self, input: &str) -> Result<Translated, Fault> {
        let op = self
            .op
            .ok_or_else(|| Fault::params("a response does not tell its operation: name it"))?;
        let body = Bytes::copy_from_slice(input.as_bytes());
        if op == Op::ExtendedCard {
            return self.extended_card(input, &body);
        }
        let public = Public {
            interfaces: vec![],
            push: true,
            security: None,
        };
        let to = self.reply_to(&body);
        let told = answer::document(&to, self.from, op, &body, &public, &self.options)?;
        Ok(Translated {
            output: text(told.body.as_deref().unwrap_or_default())?,
            losses: told.lost,
        })
    }

    /// A running gateway puts its own interfaces into a card; here they stay.
    fn extended_card(&self, input: &str, body: &Bytes) -> Result<Translated, Fault> {
        let result = match self.from.binding {
            Binding::Rest => input,
            Binding::Rpc => {
                static RESULT: Form = Form::of(&[("result", As::Text)]);
                let envelope = Obj::open(input, &RESULT, self.options.limits)
                    .map_err(|e| Fault::answer(e.to_string()))?;
                envelope
                    .raw("result")
                    .ok_or_else(|| Fault::answer("it has no result"))?
            }
        };
        let mut card = self.card(result)?;
        if self.to.binding == Binding::Rpc {
            let mut out = vec![];
            rpc::write_head(&self.reply_to(body).id, "result", &mut out);
            card.output = format!("{}{}}}", text(&out)?, card.output);
        }
        Ok(card)
    }

    fn card(&self, input: &str) -> Result<Translated, Fault> {
        let view = match self.to.shape {
            Shape::V10 => View::V10,
            Shape::V03Kind | Shape::V03Snake => View::V03,
            Shape::V03Proto => View::V03Proto,
        };
        let (card, losses) = answer::card(input, None, view, &self.options)?;
        Ok(Translated {
            output: text(&card)?,
            losses,
        })
    }

    fn event(&self, input: &str) -> Result<Translated, Fault> {
        let came = Bytes::copy_from_slice(input.as_bytes());
        let mut to = self.reply_to(&came);
        let (mut losses, mut out) = (vec![], vec![]);
        answer::event(
            &mut to,
            self.from,
            &came,
            self.ends,
            &self.options,
            &mut losses,
            &mut out,
        )?;
        let framed = text(&out)?;
        let data = framed.strip_prefix("data: ").unwrap_or(&framed);
        Ok(Translated {
            output: data.trim_end().to_owned(),
            losses,
        })
    }

    /// With the HTTP status that it is told with.
    pub fn error(&self, input: &str) -> Result<(u16, Translated), Fault> {
        let (head, body) = parted(input);
        let status = match (head, self.from.binding) {
            (Some(head), _) => status_line(head)?,
            (None, Binding::Rpc) => 200,
            (None, Binding::Rest) => 500,
        };
        let fault = answer::read_fault(status, body, self.op.unwrap_or(Op::Get));
        let mut to = self.reply_to(&Bytes::copy_from_slice(body.as_bytes()));
        to.op = self.op.filter(|op| !op.streams()); // told as a document, not as the end of a stream
        let told = to.fault(&fault);
        let translated = Translated {
            output: text(&told.body)?,
            losses: vec![],
        };
        Ok((told.status.as_u16(), translated))
    }
}

/// The first line and the body, if there is a first line.
fn parted(input: &str) -> (Option<&str>, &str) {
    let bare = input.trim_start();
    if bare.is_empty() || bare.starts_with(['{', '[']) {
        return (None, input);
    }
    let (head, rest) = bare.split_once('\n').unwrap_or((bare, ""));
    (Some(head.trim_end()), rest.trim())
}

fn request_line(head: &str) -> Result<(Found, Option<&str>), Fault> {
    let unread = || Fault::params("the first line is not a method and a path");
    let (verb, target) = head.split_once(' ').ok_or_else(unread)?;
    let method: Method = verb.parse().map_err(|_| unread())?;
    let (path, query) = match target.trim().split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target.trim(), None),
    };
    Ok((rest::find(&method, path)?, query))
}

fn status_line(head: &str) -> Result<u16, Fault> {
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    status.ok_or_else(|| Fault::params("the first line is not an HTTP status line"))
}

fn text(bytes: &[u8]) -> Result<String, Fault> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|e| Fault::new(Kind::Internal, "not UTF-8").because(e.to_string()))?;
    Ok(text.to_owned())
}

/// A request to an agent has an id of ours; here the client's stands in its place.
fn with_id(body: &str, id: &rpc::Id) -> Result<String, Fault> {
    let inner = |e: String| Fault::new(Kind::Internal, "the envelope cannot be read").because(e);
    let limits = crate::json::Limits::default();
    let mut envelope = Obj::open(body, &Form::FLAT, limits).map_err(|e| inner(e.to_string()))?;
    let id = text(id.text())?;
    envelope.put("id", Node::Made(id));
    let mut out = vec![];
    envelope.write(&mut out);
    text(&out)
}

#[cfg(test)]
mod tests;
