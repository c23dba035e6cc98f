//! The chain: each line of a log ends with a link, an HMAC-SHA256 over the link before it and the line itself. Who
//! lacks the key can change no line, and take none out or in, without breaking it.
//!
//! ```text
//!   {"seq":6,…,"link":"9f…"}
//!                       │  ┌──────── text ────────┐
//!   link 7 = HMAC(key, 9f… {"seq":7,"kind":"call",…)       stands in  {"seq":7,"kind":"call",…,"link":"…"}
//! ```
//! HMAC-SHA256 rather than keyed BLAKE3, which would need no processor's help to be fast: an auditor can check it with
//! what every system has, and it comes from aws-lc, which TLS has linked already.
use std::{fs::File, io::Read as _, path::Path};

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use serde::Serialize;

use super::{entry, shown};

/// What a line ends with.
pub(super) type Link = [u8; 32];

/// Before the first line there is none.
pub(super) const NO_LINK: Link = [0; 32];

/// No longer key is read; a key is some 32 random bytes, perhaps in hex.
const LONGEST_KEY: u64 = 4096;
/// Shorter ones can be guessed.
const SHORTEST_KEY: usize = 32;

/// `,"link":"` and 64 digits and `"}`
const SUFFIX: usize = 9 + 64 + 2;

/// The key of a log. It is in no message and no record.
pub struct Key {
    chain: hmac::Key,
    /// Digests have a key of their own: nobody learns a link from one.
    content: hmac::Key,
}

impl Key {
    /// The key in a file, without the white space around it.
    pub fn read(file: &Path) -> Result<Self, String> {
        let fail = |why: &dyn std::fmt::Display| format!("{} {why}", shown(file));
        let mut bytes = Vec::new();
        let opened = File::open(file).map_err(|e| fail(&format!("cannot be read: {e}")))?;
        let read = opened.take(LONGEST_KEY + 1).read_to_end(&mut bytes);
        read.map_err(|e| fail(&format!("cannot be read: {e}")))?;
        if bytes.len() as u64 > LONGEST_KEY {
            return Err(fail(&"is longer than 4 KiB"));
        }
        let key = bytes.trim_ascii();
        if key.len() < SHORTEST_KEY {
            return Err(fail(&"holds fewer than 32 characters"));
        }
        Ok(Self::new(key))
    }

    pub(super) fn new(bytes: &[u8]) -> Self {
        let chain = hmac::Key::new(HMAC_SHA256, bytes);
        let content = hmac::sign(&chain, b"a2a-gateway audit content");
        Self {
            content: hmac::Key::new(HMAC_SHA256, content.as_ref()),
            chain,
        }
    }

    pub(super) fn link(&self, before: &Link, text: &[u8]) -> Link {
        let mut context = hmac::Context::with_key(&self.chain);
        context.update(before);
        context.update(text);
        let mut link = NO_LINK;
        link.copy_from_slice(context.sign().as_ref());
        link
    }

    /// Whether a line ends with the right link.
    pub(super) fn verifies(&self, before: &Link, text: &[u8], link: &Link) -> bool {
        let right = self.link(before, text);
        aws_lc_rs::constant_time::verify_slices_are_equal(&right, link).is_ok()
    }

    /// The digest of what somebody sent, as records have it.
    pub fn digest(&self, content: &[u8]) -> String {
        hex(hmac::sign(&self.content, content).as_ref())
    }
}

/// The end of a chain, where the next line goes.
pub(super) struct Chain {
    key: std::sync::Arc<Key>,
    /// The number of the last line.
    pub(super) seq: u64,
    /// The link of the last line.
    pub(super) last: Link,
}

impl Chain {
    pub(super) fn new(key: std::sync::Arc<Key>, seq: u64, last: Link) -> Self {
        Self { key, seq, last }
    }

    /// Adds a line. `body` is written as an object, which has at least one member.
    pub(super) fn add(&mut self, body: &impl Serialize, out: &mut Vec<u8>) {
        let mut text = vec![];
        entry::write(body, &mut text);
        self.link(&text, out);
    }

    /// Adds a line that is written already, as an object with at least one member.
    pub(super) fn link(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.seq += 1;
        out.extend_from_slice(b"{\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.seq).as_bytes());
        out.push(b',');
        let members = body.strip_prefix(b"{").unwrap_or_default();
        out.extend_from_slice(members.strip_suffix(b"}").unwrap_or_default());
        self.last = self.key.link(&self.last, &out[start..]);
        out.extend_from_slice(b",\"link\":\"");
        hex_into(&self.last, out);
        out.extend_from_slice(b"\"}\n");
    }
}

/// A line, without its end, taken apart: what its link is over, and the link. `None` if it does not end with one.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], Link)> {
    let (text, suffix) = line.split_at_checked(line.len().checked_sub(SUFFIX)?)?;
    let digits = suffix.strip_prefix(b",\"link\":\"")?.strip_suffix(b"\"}")?;
    Some((text, unhex(digits)?))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len() * 2);
    hex_into(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// The same, behind what is there.
pub(super) fn hex_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    for (byte, pair) in bytes.iter().zip(out[start..].chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// 64 digits of hex, as we write them.
pub(super) fn unhex(digits: &[u8]) -> Option<Link> {
    let digit = |d: u8| match d {
        b'0'..=b'9' => Some(d - b'0'),
        b'a'..=b'f' => Some(d - b'a' + 10),
        _ => None,
    };
    let mut link = NO_LINK;
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in link.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(link)
}

/// A number that no other process has.
pub(super) fn random() -> u64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    high
}
