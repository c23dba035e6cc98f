//! What all workers' agents share: the addresses of the agent, how each of them is, and how many connections there may
//! be to it. Whoever sends takes a permit of the address first and keeps it until the answer has ended. Idle connections
//! hold no permit; they are closed, of whichever worker, when a new one would be one too many.
//!
//! Names are looked up now and then. A change moves new calls at once; what runs at an address that is gone ends there,
//! and its connection with it. While a name cannot be looked up, the last good answer stands.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use moka::sync::Cache;
use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::allowance::Allowance;
use super::balance::{self, Dice, Wish};
use super::error::Error;
use super::link::Link;
use super::names::{Place, Ways, machines};
use super::replica::Replica;
use super::status::{Address, Status};
use super::streams::STREAMS;
use super::{Settings, after};

/// Looking up again sooner than this would find the same.
const SOON: Duration = Duration::from_secs(1);
/// Conversations and tasks whose address is remembered, and for how long after they were last heard of.
const HOMES: u64 = 100_000;
const AT_HOME: Duration = Duration::from_hours(1);

/// The agent's addresses, shared by all workers.
#[derive(Clone)]
pub struct Room(Arc<Shared>);

/// The addresses at one moment.
pub(super) type Set = Arc<[Arc<Replica>]>;

struct Shared {
    settings: Settings,
    places: Vec<Place>,
    set: RwLock<Set>,
    /// Counts the changes of `set`.
    version: AtomicUsize,
    several: AtomicBool,
    ids: AtomicU64,
    /// What each place led to when it was last looked up well.
    known: Mutex<Vec<Known>>,
    looked: tokio::sync::Mutex<Option<Instant>>,
    next_look: Mutex<Option<Instant>>,
    allowance: Mutex<Allowance>,
    retries: AtomicU64,
    homes: OnceLock<Cache<u64, u64>>,
    dice: Mutex<Dice>,
}

#[derive(Default)]
struct Known {
    machines: Option<Vec<Ways>>,
    failing: bool,
}

/// Whose call it is, where that decides about its address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whose {
    context: Option<u64>,
    task: Option<u64>,
}

impl Room {
    /// Whether both are one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Room for `settings.max_connections` to each address.
    pub fn new(settings: &Settings) -> Self {
        let places = if settings.addresses.is_empty() {
            vec![Place {
                host: settings.origin.host().to_owned(),
                port: settings.origin.port(),
            }]
        } else {
            settings.addresses.clone()
        };
        let known = places.iter().map(|place| Known {
            machines: place
                .literal()
                .map(|address| vec![Ways::Known([address].into_iter().collect())]),
            failing: false,
        });
        let now = Instant::now();
        let room = Self(Arc::new(Shared {
            known: Mutex::new(known.collect()),
            places,
            set: RwLock::new(Arc::new([])),
            version: AtomicUsize::new(0),
            several: AtomicBool::new(false),
            ids: AtomicU64::new(0),
            looked: tokio::sync::Mutex::new(None),
            next_look: Mutex::new(None),
            allowance: Mutex::new(Allowance::new(settings.retries, now)),
            retries: AtomicU64::new(0),
            homes: OnceLock::new(),
            // Gateways that start together need not do the same thing at the same moment.
            dice: Mutex::new(Dice(u64::from(std::process::id()))),
            settings: settings.clone(),
        }));
        room.arrange();
        room
    }

    /// How the addresses are.
    pub fn status(&self) -> Status {
        let now = Instant::now();
        let (_, set) = self.set();
        let addresses = set.iter().map(|replica| {
            let (up, breaker) = replica.told(now);
            Address {
                address: replica.label.clone(),
                up,
                breaker,
                connections: replica.hall.open.load(Ordering::Relaxed),
                busy: replica.hall.busy(),
                waiting: replica.hall.waiting.load(Ordering::Relaxed),
            }
        });
        Status {
            addresses: addresses.collect(),
            retries: self.0.retries.load(Ordering::Relaxed),
        }
    }

    /// Whether its addresses can change.
    pub(super) fn moves(&self) -> bool {
        self.0.places.iter().any(|place| place.literal().is_none())
    }

    pub(super) fn version(&self) -> usize {
        self.0.version.load(Ordering::Acquire)
    }

    /// The addresses, and which change of them it is.
    pub(super) fn set(&self) -> (usize, Set) {
        let set = self.0.set.read();
        (self.version(), Arc::clone(&set))
    }

    /// Whose call it is; of no use, and not found out, where there is but one address.
    pub(super) fn whose(&self, context: Option<&str>, task: Option<&str>) -> Whose {
        if !self.0.settings.affinity || !self.0.several.load(Ordering::Relaxed) {
            return Whose::default();
        }
        Whose {
            context: context.map(|id| balance::hash("context", id)),
            task: task.map(|id| balance::hash("task", id)),
        }
    }

    /// What a call of that one would have. `position` finds an address by its id.
    pub(super) fn wish(&self, whose: Whose, position: impl Fn(u64) -> Option<usize>) -> Wish {
        let Some(key) = whose.context.or(whose.task) else {
            return Wish::Any;
        };
        let home = |id: u64| {
            let home = self.0.homes.get()?.get(&id)?;
            position(home)
        };
        let context = whose.context.and_then(home);
        match context.or_else(|| whose.task.and_then(home)) {
            Some(at) => Wish::Place(at, key),
            None => Wish::Key(key),
        }
    }

    /// Who remembers that a conversation is at this address, where that is of use.
    pub(super) fn homing(&self, replica: u64) -> Option<Homing> {
        let of_use = self.0.settings.affinity && self.0.several.load(Ordering::Relaxed);
        of_use.then(|| Homing {
            room: self.clone(),
            replica,
            context: false,
            task: false,
        })
    }

    pub(super) fn roll(&self) -> u64 {
        locked(&self.0.dice).next()
    }

    /// Whether something may be sent again, after so many calls that were not counted yet.
    pub(super) fn may_repeat(&self, calls: u32) -> bool {
        let mut allowance = locked(&self.0.allowance);
        allowance.sent(calls);
        let may = allowance.take(Instant::now());
        if may {
            self.0.retries.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// So many calls were sent.
    pub(super) fn sent(&self, calls: u32) {
        locked(&self.0.allowance).sent(calls);
    }

    /// Whether it is time to look up names; whoever hears so does it.
    pub(super) fn is_to_look(&self) -> bool {
        if !self.moves() {
            return false;
        }
        let now = Instant::now();
        let mut next = locked(&self.0.next_look);
        let due = next.is_none_or(|next| now >= next);
        if due {
            *next = Some(now + self.jittered(self.0.settings.resolve));
        }
        due
    }

    /// About that long, by a tenth more or less.
    pub(super) fn jittered(&self, time: Duration) -> Duration {
        let tenths = u32::try_from(self.roll() % 201).unwrap_or(0) + 900;
        time.saturating_mul(tenths) / 1000
    }

    /// Looks up all names, unless that was done just now.
    pub(super) async fn look(&self) {
        let shared = &*self.0;
        let mut looked = shared.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < SOON) {
            return;
        }
        let names = shared.places.iter().enumerate();
        let names = names.filter(|(_, place)| place.literal().is_none());
        let patience = shared.settings.connect;
        let answers = names.map(|(at, place)| async move {
            let answer = shared.settings.lookup.resolve(&place.host, place.port);
            (at, tokio::time::timeout(patience, answer).await)
        });
        for (at, answer) in futures_util::future::join_all(answers).await {
            let found = match answer {
                Ok(Ok(found)) if found.is_empty() => Err("it has no address".to_owned()),
                Ok(Ok(found)) => Ok(machines(found)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {patience:?}")),
            };
            self.found(at, found);
        }
        *looked = Some(Instant::now());
        self.arrange();
    }

    fn found(&self, at: usize, found: Result<Vec<Ways>, String>) {
        let name = &self.0.places[at].host;
        let known = &mut locked(&self.0.known)[at];
        let failed = found.is_err();
        match found {
            Ok(machines) => known.machines = Some(machines),
            Err(cause) if !known.failing => tracing::warn!(
                name, %cause,
                "an agent's name cannot be looked up: look at the name and at the resolver; the addresses found last \
                 are used until it can"
            ),
            Err(_) => {}
        }
        known.failing = failed;
    }

    /// Makes the set of addresses out of what is known.
    fn arrange(&self) {
        let shared = &*self.0;
        let mut ways: Vec<Ways> = vec![];
        for (place, known) in shared.places.iter().zip(&*locked(&shared.known)) {
            let by_name = [Ways::Name(place.clone())];
            let found = known.machines.as_deref().unwrap_or(&by_name);
            for one in found {
                if !ways.contains(one) {
                    ways.push(one.clone());
                }
            }
        }
        let mut set = shared.set.write();
        if set.len() == ways.len() && set.iter().zip(&ways).all(|(old, new)| old.ways == *new) {
            return;
        }
        let stays = |ways: Ways| {
            let old = set.iter().find(|old| old.ways == ways);
            old.cloned().unwrap_or_else(|| {
                let id = shared.ids.fetch_add(1, Ordering::Relaxed);
                Arc::new(Replica::new(id, ways, &shared.settings))
            })
        };
        let new: Set = ways.into_iter().map(stays).collect();
        if !set.is_empty() {
            let labels: Vec<_> = new.iter().map(|replica| &*replica.label).collect();
            let addresses = labels.join(", ");
            tracing::info!(host = shared.settings.origin.host(), %addresses, "the agent's addresses");
        }
        *set = new;
        shared.several.store(set.len() > 1, Ordering::Relaxed);
        shared.version.fetch_add(1, Ordering::Release);
    }
}

/// Remembers where a conversation is, once an answer names it: what the agent named itself is found by nobody's hash.
pub struct Homing {
    room: Room,
    replica: u64,
    context: bool,
    task: bool,
}

impl Homing {
    /// An answer names these. True once there is nothing more to learn.
    pub fn learn(&mut self, context: Option<&str>, task: Option<&str>) -> bool {
        let Self { room, replica, .. } = self;
        let keep = |known: &mut bool, kind: &str, id: Option<&str>| {
            let Some(id) = id.filter(|_| !*known) else {
                return;
            };
            *known = true;
            let homes = room.0.homes.get_or_init(|| {
                let homes = Cache::builder().max_capacity(HOMES).time_to_idle(AT_HOME);
                homes
                    .eviction_policy(moka::policy::EvictionPolicy::lru())
                    .build()
            });
            homes.insert(balance::hash(kind, id), *replica);
        };
        keep(&mut self.context, "context", context);
        keep(&mut self.task, "task", task);
        self.context && self.task
    }
}

/// The connections to one address.
pub(super) struct Hall {
    permits: Arc<Semaphore>,
    all: usize,
    most: usize,
    open: AtomicUsize,
    waiting: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
}

impl Hall {
    pub(super) fn new(settings: &Settings) -> Self {
        let share = if settings.http2 { STREAMS } else { 1 };
        let permits = settings.max_connections.saturating_mul(share);
        let all = permits.min(Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(all)),
            all,
            most: settings.max_connections,
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            pools: Mutex::default(),
        }
    }

    fn busy(&self) -> usize {
        self.all - self.permits.available_permits()
    }

    /// Waits for a permit, for `wait` at most and not beyond `deadline`.
    pub(super) async fn enter(
        &self,
        wait: Duration,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _one = Waiting::new(&self.waiting);
        let patience = after(wait);
        let permit = Arc::clone(&self.permits).acquire_owned();
        match tokio::time::timeout_at(patience.min(deadline), permit).await {
            Ok(Ok(permit)) => Ok(permit),
            Err(_) if deadline < patience => Err(Error::Timeout { sent: false }),
            // Nobody closes the semaphore.
            Ok(Err(_)) | Err(_) => Err(Error::Overloaded(wait)),
        }
    }

    /// Counts one more open connection, and closes an idle one if that is one too many. Permits bound the
    /// busy ones, so an idle one is there, save for one just on its way to or from a pool.
    pub(super) fn open(self: &Arc<Self>) -> Opened {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.most {
            let idle = locked(&self.pools)
                .iter()
                .filter_map(Weak::upgrade)
                .find_map(|pool| pool.oldest());
            drop(idle);
        }
        Opened(Arc::clone(self))
    }

    pub(super) fn join(&self, pool: &Arc<Pool>) {
        let mut pools = locked(&self.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }
}

/// One who waits, counted until this is dropped.
struct Waiting<'h>(&'h AtomicUsize);

impl<'h> Waiting<'h> {
    fn new(count: &'h AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One open connection, counted until this is dropped.
pub(super) struct Opened(Arc<Hall>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One worker's idle connections; the last used is used first, so that the others can grow old.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "a link is large and moves in and out for each exchange"
)]
pub(super) struct Pool(Mutex<Vec<Box<Link>>>);

impl Pool {
    /// An idle connection that is still good.
    pub(super) fn take(&self, idle: Duration) -> Option<Box<Link>> {
        loop {
            let mut link = locked(&self.0).pop()?;
            if link.idle_since().elapsed() < idle && link.alive() {
                return Some(link);
            }
        }
    }

    /// Takes a connection whose exchange has ended, if it can serve another.
    pub(super) fn put(&self, mut link: Box<Link>) {
        if link.settle() {
            locked(&self.0).push(link);
        }
    }

    pub(super) fn sweep(&self, idle: Duration) {
        locked(&self.0).retain_mut(|link| link.idle_since().elapsed() < idle && link.alive());
    }

    fn oldest(&self) -> Option<Box<Link>> {
        let mut links = locked(&self.0);
        (!links.is_empty()).then(|| links.remove(0))
    }
}

/// What these locks guard is right between any two statements, so a panic elsewhere does not spoil it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
