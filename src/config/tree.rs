//! A settings file as a tree that knows its lines, and reading it into structs.
//!
//! A deserializer stops at the first mistake, but an operator wants to hear all of them. So the file
//! is parsed once into a tree; then the structs are read from the tree, and whenever that stops, the
//! mistake is kept, the key that caused it is cut off, and the reading starts again. Files are small
//! and mistakes are few, so this costs nothing that matters.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::{Mistake, Mistakes};

mod reading;

/// Who makes more mistakes than this will not read the rest.
const MAX_MISTAKES: usize = 100;

/// A file as it was parsed.
pub(super) struct Tree {
    root: Value,
    lines: BTreeMap<String, u64>,
    mistakes: Vec<Mistake>,
}

/// One value of the file.
#[derive(Debug)]
enum Value {
    Nothing,
    Bool(bool),
    Count(u64),
    Negative(i64),
    Real(f64),
    Text(String),
    List(Vec<Spanned<Value>>),
    Map(Vec<(Spanned<String>, Spanned<Value>)>),
}

impl Tree {
    /// Parses `text`. What is no YAML at all ends here.
    pub(super) fn parse(text: &str) -> Result<Self, Mistakes> {
        Self::parse_within(text, 1)
    }

    /// The same for a file that lists much: it may have ten times as many values.
    pub(super) fn parse_long(text: &str) -> Result<Self, Mistakes> {
        Self::parse_within(text, 10)
    }

    fn parse_within(text: &str, times: usize) -> Result<Self, Mistakes> {
        // A file with nothing but comments holds no document; it means the defaults.
        let parsed: Option<Value> = serde_saphyr::from_str_with_options(text, options(times))
            .map_err(|error| no_yaml(&error))?;
        let mut root = parsed.unwrap_or(Value::Nothing);
        let mut lines = BTreeMap::new();
        let mut mistakes = Vec::new();
        root.number("", &mut lines, &mut mistakes);
        mistakes.truncate(MAX_MISTAKES);
        Ok(Self {
            root,
            lines,
            mistakes,
        })
    }

    /// Reads the structs from the tree, with whatever could not be read left at its default.
    pub(super) fn read<T: de::DeserializeOwned + Default>(&mut self) -> T {
        loop {
            let stop = match T::deserialize(reading::Reading(&self.root)) {
                Ok(read) => return read,
                Err(stop) => stop,
            };
            self.wrong(stop.key(), stop.says);
            // The file as a whole is wrong (a list, say), or hopeless: nothing is left to read.
            if !self.root.cut(&stop.path) || self.is_full() {
                return T::default();
            }
        }
    }

    /// Notes a mistake at `key`.
    pub(super) fn wrong(&mut self, key: impl Into<String>, says: impl Into<String>) {
        let mut mistake = Mistake::new(key, says);
        mistake.line = self.lines.get(&mistake.key).copied();
        self.note(mistake);
    }

    /// Whether the file has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Notes that a required key is absent, unless it is there and was found wrong before.
    pub(super) fn missing(&mut self, parent: &str, key: &str, says: &str) {
        let full = format!("{parent}.{key}");
        if !self.blames(&full) {
            let line = self.lines.get(parent).copied();
            let mistake = Mistake::new(full, says);
            self.note(Mistake { line, ..mistake });
        }
    }

    fn note(&mut self, mistake: Mistake) {
        if !self.is_full() {
            self.mistakes.push(mistake);
        }
    }

    fn is_full(&self) -> bool {
        self.mistakes.len() >= MAX_MISTAKES
    }

    /// Whether a mistake is known at `key`, in it or around it.
    pub(super) fn blames(&self, key: &str) -> bool {
        let within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            outer.is_empty()
                || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let meets = |known: &Mistake| within(&known.key, key) || within(key, &known.key);
        self.mistakes.iter().any(meets)
    }

    /// From now on `key` does not come from the file.
    pub(super) fn overrule(&mut self, key: &str) {
        self.lines.remove(key);
        self.mistakes.retain(|known| known.key != key);
    }

    /// `whole` if nothing was wrong.
    pub(super) fn finish<T>(mut self, whole: T) -> Result<T, Mistakes> {
        if self.mistakes.is_empty() {
            return Ok(whole);
        }
        let by_line = |mistake: &Mistake| mistake.line.unwrap_or(u64::MAX);
        self.mistakes.sort_by_key(by_line);
        if self.is_full() {
            let says = "there may be more mistakes; these are enough for now";
            self.mistakes.push(Mistake::new("", says));
        }
        Err(Mistakes(self.mistakes))
    }
}

fn options(times: usize) -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! {
        max_depth: 16,
        max_documents: 1,
        max_nodes: times * 100_000,
        max_events: times * 200_000,
        max_aliases: 1_000,
        max_anchors: 1_000,
        max_recorded_anchor_events: 100_000,
        max_recorded_anchor_bytes: 4 * 1024 * 1024,
        max_total_scalar_bytes: times * 4 * 1024 * 1024,
    };
    let alias_limits = serde_saphyr::alias_limits! {
        max_total_replayed_events: 100_000,
        max_replay_stack_depth: 8,
    };
    serde_saphyr::options! {
        budget: budget,
        alias_limits: alias_limits,
        // The tree looks for duplicates itself, to tell all of them.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        // `log: off` is the word.
        strict_booleans: true,
        // An excerpt of the file may hold a secret.
        with_snippet: false,
    }
}

fn no_yaml(error: &serde_saphyr::Error) -> Mistakes {
    let line = error.location().map(|location| location.line());
    let says = error.without_snippet().to_string();
    // Only the beginning is about the cause; the line is told by ourselves.
    let cause = says.split(" at line ").next().unwrap_or_default();
    let says = format!("cannot read this YAML: {cause}");
    let mistake = Mistake::new("", says);
    Mistake { line, ..mistake }.into()
}

impl Value {
    /// Notes the line of every key below `at`, and drops keys given twice.
    fn number(&mut self, at: &str, lines: &mut BTreeMap<String, u64>, mistakes: &mut Vec<Mistake>) {
        match self {
            Self::Map(entries) => entries.retain_mut(|(key, value)| {
                let path = join(at, &key.value);
                let line = key.referenced.line();
                if let Some(first) = lines.get(&path) {
                    let says = format!("given twice, first on line {first}");
                    let mistake = Mistake::new(path, says);
                    let line = Some(line);
                    mistakes.push(Mistake { line, ..mistake });
                    return false;
                }
                value.value.number(&path, lines, mistakes);
                lines.insert(path, line);
                true
            }),
            Self::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = format!("{at}[{index}]");
                    item.value.number(&path, lines, mistakes);
                    lines.insert(path, item.referenced.line());
                }
            }
            Self::Nothing
            | Self::Bool(_)
            | Self::Count(_)
            | Self::Negative(_)
            | Self::Real(_)
            | Self::Text(_) => {}
        }
    }

    /// Removes the last key of `path`, so that items of a list keep their numbers.
    fn cut(&mut self, path: &[Step]) -> bool {
        let keys = |step: &Step| matches!(step, Step::Key(_));
        let Some(last) = path.iter().rposition(keys) else {
            return false;
        };
        let mut at = self;
        for step in &path[..last] {
            let below = match (step, at) {
                (Step::Key(key), Self::Map(entries)) => entries
                    .iter_mut()
                    .find(|(found, _)| found.value == *key)
                    .map(|(_, value)| value),
                (Step::Item(index), Self::List(items)) => items.get_mut(*index),
                (Step::Key(_) | Step::Item(_), _) => None,
            };
            let Some(below) = below else { return false };
            at = &mut below.value;
        }
        let (Self::Map(entries), Step::Key(key)) = (at, &path[last]) else {
            return false;
        };
        let before = entries.len();
        entries.retain(|(found, _)| found.value != *key);
        entries.len() < before
    }
}

/// One step from a value to a value in it.
#[derive(Debug)]
enum Step {
    Key(String),
    Item(usize),
}

/// `backend` and `url` make `backend.url`. A key is somebody's text: it is shown short and on one line.
fn join(at: &str, key: &str) -> String {
    const SHOWN: usize = 60;
    let key: String = key
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if at.is_empty() {
        return key;
    }
    format!("{at}.{key}")
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }

            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
                Value::deserialize(from)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Count(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(u64::try_from(value).map_or(Value::Negative(value), Value::Count))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Real(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Value::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Value::Map(entries))
            }
        }
        from.deserialize_any(Reader)
    }
}
