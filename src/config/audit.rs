//! The section about the record of calls. As in `sections`, the comments are also the descriptions in the JSON Schema.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mean::above_zero;
use super::tree::Tree;
use super::units::{Size, Time};

/// What a call finds for whose record there is no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFull {
    /// A refusal: 503.
    #[default]
    Refuse,
    /// It is served, and the log says how many have no record.
    Drop,
}

/// What is kept of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// A digest by the key of the log: it shows that two are equal, and nothing else.
    #[default]
    Digest,
    /// How many bytes it has.
    Length,
    /// The value itself, up to 4 KiB.
    Value,
}

/// A value of each request that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
// Read as if they were not, so that both can be told missing at once.
#[schemars(extend("required" = ["name", "path"]))]
pub struct Capture {
    /// What it is called in the record.
    pub name: String,
    /// Where it is: a JSON Pointer into the request as v1.0 has it, such as `/message/metadata/actor`.
    pub path: String,
    /// What is kept: its digest, its length or the value.
    pub keep: Keep,
}

/// One record for each call, in a chain that shows any later change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a place or a habit of its own"
)]
pub struct Audit {
    /// The folder for the log's files; this gateway's alone. Without it, and without stdout and OTLP, nothing is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Write the log to stdout, too.
    pub stdout: bool,
    /// Send the log to the collector of `telemetry.otlp`, too: a record is written once the collector has it.
    pub otlp: bool,
    /// The file with the key of the chain, at least 32 characters, outside of the folder. Required where calls are
    /// recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// What a call finds for whose record there is no place: refuse (503) or drop (it is served without a record).
    pub on_full: OnFull,
    /// The most calls that are under way or wait for their record to be written. One peer address has at most a quarter
    /// of them, unless it is one of `http.trusted_proxies`.
    #[schemars(range(min = 1))]
    pub queue: usize,
    /// How long after its answer a call's record may not be in the file yet.
    #[serde(with = "Time")]
    pub flush: Duration,
    /// Ask the disk to keep what was flushed, so that it outlives a loss of power.
    pub sync: bool,
    /// A new file is begun when one has grown to this.
    #[serde(with = "Size")]
    pub rotate_size: usize,
    /// A new file is begun when one is so old.
    #[serde(with = "Time")]
    pub rotate_time: Duration,
    /// How often stdout is told how far the chain has got; 0 is never.
    #[serde(with = "Time")]
    pub checkpoint: Duration,
    /// Record a digest of each request's body, by the key of the log.
    pub digest: bool,
    /// Values of requests that are kept.
    pub capture: Vec<Capture>,
}

impl Audit {
    /// Whether calls are recorded.
    pub const fn is_on(&self) -> bool {
        self.folder.is_some() || self.stdout || self.otlp
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            folder: None,
            stdout: false,
            otlp: false,
            key_file: None,
            on_full: OnFull::default(),
            queue: 65_536,
            flush: Duration::from_secs(1),
            sync: false,
            rotate_size: 128 * 1024 * 1024,
            rotate_time: Duration::from_hours(24),
            checkpoint: Duration::from_mins(1),
            digest: false,
            capture: Vec::new(),
        }
    }
}

/// No more values are kept of a request.
const MOST_CAPTURES: usize = 16;
/// Below this a file would hold little more than its first line.
const LEAST_FILE: usize = 64 * 1024;

pub(super) fn check(said: &Audit, tree: &mut Tree) {
    let times = [("flush", said.flush), ("rotate_time", said.rotate_time)];
    above_zero("audit", &[("queue", said.queue)], &times, tree);
    if said.rotate_size < LEAST_FILE {
        tree.wrong("audit.rotate_size", "expected at least 64KiB");
    }
    for (name, path) in [("folder", &said.folder), ("key_file", &said.key_file)] {
        if path
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            tree.wrong(format!("audit.{name}"), "expected a name");
        }
    }
    match (&said.folder, &said.key_file) {
        (Some(folder), Some(key)) if key.starts_with(folder) => {
            let says = "must lie outside of audit.folder: who can write there must not have it";
            tree.wrong("audit.key_file", says);
        }
        (_, None) if said.is_on() => {
            tree.missing("audit", "key_file", "the chain of the log needs a key");
        }
        _ => {}
    }
    if said.capture.len() > MOST_CAPTURES {
        tree.wrong("audit.capture", format!("expected at most {MOST_CAPTURES}"));
    }
    for (index, rule) in said.capture.iter().enumerate() {
        capture(index, rule, &said.capture[..index], tree);
    }
}

fn capture(index: usize, rule: &Capture, before: &[Capture], tree: &mut Tree) {
    let at = format!("audit.capture[{index}]");
    if rule.name.is_empty() {
        tree.missing(&at, "name", "every value has a name and a path");
    } else if before.iter().any(|other| other.name == rule.name) {
        tree.wrong(format!("{at}.name"), "stands in the list twice");
    }
    if rule.path.is_empty() {
        tree.missing(&at, "path", "every value has a name and a path");
    } else if !rule.path.starts_with('/') {
        let says = "expected a JSON Pointer such as /message/metadata/actor";
        tree.wrong(format!("{at}.path"), says);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Overrides};
    use super::*;

    fn parse(audit: &str) -> Result<Audit, String> {
        let text = format!("backend: {{url: 'http://agent'}}\naudit: {{{audit}}}\n");
        let read = Config::parse(&text, Overrides::default());
        read.map(|config| config.audit).map_err(|e| e.to_string())
    }

    #[test]
    fn it_is_on_where_there_is_somewhere_to_write_and_needs_a_key_then() {
        assert!(!parse("").unwrap().is_on());
        assert!(!parse("key_file: /k, digest: true").unwrap().is_on());
        assert!(parse("stdout: true, key_file: /k").unwrap().is_on());
        assert!(parse("folder: /log, key_file: /k").unwrap().is_on());
        for on in ["stdout: true", "folder: /log"] {
            let told = parse(on).unwrap_err();
            assert!(
                told.starts_with("audit.key_file: line 2: the chain"),
                "{told}"
            );
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (said, told) in [
            (
                "folder: /log, key_file: /log/key",
                "audit.key_file: line 2: must lie outside",
            ),
            ("folder: ''", "audit.folder: "),
            ("queue: 0", "audit.queue: "),
            ("flush: 0", "audit.flush: "),
            ("rotate_size: 1KiB", "audit.rotate_size: "),
            ("rotate_time: 0", "audit.rotate_time: "),
            ("on_full: wait", "audit.on_full: "),
            ("capture: [{path: /a}]", "audit.capture[0].name: "),
            ("capture: [{name: a}]", "audit.capture[0].path: "),
            ("capture: [{name: a, path: b}]", "audit.capture[0].path: "),
            (
                "capture: [{name: a, path: /a, keep: all}]",
                "audit.capture[0].keep: ",
            ),
            (
                "capture: [{name: a, path: /a}, {name: a, path: /b}]",
                "audit.capture[1].name: ",
            ),
        ] {
            let says = parse(said).unwrap_err();
            assert!(says.contains(told), "{said}: {says}");
        }
        let many: Vec<_> = (0..17)
            .map(|n| format!("{{name: n{n}, path: /a}}"))
            .collect();
        let says = parse(&format!("capture: [{}]", many.join(", "))).unwrap_err();
        assert!(says.contains("at most 16"), "{says}");
    }
}
