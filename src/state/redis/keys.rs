//! What things are called in the store.
use super::super::Key;

/// Hash tags, over which a cluster spreads conversations.
pub(super) const TAGS: u8 = 64;

/// Makes names: `{prefix:NN}` and what it is. What one script uses has one tag, and so lies on one server of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    tags: u8,
}

impl Keys {
    pub(super) fn new(prefix: &str, cluster: bool) -> Self {
        Self {
            prefix: prefix.to_owned(),
            tags: if cluster { TAGS } else { 1 },
        }
    }

    /// All tags.
    pub(super) fn tags(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.tags
    }

    /// The tag of a key.
    pub(super) const fn tag(&self, key: Key) -> u8 {
        key.0[0] % self.tags
    }

    /// Who holds a conversation.
    pub(super) fn slot(&self, key: Key) -> String {
        self.name(key, 's')
    }

    /// Which context a task is of.
    pub(super) fn task(&self, key: Key) -> String {
        self.name(key, 't')
    }

    /// Which agent a context is bound to.
    pub(super) fn binding(&self, key: Key) -> String {
        self.name(key, 'b')
    }

    /// What became of a message.
    pub(super) fn message(&self, key: Key) -> String {
        self.name(key, 'r')
    }

    /// Whose a task or a context is.
    pub(super) fn owner(&self, key: Key) -> String {
        self.name(key, 'o')
    }

    /// The secret of page tokens.
    pub(super) fn secret(&self) -> String {
        format!("{{{}:00}}pages", self.prefix)
    }

    /// What a rule counts.
    pub(super) fn count(&self, key: Key) -> String {
        self.name(key, 'l')
    }

    /// When the data of a tag began.
    pub(super) fn epoch(&self, tag: u8) -> String {
        format!("{{{}:{tag:02}}}epoch", self.prefix)
    }

    /// No conversation, to ask for the epoch alone.
    pub(super) fn nobody(&self, tag: u8) -> String {
        format!("{{{}:{tag:02}}}s:", self.prefix)
    }

    fn name(&self, key: Key, kind: char) -> String {
        format!("{{{}:{:02}}}{kind}:{key}", self.prefix, self.tag(key))
    }

    /// What matches all slots.
    pub(super) fn slots(&self) -> String {
        let mut pattern = String::from("{");
        for c in self.prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern.push_str(":??}s:?*");
        pattern
    }

    /// The key in a slot's name.
    pub(super) fn of_slot(name: &str) -> Option<Key> {
        name.rsplit_once("}s:")?.1.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_tag_share_it() {
        let key = Key::of(&["x"]);
        let one = Keys::new("a2a", false);
        assert_eq!(one.slot(key), format!("{{a2a:00}}s:{key}"));
        assert_eq!(one.epoch(0), "{a2a:00}epoch");
        let many = Keys::new("a*a", true);
        let tag = key.0[0] % 64;
        assert_eq!(many.binding(key), format!("{{a*a:{tag:02}}}b:{key}"));
        assert_eq!(many.slots(), "{a\\*a:??}s:?*");
        assert_eq!(Keys::of_slot(&many.slot(key)), Some(key));
        assert_eq!(Keys::of_slot(&many.nobody(1)), None);
    }
}
