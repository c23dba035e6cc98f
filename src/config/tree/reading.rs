//! A serde deserializer over the tree. Its error knows the path to what was wrong, in words for an
//! operator, and leaves the value out.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_saphyr::Spanned;

use super::{Step, Value, join};

/// Reads one value.
pub(super) struct Reading<'a>(pub(super) &'a Value);

/// Why and where the reading stopped.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) path: Vec<Step>,
    pub(super) says: String,
}

impl Stop {
    /// The path as we print it.
    pub(super) fn key(&self) -> String {
        let extend = |at: String, step: &Step| match step {
            Step::Key(key) => join(&at, key),
            Step::Item(index) => format!("{at}[{index}]"),
        };
        self.path.iter().fold(String::new(), extend)
    }

    fn below(mut self, step: Step) -> Self {
        self.path.insert(0, step);
        self
    }
}

impl<'de> Deserializer<'de> for Reading<'de> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.0 {
            Value::Nothing => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Count(value) => visitor.visit_u64(*value),
            Value::Negative(value) => visitor.visit_i64(*value),
            Value::Real(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if matches!(self.0, Value::Nothing) {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    /// A section whose keys are all commented out is one that leaves all at its default.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let entries: &[_] = match self.0 {
            Value::Nothing => &[],
            Value::Map(entries) => entries,
            // serde would take a list too, as the fields in their order.
            Value::Bool(_)
            | Value::Count(_)
            | Value::Negative(_)
            | Value::Real(_)
            | Value::Text(_)
            | Value::List(_) => return Err(de::Error::custom("expected keys with values")),
        };
        visitor.visit_map(Entries { entries, next: 0 })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match self.0 {
            Value::Text(text) => {
                let text: StrDeserializer<'_, Stop> = text.as_str().into_deserializer();
                visitor.visit_enum(text)
            }
            // `version: 1.0` without quotes.
            Value::Real(number) => {
                let text: StringDeserializer<Stop> = format!("{number:?}").into_deserializer();
                visitor.visit_enum(text)
            }
            // `jwt: {…}`: a word with more to it.
            Value::Map(entries) if entries.len() == 1 && words.contains(&&*entries[0].0.value) => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries { entries, next: 0 }))
            }
            Value::Nothing
            | Value::Bool(_)
            | Value::Count(_)
            | Value::Negative(_)
            | Value::List(_)
            | Value::Map(_) => Err(de::Error::unknown_variant("", words)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    items: &'a [Spanned<Value>],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        let index = self.next;
        let Some(item) = self.items.get(index) else {
            return Ok(None);
        };
        self.next += 1;
        let read = seed.deserialize(Reading(&item.value));
        read.map(Some).map_err(|stop| stop.below(Step::Item(index)))
    }
}

struct Entries<'a> {
    entries: &'a [(Spanned<String>, Spanned<Value>)],
    next: usize,
}

impl Entries<'_> {
    /// Lays the current key before the path.
    fn at(&self, stop: Stop) -> Stop {
        match self.entries.get(self.next) {
            Some((key, _)) => stop.below(Step::Key(key.value.clone())),
            None => stop,
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Stop> = key.value.as_str().into_deserializer();
        let read = seed.deserialize(key);
        read.map(Some).map_err(|stop| self.at(stop))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        let (_, value) = self
            .entries
            .get(self.next)
            .expect("serde asks for a value only after its key");
        let read = seed.deserialize(Reading(&value.value));
        let read = read.map_err(|stop| self.at(stop));
        self.next += 1;
        read
    }
}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(says: T) -> Self {
        let (path, says) = (Vec::new(), says.to_string());
        Self { path, says }
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}", plain(&expected.to_string())))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}", plain(&expected.to_string())))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("expected one of: {}", expected.join(", ")))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join(", ");
        Self::custom(format_args!("unknown key; known here: {known}"))
    }
}

/// What serde's own readers expect, in words for people who do not write Rust.
fn plain(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a string" | "string" => "a text, in quotes where it looks like something else",
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, not negative",
        "a sequence" => "a list",
        "newtype variant" => "keys with values below it",
        "unit" | "unit variant" => "the word alone",
        other => other,
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

impl std::error::Error for Stop {}
