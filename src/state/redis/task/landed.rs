//! What landed: each answer says something of the store, and something to who asked.
use super::{
    super::{
        super::{Key, Shown, overlap, slot::Millis},
        flight::Fail,
        script::{Found, Op, Reply},
    },
    Landed, Landing, No, Task, To,
};

impl Task {
    pub(super) fn land(&mut self, landed: Landed) {
        let link = landed.link;
        match landed.what {
            Landing::Asked(key, op, sent, to, said) => {
                let said = self.heard(link, Some(key), said);
                self.asked(key, &op, sent, to, said);
            }
            Landing::Told(key, token, op, said) => {
                let said = self.heard(link, Some(key), said).ok();
                if self.table.told(key, token, &op, said.as_ref()) {
                    tracing::warn!(conversation = %key, "a conversation was lost: its slot in the state store is \
                        another's or gone, while a message of it was in flight here");
                }
                if let Some(said) = said {
                    if matches!(op, Op::Restore(_, _, true)) && said.entry.holders.len() > 1 {
                        overlap(key);
                    }
                    self.table.learn(key, &said);
                }
            }
            Landing::Epoch(tag, said) => {
                self.epochs_asked -= 1;
                if let Ok(said) = self.heard(link, None, said) {
                    self.learn_epoch(tag, said.epoch);
                }
            }
            Landing::Learned(said) => drop(self.heard(link, None, said)),
            Landing::Counted(left, said) => {
                if let Err(fail) = self.heard(link, None, said) {
                    self.counts.failed(left, &fail);
                }
            }
            Landing::ContextOf(task, to, said) => {
                let context = self.heard(link, None, said).ok().flatten();
                let context = context.map(String::into_boxed_str);
                if let Some(context) = &context {
                    self.contexts.put(task, context.clone());
                }
                let _ = to.send(context);
            }
            Landing::Bound(context, agent, to, said) => {
                let said = self.heard(link, None, said);
                self.was_bound(context, agent, to, said);
            }
            Landing::Begun(key, new, to, said) => {
                let said = self.heard(link, Some(key), said);
                self.begun(key, new, to, said);
            }
            Landing::Said(key, saying, said) => {
                let said = self.heard(link, Some(key), said);
                self.said_of(key, &saying, said.ok().as_ref());
            }
            Landing::Owned(landed) => self.land_owned(link, landed),
            Landing::Taken(to, of, said) => {
                let said = self.heard(link, None, said).map_err(|_| No::Away);
                self.taken(to, of, said);
            }
            Landing::LookedAt(to, said) => {
                let _ = to.send(self.heard(link, None, said).map_err(|_| No::Away));
            }
            Landing::Listed(to, said) => {
                let said = self.heard(link, None, said).map_err(|_| No::Away);
                let shown = |(key, said): (Key, Reply)| Shown {
                    key,
                    entry: said.entry,
                    now: said.now,
                };
                let _ = to.send(said.map(|all| all.into_iter().map(shown).collect()));
            }
        }
    }

    /// What each answer says of the store itself.
    pub(super) fn heard<T: Said>(
        &mut self,
        link: u64,
        key: Option<Key>,
        said: Result<T, Fail>,
    ) -> Result<T, Fail> {
        match &said {
            Ok(said) => {
                self.late = 0;
                if let (Some(key), Some(epoch)) = (key, said.epoch()) {
                    self.learn_epoch(self.wire.keys.tag(key), epoch);
                }
            }
            Err(fail) => self.failed(link, fail),
        }
        said
    }

    pub(super) fn was_bound(
        &mut self,
        context: Key,
        agent: Box<str>,
        to: Option<To<Option<Box<str>>>>,
        said: Result<Option<String>, Fail>,
    ) {
        let said = match (said, &to) {
            (Ok(other), None) => {
                if other.is_some() {
                    tracing::warn!(%context, "a context was bound to another agent while the state store was away");
                }
                return;
            }
            (Err(_), None) => {
                self.bound.insert(context, agent); // for the next time
                return;
            }
            (Ok(other), Some(_)) => Ok(other.map(String::into_boxed_str)),
            (Err(_), _) if self.link.is_none() => self.bind_locally(context, agent),
            (Err(_), _) => Err(No::Away),
        };
        if let Some(to) = to {
            let _ = to.send(said);
        }
    }
}

/// An answer that may tell how old the store's data is.
pub(super) trait Said {
    fn epoch(&self) -> Option<Millis> {
        None
    }
}

impl Said for Reply {
    fn epoch(&self) -> Option<Millis> {
        Some(self.epoch)
    }
}

impl Said for Found {
    fn epoch(&self) -> Option<Millis> {
        Some(self.epoch)
    }
}

impl Said for () {}
impl Said for bool {}
impl Said for crate::state::owner::Claimed {}
impl Said for [u8; 32] {}
impl Said for Vec<Option<Key>> {}
impl Said for super::Outcome {}
impl Said for Vec<(u64, u64)> {}
impl Said for Option<String> {}
impl Said for Vec<(Key, Reply)> {}
