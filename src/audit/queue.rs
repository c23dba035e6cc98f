//! Records on their way to the writer. Places are counted, not kept: a call takes one when it begins, and the writer
//! gives it back when the record is written, so that a record that ends always finds room. A peer may hold a quarter of
//! them: else a few slow calls of one could keep all others out.
//!
//! Calls do not wake the writer, which looks by itself: a wake costs more than all else of a record. Only one that
//! makes the heap large does.
use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::atomic::{
        AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Relaxed},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{Full, writer::Goes};

/// With so many records waiting, the writer is woken.
const MANY: usize = 2048;
/// So many bytes of what was written are kept for what comes.
const KEPT: usize = 4 * 1024 * 1024;
/// A peer may hold one of so many places.
const SHARE: usize = 4;
/// Shares that are told apart. Which peers have one together is different in each process.
const SHARES: usize = 16 * 1024;

/// A place that was taken: of which share it is, if of any.
#[derive(Clone, Copy, Default)]
pub(super) struct Place(Option<u16>);

pub(super) struct Queue {
    places: AtomicUsize,
    taken: AtomicUsize,
    /// How many places each share has, and the most that one may have.
    shares: Box<[AtomicU32]>,
    most: AtomicU32,
    hasher: RandomState,
    /// Calls without a record, of which the writer was not told.
    missed: AtomicU64,
    /// All of them, by what they lacked.
    without_place: AtomicU64,
    beyond_share: AtomicU64,
    /// The same, by what became of the call.
    served: AtomicU64,
    refused: AtomicU64,
    /// Checkpoints that stdout did not take.
    untold: AtomicU64,
    /// Records that are written.
    written: AtomicU64,
    many: AtomicUsize,
    state: Mutex<State>,
    /// Wakes the writer.
    work: Condvar,
    /// Wakes who waits for the writer's end.
    ended: Condvar,
}

/// Records on their way, one behind the other. They are text already: what a call holds is given back where the call
/// ran, since memory that another thread gives back costs its allocator more than all else of a record.
#[derive(Default)]
pub(super) struct Batch {
    text: Vec<u8>,
    /// Where each ends, and the place that it holds.
    of: Vec<(usize, Place)>,
}

impl Batch {
    /// Each record, and its place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Place)> {
        let mut from = 0;
        self.of.iter().map(move |(end, place)| {
            let text = &self.text[from..*end];
            from = *end;
            (text, *place)
        })
    }

    /// Makes it empty, with no more room than a usual one needs.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        self.of.clear();
    }
}

#[derive(Default)]
struct State {
    waiting: Batch,
    /// No more is to come.
    closing: bool,
    /// The writer has ended.
    ended: bool,
    /// What it is to go by from now on.
    news: Option<Goes>,
}

fn share(places: usize) -> u32 {
    u32::try_from(places / SHARE).unwrap_or(u32::MAX).max(1)
}

fn many(places: usize) -> usize {
    (places / 2).clamp(1, MANY)
}

impl Queue {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: AtomicUsize::new(places),
            taken: AtomicUsize::new(0),
            shares: (0..SHARES).map(|_| AtomicU32::new(0)).collect(),
            most: AtomicU32::new(share(places)),
            hasher: RandomState::new(),
            missed: AtomicU64::new(0),
            without_place: AtomicU64::new(0),
            beyond_share: AtomicU64::new(0),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            written: AtomicU64::new(0),
            many: AtomicUsize::new(many(places)),
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// From now on there are so many places, and the writer goes by this. Places that are taken stay so.
    pub(super) fn set(&self, places: usize, news: Goes) {
        self.places.store(places, Relaxed);
        self.most.store(share(places), Relaxed);
        self.many.store(many(places), Relaxed);
        self.state.lock().news = Some(news);
        self.work.notify_one();
    }

    /// What the writer is to go by from now on, if that is new.
    pub(super) fn news(&self) -> Option<Goes> {
        self.state.lock().news.take()
    }

    /// Takes a place, of the share of this peer if it has one.
    pub(super) fn take_place(&self, peer: Option<IpAddr>) -> Result<Place, Full> {
        let places = self.places.load(Relaxed);
        let more = |n: usize| (n < places).then_some(n + 1);
        if self.taken.fetch_update(AcqRel, Relaxed, more).is_err() {
            self.without_place.fetch_add(1, Relaxed);
            self.missed.fetch_add(1, Relaxed);
            return Err(Full::Queue);
        }
        let Some(share) = peer.map(|peer| self.share_of(peer)) else {
            return Ok(Place(None));
        };
        let most = self.most.load(Relaxed);
        let more = |n: u32| (n < most).then_some(n + 1);
        let held = &self.shares[usize::from(share)];
        if held.fetch_update(AcqRel, Relaxed, more).is_err() {
            self.taken.fetch_sub(1, AcqRel);
            self.beyond_share.fetch_add(1, Relaxed);
            self.missed.fetch_add(1, Relaxed);
            return Err(Full::Share);
        }
        Ok(Place(Some(share)))
    }

    /// One customer has a whole /64 of IPv6.
    fn share_of(&self, peer: IpAddr) -> u16 {
        let peer = match peer.to_canonical() {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
        };
        let hash = self.hasher.hash_one(peer) % SHARES as u64;
        u16::try_from(hash).unwrap_or_default()
    }

    /// The records of these places are written.
    pub(super) fn give_back(&self, places: &[Place]) {
        for share in places.iter().filter_map(|place| place.0) {
            self.shares[usize::from(share)].fetch_sub(1, AcqRel);
        }
        self.taken.fetch_sub(places.len(), AcqRel);
        self.written.fetch_add(places.len() as u64, Relaxed);
    }

    /// Records that are written.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.load(Relaxed)
    }

    /// All calls without a record: those that found no place, and those whose peer had its share.
    pub(super) fn all_missed(&self) -> (u64, u64) {
        (
            self.without_place.load(Relaxed),
            self.beyond_share.load(Relaxed),
        )
    }

    /// A call found no place, and is refused, or served without a record.
    pub(super) fn missed(&self, refused: bool) {
        let count = if refused { &self.refused } else { &self.served };
        count.fetch_add(1, Relaxed);
    }

    /// All that were served without a record, and all that were refused.
    pub(super) fn without_record(&self) -> (u64, u64) {
        (self.served.load(Relaxed), self.refused.load(Relaxed))
    }

    /// So many checkpoints were not told.
    pub(super) fn not_told(&self, checkpoints: usize) {
        self.untold.fetch_add(checkpoints as u64, Relaxed);
    }

    /// All of them.
    pub(super) fn untold(&self) -> u64 {
        self.untold.load(Relaxed)
    }

    /// Calls whose records are not written yet.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// How many calls have no record, since this was asked last.
    pub(super) fn take_missed(&self) -> u64 {
        self.missed.swap(0, Relaxed)
    }

    /// A record that took a place before.
    pub(super) fn push(&self, record: &[u8], place: Place) {
        let mut state = self.state.lock();
        let waiting = &mut state.waiting;
        waiting.text.extend_from_slice(record);
        waiting.of.push((waiting.text.len(), place));
        let wakes = waiting.of.len() == self.many.load(Relaxed);
        drop(state);
        if wakes {
            self.work.notify_one();
        }
    }

    /// All that waits, after at most `within`; and whether more may come.
    pub(super) fn next(&self, within: Duration, into: &mut Batch) -> bool {
        let mut state = self.state.lock();
        if !state.closing && state.waiting.of.len() < self.many.load(Relaxed) {
            self.work.wait_for(&mut state, within);
        }
        std::mem::swap(&mut state.waiting, into);
        !state.closing
    }

    /// Waits before another try. False once nobody waits for it any more.
    pub(super) fn pause(&self, within: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.closing {
            self.work.wait_for(&mut state, within);
        }
        !state.closing
    }

    pub(super) fn closing(&self) {
        self.state.lock().closing = true;
        self.work.notify_one();
    }

    /// Whether the writer ended within this time.
    pub(super) fn close(&self, within: Duration) -> bool {
        let mut state = self.state.lock();
        state.closing = true;
        self.work.notify_one();
        let still = |state: &mut State| !state.ended;
        self.ended
            .wait_while_for(&mut state, still, within)
            .timed_out();
        state.ended
    }

    pub(super) fn has_ended(&self) {
        self.state.lock().ended = true;
        self.ended.notify_all();
    }
}
