//! Callers by the names in their certificates: which names are let in, and what parts of a name say.
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::tree::Tree;

/// What stands for the trust domain of a SPIFFE ID.
const TRUST_DOMAIN: &str = "trust_domain";
const SPIFFE: &str = "spiffe://";

/// Who shows a certificate that an authority of `tls.client_certificates` vouches for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Certificates {
    /// Patterns of names, one of which fits: SPIFFE IDs such as `spiffe://example.org/ns/{namespace}/sa/*`, DNS names such
    /// as `{host}.agents.example`. Without any, every name is let in.
    pub names: Vec<String>,
    /// The part of the name that says the tenant: a word in braces of every pattern, or `trust_domain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Labels of the caller, each with the part of the name that it comes from.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Where its names and tenants belong: ways with one realm share their tenants. Without it, where other ways make
    /// sure of callers as well, the tenant `acme` is `certificates|acme`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
}

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    spiffe: bool,
    parts: Vec<Part>,
    /// Whether more parts may follow, at least one.
    and_below: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Any,
    Named(String),
}

/// What the parts of a name are called.
pub(crate) type Parts<'a> = BTreeMap<&'a str, &'a str>;

impl Pattern {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (spiffe, mut parts) = match text.strip_prefix(SPIFFE) {
            Some(rest) => (true, rest.split('/').collect::<Vec<_>>()),
            None => (false, text.split('.').collect()),
        };
        if spiffe && parts.len() < 2 {
            return Err("expected spiffe://, a trust domain, and a path");
        }
        let and_below = spiffe && parts.last() == Some(&"**");
        if and_below {
            parts.pop();
        }
        let parts = parts.into_iter().map(|part| Part::parse(part, spiffe));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&String> = parts.iter().filter_map(Part::name).collect();
        if names.len() != names.iter().collect::<BTreeSet<_>>().len() {
            return Err("a word in braces stands in it twice");
        }
        if names.iter().any(|name| *name == TRUST_DOMAIN)
            && parts[0].name().is_none_or(|n| n != TRUST_DOMAIN)
        {
            return Err("{trust_domain} may stand for the trust domain only");
        }
        Ok(Self {
            spiffe,
            parts,
            and_below,
        })
    }

    /// The named parts of a name that fits; a SPIFFE ID is well-formed, a DNS name in small letters.
    pub fn fits<'a>(&'a self, name: &'a str) -> Option<Parts<'a>> {
        let found: Vec<&str> = match name.strip_prefix(SPIFFE) {
            Some(rest) if self.spiffe => rest.split('/').collect(),
            None if !self.spiffe => name.split('.').collect(),
            Some(_) | None => return None,
        };
        let long_enough = if self.and_below {
            found.len() > self.parts.len()
        } else {
            found.len() == self.parts.len()
        };
        if !long_enough {
            return None;
        }
        let mut parts = trust_domain(name);
        for (part, found) in self.parts.iter().zip(found) {
            match part {
                Part::Literal(text) if text != found => return None,
                Part::Literal(_) | Part::Any => {}
                Part::Named(name) => {
                    parts.insert(name, found);
                }
            }
        }
        Some(parts)
    }

    fn names(&self, name: &str) -> bool {
        self.spiffe && name == TRUST_DOMAIN
            || self
                .parts
                .iter()
                .any(|p| p.name().is_some_and(|n| n == name))
    }
}

/// What every SPIFFE ID says, whether it has to fit or not.
pub fn trust_domain(name: &str) -> Parts<'_> {
    let rest = name.strip_prefix(SPIFFE);
    let domain = rest.and_then(|rest| rest.split('/').next());
    domain
        .map(|domain| (TRUST_DOMAIN, domain))
        .into_iter()
        .collect()
}

impl Part {
    fn parse(text: &str, spiffe: bool) -> Result<Self, &'static str> {
        let braced = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        if let Some(name) = braced {
            let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if name.is_empty() || !name.bytes().all(word) {
                return Err("expected a word in the braces");
            }
            return Ok(Self::Named(name.to_owned()));
        }
        if text == "*" {
            return Ok(Self::Any);
        }
        let plain = |b: u8| {
            let letter = if spiffe {
                b.is_ascii_alphabetic()
            } else {
                b.is_ascii_lowercase()
            };
            letter || b.is_ascii_digit() || b"-_".contains(&b) || spiffe && b == b'.'
        };
        if matches!(text, "" | "." | "..") || !text.bytes().all(plain) {
            return Err(
                "expected spiffe://domain/path or a DNS name in small letters; *, {word} and, at the end of a path, ** \
                 stand for whole parts",
            );
        }
        Ok(Self::Literal(text.to_owned()))
    }

    fn name(&self) -> Option<&String> {
        match self {
            Self::Named(name) => Some(name),
            Self::Literal(_) | Self::Any => None,
        }
    }
}

pub(super) fn check(key: &str, said: &Certificates, tree: &mut Tree) {
    let mut patterns = vec![];
    for (index, text) in said.names.iter().enumerate() {
        match Pattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(says) => tree.wrong(format!("{key}.names[{index}]"), says),
        }
    }
    let labels = said.labels.iter();
    let labels = labels.map(|(label, part)| (format!("labels.{label}"), part));
    let tenant = said.tenant.iter().map(|part| ("tenant".to_owned(), part));
    for (what, part) in tenant.chain(labels) {
        let known = if said.names.is_empty() {
            part == TRUST_DOMAIN
        } else {
            patterns.iter().all(|pattern| pattern.names(part))
        };
        if !known {
            let says = "expected a word that stands in braces in every one of names, or trust_domain where all are \
                        SPIFFE IDs";
            tree.wrong(format!("{key}.{what}"), says);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_by_whole_parts() {
        for (pattern, name, parts) in [
            (
                "spiffe://a.b/ns/{ns}/sa/*",
                "spiffe://a.b/ns/x/sa/y",
                Some("ns=x trust_domain=a.b"),
            ),
            (
                "spiffe://a.b/ns/{ns}/sa/*",
                "spiffe://a.b/ns/x/sa/y/z",
                None,
            ),
            ("spiffe://a.b/ns/{ns}/sa/*", "spiffe://a.b/ns/x/sb/y", None),
            ("spiffe://a.b/ns/{ns}/sa/*", "spiffe://a.c/ns/x/sa/y", None),
            (
                "spiffe://a.b/**",
                "spiffe://a.b/x/y",
                Some("trust_domain=a.b"),
            ),
            ("spiffe://a.b/x/**", "spiffe://a.b/x", None),
            ("spiffe://a.b/x/**", "spiffe://a.b/xy/z", None),
            (
                "spiffe://{trust_domain}/x",
                "spiffe://q/x",
                Some("trust_domain=q"),
            ),
            ("spiffe://*/x", "spiffe://q/x", Some("trust_domain=q")),
            ("{h}.a.example", "x.a.example", Some("h=x")),
            ("{h}.a.example", "x.y.a.example", None),
            ("*.a.example", "a.example", None),
            ("a.example", "a.example", Some("")),
            ("*", "spiffe://a/x", None),
            ("spiffe://a/*", "a", None),
        ] {
            let pattern = Pattern::parse(pattern).expect(pattern);
            let told = pattern.fits(name).map(|parts| {
                let parts = parts.iter().map(|(k, v)| format!("{k}={v}"));
                parts.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(told.as_deref(), parts, "{name}");
        }
    }

    #[test]
    fn other_patterns_are_refused() {
        for text in [
            "",
            "a..b",
            "A.example",
            "spiffe://a",
            "spiffe://a/",
            "spiffe:///x",
            "spiffe://a/b*",
            "a.**",
            "spiffe://a/**/b",
            "{}.a",
            "{a}.{a}",
            "{a b}.c",
            "x/y",
            "https://a/b",
            "spiffe://a/../b",
            "spiffe://a/{trust_domain}",
            "{x",
            "spiffe://a/x?y",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
