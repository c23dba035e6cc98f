//! One holder of this process.
use tokio::{sync::oneshot, time::Instant};

use super::super::{
    super::slot::{End, Holder, Millis},
    script::Op,
};

/// A restored holder's generation is this much beyond the one last known: more than it can have changed unseen.
const BEYOND: u32 = 1000;

/// What is wanted of the store for a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Want {
    /// That it stays in flight.
    Keep,
    /// That it ends so.
    Settle(End),
    /// Nothing, as long as it has its data.
    Remember,
}

/// Whether the store has a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum There {
    /// It was never sent.
    No,
    /// It may, and is to have it.
    Perhaps,
    /// It said so.
    Yes,
}

/// What goes on with a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Idle,
    /// In the queue.
    Queued,
    /// A command about it is on its way.
    Busy,
}

/// One holder.
pub(in super::super) struct Mine {
    /// By our clock, and without a lease: we are there.
    pub(in super::super) holder: Holder,
    pub(in super::super) want: Want,
    pub(in super::super) there: There,
    /// Its message was out before the store knew of it, so that it joins another: its conversation was not known
    /// before, or the store was away.
    pub(in super::super) further: bool,
    /// The store has not been told its task.
    pub(super) unnamed: bool,
    /// When its lease is renewed next.
    pub(super) renewed: Instant,
    pub(super) due: bool,
    pub(super) stage: Stage,
    /// Who waits until it is settled.
    pub(super) waiter: Option<oneshot::Sender<bool>>,
}

impl Mine {
    /// One that the store has.
    pub(super) fn new(holder: Holder, renewed: Instant) -> Self {
        Self {
            holder,
            want: Want::Keep,
            there: There::Yes,
            further: false,
            unnamed: false,
            renewed,
            due: false,
            stage: Stage::Idle,
            waiter: None,
        }
    }

    /// What the store is to be told next.
    pub(super) fn next(&self, now: Millis) -> Option<Op> {
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

    pub(super) fn is_free(&self) -> bool {
        self.want == Want::Settle(End::Free)
    }

    /// Who waits until it is settled, once.
    pub(in super::super) fn waiter(&mut self) -> Option<oneshot::Sender<bool>> {
        self.waiter.take()
    }
}

/// Tells who waits that there is nothing to wait for any more.
pub(super) fn answer(waiter: Option<oneshot::Sender<bool>>) {
    if let Some(waiter) = waiter {
        let _ = waiter.send(true); // who does not wait any longer need not know
    }
}
