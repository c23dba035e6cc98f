//! The reader under `Obj`: one pass over the text that checks all of it and opens what the form names.
//!
//! Checked on the way: the grammar of RFC 8259 in full, nesting, and a key that `serde_json` reserves.
//! Not checked: that strings left as text pair their surrogates.
use std::borrow::Cow;

use super::{As, Error, Form, Key, Member, Node, Obj, Result};

mod run;
mod token;

use run::plain;

/// The deepest nesting that any limit may allow: peers parse by recursion.
const DEPTH: usize = 200;
/// Members and list items that may be opened in one text. Each takes some 80 bytes whatever its text is, so
/// that a text of empty objects would else take twenty times its size.
const NODES: u32 = 200_000;
/// `serde_json` takes the value under this key for JSON text, so that it would mean two things.
const RESERVED: &str = "$serde_json::private::RawValue";
/// Up to so many members each new key is compared with all before it; a larger object is sorted once.
const FEW: usize = 32;
/// Members an object has room for at first. Fewer in a list, where many small ones would take much for little text.
pub(super) const ROOM: usize = 8;
/// Items a list has room for at first, and members each of them: as a `Vec` would that grows.
const FEW_ITEMS: usize = 4;

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
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let end = plain(bytes, 1);
    if end + 1 == bytes.len() && bytes[end] == b'"' {
        return Some(Cow::Borrowed(&text[1..end]));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
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
        self.peek();
        let from = self.at;
        let mut more = self.enter(b'{')?;
        let mut o = Obj {
            members: Vec::with_capacity(if more { room } else { 0 }),
            ..Obj::default()
        };
        while more {
            let key = match self.plain_key() {
                Some(key) => Cow::Borrowed(key),
                None => self.key()?,
            };
            let key = Key::new(key);
            if o.members.len() < FEW && o.at_tagged(&key, key.tag).is_some() {
                return Err("second member of one name");
            }
            o.names.add(key.tag);
            match self.peek() {
                b'"' => {
                    let from = self.at;
                    self.string()?;
                    o.blank |= self.at - from == 2;
                    o.members.push((key, Node::Text(&self.text[from..self.at])));
                }
                open => {
                    let node = self.value(open, form, &key, &o.members)?;
                    o.blank |= node.is_blank();
                    o.members.push((key, node));
                }
            }
            self.spend(o.members.len())?;
            more = self.more()?;
        }
        if o.members.len() > FEW {
            let mut keys: Vec<&str> = o.members.iter().map(|(k, _)| &**k).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err("second member of one name");
            }
        }
        o.source = &self.text[from..self.at];
        Ok(o)
    }

    #[inline]
    fn value(
        &mut self,
        open: u8,
        form: &'static Form,
        key: &Key<'a>,
        before: &[Member<'a>],
    ) -> Read<Node<'a>> {
        let how = match open {
            b'{' | b'[' => match form.find(key, key.tag) {
                None => As::Text,
                Some((_, As::By(pick))) => pick(before),
                Some((_, As::Asked)) => self.asked,
                Some((_, how)) => *how,
            },
            _ => As::Text,
        };
        self.node(how)
    }

    pub(super) fn node(&mut self, how: As) -> Read<Node<'a>> {
        match (self.peek(), how) {
            (b'{', As::One(form)) => Ok(Node::Obj(self.object(form, ROOM)?)),
            (b'[', As::Each(form)) => Ok(Node::List(self.list(form)?)),
            _ => {
                let from = self.at;
                self.skip()?;
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
        let mut more = self.enter(b'[')?;
        let mut items = Vec::with_capacity(if more { FEW_ITEMS } else { 0 });
        let mut room = FEW_ITEMS;
        while more {
            let item = self.object(form, room)?;
            room = (item.members.len() + 1).clamp(FEW_ITEMS, FEW); // mostly alike, and they get a `kind`
            items.push(item);
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

    /// A key and its colon, as nearly all are: without escapes or white space.
    #[inline]
    fn plain_key(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let from = self.at + 1;
        let end = plain(bytes, from);
        if bytes[end..].first_chunk() != Some(b"\":") || end - from == RESERVED.len() {
            return None;
        }
        self.at = end + 2;
        Some(&self.text[from..end])
    }

    /// A key and its colon. Escapes are resolved, so that no spelling of a name hides it.
    #[inline(never)]
    fn key(&mut self) -> Read<Cow<'a, str>> {
        if self.peek() != b'"' {
            return Err("no key");
        }
        let from = self.at;
        self.string()?;
        let Some(key) = unquote(&self.text[from..self.at]) else {
            return Err("key that is not Unicode");
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
}
