//! How times and sizes are written: `30s`, `16MiB`. Two names for `#[serde(with = …)]`, which also
//! stand for their patterns in the JSON Schema.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;

const TIME: &str = "expected a time such as 250ms, 30s, 10m or 1h";
const SIZE: &str = "expected a size such as 64KiB, 16MiB, 1MB or a number of bytes";
/// Longer means "for ever" and would overflow a clock; the sentence below tells it.
const MAX_TIME_MS: u64 = 365 * 24 * 3_600_000;
const MAX_SIZE: u64 = 1 << 40;

/// In milliseconds, the smallest first.
const TIME_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// In bytes; the first three are the ones we write.
const SIZE_UNITS: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];

/// A time in a settings file, a [`Duration`] in the program.
pub(super) struct Time;

/// A size in a settings file, bytes in the program.
pub(super) struct Size;

impl Time {
    pub(super) fn parse(text: &str) -> Result<Duration, &'static str> {
        let (number, unit) = split(text).ok_or(TIME)?;
        // Nothing is nothing in any unit.
        if number == 0 && unit.is_empty() {
            return Ok(Duration::ZERO);
        }
        let factor = factor(&TIME_UNITS, unit).ok_or(TIME)?;
        let bounded = number.checked_mul(factor).filter(|ms| *ms <= MAX_TIME_MS);
        bounded
            .map(Duration::from_millis)
            .ok_or("expected at most a year (8760h)")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(TIME.trim_start_matches("expected "))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
                Time::parse(text).map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
                Time::parse(&number.to_string()).map_err(E::custom)
            }
        }
        from.deserialize_any(Reader)
    }

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Written(time.as_millis(), &TIME_UNITS, "ms"))
    }
}

impl Size {
    pub(super) fn parse(text: &str) -> Result<usize, &'static str> {
        let (number, unit) = split(text).ok_or(SIZE)?;
        let factor = factor(&SIZE_UNITS, unit).ok_or(SIZE)?;
        let bounded = number.checked_mul(factor).filter(|size| *size <= MAX_SIZE);
        bounded
            .and_then(|size| usize::try_from(size).ok())
            .ok_or("expected at most 1024GiB")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = usize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SIZE.trim_start_matches("expected "))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<usize, E> {
                Size::parse(text).map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<usize, E> {
                Size::parse(&number.to_string()).map_err(E::custom)
            }
        }
        from.deserialize_any(Reader)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    pub(super) fn serialize<S: Serializer>(size: &usize, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Written(*size as u128, &SIZE_UNITS[..3], "B"))
    }
}

/// A number in the largest unit that leaves no rest.
struct Written(u128, &'static [(&'static str, u64)], &'static str);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(u128::from(unit.1));
        let largest = self.1.iter().filter(whole).max_by_key(|unit| unit.1);
        match largest {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / u128::from(*factor)),
            None => write!(f, "{}{}", self.0, self.2),
        }
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

fn factor(units: &[(&str, u64)], name: &str) -> Option<u64> {
    let found = units.iter().find(|(unit, _)| *unit == name);
    found.map(|(_, factor)| *factor)
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^([0-9]+(ms|s|m|h)|0+)$" },
            { "type": "integer", "const": 0 },
        ]})
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)?$" },
            { "type": "integer", "minimum": 0 },
        ]})
    }
}
