//! What an object is known to have, and how a name is found in that at the first look.
use super::{
    Key, Member,
    name::{MARKS, Tag, same},
};

/// The members that an object is known to have, and which of them are opened with it.
#[derive(Debug)]
pub struct Form {
    entries: &'static [Entry],
    index: Index,
    /// It has names in `snake_case`.
    snake: bool,
}

type Entry = (&'static str, As);

/// How a known member is read. Only a hint: what has another type stays text, and `within` and `each` open
/// text that the form left closed.
#[derive(Clone, Copy, Debug)]
pub enum As {
    /// Stays as it came.
    Text,
    /// An object, opened by its form.
    One(&'static Form),
    /// A list of objects, each opened by one form.
    Each(&'static Form),
    /// Depends on the members before it.
    By(fn(&[Member<'_>]) -> As),
    /// As the reader was told by [`Obj::open_asking`](super::Obj::open_asking).
    Asked,
}

impl Form {
    /// Opens nothing below the object itself.
    pub const FLAT: Self = Self::of(&[]);

    /// The form with these members.
    pub const fn of(entries: &'static [(&'static str, As)]) -> Self {
        let index = Index::of(entries);
        let (mut snake, mut i) = (false, 0);
        while i < entries.len() {
            snake |= has_underscore(entries[i].0);
            i += 1;
        }
        Self {
            entries,
            index,
            snake,
        }
    }

    /// Whether the form has a member of this name.
    pub fn knows(&self, key: &str) -> bool {
        self.find(key, Tag::of(key)).is_some()
    }

    #[inline]
    pub(super) fn find(&self, key: &str, tag: Tag) -> Option<&'static Entry> {
        self.index.find(self.entries, key, tag)
    }

    /// Whether `proper` may have another name for this one: not for names that it knows, as most are.
    #[inline]
    pub(super) fn may_mend(&self, key: &Key<'_>) -> bool {
        self.snake || self.find(key, key.tag).is_none()
    }

    /// The member's proper name for one in `snake_case`, if it has one.
    pub(super) fn proper(&self, snake: &str) -> Option<&'static str> {
        if !has_underscore(snake) {
            return None;
        }
        let is = |k: &str| k != snake && is_snake_of(snake, k); // a form may name both, to open both
        let found = self.entries.iter().find(|(k, _)| is(k));
        found.map(|(k, _)| *k)
    }
}

/// For each mark the first entry of a form that has it, and that entry's tag.
#[derive(Debug)]
struct Index {
    tags: [Tag; MARKS],
    places: [u8; MARKS],
    /// Two entries have one mark.
    shared: bool,
}

impl Index {
    const fn of(entries: &[Entry]) -> Self {
        assert!(entries.len() < u8::MAX as usize, "a form is short");
        let mut index = Self {
            tags: [Tag::EMPTY; MARKS],
            places: [u8::MAX; MARKS],
            shared: false,
        };
        let mut i = entries.len();
        while i > 0 {
            i -= 1;
            let tag = Tag::of(entries[i].0);
            index.shared |= index.places[tag.mark()] != u8::MAX;
            index.tags[tag.mark()] = tag;
            index.places[tag.mark()] = i.to_le_bytes()[0];
        }
        index
    }

    #[inline]
    fn find<'f>(&self, entries: &'f [Entry], name: &str, tag: Tag) -> Option<&'f Entry> {
        if self.tags[tag.mark()] == tag
            && let Some(entry) = entries.get(usize::from(self.places[tag.mark()]))
            && same(entry.0, name)
        {
            return Some(entry);
        }
        if self.shared {
            return find_slowly(entries, name);
        }
        None
    }
}

#[cold]
fn find_slowly<'f>(entries: &'f [Entry], name: &str) -> Option<&'f Entry> {
    entries.iter().find(|(k, _)| *k == name)
}

/// Whether `snake` spells `camel` with underscores.
fn is_snake_of(snake: &str, camel: &str) -> bool {
    let mut s = snake.bytes();
    for c in camel.bytes() {
        if c.is_ascii_uppercase() {
            if s.next() != Some(b'_') || s.next() != Some(c.to_ascii_lowercase()) {
                return false;
            }
        } else if s.next() != Some(c) {
            return false;
        }
    }
    s.next().is_none()
}

const fn has_underscore(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'_' {
            return true;
        }
        rest = after;
    }
    false
}
