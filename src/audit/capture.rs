//! What settings ask to be kept of a request, by JSON Pointer (RFC 6901) into its v1.0 form: the value itself, its
//! digest or its length.
use std::{collections::HashMap, sync::Arc};

use serde_json::value::RawValue;

use super::{Key, entry::bounded_to};
use crate::config::{self, Keep};

/// A value is kept up to so many bytes.
const LONGEST: usize = 4096;

pub(super) struct Captures {
    rules: Vec<Rule>,
    key: Arc<Key>,
}

struct Rule {
    name: Arc<str>,
    path: Vec<String>,
    keep: Keep,
}

impl Captures {
    pub(super) fn new(rules: &[config::Capture], key: Arc<Key>) -> Self {
        let rules = rules.iter().map(|rule| Rule {
            name: rule.name.as_str().into(),
            path: segments(&rule.path),
            keep: rule.keep,
        });
        Self {
            rules: rules.collect(),
            key,
        }
    }

    /// What the rules find in a request. They look at it now, so that nobody has to keep it.
    pub(super) fn of(&self, params: &[u8]) -> Vec<(Arc<str>, Box<str>)> {
        if self.rules.is_empty() {
            return vec![];
        }
        let text = std::str::from_utf8(params).unwrap_or_default();
        let kept = |rule: &Rule| {
            let raw = find(text.trim(), &rule.path)?;
            let said = serde_json::from_str::<String>(raw);
            let value = said.as_deref().unwrap_or(raw);
            let value = match rule.keep {
                Keep::Value => bounded_to(LONGEST, value),
                Keep::Digest => self.key.digest(value.as_bytes()).into(),
                Keep::Length => value.len().to_string().into(),
            };
            Some((rule.name.clone(), value))
        };
        self.rules.iter().filter_map(kept).collect()
    }
}

fn segments(pointer: &str) -> Vec<String> {
    let plain = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(plain).collect()
}

fn find<'a>(text: &'a str, path: &[String]) -> Option<&'a str> {
    let Some((first, rest)) = path.split_first() else {
        return Some(text);
    };
    let inner: &RawValue = match text.as_bytes().first()? {
        b'{' => {
            let members: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            members.get(first).copied()?
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.get(first.parse::<usize>().ok()?).copied()?
        }
        _ => return None,
    };
    find(inner.get(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, keep: Keep, text: &str) -> Option<String> {
        let rule = config::Capture {
            name: "n".to_owned(),
            path: path.to_owned(),
            keep,
        };
        let key = Arc::new(Key::new(&[7; 32]));
        let found = Captures::new(&[rule], key).of(text.as_bytes());
        found.into_iter().next().map(|(_, value)| value.into())
    }

    #[test]
    fn a_pointer_finds_a_value_at_any_depth() {
        let text = r#" {"message":{"parts":[{"text":"a"},{"data":{"x/y":{"~":1.0}}}],"metadata":{"actor":"\u00e9"}}} "#;
        for (path, value) in [
            ("/message/metadata/actor", Some("é")),
            ("/message/parts/1/data/x~1y/~0", Some("1.0")),
            ("/message/parts/0", Some(r#"{"text":"a"}"#)),
            ("/message/parts/2", None),
            ("/message/parts/x", None),
            ("/message/metadata/actor/more", None),
            ("/none", None),
        ] {
            let found = of(path, Keep::Value, text);
            assert_eq!(found.as_deref(), value, "{path}");
        }
    }

    #[test]
    fn a_value_is_redacted_as_settings_say() {
        let text = r#"{"a":"secret"}"#;
        assert_eq!(of("/a", Keep::Length, text).unwrap(), "6");
        let digest = of("/a", Keep::Digest, text).unwrap();
        assert_eq!(digest, Key::new(&[7; 32]).digest(b"secret"));
        assert_ne!(digest, Key::new(&[8; 32]).digest(b"secret"));
        let long = format!(r#"{{"a":"{}é"}}"#, "x".repeat(LONGEST - 1));
        let kept = of("/a", Keep::Value, &long).unwrap();
        assert_eq!(kept, format!("{}…", "x".repeat(LONGEST - 1)));
    }
}
