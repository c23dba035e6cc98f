//! The rules of `limits`: how often, how much and how many at once, for whom. As in `sections`, the comments are also the
//! descriptions in the JSON Schema.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::units::{Size, Time};
use super::{Config, Segment};
use crate::a2a::Op;

/// One bit each in the records of a call; more would be a list that nobody understands.
const MAX_RULES: usize = 32;
const MAX_NAME: usize = 64;
/// Beyond this, a store in Lua could not count exactly.
const MAX_COUNT: u64 = 1 << 52;
/// The shortest rolling window whose parts can be told apart by a shared clock.
const MIN_ROLLING: Duration = Duration::from_secs(1);

/// A guard for each peer address, before anything is read of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PerPeer {
    /// Requests a second from one address (IPv6: from one /64); 0 is no guard.
    pub rate: u32,
    /// How many may come at once; 0 is as many as `rate`.
    pub burst: u32,
}

/// A rule: what is counted, for whom, and how much of it there is. It has one of rate, quota and concurrency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Its name, which refusals tell.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))]
    pub name: String,
    /// What is counted apart: caller, tenant, context, operation, dialect, `route.NAME` (a parameter of a route's path),
    /// or global alone. Calls without one of them share one count.
    pub key: Vec<Part>,
    /// Which calls it concerns; all, if nothing is said.
    #[serde(rename = "match")]
    pub matching: Match,
    /// How often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How much in a window of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// How many at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
}

/// Which calls a rule concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// These operations, such as `SendMessage`, as v1.0 or v0.3 names them; none is all.
    pub operations: Vec<String>,
}

/// How often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rate {
    /// So many calls,
    #[schemars(range(min = 1))]
    pub limit: u32,
    /// in this time, evenly.
    #[serde(with = "Time")]
    pub per: Duration,
    /// How many may come at once; 0 is as many as `limit`.
    pub burst: u32,
}

/// What a quota counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Messages that are sent, for a document or a stream.
    #[default]
    Messages,
    /// Bytes of requests' bodies.
    RequestBytes,
    /// Bytes of answers, charged as they are written: who has none left starts no more calls.
    ResponseBytes,
    /// Seconds that streams are open, charged as they pass.
    StreamSeconds,
}

/// How much in a window of time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// What is counted.
    pub of: Of,
    /// How much of it there is, such as 1000 or 10MiB.
    #[serde(with = "Size")]
    pub limit: usize,
    /// The window: hour, day, month, or `rolling 1h` for any time of that length.
    pub per: Per,
    /// Where its days begin, such as Europe/Berlin.
    pub time_zone: String,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            of: Of::default(),
            limit: 0,
            per: Per::Day,
            time_zone: "UTC".to_owned(),
        }
    }
}

/// What may be there at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtOnce {
    /// Messages whose answer is not complete, streamed or not.
    #[default]
    Sends,
    /// Streams, of messages and subscriptions.
    Streams,
}

/// How many at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Concurrency {
    /// What is counted, until its answer has ended.
    pub of: AtOnce,
    /// How many of it.
    #[schemars(range(min = 1))]
    pub limit: u32,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Part {
    /// Who asks.
    Caller,
    /// The tenant it belongs to.
    Tenant,
    /// The conversation.
    Context,
    /// The operation.
    Operation,
    /// How the client speaks.
    Dialect,
    /// Nothing: all calls count together.
    Global,
    /// A parameter of the route's path.
    Route(String),
}

const PART: &str =
    "expected one of: caller, tenant, context, operation, dialect, global, route.NAME";

impl TryFrom<String> for Part {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(match text.as_str() {
            "caller" => Self::Caller,
            "tenant" => Self::Tenant,
            "context" => Self::Context,
            "operation" => Self::Operation,
            "dialect" => Self::Dialect,
            "global" => Self::Global,
            other => match other.strip_prefix("route.") {
                Some(name) if !name.is_empty() => Self::Route(name.to_owned()),
                _ => return Err(PART),
            },
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Tenant => "tenant",
            Self::Context => "context",
            Self::Operation => "operation",
            Self::Dialect => "dialect",
            Self::Global => "global",
            Self::Route(name) => return write!(f, "route.{name}"),
        })
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        part.to_string()
    }
}

/// A window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Per {
    /// An hour of the clock.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
    /// Any time of that length.
    Rolling(Duration),
}

const PER: &str = "expected hour, day, month, or such as rolling 1h";

impl TryFrom<String> for Per {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(match text.as_str() {
            "hour" => Self::Hour,
            "day" => Self::Day,
            "month" => Self::Month,
            other => {
                let time = other.strip_prefix("rolling ").ok_or(PER)?;
                Self::Rolling(Time::parse(time.trim()).map_err(|_| PER)?)
            }
        })
    }
}

impl From<Per> for String {
    fn from(per: Per) -> Self {
        match per {
            Per::Hour => "hour".to_owned(),
            Per::Day => "day".to_owned(),
            Per::Month => "month".to_owned(),
            Per::Rolling(time) => format!("rolling {}ms", time.as_millis()),
        }
    }
}

/// What rules say by themselves, and what they say of routes.
pub(super) fn check(config: &Config, tree: &mut Tree) {
    let limits = &config.limits;
    if limits.per_peer.rate == 0 && limits.per_peer.burst > 0 {
        tree.wrong("limits.per_peer.burst", "expected a rate as well");
    }
    for (name, size) in [
        ("max_keys", limits.max_keys),
        ("max_minted", limits.max_minted),
    ] {
        if size == 0 {
            tree.wrong(format!("limits.{name}"), "expected more than 0");
        }
    }
    if limits.rules.len() > MAX_RULES {
        tree.wrong(
            "limits.rules",
            format!("expected at most {MAX_RULES} rules"),
        );
    }
    let parameters: BTreeSet<&str> = config
        .routes
        .iter()
        .flat_map(|route| route.path.segments())
        .filter_map(|segment| match segment {
            Segment::Parameter(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
        .collect();
    let mut names = BTreeSet::new();
    for (index, rule) in limits.rules.iter().enumerate() {
        let at = format!("limits.rules[{index}]");
        if !is_name(&rule.name) {
            let says = "expected a name of letters, digits, dots, dashes and underscores";
            wrong(tree, &at, "name", says);
        } else if !names.insert(rule.name.as_str()) {
            wrong(tree, &at, "name", "another rule has this name");
        }
        key(rule, &at, &parameters, tree);
        for (n, name) in rule.matching.operations.iter().enumerate() {
            if Op::named(name).is_none() {
                let says = "expected the name of an operation, such as SendMessage";
                tree.wrong(format!("{at}.match.operations[{n}]"), says);
            }
        }
        kind(rule, &at, tree);
    }
}

/// A mistake at a key that may be absent: then it is told at the rule.
fn wrong(tree: &mut Tree, at: &str, key: &str, says: &str) {
    let full = format!("{at}.{key}");
    if tree.has(&full) {
        tree.wrong(full, says);
    } else {
        tree.missing(at, key, says);
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(plain)
}

fn key(rule: &Rule, at: &str, parameters: &BTreeSet<&str>, tree: &mut Tree) {
    if rule.key.is_empty() {
        return wrong(tree, at, "key", "expected what is counted apart, or global");
    }
    if rule.key.len() > 1 && rule.key.contains(&Part::Global) {
        wrong(tree, at, "key", "global stands alone");
    }
    for part in &rule.key {
        if let Part::Route(name) = part
            && !parameters.contains(name.as_str())
        {
            wrong(tree, at, "key", "no route has this parameter");
        }
    }
}

fn kind(rule: &Rule, at: &str, tree: &mut Tree) {
    let kinds = [
        rule.rate.is_some(),
        rule.quota.is_some(),
        rule.concurrency.is_some(),
    ];
    if kinds.into_iter().filter(|is| *is).count() != 1 {
        tree.wrong(at, "expected one of rate, quota and concurrency");
    }
    if let Some(rate) = &rule.rate {
        let micros = rate.per.as_micros();
        if rate.limit == 0 {
            wrong(tree, at, "rate.limit", "expected more than 0");
        }
        if micros == 0 || micros < u128::from(rate.limit) {
            wrong(
                tree,
                at,
                "rate.per",
                "expected at least a microsecond a call",
            );
        }
        let burst = u128::from(rate.burst.max(rate.limit));
        if micros * burst / u128::from(rate.limit.max(1)) > u128::from(MAX_COUNT / 2) {
            wrong(
                tree,
                at,
                "rate.burst",
                "expected less than a century's calls",
            );
        }
    }
    if let Some(quota) = &rule.quota {
        if quota.limit == 0 {
            wrong(tree, at, "quota.limit", "expected more than 0");
        }
        if matches!(quota.per, Per::Rolling(time) if time < MIN_ROLLING) {
            wrong(tree, at, "quota.per", "expected at least rolling 1s");
        }
        if TimeZone::get(&quota.time_zone).is_err() {
            let says = "expected a time zone such as Europe/Berlin";
            wrong(tree, at, "quota.time_zone", says);
        }
    }
    if rule.concurrency.as_ref().is_some_and(|c| c.limit == 0) {
        wrong(tree, at, "concurrency.limit", "expected more than 0");
    }
}
