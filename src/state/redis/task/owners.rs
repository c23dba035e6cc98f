//! Whose a task or a context is. Asked of the store each time and never answered alone: while it is away, nobody is told.
//! Claims of what exists already are owed to it until it has them.
use std::collections::{HashMap, hash_map::Entry};

use tokio::sync::oneshot;

use super::{
    super::{
        super::{Key, owner::Claimed, slot::millis},
        owners::{Ask, Landing as Owned},
    },
    Landing, No, Stand, Task,
};

/// The most claims that are owed to a store that is away. What is beyond belongs to nobody.
const MOST: usize = 10_000;

/// Claims that the store does not have yet, and whether each is on its way.
#[derive(Default)]
pub(super) struct Owed(HashMap<Key, (Key, bool)>);

impl Owed {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that wait, which are on their way from now on.
    fn waiting(&mut self, again: bool) -> Vec<(Key, Key)> {
        let waiting = self.0.iter_mut().filter(|(_, (_, flies))| again || !*flies);
        waiting
            .map(|(what, (owner, flies))| {
                *flies = true;
                (*what, *owner)
            })
            .collect()
    }

    /// One claim of it has landed: the store has it, or has to be told again. Another owner's that is owed by now stays.
    fn landed(&mut self, what: Key, owner: Key, told: bool) {
        match self.0.entry(what) {
            Entry::Occupied(owed) if owed.get().0 != owner => {}
            Entry::Occupied(owed) if told => {
                owed.remove();
            }
            Entry::Occupied(mut owed) => owed.get_mut().1 = false,
            Entry::Vacant(_) if told => {}
            Entry::Vacant(free) => {
                free.insert((owner, false));
            }
        }
    }
}

impl Task {
    pub(super) fn ask_owned(&mut self, ask: Ask) {
        let ttl = millis(self.settings.owners.ttl);
        if self.link.is_none() {
            match ask {
                Ask::Claim(.., to) => drop(to.send(Err(No::Away))),
                Ask::Owners(.., to) => drop(to.send(Err(No::Away))),
                Ask::Secret(_, to) => drop(to.send(Err(No::Away))),
            }
            return;
        }
        self.fly(|wire, link| async move {
            Landing::Owned(match ask {
                Ask::Claim(what, owner, name, to) => {
                    let said = wire.claim(link, what, owner, Some(name), ttl).await;
                    Owned::Claimed(to, said)
                }
                Ask::Owners(of, by, to) => Owned::Owners(to, wire.owners(link, of, by, ttl).await),
                Ask::Secret(offered, to) => Owned::Secret(to, wire.secret(link, offered).await),
            })
        });
    }

    /// A claim that came to nothing. One that a store does not hear of lasts: that is safe.
    pub(super) fn unclaim(&self, what: Key, owner: Key, name: u64) {
        self.fly(|wire, link| async move {
            Landing::Owned(Owned::Unclaimed(
                wire.unclaim(link, what, owner, name).await,
            ))
        });
    }

    /// A claim of what exists already. The first who claimed it has it, also while the store cannot be told.
    pub(super) fn owe(&mut self, what: Key, owner: Key, to: oneshot::Sender<bool>) {
        let here = self.link.is_some();
        if let Some((other, flies)) = self.owed.0.get(&what)
            && *other != owner
        {
            if here && *flies {
                self.fly_claim(what, owner, to); // behind it, and the store says whose it is
            } else {
                let _ = to.send(false);
            }
            return;
        }
        if self.owed.0.len() >= MOST && !self.owed.0.contains_key(&what) {
            tracing::warn!(
                "the state store is away for too long: a new task or context belongs to nobody, and is refused to all"
            );
            return;
        }
        self.owed.0.insert(what, (owner, here));
        if here {
            self.fly_claim(what, owner, to);
        }
    }

    fn fly_claim(&self, what: Key, owner: Key, to: oneshot::Sender<bool>) {
        let ttl = millis(self.settings.owners.ttl);
        self.fly(|wire, link| async move {
            let said = wire.claim(link, what, owner, None, ttl).await;
            let said = said.map(|claimed| claimed != Claimed::Others);
            Landing::Owned(Owned::Sure(what, owner, to, said))
        });
    }

    /// Tells what is owed: what waits, or all of it to a store that has come back.
    pub(super) fn tell_owed(&mut self, again: bool) {
        if self.owed.is_empty() || self.stand == Stand::Away {
            return;
        }
        for (what, owner) in self.owed.waiting(again) {
            let (to, _nobody) = oneshot::channel();
            self.fly_claim(what, owner, to);
        }
    }

    pub(super) fn land_owned(&mut self, link: u64, landed: Owned) {
        match landed {
            Owned::Claimed(to, said) => {
                let said = self.heard(link, None, said);
                let _ = to.send(said.map_err(|_| No::Away));
            }
            Owned::Unclaimed(said) => {
                let _lasts = self.heard(link, None, said);
            }
            Owned::Sure(what, owner, to, said) => match self.heard(link, None, said) {
                Ok(mine) => {
                    self.owed.landed(what, owner, true);
                    if to.send(mine).is_err() && !mine {
                        tracing::warn!(%what, "a task or context that an agent told of belongs to another owner");
                    }
                }
                Err(_) => self.owed.landed(what, owner, false),
            },
            Owned::Owners(to, said) => {
                let said = self.heard(link, None, said);
                let _ = to.send(said.map_err(|_| No::Away));
            }
            Owned::Secret(to, said) => {
                let said = self.heard(link, None, said);
                let _ = to.send(said.map_err(|_| No::Away));
            }
        }
    }
}
