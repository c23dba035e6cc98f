//! What a log's lines say. Members are named here and in `written`; `deploy/audit.md` explains them.
use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use jiff::Timestamp;
use serde::Serialize;
#[cfg(test)]
use serde::Serializer;

mod written;

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
    /// A call, as `Call::write` has it.
    #[cfg(test)]
    Call(&'a Call),
    /// Calls that have no record.
    Missed(Missed),
    /// How far the chain has got, for somebody else to keep. It is no line of the log.
    Checkpoint(Checkpoint<'a>),
}

/// A line as JSON.
pub(super) fn write(line: &impl Serialize, to: &mut Vec<u8>) {
    serde_json::to_writer(to, line).expect("a record has no key that is not a string");
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
#[cfg_attr(test, derive(Serialize))]
pub(super) struct Call {
    #[cfg_attr(test, serde(skip))]
    pub(super) place: Place,
    /// What telemetry hears of it.
    #[cfg_attr(test, serde(skip))]
    pub(super) heard: Heard,
    pub(super) time: Timestamp,
    pub(super) id: Id,
    pub(super) peer: SocketAddr,
    pub(super) caller: Who,
    #[cfg_attr(
        test,
        serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")
    )]
    pub(super) tenant: Option<Arc<str>>,
    #[cfg_attr(
        test,
        serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")
    )]
    pub(super) route: Option<Arc<str>>,
    /// How the client speaks.
    #[cfg_attr(test, serde(rename = "in", skip_serializing_if = "Option::is_none"))]
    pub(super) from: Option<&'static str>,
    /// How the agent speaks.
    #[cfg_attr(test, serde(rename = "out", skip_serializing_if = "Option::is_none"))]
    pub(super) to: Option<&'static str>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) operation: Option<&'static str>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) context: Option<Box<str>>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) task: Option<Box<str>>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) message: Option<Box<str>>,
    pub(super) decision: Decision,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) rule: Option<Cow<'static, str>>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) fault: Option<&'static str>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) status: Option<u16>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) state: Option<&'static str>,
    /// The client left before its answer had ended.
    #[cfg_attr(test, serde(skip_serializing_if = "is_false"))]
    pub(super) left: bool,
    pub(super) bytes: Bytes,
    pub(super) events: u64,
    pub(super) losses: u64,
    pub(super) micros: Micros,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) digest: Option<Box<str>>,
    #[cfg_attr(
        test,
        serde(skip_serializing_if = "Vec::is_empty", serialize_with = "captured")
    )]
    pub(super) captured: Vec<(Arc<str>, Box<str>)>,
}

/// Who calls.
pub(super) enum Who {
    /// Only the address is known, as callers are called who are known by it alone.
    Peer(IpAddr),
    /// By name.
    Known(Arc<str>),
}

#[cfg(test)]
impl Serialize for Who {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Peer(ip) => to.collect_str(&format_args!("peer:{}", ip.to_canonical())),
            Self::Known(name) => to.serialize_str(name),
        }
    }
}

/// Whether a call was let through to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Serialize), serde(rename_all = "lowercase"))]
pub(super) enum Decision {
    /// It ended before anything was decided: its client left.
    None,
    Allowed,
    Refused,
}

/// Bytes of bodies.
#[cfg_attr(test, derive(Serialize))]
pub(super) struct Bytes {
    #[cfg_attr(test, serde(rename = "in"))]
    pub(super) from: u64,
    #[cfg_attr(test, serde(rename = "out"))]
    pub(super) to: u64,
}

/// Times, all from the beginning of the call.
#[cfg_attr(test, derive(Serialize))]
pub(super) struct Micros {
    /// It was let through.
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) admitted: Option<u64>,
    /// The head of its answer was there.
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    pub(super) answered: Option<u64>,
    /// Its reply ended.
    pub(super) ended: u64,
}

/// The id of a call: the process, and the how many-th of it.
pub(super) struct Id(pub(super) u64, pub(super) u64);

#[cfg(test)]
impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{}", self.0, self.1)
    }
}

#[cfg(test)]
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

#[cfg(test)]
#[expect(clippy::ref_option, reason = "serde asks for a reference")]
fn shared<S: Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(to)
}

#[cfg(test)]
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

#[cfg(test)]
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}
