//! The bounds of `limits`: how large, how long, how many. As in `sections`, the comments are also the descriptions in the
//! JSON Schema.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{PerPeer, Rule};
use super::mean::above_zero;
use super::tree::Tree;
use super::units::{Size, Time};

/// hyper refuses a smaller buffer for heads.
const MIN_HEAD: usize = 8 * 1024;
/// What the `HeaderMap` of the http crate can hold is not much more.
const MAX_HEADERS: usize = 10_000;
/// What the stack of the scanner is made for.
const MAX_DEPTH: usize = 200;
/// Bounds on what one caller may use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest request body.
    #[serde(with = "Size")]
    pub body: usize,
    /// The longest answer of the agent that is no stream.
    #[serde(with = "Size")]
    pub response: usize,
    /// The most that all bodies in memory may hold together.
    #[serde(with = "Size")]
    pub buffered: usize,
    /// The longest event of a stream.
    #[serde(with = "Size")]
    pub event: usize,
    /// The longest agent card.
    #[serde(with = "Size")]
    pub card: usize,
    /// The longest head of a request, at least 8KiB.
    #[serde(with = "Size")]
    pub head: usize,
    /// The most fields in a head.
    #[schemars(range(min = 1, max = 10_000))]
    pub headers: usize,
    /// The deepest nesting of a document.
    #[schemars(range(min = 1, max = 200))]
    pub depth: usize,
    /// The most members in an object that the gateway opens.
    #[schemars(range(min = 1))]
    pub members: usize,
    /// The most connections at once.
    #[schemars(range(min = 1))]
    pub connections: usize,
    /// How long a connection without a call is kept.
    #[serde(with = "Time")]
    pub silence: Duration,
    /// How long the head of a request may take.
    #[serde(with = "Time")]
    pub header_time: Duration,
    /// How long the body of a request may take.
    #[serde(with = "Time")]
    pub body_time: Duration,
    /// How long connecting to the agent may take.
    #[serde(with = "Time")]
    pub connect: Duration,
    /// How long the head of the agent's answer may take, for all but sends.
    #[serde(with = "Time")]
    pub first_byte: Duration,
    /// How long the head of the agent's answer to a send may take.
    #[serde(with = "Time")]
    pub send: Duration,
    /// How long the agent may be silent within a stream.
    #[serde(with = "Time")]
    pub stream_idle: Duration,
    /// How long a client may leave what we write unread.
    #[serde(with = "Time")]
    pub write_stall: Duration,
    /// The longest replay that a finished task is filled in from.
    #[serde(with = "Size")]
    pub replay: usize,
    /// How long reading one may take.
    #[serde(with = "Time")]
    pub replay_time: Duration,
    /// The most that is kept of replays; beyond, what was asked for longest ago goes.
    #[serde(with = "Size")]
    pub replays: usize,
    /// The most calls that are followed to their end after their caller left.
    #[schemars(range(min = 1))]
    pub followers: usize,
    /// How long a stream is read on after its client left, with `backend.follow_streams`.
    #[serde(with = "Time")]
    pub followed: Duration,
    /// A guard for each peer address, before anything is read of a call.
    pub per_peer: PerPeer,
    /// How often, how much and how many at once, for whom.
    pub rules: Vec<Rule>,
    /// The most counts of rules that are kept; beyond, new keys of a rule count together. Keys of callers who are not
    /// verified have half of them.
    #[schemars(range(min = 1))]
    pub max_keys: usize,
    /// The most of them for contexts and parameters that one caller chooses; beyond, its others count together.
    #[schemars(range(min = 1))]
    pub max_minted: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const KIB: usize = 1024;
        const MIB: usize = 1024 * KIB;
        Self {
            body: 16 * MIB,
            response: 32 * MIB,
            buffered: 256 * MIB,
            event: 10 * MIB,
            card: MIB,
            head: 64 * KIB,
            headers: 100,
            depth: 200,
            members: 1024,
            connections: 10_000,
            silence: Duration::from_secs(30),
            header_time: Duration::from_secs(30),
            body_time: Duration::from_mins(1),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_mins(1),
            send: Duration::from_mins(10),
            stream_idle: Duration::from_hours(1),
            write_stall: Duration::from_mins(1),
            replay: 16 * MIB,
            replay_time: Duration::from_secs(10),
            replays: 64 * MIB,
            followers: 1024,
            followed: Duration::from_hours(1),
            per_peer: PerPeer::default(),
            rules: Vec::new(),
            max_keys: 1_000_000,
            max_minted: 10_000,
        }
    }
}

/// Those that cannot be.
pub(super) fn check(said: &Limits, tree: &mut Tree) {
    let sizes = [
        ("body", said.body),
        ("response", said.response),
        ("buffered", said.buffered),
        ("event", said.event),
        ("card", said.card),
        ("headers", said.headers),
        ("depth", said.depth),
        ("members", said.members),
        ("connections", said.connections),
        ("followers", said.followers),
        ("replay", said.replay),
        ("replays", said.replays),
    ];
    let times = [
        ("silence", said.silence),
        ("header_time", said.header_time),
        ("body_time", said.body_time),
        ("connect", said.connect),
        ("first_byte", said.first_byte),
        ("send", said.send),
        ("stream_idle", said.stream_idle),
        ("write_stall", said.write_stall),
        ("replay_time", said.replay_time),
        ("followed", said.followed),
    ];
    above_zero("limits", &sizes, &times, tree);
    if said.head < MIN_HEAD {
        tree.wrong("limits.head", "expected at least 8KiB");
    }
    if said.headers > MAX_HEADERS {
        tree.wrong("limits.headers", format!("expected at most {MAX_HEADERS}"));
    }
    if said.depth > MAX_DEPTH {
        tree.wrong("limits.depth", format!("expected at most {MAX_DEPTH}"));
    }
    for (name, size) in [("body", said.body), ("response", said.response)] {
        if size > said.buffered {
            // Such a body could never be read.
            tree.wrong(format!("limits.{name}"), "expected at most limits.buffered");
        }
    }
}
