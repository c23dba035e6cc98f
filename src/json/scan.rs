//! The reader under `Obj`: one pass over the text that checks all of it and opens what the form names.
//!
//! Checked on the way: the grammar of RFC 8259 in full, nesting, and a key that `serde_json` reserves.
//! Not checked: that strings left as text pair their surrogates.
use std::borrow::Cow;

use super::{As, Error, Form, Member, Node, Obj, Result, same};

mod run;

use run::plain;

/// The deepest nesting that any limit may allow: peers parse by recursion.
const DEPTH: usize = 200;
/// Members and list items that may be opened in one text. Each takes some 50 bytes whatever its text is, so
/// that a text of empty objects would else take twenty times its size.
const NODES: u32 = 200_000;
/// `serde_json` takes the value under this key for JSON text, so that it would mean two things.
const RESERVED: &str = "$serde_json::private::RawValue";
/// Up to so many members each new key is compared with all before it; a larger object is sorted once.
const FEW: usize = 32;
/// Members an object has room for at first. Not in a list, where many small ones would take much for little text.
pub(super) const ROOM: usize = 8;

/// What is refused as too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep objects and lists may nest, at most 200.
    pub depth: usize,
    /// How many members one opened object may have.
    pub members: usize,
}

impl Limits {
    /// For text that has been read under a limit before.
    pub const CHECKED: Self = Self {
        depth: DEPTH,
        members: 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::CHECKED
    }
}

/// Checks one JSON value of any kind.
pub fn check(text: &str, limits: Limits) -> Result {
    whole(text, limits, Scan::skip)
}

/// What reading on gives: an error is only the reason, since the place is where we are. It fits in registers.
pub(super) type Read<T = ()> = std::result::Result<T, &'static str>;

/// Reads one value and nothing after it.
pub(super) fn whole<'a, T>(
    text: &'a str,
    limits: Limits,
    read: impl FnOnce(&mut Scan<'a>) -> Read<T>,
) -> Result<T> {
    let mut scan = Scan {
        text,
        at: 0,
        close: 0,
        outer: [0; DEPTH],
        depth: 0,
        deepest: limits.depth.min(DEPTH),
        members: limits.members,
        nodes: NODES,
        asked: As::Text,
    };
    let value = read(&mut scan).and_then(|value| {
        scan.peek();
        if scan.at < text.len() {
            return Err("text after the value");
        }
        Ok(value)
    });
    value.map_err(|why| Error::Text { why, at: scan.at })
}

/// What a checked string says; `None` if that is not a string or not Unicode.
pub(super) fn unquote(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if plain(text.as_bytes(), 1) <= inner.len() {
        return serde_json::from_str(text).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// The byte that ends the object or list we are in, and those of what is around it.
    close: u8,
    outer: [u8; DEPTH],
    depth: usize,
    deepest: usize,
    members: usize,
    /// How many more members and items may be opened.
    nodes: u32,
    /// What `As::Asked` stands for.
    pub(super) asked: As,
}

impl<'a> Scan<'a> {
    pub(super) fn object(&mut self, form: &'static Form, room: usize) -> Read<Obj<'a>> {
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::with_capacity(room);
        self.peek();
        let from = self.at;
        let mut more = self.enter(b'{')?;
        while more {
            let key = self.key()?;
            if members.len() < FEW && members.iter().any(|(k, _)| same(k, &key)) {
                return Err("second member of one name");
            }
            let node = self.value(form, &key, &members)?;
            members.push((key, node));
            self.spend(members.len())?;
            more = self.more()?;
        }
        if members.len() > FEW {
            let mut keys: Vec<&str> = members.iter().map(|(k, _)| &**k).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err("second member of one name");
            }
        }
        Ok(Obj {
            members,
            changed: false,
            source: &self.text[from..self.at],
        })
    }

    #[inline]
    fn value(&mut self, form: &'static Form, key: &str, before: &[Member<'a>]) -> Read<Node<'a>> {
        let how = match self.peek() {
            b'{' | b'[' => match form.find(key) {
                Some(As::By(pick)) => pick(before),
                Some(As::Asked) => self.asked,
                how => how.unwrap_or(As::Text),
            },
            _ => As::Text,
        };
        self.node(how)
    }

    #[inline]
    pub(super) fn node(&mut self, how: As) -> Read<Node<'a>> {
        match (self.peek(), how) {
            (b'{', As::One(form)) => Ok(Node::Obj(self.object(form, ROOM)?)),
            (b'[', As::Each(form)) => Ok(Node::List(self.list(form)?)),
            (open, _) => {
                let from = self.at;
                match open {
                    b'"' => self.string().map(drop)?, // most are
                    _ => self.skip()?,
                }
                Ok(Node::Text(&self.text[from..self.at]))
            }
        }
    }

    #[inline]
    fn spend(&mut self, members: usize) -> Read {
        if members > self.members {
            return Err("too many members in one object");
        }
        match self.nodes.checked_sub(1) {
            Some(left) => self.nodes = left,
            None => return Err("too many members and items"),
        }
        Ok(())
    }

    pub(super) fn list(&mut self, form: &'static Form) -> Read<Vec<Obj<'a>>> {
        let mut items = Vec::new();
        let mut more = self.enter(b'[')?;
        while more {
            items.push(self.object(form, 0)?);
            self.spend(0)?;
            more = self.more()?;
        }
        Ok(items)
    }

    /// Steps over one value, checking it.
    fn skip(&mut self) -> Read {
        let outside = self.depth;
        let mut keyed = false;
        loop {
            if keyed {
                self.skip_key()?;
            }
            match self.peek() {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    if self.enter(open)? {
                        keyed = open == b'{';
                        continue;
                    }
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return Err("no value"),
            }
            // The value has ended, and with it perhaps what holds it.
            loop {
                if self.depth == outside {
                    return Ok(());
                }
                if self.more()? {
                    break;
                }
            }
            keyed = self.close == b'}';
        }
    }

    /// Into an object or list; tells whether it has anything in it, and is out again if not.
    #[inline]
    fn enter(&mut self, open: u8) -> Read<bool> {
        self.want(open)?;
        let close = open + 2; // `}` is two after `{`, `]` two after `[`
        if self.depth >= self.deepest {
            return Err("nested too deep");
        }
        if self.peek() == close {
            self.at += 1;
            return Ok(false);
        }
        self.outer[self.depth] = std::mem::replace(&mut self.close, close);
        self.depth += 1;
        Ok(true)
    }

    /// After a member or item: does another follow? If not, we are out of what held it.
    #[inline]
    fn more(&mut self) -> Read<bool> {
        let next = self.peek();
        if next == b',' {
            self.at += 1;
            return Ok(true);
        }
        if next != self.close {
            return Err("no comma or end");
        }
        self.at += 1;
        self.depth -= 1;
        self.close = self.outer[self.depth];
        Ok(false)
    }

    /// A key and its colon. Escapes are resolved, so that no spelling of a name hides it.
    #[inline]
    fn key(&mut self) -> Read<Cow<'a, str>> {
        if self.peek() != b'"' {
            return Err("no key");
        }
        let from = self.at;
        let escaped = self.string()?;
        let key = if escaped {
            match unquote(&self.text[from..self.at]) {
                Some(key) => key,
                None => return Err("key that is not Unicode"),
            }
        } else {
            Cow::Borrowed(&self.text[from + 1..self.at - 1])
        };
        if key == RESERVED {
            return Err("reserved key");
        }
        self.want(b':')?;
        Ok(key)
    }

    /// Over a key that nobody will look at. Only one with escapes, or as long as the reserved one, can be that.
    #[inline]
    fn skip_key(&mut self) -> Read {
        if self.peek() != b'"' {
            return Err("no key");
        }
        let from = self.at;
        let escaped = self.string()?;
        if escaped || self.at - from == RESERVED.len() + 2 {
            return self.odd_key(from);
        }
        self.want(b':')
    }

    #[inline(never)]
    fn odd_key(&mut self, from: usize) -> Read {
        self.at = from;
        self.key().map(drop)
    }

    /// Over a string, from quote to quote; tells whether it has escapes.
    #[inline]
    fn string(&mut self) -> Read<bool> {
        let end = plain(self.text.as_bytes(), self.at + 1);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(false);
        }
        self.at = end;
        self.rest_of_string().map(|()| true)
    }

    /// Over what follows the first run of a string that has escapes.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Read {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += self.escape()?,
                Some(_) => return Err("control character in a string"),
                None => return Err("string without end"),
            }
            self.at = plain(self.text.as_bytes(), self.at);
        }
    }

    /// How long the escape here is.
    fn escape(&self) -> Read<usize> {
        match self.text.as_bytes()[self.at + 1..] {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(2),
            [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => Ok(6),
            _ => Err("bad escape"),
        }
    }

    #[inline]
    fn number(&mut self) -> Read {
        self.eat(|c| c == b'-');
        if !self.eat(|c| c == b'0') {
            self.digits()?;
        }
        if self.eat(|c| c == b'.') {
            self.digits()?;
        }
        if self.eat(|c| matches!(c, b'e' | b'E')) {
            self.eat(|c| matches!(c, b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }
    #[inline]
    fn digits(&mut self) -> Read {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 {
            return Err("no digit");
        }
        Ok(())
    }
    #[inline]
    fn eat(&mut self, is: impl Fn(u8) -> bool) -> bool {
        let hit = self.text.as_bytes().get(self.at).is_some_and(|c| is(*c));
        self.at += usize::from(hit);
        hit
    }
    #[inline]
    fn literal(&mut self, word: &str) -> Read {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err("no value");
        }
        self.at += word.len();
        Ok(())
    }
    #[inline]
    fn want(&mut self, byte: u8) -> Read {
        if self.peek() != byte {
            return Err("unexpected byte");
        }
        self.at += 1;
        Ok(())
    }
    /// The next byte that is not white space, still to be read; 0 at the end, which no value starts with.
    #[inline]
    fn peek(&mut self) -> u8 {
        match self.text.as_bytes().get(self.at) {
            Some(next) if *next > b' ' => *next,
            _ => self.past_space(),
        }
    }
    #[inline(never)]
    fn past_space(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                next => return next.copied().unwrap_or(0),
            }
        }
    }
}
