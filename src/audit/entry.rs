//! What a log's lines say. Members are named here and nowhere else; `deploy/audit.md` explains them.
use std::{borrow::Cow, fmt, net::SocketAddr, sync::Arc};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::queue::Place;
use crate::telemetry::Heard;

/// Ids are kept up to so many bytes: a record must not be as long as a caller likes.
const LONGEST_ID: usize = 1024;

/// One line, before it is linked.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line<'a> {
    /// The first line of a file.
    File(Head<'a>),
    /// A call.
    Call(&'a Call),
    /// Calls that have no record.
    Missed(Missed),
    /// How far the chain has got, for somebody else to keep. It is no line of the log.
    Checkpoint(Checkpoint<'a>),
}

/// Where a file begins in the chain.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) time: Timestamp,
    /// The name of the chain, made once.
    pub(super) log: &'a str,
    /// The file before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<&'a str>,
    /// The link that the chain had got to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<&'a str>,
    /// How many bytes follow the last whole line of the file before, where a crash tore a line.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) torn: u64,
}

/// There was no place for their records.
#[derive(Serialize)]
pub(super) struct Missed {
    pub(super) time: Timestamp,
    pub(super) calls: u64,
    /// They were served all the same.
    pub(super) served: bool,
}

/// How far the chain has got.
#[derive(Serialize)]
pub(super) struct Checkpoint<'a> {
    pub(super) time: Timestamp,
    pub(super) log: &'a str,
    pub(super) seq: u64,
    pub(super) link: &'a str,
}

/// What happened in a call.
#[derive(Serialize)]
pub(super) struct Call {
    #[serde(skip)]
    pub(super) place: Place,
    /// What telemetry hears of it.
    #[serde(skip)]
    pub(super) heard: Heard,
    pub(super) time: Timestamp,
    pub(super) id: Id,
    pub(super) peer: SocketAddr,
    #[serde(serialize_with = "shared")]
    pub(super) caller: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub(super) tenant: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub(super) route: Option<Arc<str>>,
    /// How the client speaks.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<&'static str>,
    /// How the agent speaks.
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Box<str>>,
    pub(super) decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'static str>,
    /// The client left before its answer had ended.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) left: bool,
    pub(super) bytes: Bytes,
    pub(super) events: u64,
    pub(super) losses: u64,
    pub(super) micros: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "captured")]
    pub(super) captured: Vec<(Arc<str>, Box<str>)>,
}

/// Whether a call was let through to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Decision {
    /// It ended before anything was decided: its client left.
    None,
    Allowed,
    Refused,
}

/// Bytes of bodies.
#[derive(Serialize)]
pub(super) struct Bytes {
    #[serde(rename = "in")]
    pub(super) from: u64,
    #[serde(rename = "out")]
    pub(super) to: u64,
}

/// Times, all from the beginning of the call.
#[derive(Serialize)]
pub(super) struct Micros {
    /// It was let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) admitted: Option<u64>,
    /// The head of its answer was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<u64>,
    /// Its reply ended.
    pub(super) ended: u64,
}

/// The id of a call: the process, and the how many-th of it.
pub(super) struct Id(pub(super) u64, pub(super) u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.0, self.1)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// An id of somebody else, of bounded length.
pub(super) fn bounded(id: &str) -> Box<str> {
    bounded_to(LONGEST_ID, id)
}

pub(super) fn bounded_to(most: usize, text: &str) -> Box<str> {
    if text.len() <= most {
        return text.into();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}

#[expect(clippy::ref_option, reason = "serde asks for a reference")]
fn shared<S: Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(to)
}

fn captured<S: Serializer>(all: &[(Arc<str>, Box<str>)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|(name, value)| (&**name, &**value)))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}
