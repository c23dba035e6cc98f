//! A JSON object opened where we must look into it; every other value stays the text it was.
//!
//! A [`Form`] says which members are objects to open, so that one pass over the text checks it, opens all of
//! them and steps over the rest. Opening level by level would read the inner text three or four times.
use std::borrow::Cow;

mod edit;
mod form;
mod name;
mod scan;

pub use form::{As, Form};
pub use name::Key;
pub use scan::{Limits, check};

use name::{Marks, Tag};

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON, or JSON that we do not take.
    #[error("{why} at byte {at}")]
    Text {
        /// What is wrong.
        why: &'static str,
        /// The byte at which it was seen, counted from 0.
        at: usize,
    },
    /// A member has a value of a kind that it cannot have.
    #[error("`{key}` {why}")]
    Member {
        /// The member's name.
        key: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two members would have one name, for instance after two spellings of it were read.
    #[error("`{0}` is given twice")]
    Twice(String),
}

/// What reading or editing gives.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// One member of an opened object.
pub type Member<'a> = (Key<'a>, Node<'a>);

/// Members in their order, never two of one name.
#[derive(Debug, Default)]
pub struct Obj<'a> {
    members: Vec<Member<'a>>,
    source: &'a str,
    names: Marks,
    changed: bool,
    /// Some value may be blank; else nobody needs to look for one.
    blank: bool,
}

/// The value of a member.
#[derive(Debug)]
pub enum Node<'a> {
    /// JSON as it came, already checked.
    Text(&'a str),
    /// JSON text of ours.
    Made(String),
    /// A string of ours, not yet quoted.
    Word(Cow<'static, str>),
    /// An opened object.
    Obj(Obj<'a>),
    /// A list of opened objects.
    List(Vec<Obj<'a>>),
}

impl Node<'_> {
    /// A string of ours.
    pub const fn word(w: &'static str) -> Self {
        Node::Word(Cow::Borrowed(w))
    }

    /// A string from elsewhere.
    #[inline]
    pub fn string(s: impl Into<String>) -> Self {
        Node::Word(Cow::Owned(s.into()))
    }

    /// `true` or `false`.
    pub const fn flag(b: bool) -> Self {
        Node::Text(if b { "true" } else { "false" })
    }

    fn is_null(&self) -> bool {
        matches!(self, Node::Text("null"))
    }

    /// `[]`, `{}` excluded.
    fn is_empty_list(&self) -> bool {
        match self {
            Node::List(items) => items.is_empty(),
            Node::Text(t) => t
                .strip_prefix('[')
                .is_some_and(|t| t.trim_start().starts_with(']')),
            Node::Made(_) | Node::Word(_) | Node::Obj(_) => false,
        }
    }

    /// The string without its escapes; `None` as well for one that is not Unicode (a lone surrogate).
    pub fn said(&self) -> Option<Cow<'_, str>> {
        match self {
            Node::Text(t) => scan::unquote(t),
            Node::Made(t) => scan::unquote(t),
            Node::Word(w) => Some(Cow::Borrowed(w)),
            Node::Obj(_) | Node::List(_) => None,
        }
    }

    /// `null`, `""` or `[]`.
    #[inline]
    fn is_blank(&self) -> bool {
        matches!(self, Node::Text("\"\"" | "null")) || self.is_empty_list()
    }

    fn changed(&self) -> bool {
        match self {
            Node::Text(_) | Node::Made(_) | Node::Word(_) => false, // whoever put it there said so
            Node::Obj(o) => o.changed(),
            Node::List(items) => items.iter().any(Obj::changed),
        }
    }
}

impl<'a> Obj<'a> {
    /// Refuses what is not one JSON object, nests too deep, has too much in it, or names a member twice in an
    /// object that is opened.
    pub fn open(text: &'a str, form: &'static Form, limits: Limits) -> Result<Self> {
        scan::whole(text, limits, |s| s.object(form, scan::ROOM))
    }

    /// As `open`, with `asked` in the place of [`As::Asked`].
    pub fn open_asking(
        text: &'a str,
        form: &'static Form,
        asked: As,
        limits: Limits,
    ) -> Result<Self> {
        scan::whole(text, limits, |s| {
            s.asked = asked;
            s.object(form, scan::ROOM)
        })
    }

    /// The text that it was opened from, as long as nothing in it is changed.
    pub fn unchanged(&self) -> Option<&'a str> {
        (!self.changed() && !self.source.is_empty()).then_some(self.source)
    }

    /// Its members, in their order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.members.iter().map(|(k, n)| (&**k, n))
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The member of this name.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.at(key).map(|i| &self.members[i].1)
    }

    /// Whether there is such a member.
    #[inline]
    pub fn has(&self, key: &str) -> bool {
        self.at(key).is_some()
    }

    /// The member as it came, if it is still text.
    #[inline]
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        match self.get(key)? {
            Node::Text(t) => Some(t),
            Node::Made(_) | Node::Word(_) | Node::Obj(_) | Node::List(_) => None,
        }
    }

    /// The member's string, as [`Node::said`] has it.
    #[inline]
    pub fn string(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key)?.said()
    }

    /// The object at `key`, if it is opened.
    #[inline]
    pub fn inside(&self, key: &str) -> Option<&Obj<'a>> {
        match self.get(key)? {
            Node::Obj(o) => Some(o),
            Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::List(_) => None,
        }
    }

    /// The opened list at `key`.
    #[inline]
    pub fn list(&self, key: &str) -> Option<&[Obj<'a>]> {
        match self.get(key)? {
            Node::List(items) => Some(items),
            Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::Obj(_) => None,
        }
    }

    /// Whether it, or what is opened in it, is no longer as it came.
    pub fn changed(&self) -> bool {
        self.changed || self.members.iter().any(|(_, n)| n.changed())
    }

    /// Appends the object as JSON. The caller sizes `out`: the length of what was read and some spare.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut before = b'{';
        for (key, node) in &self.members {
            out.push(before);
            before = b',';
            if let (Cow::Borrowed(key), Node::Text(value)) = (&key.text, node)
                && let Some(both) = self.together(key, value)
            {
                out.extend_from_slice(both.as_bytes());
                continue;
            }
            quote(&key.text, out);
            out.push(b':');
            node.write(out);
        }
        out.extend_from_slice(if self.members.is_empty() { b"{}" } else { b"}" });
    }

    /// A member as it stands in the text, where both still do and nothing but a colon lies between: most do,
    /// and then one copy writes them.
    fn together(&self, key: &str, value: &str) -> Option<&'a str> {
        let place =
            |part: &str| (part.as_ptr() as usize).wrapping_sub(self.source.as_ptr() as usize);
        let (from, to) = (place(key).wrapping_sub(1), place(value));
        let whole = to == place(key).wrapping_add(key.len() + 2);
        self.source
            .get(from..to.wrapping_add(value.len()))
            .filter(|_| whole)
    }

    #[inline]
    fn at(&self, key: &str) -> Option<usize> {
        self.at_tagged(key, Tag::of(key))
    }

    #[inline]
    fn at_tagged(&self, key: &str, tag: Tag) -> Option<usize> {
        if self.names.may_have(tag) {
            return self.place(key, tag);
        }
        None
    }

    #[inline(never)]
    fn place(&self, key: &str, tag: Tag) -> Option<usize> {
        let first = self.members.iter().position(|(k, _)| k.tag == tag)?;
        if self.members[first].0.is_also(key) {
            return Some(first);
        }
        self.place_slowly(key)
    }

    #[cold]
    fn place_slowly(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|(k, _)| **k == *key)
    }
}

impl<'a> Node<'a> {
    /// Reads one value of any kind, opened as `how` says.
    pub fn open(text: &'a str, how: As, limits: Limits) -> Result<Self> {
        scan::whole(text, limits, |s| s.node(how))
    }

    /// Appends the value as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Text(t) => out.extend_from_slice(t.as_bytes()),
            Node::Made(t) => out.extend_from_slice(t.as_bytes()),
            Node::Word(w) => quote(w, out),
            Node::Obj(o) => o.write(out),
            Node::List(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
        }
    }
}

/// Appends a JSON string. What is borrowed needs no escapes: it stood in the text without any, or is a name or
/// word of ours.
#[expect(
    clippy::ptr_arg,
    reason = "whether it is borrowed says whether it needs escapes"
)]
fn quote(s: &Cow<'_, str>, out: &mut Vec<u8>) {
    match s {
        Cow::Borrowed(s) => {
            out.push(b'"');
            out.extend_from_slice(s.as_bytes());
            out.push(b'"');
        }
        Cow::Owned(s) => write_string(s, out),
    }
}

/// Appends `s` as a JSON string.
///
/// # Panics
/// Never: a `Vec` takes every byte.
pub fn write_string(s: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, s).expect("a Vec takes every byte");
}

/// Whether a text is JSON at all, however deep or large.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// What a checked JSON string says; `None` if it is none, or not Unicode.
pub fn unquote(text: &str) -> Option<Cow<'_, str>> {
    scan::unquote(text)
}

fn refuse<T>(key: &'static str, why: &'static str) -> Result<T> {
    Err(Error::Member { key, why })
}

#[cfg(test)]
mod tests;
