//! How a call is refused by a rule: 429 for what comes back by itself soon, 402 for a quota that is spent. Beside
//! `Retry-After` go the fields of draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy` says the rule that
//! refused, `RateLimit` what is left of it and for how long.
use http::{HeaderName, HeaderValue};

use super::rule::{Kind, Rule};
use crate::{
    a2a::{self, Fault},
    config::Of,
    state::counters::{Micros, Refused},
};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const SECOND: Micros = 1_000_000;

/// The refusal.
pub(super) fn refusal(rule: &Rule, refused: &Refused) -> Fault {
    let (kind, words) = match rule.kind() {
        Kind::Rate { .. } => (
            a2a::Kind::RateLimited,
            "too many calls; come again after the time that Retry-After says",
        ),
        Kind::AtOnce { .. } => (
            a2a::Kind::RateLimited,
            "too many calls at once; wait until one of them has ended",
        ),
        Kind::Quota { .. } => (
            a2a::Kind::QuotaExceeded,
            "the quota is spent, or what is left of it is too little for this call",
        ),
    };
    // What is nothing invites to come again at once.
    let seconds = refused.wait.div_ceil(SECOND).max(1);
    let mut fault = Fault::new(kind, words).with("rule", rule.name.clone());
    fault.retry_after = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
    let name = &rule.name; // letters, digits, dots, dashes, underscores: nothing to escape
    let policy = format!("\"{name}\"{}", policy(rule));
    let left = format!("\"{name}\";r={};t={seconds}", refused.left);
    for (field, value) in [(POLICY, policy), (LIMIT, left)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            fault.more.fields.push((field, value));
        }
    }
    fault
}

fn policy(rule: &Rule) -> String {
    let limit = rule.limit();
    match rule.kind() {
        Kind::Rate { per, .. } => format!(";q={limit};w={}", per.div_ceil(SECOND)),
        Kind::AtOnce { .. } => format!(";q={limit};qu=\"concurrent-requests\""),
        Kind::Quota { of, window, .. } => {
            let unit = match of {
                Of::Messages => "",
                Of::RequestBytes | Of::ResponseBytes => ";qu=\"content-bytes\"",
                Of::StreamSeconds => ";qu=\"stream-seconds\"",
            };
            format!(";q={limit}{unit};w={}", window.length().div_ceil(SECOND))
        }
    }
}
