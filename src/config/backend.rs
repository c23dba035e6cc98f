//! The parts of `backend` about several addresses of the one agent, and how each of them is. As in `sections`, the
//! comments are also the descriptions in the JSON Schema.

use std::time::Duration;

use http::uri::{Authority, PathAndQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw;
use super::tree::Tree;
use super::units::Time;

/// What stays with one address of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// A conversation, with its tasks.
    #[default]
    Context,
    /// Nothing: each call goes where least is under way.
    None,
}

/// When an address of the agent is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// So many failures in a row; 0 is never.
    pub failures: u32,
    /// So many failures in a hundred calls, of twenty within seconds at least; 0 is never.
    #[schemars(range(max = 100))]
    pub percent: u32,
    /// For how long, at first.
    #[serde(with = "Time")]
    pub open: Duration,
    /// For how long at most, when it fails again each time.
    #[serde(with = "Time")]
    pub longest: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 3,
            percent: 50,
            open: Duration::from_secs(5),
            longest: Duration::from_mins(5),
        }
    }
}

/// How much may be sent to the agent again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Repeats {
    /// So many in a hundred calls.
    #[schemars(range(max = 100))]
    pub percent: u32,
    /// And so many a second besides.
    pub floor: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            percent: 20,
            floor: 10,
        }
    }
}

/// Asking the agent's addresses how they are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// What is fetched, below the agent's host; without it nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How often.
    #[serde(with = "Time")]
    pub interval: Duration,
    /// How long an answer may take.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// So many good answers in a row bring an address back.
    #[schemars(range(min = 1))]
    pub healthy: u32,
    /// So many bad ones in a row take it out.
    #[schemars(range(min = 1))]
    pub unhealthy: u32,
    /// Only 2xx is good; otherwise all but 5xx is.
    pub success: bool,
    /// The gateway is not ready while the agent is down at all addresses.
    pub readiness: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: None,
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(2),
            healthy: 2,
            unhealthy: 3,
            success: false,
            readiness: false,
        }
    }
}

/// A name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        let port = authority.port_u16().filter(|port| *port != 0)?;
        if text.contains('@') || host.is_empty() {
            return None;
        }
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        })
    }
}

/// The agent's addresses.
pub(super) fn addresses(raw: &raw::Backend, tree: &mut Tree) -> Vec<HostPort> {
    let mut all = Vec::new();
    for (index, text) in raw.addresses.iter().enumerate() {
        let key = format!("backend.addresses[{index}]");
        match HostPort::parse(text) {
            Some(one) if all.contains(&one) => tree.wrong(key, "it stands in the list twice"),
            Some(one) => all.push(one),
            None => tree.wrong(
                key,
                "expected a name or an address and a port, such as 10.0.0.1:9000 or agent.internal:9000",
            ),
        }
    }
    all
}

/// What concerns more than the form of one value.
pub(super) fn check(raw: &raw::Backend, tree: &mut Tree) {
    let percents = [
        ("backend.breaker.percent", raw.breaker.percent),
        ("backend.repeats.percent", raw.repeats.percent),
    ];
    for (key, percent) in percents {
        if percent > 100 {
            tree.wrong(key, "expected at most 100");
        }
    }
    let health = &raw.health;
    let times = [
        ("backend.resolve", raw.resolve),
        ("backend.breaker.open", raw.breaker.open),
        ("backend.health.interval", health.interval),
        ("backend.health.timeout", health.timeout),
    ];
    for (key, time) in times {
        if time == Duration::ZERO {
            tree.wrong(key, "expected more than 0");
        }
    }
    if raw.breaker.longest < raw.breaker.open {
        let says = "expected no less than backend.breaker.open";
        tree.wrong("backend.breaker.longest", says);
    }
    let counts = [
        ("backend.health.healthy", health.healthy),
        ("backend.health.unhealthy", health.unhealthy),
    ];
    for (key, count) in counts {
        if count == 0 {
            tree.wrong(key, "expected at least 1");
        }
    }
    if let Some(path) = &health.path
        && !(path.starts_with('/') && path.parse::<PathAndQuery>().is_ok())
    {
        tree.wrong("backend.health.path", "expected a path such as /healthz");
    }
}
