//! Answers about conversations: by the store, for want of one, or alone.
use tokio::time::Instant;

use super::{
    super::{
        super::{Key, Shown, slot::End},
        flight::Fail,
        script::{Op, Reply, Told},
        table::There,
    },
    Answer, No, Task, To,
};

impl Task {
    pub(super) fn asked(
        &mut self,
        key: Key,
        op: &Op,
        sent: Instant,
        to: To<Answer>,
        said: Result<Reply, Fail>,
    ) {
        let said = match said {
            Ok(said) => said,
            Err(_) if self.link.is_some() => return self.unanswered(key, op, to),
            Err(_) => return self.answer_away(key, op, true, to),
        };
        self.table.learn(key, &said);
        if said.told == Told::Quiet {
            let _ = to.send(Err(No::Quiet));
            return;
        }
        let yes = said.told == Told::Yes;
        let mut lease = None;
        if let (Op::Take(_, of), true) = (op, yes) {
            let good = self.settings.times.lease;
            lease = Some(sent + good.unwrap_or(self.settings.times.max_hold));
            self.table.add(key, of, false);
        }
        let answer = Answer {
            yes,
            now: said.now,
            entry: said.entry,
            lease,
        };
        if to.send(Ok(answer)).is_err()
            && let Some(token) = token_of(op)
        {
            // Who asked is gone, and does not know that the slot is theirs.
            self.table.settle(key, token, End::Free, None);
        }
    }

    /// It may have been done; the store is still there.
    pub(super) fn unanswered(&mut self, key: Key, op: &Op, to: To<Answer>) {
        self.undo(key, op);
        let _ = to.send(Err(No::Away));
    }

    /// A take of which nobody knows whether it was done ends free.
    pub(super) fn undo(&mut self, key: Key, op: &Op) {
        if let Op::Take(_, of) = op {
            self.table.add(key, of, false);
            self.table.settle(key, of.token, End::Free, None);
        }
    }

    /// The store is away. It may have been done, if it was sent.
    pub(super) fn answer_away(&mut self, key: Key, op: &Op, sent: bool, to: To<Answer>) {
        if !self.settings.local {
            if sent {
                self.undo(key, op);
            }
            let _ = to.send(Err(No::Away));
            return;
        }
        let answer = self.locally(key, op, sent);
        let taken = answer.yes;
        let gone = to.send(Ok(answer)).is_err();
        if let Op::Take(_, of) = op {
            if taken && gone {
                self.table.settle(key, of.token, End::Free, None);
            } else if sent && !taken {
                self.undo(key, op);
            }
        }
    }

    pub(super) fn locally(&mut self, key: Key, op: &Op, sent: bool) -> Answer {
        let answer = self.table.locally(key, |entry, now, times| {
            entry.lapse(now, times);
            let yes = match op {
                Op::Take(Some(seen), of) => entry.take_over(*seen, &of.as_newcomer(), now, times),
                Op::Take(None, of) => entry.take(&of.as_newcomer(), now, times),
                Op::Free(seen) => entry.free(*seen, now, times),
                Op::GoesOn(seen) => {
                    entry.goes_on(*seen, now, times);
                    true
                }
                Op::Release => !std::mem::take(&mut entry.holders).is_empty(),
                Op::Look => !entry.is_free(),
                Op::Name(..) | Op::Renew(_) | Op::Settle(..) | Op::Restore(..) => false, // the table's own
            };
            Answer {
                yes,
                now,
                entry: entry.clone(),
                lease: None,
            }
        });
        if let Some(token) = token_of(op)
            && let Some(mine) = self.table.find(key, token)
        {
            mine.there = if sent { There::Perhaps } else { There::No };
        }
        answer
    }

    pub(super) fn bind_locally(
        &mut self,
        context: Key,
        agent: Box<str>,
    ) -> Result<Option<Box<str>>, No> {
        let full = self.bound.len() >= self.settings.bindings;
        match self.bound.get(&context) {
            _ if !self.settings.local => Err(No::Away),
            Some(bound) => Ok((*bound != agent).then(|| bound.clone())),
            None if full => Err(No::Full),
            None => {
                self.bound.insert(context, agent);
                Ok(None)
            }
        }
    }

    pub(super) fn list_locally(&mut self, limit: usize) -> Result<Vec<Shown>, No> {
        if !self.settings.local {
            return Err(No::Away);
        }
        let now = self.table.now();
        let all = self.table.list(limit).into_iter();
        Ok(all.map(|(key, entry)| Shown { key, entry, now }).collect())
    }
}

/// Whose holding an operation begins.
fn token_of(op: &Op) -> Option<u64> {
    match op {
        Op::Take(_, of) => Some(of.token),
        Op::Free(_)
        | Op::GoesOn(..)
        | Op::Name(..)
        | Op::Renew(_)
        | Op::Settle(..)
        | Op::Restore(..)
        | Op::Release
        | Op::Look => None,
    }
}
