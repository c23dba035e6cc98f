//! What clients of v1.0 still write as it was before: read all the same, and worth telling who does.

/// Names for a person, in the order of the bits.
const NAMES: [&str; 4] = [
    "message.kind",
    "part.kind",
    "configuration.blocking",
    "X-A2A-Extensions",
];

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Old(u8);

impl Old {
    /// How many there are to know.
    pub const ALL: usize = NAMES.len();
    /// `kind` on a message, by which v0.3 told objects apart.
    pub const MESSAGE_KIND: Self = Self(1);
    /// The same on a part.
    pub const PART_KIND: Self = Self(2);
    /// `blocking`, which is `returnImmediately` the other way round.
    pub const BLOCKING: Self = Self(4);
    /// Extensions in the field of v0.3.
    pub const X_EXTENSIONS: Self = Self(8);

    /// These as well.
    pub fn add(&mut self, more: Self) {
        self.0 |= more.0;
    }

    /// Their places in a table of all, with their names.
    pub fn each(self) -> impl Iterator<Item = (usize, &'static str)> {
        let all = NAMES.into_iter().enumerate();
        all.filter(move |(at, _)| self.0 & (1 << at) != 0)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = (usize, &'static str)> {
        NAMES.into_iter().enumerate()
    }
}
