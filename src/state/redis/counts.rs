//! Counts that all replicas share. One script takes of all, or of none; in a cluster one for each hash tag, sent side by
//! side, and what the others took is given back where one refuses.
//!
//! What is not known to have been taken, since the answer is late, stays taken: a quota may be short of a call, never
//! over. What is held at once has a lease, so that it comes free by itself.
use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use futures_util::future::join_all;
use smallvec::SmallVec;

use super::{
    Note, Redis, Trouble,
    address::Link,
    flight::{Fail, Wire},
    script::{Counted, Counting, Doing},
    task::{Command, No},
};
use crate::state::{
    Key,
    counters::{Ask, Level, Micros, One, Refused, Taken, What},
};

/// What calls of this process hold at once, with what it is and by which token.
pub(super) type Held = HashSet<(Key, u64)>;

/// What became of a wish.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It was taken then; which of the counts are new, and the words of rates.
    Taken(Micros, SmallVec<[(bool, Micros); 4]>),
    /// Which refused, how long to wait, and what is left.
    Refused(usize, Micros, u64),
}

/// A wish whose answer is not read, since who asked has given up, ends: the answer may be on its way, and then what
/// calls hold at once would be held for ever. The store task gives back the rest where it can tell.
struct Unread<'r>(&'r Redis, Option<(&'r [Ask], u64)>);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some((asks, token)) = self.1 {
            for ask in asks {
                if matches!(ask.what, What::AtOnce { .. }) {
                    self.0.release_count(ask.key, token);
                }
            }
        }
    }
}

impl Redis {
    /// Takes of all counts together, or of none.
    pub(in crate::state) async fn take_counts(
        &self,
        asks: &[Ask],
        token: u64,
    ) -> Result<Result<Taken, Refused>, Trouble> {
        let of = asks.iter().map(|ask| (ask.key, ask.what, token)).collect();
        let counting = Counting {
            doing: Doing::Take,
            of,
        };
        let said = self.send(|to| Command::Count(counting, to))?;
        let mut unread = Unread(self, Some((asks, token)));
        let said = super::answered(self.patience, said).await?;
        unread.1 = None;
        let outcome = said.map_err(No::trouble)?;
        Ok(match outcome {
            Outcome::Refused(which, wait, left) => Err(Refused { which, wait, left }),
            Outcome::Taken(at, new) => {
                let one = |(ask, (new, word)): (&Ask, (bool, Micros))| One {
                    new,
                    word,
                    ..One::of(ask, ask.key, ask.by)
                };
                Ok(Taken {
                    at,
                    alone: false,
                    of: asks.iter().zip(new).map(one).collect(),
                })
            }
        })
    }

    /// Gives back what was taken. Not waited for.
    pub(in crate::state) fn give_counts(&self, taken: &Taken, call: u64) {
        let of = taken.of.iter();
        self.count_later(Counting {
            doing: Doing::Give(taken.at),
            of: of
                .map(|one| given((one.key, one.what, call), one.word))
                .collect(),
        });
    }

    /// What was held is free. Not waited for.
    pub(in crate::state) fn release_count(&self, key: Key, token: u64) {
        let what = What::AtOnce { limit: 0 };
        self.count_later(Counting {
            doing: Doing::Give(0),
            of: SmallVec::from_iter([(key, what, token)]),
        });
    }

    /// More was used, whatever is left. Not waited for.
    pub(in crate::state) fn charge_count(&self, key: Key, what: What) {
        self.count_later(Counting {
            doing: Doing::Charge,
            of: SmallVec::from_iter([(key, what, 0)]),
        });
    }

    /// How often something of counts was never told to the store.
    pub(in crate::state) fn lost_counts(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// How full these counts are.
    pub(in crate::state) async fn look_at_counts(
        &self,
        of: &[(Key, What)],
    ) -> Result<Vec<Level>, Trouble> {
        let counting = Counting {
            doing: Doing::Look,
            of: of.iter().map(|(key, what)| (*key, *what, 0)).collect(),
        };
        let said = self.ask(super::LIST, |to| Command::LookAt(counting, to));
        let levels = said.await?.map_err(No::trouble)?;
        let level = |((key, _), (used, until)): (&(Key, What), (u64, u64))| Level {
            key: *key,
            used,
            until: (until > 0).then_some(until),
        };
        Ok(of.iter().zip(levels).map(level).collect())
    }

    fn count_later(&self, counting: Counting) {
        let mut held = self.shared.held.lock();
        for (key, what, token) in &counting.of {
            if matches!(what, What::AtOnce { .. }) {
                held.remove(&(*key, *token));
            }
        }
        drop(held);
        self.shared.leave(Note::Count(counting));
    }
}

impl Wire {
    /// Takes of all, in every hash tag.
    pub(super) async fn take_counts(
        self: Arc<Self>,
        link: Link,
        of: SmallVec<[Counted; 4]>,
        shift: u64,
    ) -> Result<Outcome, Fail> {
        let tags = self.by_tag(&of);
        let asked = tags.iter().map(|(_, part)| {
            let counted: SmallVec<[Counted; 4]> = part.iter().map(|n| of[*n]).collect();
            self.count(link.clone(), Doing::Take, counted, shift)
        });
        let answers = join_all(asked).await;
        let mut refused: Option<(usize, Micros, u64)> = None;
        let mut taken = vec![];
        let mut each: SmallVec<[(bool, Micros); 4]> = SmallVec::from_elem((false, 0), of.len());
        let mut failed = None;
        for ((_, part), answer) in tags.iter().zip(answers) {
            match answer {
                Ok(said) => match said.as_slice() {
                    [1, at, said @ ..] => {
                        taken.push((*at, part));
                        for (n, said) in part.iter().zip(said.chunks_exact(2)) {
                            each[*n] = (said[0] == 1, said[1]);
                        }
                    }
                    [0, which, wait, left] => {
                        let which = usize::try_from(*which).ok();
                        let which = which.and_then(|n| part.get(n).copied());
                        if refused.is_none_or(|before| before.1 < *wait) {
                            refused = Some((which.unwrap_or_default(), *wait, *left));
                        }
                    }
                    _ => failed = Some(odd()),
                },
                Err(fail) => failed = Some(fail),
            }
        }
        if refused.is_none() && failed.is_none() {
            let at = taken.iter().map(|(at, _)| *at).max().unwrap_or_default();
            return Ok(Outcome::Taken(at, each));
        }
        // What the others took.
        let gives = taken.into_iter().map(|(at, part)| {
            let counted = part.iter().map(|n| given(of[*n], each[*n].1)).collect();
            self.count(link.clone(), Doing::Give(at), counted, shift)
        });
        join_all(gives).await;
        match (refused, failed) {
            (Some((which, wait, left)), _) => Ok(Outcome::Refused(which, wait, left)),
            (None, failed) => Err(failed.unwrap_or_else(odd)),
        }
    }

    /// Whatever else there is to do with counts, in every hash tag: which of them failed, and how the last did.
    pub(super) async fn tell_counts(
        self: Arc<Self>,
        link: Link,
        counting: &Counting,
        shift: u64,
    ) -> (SmallVec<[Counted; 4]>, Result<(), Fail>) {
        let tags = self.by_tag(&counting.of);
        let tells = tags.iter().map(|(_, part)| {
            let counted = part.iter().map(|n| counting.of[*n]).collect();
            self.count(link.clone(), counting.doing, counted, shift)
        });
        let (mut failed, mut said) = (SmallVec::new(), Ok(()));
        for ((_, part), told) in tags.iter().zip(join_all(tells).await) {
            if let Err(fail) = told {
                failed.extend(part.iter().map(|n| counting.of[*n]));
                said = Err(fail);
            }
        }
        (failed, said)
    }

    /// What is used of each, and the end of its window.
    pub(super) async fn look_at_counts(
        self: Arc<Self>,
        link: Link,
        counting: Counting,
        shift: u64,
    ) -> Result<Vec<(u64, u64)>, Fail> {
        let mut levels = vec![(0, 0); counting.of.len()];
        for (_, part) in self.by_tag(&counting.of) {
            let counted = part.iter().map(|n| counting.of[*n]).collect();
            let said = self
                .count(link.clone(), Doing::Look, counted, shift)
                .await?;
            for (n, level) in part.iter().zip(said.chunks_exact(2)) {
                levels[*n] = (level[0], level[1]);
            }
        }
        Ok(levels)
    }

    /// Which of them have which tag.
    fn by_tag(&self, of: &[Counted]) -> SmallVec<[(u8, SmallVec<[usize; 4]>); 1]> {
        let mut tags: SmallVec<[(u8, SmallVec<[usize; 4]>); 1]> = SmallVec::new();
        for (n, (key, _, _)) in of.iter().enumerate() {
            let tag = self.keys.tag(*key);
            match tags.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, part)) => part.push(n),
                None => tags.push((tag, SmallVec::from_iter([n]))),
            }
        }
        tags
    }

    async fn count(
        &self,
        mut link: Link,
        doing: Doing,
        of: SmallVec<[Counted; 4]>,
        shift: u64,
    ) -> Result<Vec<u64>, Fail> {
        let name = |key| self.keys.count(key);
        let call = self.counts.call(doing, &of, name, shift);
        self.timed(call.invoke_async(&mut link)).await
    }
}

/// The same, to be given back: of a rate, by its word when it was taken.
pub(super) const fn given((key, what, token): Counted, word: Micros) -> Counted {
    match what {
        What::Rate { .. } => (key, what, word),
        What::Window { .. } | What::Rolling { .. } | What::AtOnce { .. } => (key, what, token),
    }
}

fn odd() -> Fail {
    Fail::Refused(
        (
            redis::ErrorKind::UnexpectedReturnType,
            "an answer that the script does not give",
        )
            .into(),
    )
}
