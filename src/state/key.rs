//! What things are called in a store: digests, so that no store sees whose conversation it is.
use std::{
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    str::FromStr,
};

/// The first 16 bytes of a BLAKE3 over what is named; 32 hexadecimal digits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of some parts. Between them goes a byte that no text has, so that no two lists make one text.
    pub fn of(parts: &[&str]) -> Self {
        let mut short = [0xff; 64]; // one block, which is enough for most
        let mut at = 0;
        for part in parts {
            let Some(place) = short.get_mut(at..at + part.len()) else {
                return Self::of_long(parts);
            };
            place.copy_from_slice(part.as_bytes());
            at += part.len() + 1;
        }
        match short.get(..at) {
            Some(whole) => Self::cut(&blake3::hash(whole)),
            None => Self::of_long(parts),
        }
    }

    fn of_long(parts: &[&str]) -> Self {
        let mut hash = blake3::Hasher::new();
        for part in parts {
            hash.update(part.as_bytes()).update(&[0xff]);
        }
        Self::cut(&hash.finalize())
    }

    fn cut(hash: &blake3::Hash) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Self(key)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let first = self.0.first_chunk();
        state.write_u64(first.map_or(0, |first| u64::from_le_bytes(*first)));
    }
}

/// Hashes keys for maps of one process. They are digests already: a secret factor is enough to keep others from
/// choosing where they fall.
#[derive(Clone, Debug)]
pub struct ByKey(u64);

impl Default for ByKey {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }
}

impl BuildHasher for ByKey {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            factor: self.0,
            word: 0,
        }
    }
}

/// What `ByKey` makes.
#[derive(Debug)]
pub struct KeyHasher {
    factor: u64,
    word: u64,
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        let product = self.word.wrapping_mul(self.factor);
        product ^ (product >> 32)
    }

    fn write_u64(&mut self, word: u64) {
        self.word = word;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.word = self.word.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By a table: names of owners and limits are written on every call, and formatting costs ten times as much.
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl FromStr for Key {
    type Err = std::num::ParseIntError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(s, 16).map(|k| Self(k.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lists_of_parts_have_one_key() {
        let long = "c".repeat(60);
        let lists: [&[&str]; 8] = [
            &["slot", "a", "bc"],
            &["slot", "ab", "c"],
            &["slot", "abc"],
            &["slot", "abc", ""],
            &["slot", "", "abc"],
            &["slot", &long],
            &["slot", &long, ""],
            &["slo", "t", &long],
        ];
        for (n, list) in lists.iter().enumerate() {
            for other in &lists[n + 1..] {
                assert_ne!(Key::of(list), Key::of(other), "{list:?} {other:?}");
            }
        }
        let key = Key::of(&["slot", "a"]);
        assert_eq!(key.to_string().parse(), Ok(key));
    }
}
