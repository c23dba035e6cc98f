//! Who may import whom: arrows point down only, so that a part can be understood without those above it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
use std::{collections::BTreeSet, fs, path::Path};

/// What each part may use of ours. `main` and `run` wire the parts together and may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("a2a", &["json"]),
    (
        "admin",
        &["audit", "policy", "reload", "server", "state", "telemetry"],
    ),
    ("agent", &["tls"]),
    ("audit", &["a2a", "config", "json", "policy", "telemetry"]),
    ("budget", &[]),
    ("card", &["a2a", "agent", "config", "follow"]),
    ("cli", &["config"]),
    ("config", &["a2a", "cli", "state"]),
    ("demo", &[]),
    ("drain", &["cli", "config"]),
    ("follow", &[]),
    (
        "front",
        &["audit", "config", "follow", "gateway", "reply", "server"],
    ),
    (
        "gateway",
        &[
            "a2a",
            "agent",
            "audit",
            "budget",
            "card",
            "config",
            "follow",
            "json",
            "kept",
            "policy",
            "reply",
            "state",
            "telemetry",
            "tls",
            "watch",
        ],
    ),
    ("json", &[]),
    ("kept", &["follow"]),
    ("log", &["config", "telemetry"]),
    ("policy", &["a2a", "config", "state"]),
    ("probe", &["a2a", "agent", "cli", "sse", "tls"]),
    ("reload", &["config", "watch"]),
    (
        "reply",
        &[
            "a2a", "agent", "audit", "budget", "follow", "policy", "sse", "state",
        ],
    ),
    ("server", &["tls"]),
    ("sse", &[]),
    ("state", &[]),
    ("telemetry", &["a2a", "agent", "config", "tls", "watch"]),
    ("tls", &["watch"]),
    ("translate", &["a2a", "cli", "json"]),
    ("watch", &[]),
];

/// Parts that do no I/O and know no time, and what that forbids.
const PURE: &[&str] = &["a2a", "json", "sse"];
const IMPURE: &[&str] = &[
    "tokio", "hyper", "tracing", "std::net", "std::io", "std::env",
];

fn sources(of: &Path, out: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(of).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                sources(&path, out);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            // Tests at the end of a file may use what they like.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
            let name = path.strip_prefix(root).unwrap();
            let part = name.components().next().unwrap().as_os_str();
            let part = part.to_str().unwrap().trim_end_matches(".rs");
            out.push((part.to_owned(), text.to_owned()));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut out = vec![];
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut out);
    out
}

/// The parts named after `crate::`, also in a list of braces.
fn used(text: &str) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    let word = |t: &str| -> String {
        t.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    for rest in text.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            parts.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    parts.insert(word(list[start..at].trim_start()));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    parts.insert(word(list[start..at].trim_start()));
                    start = at + 1;
                }
                _ => {}
            }
        }
    }
    parts.remove("");
    parts
}

#[test]
fn a_list_is_read_to_its_end() {
    let text = "use crate::{a2a::{self, b::{c, d}}, json, sse::Reader,};\nuse crate::log::x;";
    let parts: Vec<_> = used(text).into_iter().collect();
    assert_eq!(parts, ["a2a", "json", "log", "sse"]);
}

#[test]
fn imports_go_down_only() {
    for (part, text) in all() {
        if matches!(part.as_str(), "main" | "run" | "lib") {
            continue;
        }
        let rule = MAY_USE.iter().find(|(name, _)| *name == part);
        let (_, may) = rule.unwrap_or_else(|| panic!("no rule for {part}"));
        for other in used(&text) {
            assert!(
                other == part || may.contains(&other.as_str()),
                "{part} must not use {other}"
            );
        }
    }
}

#[test]
fn what_translates_does_no_io() {
    for (part, text) in all() {
        if !PURE.contains(&part.as_str()) {
            continue;
        }
        for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
            for word in IMPURE {
                assert!(!line.contains(&format!("{word}::")), "{part}: {line}");
            }
        }
    }
}
