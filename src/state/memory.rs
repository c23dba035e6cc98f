//! The store of one process: sharded maps under short locks, which nobody holds while waiting.
use std::{
    collections::{HashMap, hash_map::Entry as Slot},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    ByKey, Key, Shown, Take, owner,
    persist::Persist,
    recent::Recent,
    retry::{Begun, Record},
    slot::{End, Entry, Mark, Millis, Newcomer, Times},
};

mod owners;

/// Locks, so that workers seldom meet at one.
const SHARDS: usize = 64;

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The times that slots go by.
    pub times: Times,
    /// Conversations that may be held at once.
    pub slots: usize,
    /// Tasks whose context is remembered.
    pub tasks: usize,
    /// Contexts that are bound to an agent.
    pub bindings: usize,
    /// How long a binding lasts without use.
    pub binding_ttl: Duration,
    /// Messages that are remembered in case they are sent again.
    pub messages: usize,
    /// How long one is, from the last news of it.
    pub message_ttl: Duration,
    /// Whose tasks and contexts are.
    pub owners: owner::Settings,
}

/// The store.
pub struct Memory {
    /// Whether holders must say that they are there.
    leases: bool,
    /// Conversations that may be held at once.
    slots: AtomicUsize,
    began: Instant,
    shards: Vec<Mutex<Shard>>,
    /// Entries in all shards.
    held: AtomicUsize,
    /// The shard that is swept next.
    sweep: AtomicUsize,
    pub(super) owners: Arc<owners::Owners>,
    /// The file of this process, for as long as there is something to write into it.
    pub(super) file: OnceLock<Arc<Persist>>,
}

struct Shard {
    settings: Settings,
    slots: HashMap<Key, Entry, ByKey>,
    tasks: Recent<Box<str>>,
    bindings: Recent<(Box<str>, Millis)>,
    messages: Recent<(Record, Millis)>,
}

impl Memory {
    /// An empty one.
    pub fn new(settings: Settings) -> Self {
        let shard = || {
            Mutex::new(Shard {
                settings,
                slots: HashMap::default(),
                tasks: Recent::new(settings.tasks / SHARDS),
                bindings: Recent::new(settings.bindings / SHARDS),
                messages: Recent::new(settings.messages / SHARDS),
            })
        };
        Self {
            leases: settings.times.lease.is_some(),
            slots: AtomicUsize::new(settings.slots),
            began: Instant::now(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            held: AtomicUsize::new(0),
            sweep: AtomicUsize::new(0),
            owners: Arc::new(owners::Owners::new(settings.owners)),
            file: OnceLock::new(),
        }
    }

    /// Goes by these from now on, except for the lease. What there is stays.
    pub fn set(&self, settings: Settings) {
        self.slots.store(settings.slots, Relaxed);
        for shard in &self.shards {
            let mut shard = shard.lock();
            let lease = shard.settings.times.lease;
            shard.settings = settings;
            shard.settings.times.lease = lease;
            shard.tasks.set(settings.tasks / SHARDS);
            shard.bindings.set(settings.bindings / SHARDS);
            shard.messages.set(settings.messages / SHARDS);
        }
        self.owners.set(settings.owners);
    }

    fn now(&self) -> Millis {
        let since = self.began.elapsed().as_millis();
        Millis::try_from(since).unwrap_or(Millis::MAX / 4)
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[usize::from(key.0[0]) % SHARDS]
    }

    /// Changes one entry; one that is free afterwards is not kept.
    fn change<T>(&self, key: Key, change: impl FnOnce(&mut Entry, Millis, &Times) -> T) -> T {
        let now = self.now();
        let shard = &mut *self.shard(key).lock();
        let times = &shard.settings.times;
        match shard.slots.entry(key) {
            Slot::Occupied(mut slot) => {
                let done = change(slot.get_mut(), now, times);
                if slot.get().is_free() {
                    slot.remove();
                    self.held.fetch_sub(1, Relaxed);
                }
                done
            }
            Slot::Vacant(slot) => {
                let mut entry = Entry::default();
                let done = change(&mut entry, now, times);
                if !entry.is_free() {
                    slot.insert(entry);
                    self.held.fetch_add(1, Relaxed);
                }
                done
            }
        }
    }

    pub(super) fn take(&self, key: Key, over: Option<Mark>, of: &Newcomer<'_>) -> Take {
        let full = self.held.load(Relaxed) >= self.slots.load(Relaxed);
        self.change(key, |entry, now, times| {
            let full = full && entry.is_free(); // one that is held has its place already
            if let Some(seen) = over {
                entry.free(seen, now, times);
            }
            if !full && entry.take(of, now, times) {
                return Take::Taken(times.lease.map(|lease| Instant::now() + lease));
            }
            entry.lapse(now, times);
            let holder = entry.holder();
            holder.map_or(Take::Full, |holder| Take::Busy(holder.clone(), now))
        })
    }

    pub(super) fn join(&self, key: Key, of: &Newcomer<'_>) -> bool {
        self.change(key, |entry, now, times| entry.join(of, now, times))
    }

    pub(super) fn free(&self, key: Key, seen: Mark) -> bool {
        self.change(key, |entry, now, times| entry.free(seen, now, times))
    }

    pub(super) fn goes_on(&self, key: Key, seen: Mark) {
        self.change(key, |entry, now, times| {
            entry.goes_on(seen, now, times);
        });
    }

    pub(super) fn name(&self, key: Key, token: u64, task: &str) {
        self.change(key, |entry, now, times| {
            entry.name(token, task, now, times);
        });
    }

    pub(super) fn settle(&self, key: Key, token: u64, end: &End) {
        self.change(key, |entry, now, times| {
            entry.settle(token, end, now, times);
        });
    }

    pub(super) fn look(&self, key: Key) -> Option<(Entry, Millis)> {
        self.change(key, |entry, now, times| {
            entry.lapse(now, times);
            (!entry.is_free()).then(|| (entry.clone(), now))
        })
    }

    pub(super) fn release(&self, key: Key) -> bool {
        self.change(key, |entry, _, _| {
            let held = !entry.is_free();
            entry.holders.clear();
            held
        })
    }

    pub(super) fn list(&self, limit: usize) -> Vec<Shown> {
        let now = self.now();
        let mut all = vec![];
        for shard in &self.shards {
            let shard = shard.lock();
            let some = shard.slots.iter().take(limit - all.len());
            all.extend(some.map(|(key, entry)| Shown {
                key: *key,
                entry: entry.clone(),
                now,
            }));
        }
        all
    }

    pub(super) fn learn(&self, task: Key, context: &str) {
        self.shard(task).lock().tasks.put(task, context.into());
    }

    pub(super) fn context_of(&self, task: Key) -> Option<Box<str>> {
        self.shard(task).lock().tasks.get(&task).cloned()
    }

    pub(super) fn bind(&self, context: Key, agent: &str) -> Option<Box<str>> {
        let now = self.now();
        let mut shard = self.shard(context).lock();
        let until = after(now, shard.settings.binding_ttl);
        if let Some((bound, good)) = shard.bindings.get(&context)
            && *good > now
        {
            if **bound != *agent {
                return Some(bound.clone());
            }
            *good = until;
            return None;
        }
        shard.bindings.put(context, (agent.into(), until));
        None
    }

    pub(super) fn begin_retry(&self, message: Key, new: Record) -> Begun {
        let now = self.now();
        let mut shard = self.shard(message).lock();
        let until = after(now, shard.settings.message_ttl);
        if let Some((old, good)) = shard.messages.get(&message)
            && *good > now
        {
            return old.met_by(&new);
        }
        shard.messages.put(message, (new, until));
        Begun::New
    }

    pub(super) fn retry_is(&self, message: Key, record: Record) {
        let now = self.now();
        let mut shard = self.shard(message).lock();
        let until = after(now, shard.settings.message_ttl);
        if let Some((old, good)) = shard.messages.get(&message)
            && old.token != record.token
            && *good > now
        {
            return; // it was forgotten while it ran, and sent again
        }
        shard.messages.put(message, (record, until));
    }

    pub(super) fn forget_retry(&self, message: Key, token: u64) {
        let mut shard = self.shard(message).lock();
        let old = shard.messages.get(&message);
        if old.is_some_and(|(old, _)| old.token == token) {
            shard.messages.remove(&message);
        }
    }

    /// Lets time pass in one shard: what nobody asks for must go as well.
    pub(super) fn tick(&self) {
        let now = self.now();
        self.owners.tick();
        let next = self.sweep.fetch_add(1, Relaxed) % SHARDS;
        let shard = &mut *self.shards[next].lock();
        let times = shard.settings.times;
        let before = shard.slots.len();
        shard.slots.retain(|_, entry| {
            entry.lapse(now, &times);
            !entry.is_free()
        });
        self.held.fetch_sub(before - shard.slots.len(), Relaxed);
    }

    /// Whether holders must say that they are there: tests let several gateways share one.
    pub(super) fn leases(&self) -> bool {
        self.leases
    }

    /// The holder is still there.
    #[cfg(test)]
    pub(crate) fn renew(&self, key: Key, token: u64) -> bool {
        self.change(key, |entry, now, times| entry.renew(token, now, times))
    }

    /// Conversations that are held.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}

fn after(now: Millis, wait: Duration) -> Millis {
    now.saturating_add(Millis::try_from(wait.as_millis()).unwrap_or(Millis::MAX))
}

#[cfg(test)]
mod tests {
    use super::{
        super::slot::{Asker, Holder},
        *,
    };

    #[test]
    fn a_full_store_lets_one_holder_follow_another() {
        let settings = Settings {
            times: Times {
                lease: None,
                settle: Duration::ZERO,
                max_hold: Duration::from_mins(1),
            },
            slots: 1,
            tasks: 1,
            bindings: 1,
            binding_ttl: Duration::from_secs(1),
            messages: 1,
            message_ttl: Duration::from_secs(1),
            owners: owner::Settings::default(),
        };
        let (memory, talk, other) = (Memory::new(settings), Key([1; 16]), Key([2; 16]));
        let who = |token| Newcomer {
            token,
            asker: Asker::known(1),
            task: None,
        };
        assert_eq!(memory.take(talk, None, &who(1)), Take::Taken(None));
        assert_eq!(memory.take(other, None, &who(2)), Take::Full);
        memory.settle(talk, 1, &End::Unknown);
        let (entry, _) = memory.look(talk).unwrap();
        let mark = entry.holder().unwrap().mark();
        assert_eq!(memory.take(talk, Some(mark), &who(3)), Take::Taken(None));
        assert_eq!(memory.held(), 1);
    }

    #[test]
    fn a_holder_is_small() {
        // With the map's slot, the key and a task's id of 36 bytes: under 400.
        assert!(size_of::<Holder>() + size_of::<(Key, Entry)>() + 2 * 64 < 400);
    }
}
