//! What a log's lines say. Members are named here and nowhere else; `deploy/audit.md` explains them.
use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

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
#[derive(Serialize)]
pub(super) struct Call {
    #[serde(skip)]
    pub(super) place: Place,
    /// What telemetry hears of it.
    #[serde(skip)]
    pub(super) heard: Heard,
    pub(super) time: Timestamp,
    pub(super) id: Id,
    #[serde(serialize_with = "address")]
    pub(super) peer: SocketAddr,
    pub(super) caller: Who,
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

/// Who calls.
pub(super) enum Who {
    /// Only the address is known, as callers are called who are known by it alone.
    Peer(IpAddr),
    /// By name.
    Known(Arc<str>),
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Peer(ip) => to.collect_str(&format_args!("peer:{}", ip.to_canonical())),
            Self::Known(name) => to.serialize_str(name),
        }
    }
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
        let mut text = Short::default();
        text.hex(self.0);
        text.push(b'-');
        text.number(self.1);
        to.serialize_str(text.as_str())
    }
}

/// A short text of ASCII, written without the machinery of `fmt`: three are in each record.
struct Short {
    text: [u8; 48],
    length: usize,
}

impl Default for Short {
    fn default() -> Self {
        Self {
            text: [0; 48],
            length: 0,
        }
    }
}

impl Short {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn hex(&mut self, number: u64) {
        for at in (0..16).rev() {
            let four = usize::try_from(number >> (at * 4) & 15).unwrap_or_default();
            self.push(b"0123456789abcdef"[four]);
        }
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut from = digits.len();
        loop {
            from -= 1;
            digits[from] = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            if number == 0 {
                break;
            }
        }
        digits[from..].iter().for_each(|digit| self.push(*digit));
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

fn address<S: Serializer>(of: &SocketAddr, to: S) -> Result<S::Ok, S::Error> {
    let SocketAddr::V4(v4) = of else {
        return to.collect_str(of);
    };
    let mut text = Short::default();
    for (at, part) in v4.ip().octets().into_iter().enumerate() {
        if at > 0 {
            text.push(b'.');
        }
        text.number(part.into());
    }
    text.push(b':');
    text.number(v4.port().into());
    to.serialize_str(text.as_str())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_what_display_says() {
        for number in [0, 1, 9, 10, 4711, u64::MAX] {
            let id = Id(number, number);
            let text = serde_json::to_string(&id).unwrap();
            assert_eq!(text, format!("\"{id}\""));
        }
        for peer in [
            "192.0.2.7:80",
            "255.255.255.255:65535",
            "0.0.0.0:0",
            "[2001:db8::1]:443",
        ] {
            let peer: SocketAddr = peer.parse().unwrap();
            let mut text = vec![];
            address(&peer, &mut serde_json::Serializer::new(&mut text)).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), format!("\"{peer}\""));
        }
    }
}
