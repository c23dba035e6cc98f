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
        slot::{End, Entry, Holder, Millis, Times},
    },
    script::{Op, Reply, Wants},
};

/// A restored holder's generation is this much beyond the one last known: more than it can have changed unseen.
const BEYOND: u32 = 1000;

/// What is wanted of the store for a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// That it stays in flight.
    Keep,
    /// That it ends so.
    Settle(End),
    /// Nothing, as long as it has its data.
    Remember,
}

/// Whether the store has a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    /// It was never sent.
    No,
    /// It may, and is to have it.
    Perhaps,
    /// It said so.
    Yes,
}

/// What goes on with a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// In the queue.
    Queued,
    /// A command about it is on its way.
    Busy,
}

/// One holder.
pub(super) struct Mine {
    /// By our clock, and without a lease: we are there.
    pub(super) holder: Holder,
    pub(super) want: Want,
    pub(super) there: There,
    /// Its message was out before its conversation was known, so that it may join another.
    pub(super) further: bool,
    /// The store has not been told its task.
    unnamed: bool,
    /// When its lease is renewed next.
    renewed: Instant,
    due: bool,
    stage: Stage,
    /// Who waits until it is settled.
    waiter: Option<oneshot::Sender<bool>>,
}

impl Mine {
    /// What the store is to be told next.
    fn next(&self, now: Millis) -> Option<Op> {
        let holder = &self.holder;
        match &self.want {
            Want::Settle(End::Free) => Some(Op::Settle(holder.token, End::Free)),
            _ if self.there != There::Yes => {
                let mut put = holder.clone();
                put.generation = put.generation.saturating_add(BEYOND);
                let age = now.saturating_sub(holder.taken);
                Some(Op::Restore(put, age, self.further))
            }
            Want::Settle(end) => Some(Op::Settle(holder.token, end.clone())),
            Want::Keep if self.unnamed => {
                let task = holder.task.clone();
                task.map(|task| Op::Name(holder.token, task))
            }
            Want::Keep if self.due => Some(Op::Renew(holder.token)),
            Want::Keep | Want::Remember => None,
        }
    }

    fn is_free(&self) -> bool {
        self.want == Want::Settle(End::Free)
    }

    /// Who waits until it is settled, once.
    pub(super) fn waiter(&mut self) -> Option<oneshot::Sender<bool>> {
        self.waiter.take()
    }
}

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
        }
    }

    pub(super) fn now(&self) -> Millis {
        let since = self.began.elapsed().as_millis();
        Millis::try_from(since).unwrap_or(Millis::MAX / 4)
    }

    /// Whether no further one is admitted. What is only remembered does not keep others out.
    pub(super) fn is_full(&mut self) -> bool {
        if self.count >= self.limit {
            self.forget_some();
        }
        self.count >= self.limit
    }

    /// So full that all goes that is remembered for a store that may lose its data.
    fn forget_some(&mut self) {
        self.sweep(|mine| mine.want == Want::Remember && mine.there == There::Yes);
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
        mines.push(Mine {
            holder,
            want: Want::Keep,
            there: There::Yes,
            further: false,
            unnamed: false,
            renewed,
            due: false,
            stage: Stage::Idle,
            waiter: None,
        });
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
            self.push(key, holder).there = There::No;
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
            holders: vec![mine.holder.clone()],
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
                holders: vec![mine.holder.clone()],
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

    /// The store did that, or `None`: it said nothing, and will be told again. True if the holder has lost its slot.
    pub(super) fn told(&mut self, key: Key, token: u64, op: &Op, reply: Option<&Reply>) -> bool {
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
            let lost = mine.as_ref().is_some_and(|m| !m.is_free());
            answer(mine.and_then(|mut m| m.waiter()));
            return lost;
        }
        if let Op::Settle(_, end) = op {
            if mine.want == Want::Settle(end.clone()) {
                mine.want = Want::Remember;
            }
            answer(mine.waiter());
        } else {
            if is_restore {
                mine.there = There::Yes;
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
    pub(super) fn learn(&mut self, key: Key, reply: &Reply) {
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
    pub(super) fn put_back(&mut self, lost: bool, of: impl Fn(Key) -> bool) {
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

fn answer(waiter: Option<oneshot::Sender<bool>>) {
    if let Some(waiter) = waiter {
        let _ = waiter.send(true); // who does not wait any longer need not know
    }
}

fn millis(d: Duration) -> Millis {
    Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX / 4)
}
