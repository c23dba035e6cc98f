//! Single values that `ProtoJSON` readers must take in several spellings: states, whole numbers, base64.
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::json::{Error, Node, Obj, Result};

/// A task's state (v1.0 4.1.3), as far as policy and streams need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Submitted, working, unspecified or unknown to us.
    Running,
    /// Waits for input or authentication.
    Interrupted,
    /// Will not change any more.
    Terminal,
}

/// Canonical names by number.
const STATES: [&str; 9] = [
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
/// The same in v0.3 with `kind`.
const STATES_KIND: [&str; 9] = [
    "unknown",
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "rejected",
    "auth-required",
];

/// What a canonical state means.
pub fn state_of(name: &str) -> State {
    state_and_word(name).0
}

/// What a canonical state means, and its name if it is one that the protocol has.
pub fn state_and_word(name: &str) -> (State, Option<&'static str>) {
    let at = STATES.iter().position(|s| *s == name);
    let state = match at {
        Some(3 | 4 | 5 | 7) => State::Terminal,
        Some(6 | 8) => State::Interrupted,
        _ => State::Running,
    };
    (state, at.map(|at| STATES[at]))
}

/// The canonical name for any spelling of a state, if it is one.
pub(in crate::a2a::shape) fn state_up(word: &str) -> Option<&'static str> {
    let by = |names: &[&str; 9]| {
        names
            .iter()
            .position(|n| n.eq_ignore_ascii_case(word))
            .map(|i| STATES[i])
    };
    if let Some(exact) = STATES.iter().find(|s| **s == word) {
        return Some(exact);
    }
    by(&STATES)
        .or_else(|| by(&STATES_KIND))
        .or_else(|| match word.to_ascii_lowercase().as_str() {
            "cancelled" | "task_state_cancelled" => Some(STATES[5]),
            "input_required" => Some(STATES[6]),
            "auth_required" => Some(STATES[8]),
            "unspecified" => Some(STATES[0]),
            _ => None,
        })
}

/// The word of v0.3 with `kind`, if it has one.
pub(in crate::a2a::shape) fn state_down(name: &str) -> Option<&'static str> {
    let at = STATES.iter().position(|s| *s == name)?;
    Some(STATES_KIND[at])
}

/// The name of v0.3 `ProtoJSON`, which has two L in canceled.
pub(in crate::a2a::shape) fn state_proto(name: &str) -> Option<&'static str> {
    match STATES.iter().position(|s| *s == name)? {
        5 => Some("TASK_STATE_CANCELLED"),
        at => Some(STATES[at]),
    }
}

/// Gives a state member its canonical name, also from a number.
pub(in crate::a2a::shape) fn lift_state(o: &mut Obj<'_>, key: &'static str) {
    let number = match o.get(key) {
        Some(Node::Text(t)) => t.parse::<usize>().ok(),
        Some(Node::Word(w)) => w.parse().ok(), // from a query
        None | Some(Node::Made(_) | Node::Obj(_) | Node::List(_)) => None,
    };
    if let Some(name) = number.and_then(|n| STATES.get(n)) {
        o.put(key, Node::word(name));
        return;
    }
    o.word(key, state_up);
}

/// Renames a boolean and turns it round.
pub(in crate::a2a::shape) fn invert(
    o: &mut Obj<'_>,
    from: &'static str,
    to: &'static str,
) -> Result {
    boolean(o, from)?;
    if let Some(Node::Text(t)) = o.take(from) {
        o.put(to, Node::flag(t == "false"));
    }
    Ok(())
}

/// A whole number that is not negative, as a number, an integral float or a decimal string.
pub(in crate::a2a::shape) fn integer(o: &mut Obj<'_>, key: &'static str) -> Result {
    let raw = match o.get(key) {
        None => return Ok(()),
        Some(Node::Text(t)) => t,
        Some(Node::Made(t)) => t.as_str(),
        Some(Node::Word(w)) => w, // from a query
        Some(Node::Obj(_) | Node::List(_)) => "",
    };
    let bare = raw.trim_matches('"');
    let whole = bare.split_once('.').map_or(bare, |(whole, rest)| {
        if rest.bytes().all(|c| c == b'0') {
            whole
        } else {
            bare
        }
    });
    if whole.is_empty() || whole.len() > 10 || !whole.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Error::Member {
            key,
            why: "is not a whole number of 0 or more",
        });
    }
    if o.raw(key).is_none_or(|raw| raw.len() != whole.len()) {
        let zeros = whole.trim_start_matches('0'); // a string may have them, a number may not
        let digits = if zeros.is_empty() { "0" } else { zeros };
        o.put(key, Node::Made(digits.to_owned()));
    }
    Ok(())
}

pub(in crate::a2a::shape) fn boolean(o: &Obj<'_>, key: &'static str) -> Result {
    match o.get(key) {
        None | Some(Node::Text("true" | "false")) => Ok(()),
        Some(_) => Err(Error::Member {
            key,
            why: "is not true or false",
        }),
    }
}

/// `ProtoJSON` reads both alphabets with and without padding, and writes the standard one with it.
pub(in crate::a2a::shape) fn standard_base64(o: &mut Obj<'_>, key: &'static str) {
    let Some(raw) = o.raw(key) else { return };
    let inner = raw.trim_matches('"').as_bytes();
    if inner.len().is_multiple_of(4) && memchr::memchr2(b'-', b'_', inner).is_none() {
        return;
    }
    if let Some(bytes) = o.string(key).as_deref().and_then(decode) {
        o.put(key, Node::Made(format!("\"{}\"", STANDARD.encode(bytes))));
    }
}

/// Base64 of either alphabet, padded or not.
pub(in crate::a2a::shape) fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const ANY: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const BOTH: [GeneralPurpose; 2] = [
        GeneralPurpose::new(&base64::alphabet::STANDARD, ANY),
        GeneralPurpose::new(&base64::alphabet::URL_SAFE, ANY),
    ];
    BOTH.iter().find_map(|engine| engine.decode(text).ok())
}

/// An offset other than `Z` is normalised, and a time without one read as UTC (v1.0 5.6.1, objects 4). What is
/// no time passes.
pub(in crate::a2a::shape) fn lift_timestamp(o: &mut Obj<'_>, key: &'static str) {
    let Some(time) = o.string(key) else { return };
    if time.ends_with('Z') {
        return;
    }
    let utc = time.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = time.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    });
    if let Some(utc) = utc {
        // `ProtoJSON` writes 0, 3, 6 or 9 digits.
        let digits = match utc.subsec_nanosecond() {
            0 => 0,
            n if n % 1_000_000 == 0 => 3,
            n if n % 1_000 == 0 => 6,
            _ => 9,
        };
        let text = format!("{utc:.digits$}");
        o.put(key, Node::string(text));
    }
}
