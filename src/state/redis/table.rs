//! The slots that this process holds, and what the store is still to be told of each. It is the queue of what could
//! not be told in time, and the whole state while the store is away: an entry here goes by `slot.rs` as one there does.
//!
//! ```text
//!  take, join ──► Keep ──────── settle ───────► Settle(End) ── told ──► gone, or Remember (it may run on)
//!                  │ renewed every third of        │ retried until         │ put back into a store that lost
//!                  │ its lease                     │ told, or max_hold     │ its data; until freed or max_hold
//! ```
//! Only one command about a holder is on its way at a time, so that they cannot overtake each other.
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    super::{
        Key,
        slot::{End, Entry, Holder, Millis, Times, millis},
    },
    script::{Op, Wants},
};

mod mine;
mod told;

pub(super) use mine::There;
use mine::{Mine, Stage, Want};

/// All of them.
pub(super) struct Table {
    slots: HashMap<Key, Vec<Mine>>,
    count: usize,
    limit: usize,
    times: Times,
    renew: Duration,
    began: Instant,
    /// What has something to be told.
    queue: VecDeque<(Key, u64)>,
    /// What is only remembered, the oldest first; some may be gone.
    remembered: VecDeque<(Key, u64)>,
}

impl Table {
    pub(super) fn new(times: Times, limit: usize) -> Self {
        Self {
            slots: HashMap::new(),
            count: 0,
            limit,
            times: Times {
                lease: None,
                ..times
            },
            renew: times.lease.unwrap_or(times.max_hold) / 3,
            began: Instant::now(),
            queue: VecDeque::new(),
            remembered: VecDeque::new(),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn now(&self) -> Millis {
        let since = self.began.elapsed().as_millis();
        Millis::try_from(since).unwrap_or(Millis::MAX / 4)
    }

    /// Whether no further one is admitted. What is only remembered does not keep others out where the store is
    /// there to know it: the oldest goes.
    pub(super) fn is_full(&mut self, here: bool) -> bool {
        while here
            && self.count >= self.limit
            && let Some((key, token)) = self.remembered.pop_front()
        {
            let mine = self.find(key, token);
            if mine.is_some_and(|m| m.want == Want::Remember && m.there == There::Yes) {
                self.remove(key, token);
            }
        }
        self.count >= self.limit
    }

    /// Such a holder may go when there is no room. One that is not in this list only stays longer.
    fn remember(&mut self, key: Key, token: u64) {
        if self.remembered.len() >= self.limit {
            self.remembered.pop_front();
        }
        self.remembered.push_back((key, token));
    }

    /// A holder that the store has now.
    pub(super) fn add(&mut self, key: Key, of: &Wants, task_is_new: bool) -> &mut Mine {
        let now = self.now();
        let mut entry = Entry::default();
        if task_is_new {
            entry.join(&of.as_newcomer(), now, &self.times);
        } else {
            entry.take(&of.as_newcomer(), now, &self.times);
        }
        let holder = entry.holders.remove(0);
        self.push(key, holder)
    }

    fn push(&mut self, key: Key, holder: Holder) -> &mut Mine {
        let renewed = Instant::now() + self.renew;
        let mines = self.slots.entry(key).or_default();
        self.count += 1;
        mines.push(Mine::new(holder, renewed));
        mines.last_mut().expect("one was pushed")
    }

    pub(super) fn find(&mut self, key: Key, token: u64) -> Option<&mut Mine> {
        let mines = self.slots.get_mut(&key)?;
        mines.iter_mut().find(|m| m.holder.token == token)
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, key: Key, token: u64) -> Option<Mine> {
        let mines = self.slots.get_mut(&key)?;
        let at = mines.iter().position(|m| m.holder.token == token)?;
        let mine = mines.swap_remove(at);
        if mines.is_empty() {
            self.slots.remove(&key);
        }
        self.count -= 1;
        Some(mine)
    }

    /// Changes an entry of this table alone, while the store is away.
    pub(super) fn locally<T>(
        &mut self,
        key: Key,
        change: impl FnOnce(&mut Entry, Millis, &Times) -> T,
    ) -> T {
        let now = self.now();
        let mines = self.slots.get_mut(&key);
        let mut mines = mines.map(std::mem::take).unwrap_or_default();
        self.count -= mines.len();
        let held = mines.iter().filter(|m| !m.is_free());
        let mut entry = Entry {
            holders: held.map(|m| m.holder.clone()).collect(),
        };
        let done = change(&mut entry, now, &self.times);
        for mine in &mut mines {
            let token = mine.holder.token;
            let at = entry.holders.iter().position(|h| h.token == token);
            if let Some(at) = at {
                let holder = entry.holders.swap_remove(at);
                if mine.there == There::Yes && holder != mine.holder {
                    mine.there = There::Perhaps;
                }
                mine.holder = holder;
            } else {
                mine.want = Want::Settle(End::Free);
                mine.holder.until = now.saturating_add(millis(self.times.max_hold));
            }
        }
        // What the store never had need not be settled there.
        mines.retain(|m| m.there != There::No || !m.is_free());
        self.count += mines.len();
        if mines.is_empty() {
            self.slots.remove(&key);
        } else {
            self.slots.insert(key, mines);
        }
        for holder in entry.holders {
            let mine = self.push(key, holder);
            // Its message may be out by the time the store is there: nobody else's slot makes it go away.
            (mine.further, mine.there) = (true, There::No);
        }
        done
    }

    /// The holder is done. Gives the waiter back if there is nothing to wait for.
    pub(super) fn settle(
        &mut self,
        key: Key,
        token: u64,
        end: End,
        waiter: Option<oneshot::Sender<bool>>,
    ) -> Option<oneshot::Sender<bool>> {
        let (now, times) = (self.now(), self.times);
        let Some(mine) = self.find(key, token) else {
            return waiter;
        };
        let mut entry = Entry {
            holders: [mine.holder.clone()].into(),
        };
        entry.settle(token, &end, now, &times);
        if let Some(holder) = entry.holders.pop() {
            mine.holder = holder;
        } else if mine.there == There::No {
            self.remove(key, token);
            return waiter;
        }
        mine.holder.until = now.saturating_add(millis(times.max_hold));
        if mine.there == There::No {
            mine.want = Want::Remember; // put back as it is now
            self.remember(key, token);
            return waiter;
        }
        // A task that the store has not been told goes with the end.
        mine.want = Want::Settle(match end {
            End::Held(None) => End::Held(mine.holder.task.clone()),
            End::Free | End::Held(Some(_)) | End::Unknown => end,
        });
        mine.waiter = waiter;
        self.queue(key, token);
        None
    }

    /// The holder's task is known.
    pub(super) fn name(&mut self, key: Key, token: u64, task: &str) {
        let (now, times) = (self.now(), self.times);
        if let Some(mine) = self.find(key, token) {
            let mut entry = Entry {
                holders: [mine.holder.clone()].into(),
            };
            entry.name(token, task, now, &times);
            if let Some(holder) = entry.holders.pop() {
                mine.unnamed |= holder != mine.holder;
                mine.holder = holder;
            }
            self.queue(key, token);
        }
    }

    /// Lets the store be told what it is to be told, in turn.
    pub(super) fn queue(&mut self, key: Key, token: u64) {
        let now = self.now();
        if let Some(mine) = self.find(key, token)
            && mine.stage == Stage::Idle
            && mine.next(now).is_some()
        {
            mine.stage = Stage::Queued;
            self.queue.push_back((key, token));
        }
    }

    /// The next thing to tell. The holder is busy until [`Table::told`].
    pub(super) fn next(&mut self) -> Option<(Key, u64, Op)> {
        let now = self.now();
        while let Some((key, token)) = self.queue.pop_front() {
            let Some(mine) = self.find(key, token) else {
                continue;
            };
            mine.stage = Stage::Idle;
            if let Some(op) = mine.next(now) {
                mine.stage = Stage::Busy;
                if mine.there == There::No {
                    mine.there = There::Perhaps;
                }
                return Some((key, token, op));
            }
        }
        None
    }

    /// Whether nothing is to be told right now.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// Once in a while: what is over goes, what is late is told again, and leases are renewed.
    pub(super) fn tick(&mut self) {
        let now = self.now();
        self.sweep(|mine| {
            mine.holder.until <= now && mine.want != Want::Keep && mine.stage != Stage::Busy
        });
        let instant = Instant::now();
        let mut all = vec![];
        for (key, mines) in &mut self.slots {
            for mine in mines {
                mine.due |= mine.want == Want::Keep && mine.renewed <= instant;
                if mine.stage == Stage::Idle && mine.next(now).is_some() {
                    mine.stage = Stage::Queued;
                    all.push((*key, mine.holder.token));
                }
            }
        }
        self.queue.extend(all);
    }

    fn sweep(&mut self, over: impl Fn(&Mine) -> bool) {
        let count = &mut self.count;
        self.slots.retain(|_, mines| {
            let before = mines.len();
            mines.retain(|mine| !over(mine));
            *count -= before - mines.len();
            !mines.is_empty()
        });
    }

    /// Nobody need wait: the store is away.
    pub(super) fn wait_no_more(&mut self) {
        for mine in self.slots.values_mut().flatten() {
            mine.waiter = None;
        }
        for (key, token) in std::mem::take(&mut self.queue) {
            if let Some(mine) = self.find(key, token) {
                mine.stage = Stage::Idle;
            }
        }
    }

    /// Whether the store knows all that ended.
    pub(super) fn is_settled(&self) -> bool {
        let mut all = self.slots.values().flatten();
        all.all(|m| !matches!(m.want, Want::Settle(_)))
    }

    /// Up to `limit` conversations of this table.
    pub(super) fn list(&self, limit: usize) -> Vec<(Key, Entry)> {
        let entries = self.slots.iter().map(|(key, mines)| {
            let held = mines.iter().filter(|m| !m.is_free());
            let holders = held.map(|m| m.holder.clone()).collect();
            (*key, Entry { holders })
        });
        entries.filter(|(_, e)| !e.is_free()).take(limit).collect()
    }
}
