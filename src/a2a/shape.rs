//! Shapes: how documents look. Three of them, and R03S, which is v0.3 with `kind` in `snake_case`.
//!
//! *Lift* edits a document from its shape to canonical, which is v1.0; *lower* edits it from canonical to a
//! shape. Both work on the opened tree of the text, so that a document goes from any shape to any other with
//! one reading and one writing, and what no shape looks into stays the text it was.
use std::borrow::Cow;

use crate::{
    a2a::op::Op,
    json::{As, Form, Limits, Node, Obj, Result},
};

pub mod card;
pub mod old;
mod v03;
mod v03_kind;
mod v03_proto;
mod v10;

pub use v10::{State, state_and_word, state_of};

/// How documents look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// v0.3 JSON-schema objects with `kind` (J03, R03K).
    V03Kind,
    /// The same with every key of ours in `snake_case` (R03S).
    V03Snake,
    /// v0.3 `ProtoJSON` (R03P).
    V03Proto,
    /// v1.0 (J10, R10).
    V10,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 0.3
    V03,
    /// 1.0
    V10,
}

impl Version {
    /// As it stands in `A2A-Version`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }
}

/// For whom a card is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The pure v1.0 card.
    V10,
    /// The pure v0.3 card.
    V03,
    /// The v0.3 card with security schemes of both shapes, for `GET /v1/card`: its readers disagree.
    V03Proto,
    /// Members of both versions, for the well-known path.
    Superset,
}

/// How `fileWithBytes` of v0.3 REST is written; see `protocol` decision 6: Python and Java encode twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileBytes {
    /// Read what it is, and answer as the caller writes; else twice.
    Auto,
    /// Base64 once, as the proto says.
    Single,
    /// Base64 of base64.
    Double,
}

/// What an operator may choose about translation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting with a name"
)]
pub struct Options {
    /// How `fileWithBytes` is written.
    pub file_bytes: FileBytes,
    /// Leave out part metadata and file names, which the first v0.3 proto did not have.
    pub strict_030: bool,
    /// Keep what v0.3 has no place for in `metadata`, under keys of the gateway.
    pub preserve_lossy: bool,
    /// Give a message without `messageId` one.
    pub generate_message_id: bool,
    /// v0.3 REST sends without `blocking` wait.
    pub v03_rest_blocking: bool,
    /// Read `blocking` on v1.0 sends that have no `returnImmediately`.
    pub v10_accept_blocking: bool,
    /// What is done to a task over an agent's REST is a segment of its own: `/tasks/{id}/cancel`.
    pub slash_paths: bool,
    /// What is too much in one document.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_bytes: FileBytes::Auto,
            strict_030: false,
            preserve_lossy: true,
            generate_message_id: true,
            v03_rest_blocking: false,
            v10_accept_blocking: false,
            slash_paths: false,
            limits: Limits::default(),
        }
    }
}

/// A member that the other side has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind of object it stood in, from our tables.
    pub of: &'static str,
    /// Its name.
    pub member: Cow<'static, str>,
    /// What happened to it.
    pub why: &'static str,
}

impl Loss {
    /// `object.member` for a person.
    pub fn path(&self) -> String {
        format!("{}.{}", self.of, self.member)
    }

    /// `object.member` for a label: names that came from outside are `unknown`.
    pub fn label(&self) -> String {
        match &self.member {
            Cow::Borrowed(m) => format!("{}.{m}", self.of),
            Cow::Owned(_) => "unknown".to_owned(),
        }
    }
}

/// At most so many losses are named in one document; the rest is only known to be there.
const LOSSES: usize = 100;
/// A member's name is kept up to this length.
const NAME: usize = 64;

/// What is known and found out while one call's documents are translated.
#[derive(Debug)]
pub struct Notes<'o> {
    /// What the operator chose.
    pub options: &'o Options,
    /// What was lost so far.
    pub lost: Vec<Loss>,
    /// Reading what a client sent: shapes of another version are refused, not mended.
    pub strict: bool,
    /// How this client writes `fileWithBytes`, once seen.
    pub twice: Option<bool>,
    /// The message came without an id, and was given one.
    pub made_id: bool,
    /// What the client writes as it was before.
    pub old: old::Old,
    /// The context to name where the agent left it out and v0.3 requires it.
    pub context: Option<String>,
    /// At most so many messages of history in a task (v1.0 3.2.4).
    pub history: Option<u64>,
    /// Whether an interrupted state is the last event of its stream (`final` of v0.3).
    pub last: bool,
}

impl<'o> Notes<'o> {
    /// Nothing seen yet.
    pub fn new(options: &'o Options) -> Self {
        Self {
            options,
            lost: vec![],
            strict: false,
            twice: None,
            made_id: false,
            old: old::Old::default(),
            context: None,
            history: None,
            last: false,
        }
    }

    /// Counts a member of ours that has no place.
    fn lose(&mut self, of: &'static str, member: &'static str, why: &'static str) {
        self.add(of, Cow::Borrowed(member), why);
    }

    fn add(&mut self, of: &'static str, member: Cow<'static, str>, why: &'static str) {
        if self.lost.len() < LOSSES {
            self.lost.push(Loss { of, member, why });
        }
    }

    /// Drops what `form` does not know, and counts it.
    fn keep(&mut self, obj: &mut Obj<'_>, of: &'static str, form: &Form) {
        obj.keep(form, |member| {
            let short: String = member.chars().take(NAME).collect();
            self.add(of, Cow::Owned(short), "no such member in the other version");
        });
    }
}

impl Shape {
    /// The version it belongs to.
    pub const fn version(self) -> Version {
        match self {
            Self::V03Kind | Self::V03Snake | Self::V03Proto => Version::V03,
            Self::V10 => Version::V10,
        }
    }

    /// How a request of this operation is opened. v0.3 shapes share one form, since REST tells them apart by
    /// what is inside.
    pub fn request_form(self, op: Op) -> &'static Form {
        match self {
            Self::V03Kind | Self::V03Snake | Self::V03Proto => v03::request_form(op),
            Self::V10 => v10::request_form(op),
        }
    }

    /// How a result of this operation is opened.
    pub fn result_form(self, op: Op) -> As {
        match self {
            Self::V03Kind | Self::V03Snake => v03_kind::result_form(op),
            Self::V03Proto => v03_proto::result_form(op),
            Self::V10 => v10::result_form(op),
        }
    }

    /// A request to canonical.
    pub fn lift_request(self, op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
        match self {
            Self::V03Kind => v03_kind::lift_request(op, r, notes),
            Self::V03Snake => {
                v03_kind::camel(r)?;
                v03_kind::lift_request(op, r, notes)
            }
            Self::V03Proto => v03_proto::lift_request(op, r, notes),
            Self::V10 => v10::lift_request(op, r, notes),
        }
    }

    /// A canonical request to this shape.
    pub fn lower_request(self, op: Op, r: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
        match self {
            Self::V03Kind => v03_kind::lower_request(op, r, notes),
            Self::V03Snake => {
                v03_kind::lower_request(op, r, notes)?;
                v03_kind::snake(r)
            }
            Self::V03Proto => v03_proto::lower_request(op, r, notes),
            Self::V10 => Ok(()),
        }
    }

    /// A result to canonical.
    pub fn lift_result<'a>(
        self,
        op: Op,
        result: Node<'a>,
        notes: &mut Notes<'_>,
    ) -> Result<Obj<'a>> {
        let mut canonical = match self {
            Self::V03Kind => v03_kind::lift_result(op, result, notes)?,
            Self::V03Snake => {
                let mut result = result;
                renamed(&mut result, v03_kind::camel)?;
                v03_kind::lift_result(op, result, notes)?
            }
            Self::V03Proto => v03_proto::lift_result(op, result, notes)?,
            Self::V10 => v10::lift_result(op, result, notes)?,
        };
        v10::trim(op, &mut canonical, notes)?;
        Ok(canonical)
    }

    /// A canonical result to this shape.
    pub fn lower_result<'a>(
        self,
        op: Op,
        result: Obj<'a>,
        notes: &mut Notes<'_>,
    ) -> Result<Node<'a>> {
        match self {
            Self::V03Kind => v03_kind::lower_result(op, result, notes),
            Self::V03Snake => {
                let mut node = v03_kind::lower_result(op, result, notes)?;
                renamed(&mut node, v03_kind::snake)?;
                Ok(node)
            }
            Self::V03Proto => v03_proto::lower_result(op, result, notes).map(Node::Obj),
            Self::V10 => Ok(Node::Obj(result)),
        }
    }

    /// How a stream event is opened.
    pub fn event_form(self) -> &'static Form {
        match self {
            Self::V03Kind | Self::V03Snake => &v03_kind::EVENT,
            Self::V03Proto => &v03_proto::EVENT,
            Self::V10 => &v10::RESULT,
        }
    }

    /// An event to canonical.
    pub fn lift_event(self, e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
        match self {
            Self::V03Kind => v03_kind::lift_event(e, notes),
            Self::V03Snake => {
                v03_kind::camel(e)?;
                v03_kind::lift_event(e, notes)
            }
            Self::V03Proto => v03_proto::lift_event(e, notes),
            Self::V10 => v10::lift_event(e, notes),
        }?;
        v10::trim(Op::Stream, e, notes)
    }

    /// A canonical event to this shape.
    pub fn lower_event(self, e: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
        match self {
            Self::V03Kind => v03_kind::lower_event(e, notes),
            Self::V03Snake => {
                v03_kind::lower_event(e, notes)?;
                v03_kind::snake(e)
            }
            Self::V03Proto => v03_proto::lower_event(e, notes),
            Self::V10 => Ok(()),
        }
    }
}

/// Renames in an object, or in every object of a list.
fn renamed(node: &mut Node<'_>, way: fn(&mut Obj<'_>) -> Result) -> Result {
    match node {
        Node::Obj(o) => way(o),
        Node::List(items) => items.iter_mut().try_for_each(way),
        Node::Text(_) | Node::Made(_) | Node::Word(_) => Ok(()),
    }
}

/// Word pairs, v0.3 with `kind` on the left and v1.0 on the right.
type Words = [(&'static str, &'static str)];

const ROLES: &Words = &[("user", "ROLE_USER"), ("agent", "ROLE_AGENT")];

fn up(pairs: &'static Words, w: &str) -> Option<&'static str> {
    pairs.iter().find(|p| p.0 == w).map(|p| p.1)
}

fn down(pairs: &'static Words, w: &str) -> Option<&'static str> {
    pairs.iter().find(|p| p.1 == w).map(|p| p.0)
}
