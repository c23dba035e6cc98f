//! Records on their way to the writer. Places are counted, not kept: a call takes one when it begins, and the writer
//! gives it back when the record is written, so that a record that ends always finds room.
//!
//! Calls do not wake the writer, which looks by itself: a wake costs more than all else of a record. Only one that
//! makes the heap large does.
use std::{
    sync::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Relaxed},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::entry::Call;

/// With so many records waiting, the writer is woken.
const MANY: usize = 2048;

pub(super) struct Queue {
    places: usize,
    taken: AtomicUsize,
    /// Calls without a record.
    missed: AtomicU64,
    many: usize,
    state: Mutex<State>,
    /// Wakes the writer.
    work: Condvar,
    /// Wakes who waits for the writer's end.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Call>,
    /// No more is to come.
    closing: bool,
    /// The writer has ended.
    ended: bool,
}

impl Queue {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places,
            taken: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            many: (places / 2).clamp(1, MANY),
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// Whether there was a place.
    pub(super) fn take_place(&self) -> bool {
        let took = self
            .taken
            .fetch_update(AcqRel, Relaxed, |n| (n < self.places).then_some(n + 1));
        took.is_ok()
    }

    /// The records of so many places are written.
    pub(super) fn give_back(&self, places: usize) {
        self.taken.fetch_sub(places, AcqRel);
    }

    /// Calls whose records are not written yet.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    pub(super) fn missed(&self) {
        self.missed.fetch_add(1, Relaxed);
    }

    /// How many calls have no record, since this was asked last.
    pub(super) fn take_missed(&self) -> u64 {
        self.missed.swap(0, Relaxed)
    }

    /// A record that took a place before.
    pub(super) fn push(&self, call: Call) {
        let mut state = self.state.lock();
        state.waiting.push(call);
        let wakes = state.waiting.len() == self.many;
        drop(state);
        if wakes {
            self.work.notify_one();
        }
    }

    /// All that waits, after at most `within`; and whether more may come.
    pub(super) fn next(&self, within: Duration, into: &mut Vec<Call>) -> bool {
        let mut state = self.state.lock();
        if !state.closing && state.waiting.len() < self.many {
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
