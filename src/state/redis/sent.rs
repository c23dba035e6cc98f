//! The messages that this process sent, in case they are sent again, and what the store is still to be told of each.
//!
//! ```text
//!  begun ──► running ─────────── became ──────► ended ────────────── its window is over, or no room ──► gone
//!              │ told every third of              │ told once; again to a store that
//!              │ the lease that it runs           │ lost its data
//!              └── never sent ──► told to forget ──► gone
//! ```
//! Only this process changes what it put there, so that what is here is the newest, and answers without the store.
//! The lease is that of slots: a gateway that lives renews both.
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    super::{
        ByKey, Key,
        retry::{Fate, Record},
        slot::Times,
    },
    script::{Saying, Told},
};

/// All of them.
pub(super) struct Sent {
    all: HashMap<Key, Mine, ByKey>,
    limit: usize,
    renew: Duration,
    window: Duration,
    /// What has something to be told.
    queue: VecDeque<Key>,
    /// Those that ended, the oldest first; some may be gone, and one that is missing only stays longer.
    ended: VecDeque<(Key, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    /// To be told what it is now.
    Tell,
    /// To be told that it was never sent.
    Forget,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Queued,
    /// On its way.
    Busy,
}

struct Mine {
    record: Record,
    want: Want,
    stage: Stage,
    /// When the store was last told, or asked whether it is new.
    told: Instant,
    /// When nobody can ask for it any more, once it has ended.
    until: Instant,
}

impl Mine {
    fn runs(&self) -> bool {
        self.record.fate == Fate::Running
    }

    fn is_over(&self, now: Instant) -> bool {
        (!self.runs() || self.want == Want::Forget) && self.until <= now
    }

    fn next(&self, window: Duration, now: Instant) -> Option<Saying> {
        match self.want {
            Want::Nothing => None,
            Want::Forget => Some(Saying::Forget(self.record.token)),
            Want::Tell if self.runs() => Some(Saying::Tell(self.record.clone(), window)),
            Want::Tell => {
                let left = self.until.saturating_duration_since(now);
                Some(Saying::Tell(self.record.clone(), left))
            }
        }
    }
}

impl Sent {
    pub(super) fn new(times: Times, window: Duration, limit: usize) -> Self {
        Self {
            all: HashMap::default(),
            limit,
            renew: times.lease.unwrap_or(times.max_hold) / 3,
            window,
            queue: VecDeque::new(),
            ended: VecDeque::new(),
        }
    }

    /// What is known of a message that was begun here.
    pub(super) fn get(&self, key: Key) -> Option<&Record> {
        let mine = self.all.get(&key)?;
        let good = mine.want != Want::Forget && !mine.is_over(Instant::now());
        good.then_some(&mine.record)
    }

    /// One that was begun here, never sent, and which the store may still have.
    pub(super) fn forgotten(&self, key: Key) -> Option<u64> {
        let mine = self.all.get(&key)?;
        (mine.want == Want::Forget).then_some(mine.record.token)
    }

    /// A message that begins here. The store has it, or is away: then it is told when it is there again.
    pub(super) fn add(&mut self, key: Key, record: Record) {
        self.make_room();
        let now = Instant::now();
        let mine = Mine {
            record,
            want: Want::Nothing,
            stage: Stage::Idle,
            told: now,
            until: now + self.window,
        };
        self.all.insert(key, mine);
    }

    /// What became of it so far.
    pub(super) fn became(&mut self, key: Key, record: Record) {
        let token = record.token;
        let ends = record.fate != Fate::Running;
        if !self.all.contains_key(&key) {
            self.add(key, Record::new(token, record.digest)); // it had to make room
        }
        let mine = self.all.get_mut(&key);
        let Some(mine) = mine.filter(|m| m.record.token == token) else {
            return; // it was forgotten while it ran, and sent again
        };
        let ended = !mine.runs();
        mine.record = record;
        mine.want = Want::Tell;
        mine.until = Instant::now() + self.window;
        self.queue(key);
        if ends && !ended {
            self.may_go(key, token);
        }
    }

    /// It need not be remembered where there is no room.
    fn may_go(&mut self, key: Key, token: u64) {
        if self.ended.len() >= self.limit {
            self.ended.pop_front();
        }
        self.ended.push_back((key, token));
    }

    /// It was never sent.
    pub(super) fn forget(&mut self, key: Key, token: u64) {
        if let Some(mine) = self.all.get_mut(&key)
            && mine.record.token == token
        {
            mine.want = Want::Forget;
            mine.until = Instant::now() + self.window;
            self.queue(key);
            self.may_go(key, token);
        }
    }

    /// The next to be told.
    pub(super) fn next(&mut self) -> Option<(Key, Saying)> {
        let now = Instant::now();
        while let Some(key) = self.queue.pop_front() {
            let Some(mine) = self.all.get_mut(&key) else {
                continue;
            };
            if mine.stage != Stage::Queued {
                continue; // of one before it
            }
            mine.stage = Stage::Idle;
            if let Some(saying) = mine.next(self.window, now) {
                mine.stage = Stage::Busy;
                return Some((key, saying));
            }
        }
        None
    }

    /// The store did that or, by a no, has another's; `None`: it said nothing, and is told again. True if another
    /// sent the message as well.
    pub(super) fn told(&mut self, key: Key, saying: &Saying, said: Option<Told>) -> bool {
        let Some(mine) = self.all.get_mut(&key) else {
            return false;
        };
        let token = mine.record.token;
        let same = match saying {
            Saying::Begin(..) => false,
            Saying::Tell(record, _) => record.token == token,
            Saying::Forget(other) => *other == token,
        };
        if !same || mine.stage != Stage::Busy {
            return false; // of one before it
        }
        mine.stage = Stage::Idle;
        match (saying, said) {
            (_, None | Some(Told::Quiet)) => return false,
            (Saying::Tell(record, _), Some(Told::Yes)) => {
                mine.told = Instant::now();
                if *record == mine.record && mine.want == Want::Tell {
                    mine.want = Want::Nothing;
                }
                self.queue(key);
            }
            (_, Some(Told::Yes | Told::No)) => {
                let another = mine.want == Want::Tell;
                self.all.remove(&key);
                return another;
            }
        }
        false
    }

    /// Once in a while: what is over goes, what is late is told again, and leases are renewed.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        let (all, queue, renew) = (&mut self.all, &mut self.queue, self.renew);
        all.retain(|key, mine| {
            if mine.stage == Stage::Idle && mine.is_over(now) {
                return false;
            }
            if mine.runs() && mine.want == Want::Nothing && now >= mine.told + renew {
                mine.want = Want::Tell;
            }
            if mine.stage == Stage::Idle && mine.want != Want::Nothing {
                mine.stage = Stage::Queued;
                queue.push_back(*key);
            }
            true
        });
    }

    /// The store is there again: it gets all that runs, and what it was not told. With `lost` it has lost the data of
    /// those keys, and gets what is remembered as well.
    pub(super) fn put_back(&mut self, lost: bool, of: impl Fn(Key) -> bool) {
        let (all, queue) = (&mut self.all, &mut self.queue);
        for (key, mine) in all.iter_mut().filter(|(key, _)| of(**key)) {
            if mine.want == Want::Nothing && (lost || mine.runs()) {
                mine.want = Want::Tell;
            }
            if mine.stage == Stage::Idle && mine.want != Want::Nothing {
                mine.stage = Stage::Queued;
                queue.push_back(*key);
            }
        }
    }

    /// The store is away: nothing is told until it is back.
    pub(super) fn wait(&mut self) {
        for key in std::mem::take(&mut self.queue) {
            if let Some(mine) = self.all.get_mut(&key)
                && mine.stage == Stage::Queued
            {
                mine.stage = Stage::Idle;
            }
        }
    }

    /// Whether nothing is to be told right now.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the store knows all that ended.
    pub(super) fn is_settled(&self) -> bool {
        let mut all = self.all.values();
        all.all(|m| m.want == Want::Nothing || m.runs() && m.want == Want::Tell)
    }

    /// The oldest that ended goes, but not while the store is being told.
    fn make_room(&mut self) {
        while self.all.len() >= self.limit
            && let Some((oldest, token)) = self.ended.pop_front()
        {
            let there = self.all.get(&oldest);
            let over = |m: &&Mine| !m.runs() || m.want == Want::Forget;
            match there.filter(|m| m.record.token == token).filter(over) {
                Some(mine) if mine.stage != Stage::Idle => {
                    self.ended.push_front((oldest, token));
                    return;
                }
                Some(_) => drop(self.all.remove(&oldest)),
                None => {}
            }
        }
    }

    fn queue(&mut self, key: Key) {
        if let Some(mine) = self.all.get_mut(&key)
            && mine.stage == Stage::Idle
            && mine.want != Want::Nothing
        {
            mine.stage = Stage::Queued;
            self.queue.push_back(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_sent_does_not_fill_the_table_while_the_store_is_away() {
        let times = Times {
            lease: None,
            settle: Duration::ZERO,
            max_hold: Duration::from_mins(1),
        };
        let mut sent = Sent::new(times, Duration::from_mins(10), 2);
        for n in 0..10_u8 {
            let (key, token) = (Key([n; 16]), u64::from(n));
            sent.add(key, Record::new(token, key));
            sent.forget(key, token);
            sent.wait();
        }
        assert!(sent.all.len() <= 2, "{}", sent.all.len());
    }
}
