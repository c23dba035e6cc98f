//! What the store says of the holders of this process.
use tokio::time::Instant;

use super::{
    super::{
        super::{
            Key,
            slot::{End, Holder},
        },
        script::{Op, Reply},
    },
    Table,
    mine::{Stage, There, Want, answer},
};

impl Table {
    /// The store did that, or `None`: it said nothing, and will be told again. True if the holder has lost its slot.
    pub(in super::super) fn told(
        &mut self,
        key: Key,
        token: u64,
        op: &Op,
        reply: Option<&Reply>,
    ) -> bool {
        let renew = self.renew;
        let Some(mine) = self.find(key, token) else {
            return false;
        };
        mine.stage = Stage::Idle;
        let Some(reply) = reply else {
            return false;
        };
        let theirs = reply.entry.holders.iter().find(|h| h.token == token);
        if let Some(theirs) = theirs {
            mine.holder.generation = theirs.generation;
        }
        let is_restore = matches!(op, Op::Restore(..));
        if *op == Op::Settle(token, End::Free) || theirs.is_none() {
            if theirs.is_none() && mine.there != There::Yes && !is_restore && !mine.is_free() {
                // It has lost its data meanwhile, and is about to get this back.
                self.queue(key, token);
                return false;
            }
            let mine = self.remove(key, token);
            let lost = mine
                .as_ref()
                .is_some_and(|m| !m.is_free() && m.want != Want::Remember);
            answer(mine.and_then(|mut m| m.waiter()));
            return lost;
        }
        if let Op::Settle(_, end) = op {
            if mine.want == Want::Settle(end.clone()) {
                mine.want = Want::Remember;
            }
            answer(mine.waiter());
            self.remember(key, token);
        } else {
            if is_restore {
                // Once it is there it goes by evidence, as all others.
                (mine.further, mine.there) = (false, There::Yes);
            }
            let named = theirs.and_then(|h| h.task.as_ref());
            mine.unnamed = mine.holder.task.is_some() && named != mine.holder.task.as_ref();
            if !matches!(op, Op::Name(..)) {
                (mine.due, mine.renewed) = (false, Instant::now() + renew);
            }
        }
        self.queue(key, token);
        false
    }

    /// What an answer about a conversation says of what is remembered of it.
    pub(in super::super) fn learn(&mut self, key: Key, reply: &Reply) {
        let now = self.now();
        let Some(mines) = self.slots.get_mut(&key) else {
            return;
        };
        let before = mines.len();
        mines.retain_mut(|mine| {
            if mine.stage == Stage::Busy || mine.there != There::Yes || mine.want != Want::Remember
            {
                return true;
            }
            let theirs = reply.entry.holders.iter();
            let theirs = theirs.into_iter().find(|h| h.token == mine.holder.token);
            if let Some(theirs) = theirs {
                mine.holder = Holder {
                    taken: mine.holder.taken,
                    settled: mine.holder.settled,
                    until: now + theirs.until.saturating_sub(reply.now),
                    ..theirs.clone()
                };
            }
            theirs.is_some()
        });
        self.count -= before - mines.len();
        if mines.is_empty() {
            self.slots.remove(&key);
        }
    }

    /// The store is there again: it gets all that is in flight, and what it was not told. With `lost` it has lost
    /// the data of those keys, and gets what is remembered as well.
    pub(in super::super) fn put_back(&mut self, lost: bool, of: impl Fn(Key) -> bool) {
        let mut all = vec![];
        for (key, mines) in self.slots.iter_mut().filter(|(key, _)| of(**key)) {
            for mine in mines {
                if mine.there == There::Yes && (lost || mine.want == Want::Keep) {
                    mine.there = There::Perhaps;
                }
                all.push((*key, mine.holder.token));
            }
        }
        for (key, token) in all {
            self.queue(key, token);
        }
    }
}
