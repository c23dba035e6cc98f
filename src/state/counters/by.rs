//! Who could have made a key up. What anybody can make up, an address or a context of somebody who was not verified, has
//! half of the places alone, so that it never takes the place of a key of somebody who is known.

/// Set where anybody could.
const OPEN: u32 = 1 << 31;

/// Nobody, somebody who is known, or anybody; then, or where keys are chosen, with a digest of the group that has a
/// share of its own: a caller, or a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct By(pub(super) u32);

impl By {
    /// Settings, or somebody who was verified: nobody can make up keys.
    pub const NOBODY: Self = Self(0);

    /// Somebody who was verified, and chose it.
    pub const fn known(digest: u32) -> Self {
        Self(digest & !OPEN | 1)
    }

    /// Anybody, of this group.
    pub const fn anybody(group: Option<u32>) -> Self {
        match group {
            Some(digest) => Self(digest | OPEN | 1),
            None => Self(OPEN),
        }
    }

    /// Whether anybody could.
    pub(super) const fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether it is of a group that has a share.
    pub(super) const fn has_share(self) -> bool {
        self.0 & !OPEN != 0
    }

    /// All of its kind, without a group.
    pub(super) const fn all(self) -> Self {
        Self(self.0 & OPEN)
    }
}
