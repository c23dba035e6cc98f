//! What a message says, as one number: the same for two spellings of it that mean the same. Members count without
//! their order, strings without their escapes, and what is said by leaving it out counts as left out. Numbers count
//! as they are written, since nobody here knows what an agent makes of `1.0`.
use std::borrow::Cow;

use super::{Call, fault::Fault, fault::Kind};
use crate::json::{self, As, Form, Limits, Obj};

static PARAMS: Form = Form::of(&[("message", As::Text)]);

/// The digest of the message in a call.
pub fn message(call: &Call, limits: Limits) -> Result<[u8; 16], Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the message cannot be read again").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let params = Obj::open(text, &PARAMS, limits).map_err(|e| inner(e.to_string()))?;
    let message = params.raw("message").unwrap_or("null");
    let sum = Walk::new(message).value(Of::Message);
    let mut short = [0; 16];
    short.copy_from_slice(&sum[..16]);
    Ok(short)
}

type Sum = [u8; 32];

/// Whose member a value is, and so what its defaults are. Of free-form values nothing is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Message,
    Parts,
    Free,
}

impl Of {
    const fn inside(self, key: &str) -> Self {
        match self {
            Self::Message if matches!(key.as_bytes(), b"parts") => Self::Parts,
            Self::Message | Self::Parts | Self::Free => Self::Free,
        }
    }

    /// Whether a member says no more than its absence (ProtoJSON: `null`, and the zero of a field without presence).
    fn is_default(self, key: &str, raw: &str) -> bool {
        let (null, none) = (raw == "null", is_empty(raw));
        match (self, key) {
            (Self::Free, _) | (Self::Parts, "data") => false, // `null` is a value there
            (Self::Message, "metadata" | "extensions" | "referenceTaskIds")
            | (Self::Parts, "metadata") => null || none,
            (Self::Message, "contextId" | "taskId") | (Self::Parts, "filename" | "mediaType") => {
                null || raw == "\"\""
            }
            (Self::Message | Self::Parts, _) => null,
        }
    }
}

/// `{}` or `[]`.
fn is_empty(raw: &str) -> bool {
    let inner = |open, close| raw.strip_prefix(open)?.strip_suffix(close);
    let inner = inner('{', '}').or_else(|| inner('[', ']'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Goes once over JSON that was checked before, depth included.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn value(&mut self, of: Of) -> Sum {
        match self.peek() {
            Some(b'{') => self.object(of),
            Some(b'[') => self.list(of),
            Some(b'"') => {
                let raw = self.string();
                match json::unquote(raw) {
                    Some(said) => sum(b's', said.as_bytes()),
                    None => sum(b'?', raw.as_bytes()), // a lone surrogate
                }
            }
            _ => sum(b'w', self.word().as_bytes()),
        }
    }

    fn object(&mut self, of: Of) -> Sum {
        let mut members: Vec<(Cow<'a, str>, Sum)> = vec![];
        self.at += 1;
        while let Some(b'"') = self.next_item() {
            let raw = self.string();
            let key = json::unquote(raw).unwrap_or(Cow::Borrowed(raw));
            self.peek();
            self.at += 1; // the colon
            self.peek();
            let start = self.at;
            let value = self.value(of.inside(&key));
            if !of.is_default(&key, &self.text[start..self.at]) {
                members.push((key, value));
            }
        }
        self.at += 1;
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut hash = blake3::Hasher::new();
        hash.update(b"o");
        for (key, value) in &members {
            hash.update(&(key.len() as u64).to_le_bytes());
            hash.update(key.as_bytes());
            hash.update(value);
        }
        *hash.finalize().as_bytes()
    }

    fn list(&mut self, of: Of) -> Sum {
        let mut hash = blake3::Hasher::new();
        hash.update(b"l");
        self.at += 1;
        while self.next_item().is_some_and(|next| next != b']') {
            hash.update(&self.value(of));
        }
        self.at += 1;
        *hash.finalize().as_bytes()
    }

    /// The first byte of the next member or item, else the one that ends them.
    fn next_item(&mut self) -> Option<u8> {
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        self.peek()
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a str {
        let (start, bytes) = (self.at, self.text.as_bytes());
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(self.at..).unwrap_or(&[])) {
            self.at += found + 1;
            if bytes[self.at - 1] == b'"' {
                break;
            }
            self.at += 1; // what is escaped
        }
        &self.text[start..self.at]
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let ends = |c: char| matches!(c, ',' | ']' | '}' | ' ' | '\n' | '\r' | '\t');
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }
}

fn sum(kind: u8, bytes: &[u8]) -> Sum {
    let mut hash = blake3::Hasher::new();
    hash.update(&[kind]);
    hash.update(bytes);
    *hash.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Sum {
        Walk::new(message).value(Of::Message)
    }

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert!(of(a) == of(b), "{a} is not {b}");
    }

    #[track_caller]
    fn differ(a: &str, b: &str) {
        assert!(of(a) != of(b), "{a} is {b}");
    }

    #[test]
    fn members_count_without_their_order_at_every_level() {
        same(
            r#"{"messageId":"m","parts":[{"data":{"a":[{"b":1,"c":2}],"d":{}}}]}"#,
            " { \"parts\" : [ { \"data\" : {\"d\":{ },\n\"a\":[ {\"c\":2 , \"b\":1} ]} } ] , \"messageId\" : \"m\" } ",
        );
        differ(
            r#"{"parts":[{"text":"a"},{"text":"b"}]}"#,
            r#"{"parts":[{"text":"b"},{"text":"a"}]}"#,
        );
        differ(
            r#"{"metadata":{"a":1,"b":2}}"#,
            r#"{"metadata":{"a":2,"b":1}}"#,
        );
    }

    #[test]
    fn what_is_left_out_is_its_default() {
        same(
            r#"{"parts":[{"text":"a"}]}"#,
            r#"{"parts":[{"text":"a","metadata":{ },"filename":"","mediaType":null}],"metadata":{},"extensions":[ ],"referenceTaskIds":null,"contextId":"","taskId":null}"#,
        );
        differ(
            r#"{"parts":[{"text":"a"}]}"#,
            r#"{"parts":[{"text":"a"}],"taskId":"t"}"#,
        );
        differ(r#"{"parts":[{"text":""}]}"#, r#"{"parts":[{}]}"#);
    }

    #[test]
    fn what_is_free_form_has_no_defaults() {
        differ(r#"{"parts":[{"data":null}]}"#, r#"{"parts":[{}]}"#);
        differ(r#"{"metadata":{"a":null}}"#, r#"{"metadata":{"a":{}}}"#);
        differ(
            r#"{"parts":[{"data":{"metadata":{}}}]}"#,
            r#"{"parts":[{"data":{}}]}"#,
        );
        differ(
            r#"{"metadata":{"parts":[{"metadata":{}}]}}"#,
            r#"{"metadata":{"parts":[{}]}}"#,
        );
    }

    #[test]
    fn numbers_count_as_written_and_strings_as_said() {
        differ(r#"{"metadata":{"n":1}}"#, r#"{"metadata":{"n":1.0}}"#);
        differ(r#"{"metadata":{"n":1e400}}"#, r#"{"metadata":{"n":2e400}}"#);
        differ(r#"{"metadata":{"n":1}}"#, r#"{"metadata":{"n":"1"}}"#);
        same(
            r#"{"metadata":{"\u006e":"\u00e9\"\\"}}"#,
            r#"{"metadata":{"n":"é\"\\"}}"#,
        );
        differ(
            r#"{"metadata":{"n":"\ud800"}}"#,
            r#"{"metadata":{"n":"\ud801"}}"#,
        );
    }

    #[test]
    fn nothing_runs_into_its_neighbour() {
        differ(r#"{"metadata":["ab","c"]}"#, r#"{"metadata":["a","bc"]}"#);
        differ(r#"{"metadata":[[1],2]}"#, r#"{"metadata":[[1,2]]}"#);
        differ(
            r#"{"metadata":{"a":{"b":1}}}"#,
            r#"{"metadata":{"a":1,"b":1}}"#,
        );
        differ(r#"{"metadata":{"a":true}}"#, r#"{"metadata":{"a":"true"}}"#);
        differ(r#"{"metadata":[[]]}"#, r#"{"metadata":[{}]}"#);
    }
}
