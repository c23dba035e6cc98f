//! Finding a name among few without comparing it with each.
use std::{borrow::Cow, ops::Deref};

/// What there is to see of a name at a glance: its length and three of its bytes. Two tags mean two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

/// How many marks there are.
pub(super) const MARKS: usize = 32;

impl Tag {
    pub(super) const EMPTY: Self = Self(0);

    #[inline]
    pub(super) const fn of(name: &str) -> Self {
        let name = name.as_bytes();
        let (first, last) = match name {
            [] => return Self::EMPTY,
            [only] => return Self(u32::from_le_bytes([*only, *only, *only, 1])),
            [first, .., last] => (first, last),
        };
        let (middle, len) = (name[name.len() / 2], name.len().to_le_bytes()[0]);
        Self(u32::from_le_bytes([*first, *last, middle, len]))
    }

    /// The tag as one of few numbers, so chosen that few of our names in one form share theirs.
    #[inline]
    pub(super) const fn mark(self) -> usize {
        (self.0.wrapping_mul(0x12fc_552f) >> 27) as usize
    }
}

/// A member's name.
#[derive(Debug)]
pub struct Key<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) tag: Tag,
}

impl<'a> Key<'a> {
    #[inline]
    pub(super) fn new(text: Cow<'a, str>) -> Self {
        let tag = Tag::of(&text);
        Self { text, tag }
    }

    /// Whether it is this name of the same tag.
    #[inline]
    pub(super) fn is_also(&self, name: &str) -> bool {
        same(&self.text, name)
    }
}

impl Deref for Key<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.text
    }
}

/// The marks of all names that were ever in an object: a name whose mark is missing is not in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks(u32);

impl Marks {
    #[inline]
    pub(super) const fn add(&mut self, tag: Tag) {
        self.0 |= 1 << tag.mark();
    }

    pub(super) const fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    #[inline]
    pub(super) const fn may_have(self, tag: Tag) -> bool {
        self.0 & (1 << tag.mark()) != 0
    }
}

/// Whether two names of one tag are one. As `==`, but without a call for names up to 16 bytes, which nearly all are:
/// their first and last words, overlapping, are all of them; and up to three bytes are in the tag.
#[inline]
pub(super) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        0..=3 => true,
        4..=8 => ends_same::<4>(a, b),
        9..=16 => ends_same::<8>(a, b),
        _ => a == b,
    }
}

#[inline]
fn ends_same<const N: usize>(a: &[u8], b: &[u8]) -> bool {
    a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
}
