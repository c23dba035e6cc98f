//! JSON as a tree that keeps the text of numbers and strings, and every member in its order.
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// A number, string, `true`, `false` or `null`, as it is written.
    One(String),
    /// A list.
    List(Vec<Tree>),
    /// An object. Sorted by name, since the order of members has no meaning; two of one name stay two.
    Object(Vec<(String, Tree)>),
}

struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut all = vec![];
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }
        from.deserialize_map(All)
    }
}

impl Tree {
    /// # Panics
    /// If the text is not JSON.
    pub(crate) fn read(text: &str) -> Self {
        let bad = |e: serde_json::Error| -> Members { panic!("not JSON: {e}: {text}") };
        let text = text.trim();
        if text.starts_with('{') {
            let Members(all) = serde_json::from_str(text).unwrap_or_else(bad);
            let read = |(name, value): (String, Box<RawValue>)| (name, Self::read(value.get()));
            let mut members: Vec<_> = all.into_iter().map(read).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            return Self::Object(members);
        }
        if text.starts_with('[') {
            let all: Vec<Box<RawValue>> =
                serde_json::from_str(text).unwrap_or_else(|e| panic!("not JSON: {e}: {text}"));
            return Self::List(all.iter().map(|v| Self::read(v.get())).collect());
        }
        Self::One(text.to_owned())
    }

    /// The first place at which `other` is not this.
    pub(crate) fn difference(&self, other: &Self, at: &str) -> Option<String> {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => {
                let names =
                    |o: &[(String, Self)]| o.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
                let (mine, theirs) = (names(a), names(b));
                if mine != theirs {
                    let missing: Vec<_> = mine.iter().filter(|n| !theirs.contains(n)).collect();
                    let surplus: Vec<_> = theirs.iter().filter(|n| !mine.contains(n)).collect();
                    return Some(format!(
                        "at {at}/: missing {missing:?}, surplus {surplus:?}"
                    ));
                }
                let mut pairs = a.iter().zip(b);
                pairs.find_map(|((n, x), (_, y))| x.difference(y, &format!("{at}/{n}")))
            }
            (Self::List(a), Self::List(b)) if a.len() == b.len() => {
                let mut pairs = a.iter().zip(b).enumerate();
                pairs.find_map(|(i, (x, y))| x.difference(y, &format!("{at}/{i}")))
            }
            _ if self == other => None,
            _ => Some(format!("at {at}: {other:?} is not {self:?}")),
        }
    }
}
