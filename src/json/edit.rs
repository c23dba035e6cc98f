//! Edits of an opened object. Each says that something changed, so that what was not touched can pass as text.
use std::borrow::Cow;

use super::{Error, Form, Key, Limits, Node, Obj, Result, refuse, scan};

impl<'a> Obj<'a> {
    /// Takes a member out.
    #[inline]
    pub fn take(&mut self, key: &str) -> Option<Node<'a>> {
        let i = self.at(key)?;
        self.changed = true;
        Some(self.members.remove(i).1)
    }

    /// Takes a member that must be an object where it is there; `null` counts as not there.
    pub fn take_obj(&mut self, key: &'static str) -> Result<Option<Obj<'a>>> {
        match self.take(key) {
            None | Some(Node::Text("null")) => Ok(None),
            Some(Node::Obj(o)) => Ok(Some(o)),
            Some(Node::Text(t)) if t.starts_with('{') => {
                Obj::open(t, &Form::FLAT, Limits::CHECKED).map(Some)
            }
            Some(_) => refuse(key, "is not an object"),
        }
    }

    /// Takes a list of objects; `null` counts as not there.
    pub fn take_list(&mut self, key: &'static str) -> Result<Option<Vec<Obj<'a>>>> {
        match self.take(key) {
            None | Some(Node::Text("null")) => Ok(None),
            Some(Node::List(items)) => Ok(Some(items)),
            Some(Node::Text(t)) if t.starts_with('[') => {
                scan::whole(t, Limits::CHECKED, |s| s.list(&Form::FLAT)).map(Some)
            }
            Some(_) => refuse(key, "is not a list"),
        }
    }

    /// Sets a member, in its place if it is there.
    #[inline]
    pub fn put(&mut self, key: &'static str, node: Node<'a>) {
        match self.at(key) {
            Some(i) => self.put_at(i, node),
            None => self.append(Key::new(Cow::Borrowed(key)), node),
        }
    }

    fn put_at(&mut self, i: usize, node: Node<'a>) {
        self.changed = true;
        self.blank |= node.is_blank();
        self.members[i].1 = node;
    }

    /// As `put`, but before all others.
    pub fn put_first(&mut self, key: &'static str, node: Node<'a>) {
        self.take(key);
        self.append(Key::new(Cow::Borrowed(key)), node);
        self.members.rotate_right(1);
    }

    /// Adds a member whose name is not one of ours, unless it is there already.
    pub fn add(&mut self, key: Cow<'a, str>, node: Node<'a>) -> Result {
        if self.has(&key) {
            return Err(Error::Twice(key.into_owned()));
        }
        self.append(Key::new(key), node);
        Ok(())
    }

    /// As `put`, for a name that is not one of ours.
    pub fn set(&mut self, key: &str, node: Node<'a>) {
        match self.at(key) {
            Some(i) => self.put_at(i, node),
            None => self.append(Key::new(Cow::Owned(key.to_owned())), node),
        }
    }

    /// The object at `key`, opened, whatever its name is; `None` if there is no object.
    pub fn enter(&mut self, key: &str) -> Result<Option<&mut Obj<'a>>> {
        let Some(i) = self.at(key) else {
            return Ok(None);
        };
        let node = &mut self.members[i].1;
        if let Node::Text(t) = *node
            && t.starts_with('{')
        {
            *node = Node::Obj(Obj::open(t, &Form::FLAT, Limits::CHECKED)?);
        }
        Ok(match node {
            Node::Obj(inner) => Some(inner),
            Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::List(_) => None,
        })
    }

    fn append(&mut self, key: Key<'a>, node: Node<'a>) {
        self.changed = true;
        self.blank |= node.is_blank();
        self.names.add(key.tag);
        self.members.push((key, node));
    }

    fn rename_at(&mut self, i: usize, name: &'static str) {
        self.changed = true;
        let name = Key::new(Cow::Borrowed(name));
        self.names.add(name.tag);
        self.members[i].0 = name;
    }

    /// Refuses to make two members of one name: which of them counts is not ours to guess.
    #[inline]
    pub fn rename(&mut self, from: &str, to: &'static str) -> Result {
        let Some(i) = self.at(from) else {
            return Ok(());
        };
        if self.at(to).is_some_and(|j| j != i) {
            return Err(Error::Twice(to.to_owned()));
        }
        self.rename_at(i, to);
        Ok(())
    }

    /// Gives members written in `snake_case` the name that `form` has for them (`ProtoJSON` takes both).
    #[inline]
    pub fn camel(&mut self, form: &Form) -> Result {
        if !self.members.iter().any(|(k, _)| form.may_mend(k)) {
            return Ok(());
        }
        for i in 0..self.members.len() {
            if let Some(proper) = form.proper(&self.members[i].0) {
                if self.at(proper).is_some() {
                    return Err(Error::Twice(proper.to_owned()));
                }
                self.rename_at(i, proper);
            }
        }
        Ok(())
    }

    /// Drops members that are `null`, save the one named.
    #[inline]
    pub fn no_nulls(&mut self, save: &str) {
        if self.blank {
            self.drop_where(|k, n| n.is_null() && **k != *save, |_| {});
        }
    }

    /// Drops these members where they say nothing: `""`, `null` or `[]`.
    #[inline]
    pub fn no_blanks(&mut self, keys: &[&str]) {
        if self.blank {
            self.drop_where(|k, n| n.is_blank() && keys.contains(&&**k), |_| {});
        }
    }

    fn drop_where(
        &mut self,
        gone: impl Fn(&Key<'_>, &Node<'_>) -> bool,
        mut told: impl FnMut(&str),
    ) {
        // Mostly there is none, and looking is cheaper than retaining.
        if self.members.iter().any(|(k, n)| gone(k, n)) {
            self.members.retain(|(k, n)| {
                let gone = gone(k, n);
                if gone {
                    told(k);
                }
                !gone
            });
            self.changed = true;
        }
    }

    /// Replaces the string at `key` where `f` knows it; an unknown word passes unchanged.
    pub fn word(&mut self, key: &str, f: impl FnOnce(&str) -> Option<&'static str>) {
        let Some(i) = self.at(key) else { return };
        let old = self.members[i].1.said();
        if let Some(new) = old.and_then(|old| f(&old).filter(|new| **new != *old)) {
            self.put_at(i, Node::word(new));
        }
    }

    /// Edits the object at `key`, if there is one.
    pub fn within(&mut self, key: &'static str, f: impl FnOnce(&mut Obj<'a>) -> Result) -> Result {
        let Some(i) = self.at(key) else {
            return Ok(());
        };
        let node = &mut self.members[i].1;
        if let Node::Text(t) = *node
            && t.starts_with('{')
        {
            *node = Node::Obj(Obj::open(t, &Form::FLAT, Limits::CHECKED)?);
        }
        match node {
            Node::Obj(inner) => f(inner),
            Node::Text("null") => Ok(()),
            Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::List(_) => {
                refuse(key, "is not an object")
            }
        }
    }

    /// Edits every object of the list at `key`, if there is one.
    pub fn each(&mut self, key: &'static str, f: impl FnMut(&mut Obj<'a>) -> Result) -> Result {
        let Some(i) = self.at(key) else {
            return Ok(());
        };
        let node = &mut self.members[i].1;
        if let Node::Text(t) = *node
            && t.starts_with('[')
        {
            *node = Node::List(scan::whole(t, Limits::CHECKED, |s| s.list(&Form::FLAT))?);
        }
        match node {
            Node::List(items) => items.iter_mut().try_for_each(f),
            Node::Text("null") => Ok(()),
            Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::Obj(_) => {
                refuse(key, "is not a list")
            }
        }
    }

    /// Edits every member that is an object, whatever its name: for maps such as `securitySchemes`.
    pub fn each_member(&mut self, mut f: impl FnMut(&str, &mut Obj<'a>) -> Result) -> Result {
        for (key, node) in &mut self.members {
            if let Node::Text(t) = *node
                && t.starts_with('{')
            {
                *node = Node::Obj(Obj::open(t, &Form::FLAT, Limits::CHECKED)?);
            }
            if let Node::Obj(inner) = node {
                f(key, inner)?;
            }
        }
        Ok(())
    }

    /// Keeps the members for which `f` says so.
    pub fn retain(&mut self, mut f: impl FnMut(&str, &Node<'a>) -> bool) {
        let before = self.members.len();
        self.members.retain(|(k, n)| f(k, n));
        self.changed |= self.members.len() != before;
    }

    /// Moves all members of `other` into this object; refuses as `rename` does.
    pub fn merge(&mut self, other: Obj<'a>) -> Result {
        let mut theirs = other.members.iter().map(|(k, _)| k);
        if let Some(k) = theirs.find(|k| self.at_tagged(k, k.tag).is_some()) {
            return Err(Error::Twice(k.to_string()));
        }
        self.changed = true;
        self.blank |= other.blank;
        self.names.add_all(other.names);
        self.members.extend(other.members);
        Ok(())
    }

    /// Puts all that is in it into one member.
    pub fn wrap(&mut self, key: &'static str) {
        let inner = std::mem::take(self);
        self.put(key, Node::Obj(inner));
    }

    /// Drops the members that `form` does not know, and names each to `lost`.
    pub fn keep(&mut self, form: &Form, lost: impl FnMut(&str)) {
        self.drop_where(|k, _| form.find(k, k.tag).is_none(), lost);
    }
}
