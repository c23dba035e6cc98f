//! What the agent is asked about a slot that nobody waits in, and what its answer proves.
use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    config,
    state::{
        ByKey, Key,
        slot::{Asker, Holder, Mark, Millis},
    },
};

/// Questions about one slot are at least this far apart.
pub(super) const PACE: Duration = Duration::from_millis(250);
/// How long an answer may take, and how long another's question is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// `GetTask`, of this task.
    Task(Box<str>),
    /// `ListTasks`, of this context.
    Tasks(Box<str>),
}

/// What the agent said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The task has ended.
    Terminal,
    /// The task waits for input or authentication.
    Interrupted,
    /// This task is not at rest.
    Running(Box<str>),
    /// There is no such task, for this caller.
    NotFound,
    /// No task of the context runs, for this caller.
    NoTask,
    /// The agent has no such operation.
    Unsupported,
    /// An error, a refusal, or nothing in time.
    Nothing,
}

impl Evidence {
    /// Whether it says the same to everybody.
    const fn is_shared(&self) -> bool {
        !matches!(self, Self::NotFound | Self::NoTask)
    }
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing runs.
    Free,
    /// This task does.
    GoesOn(Box<str>),
    /// It cannot be told.
    Nothing,
}

/// What an answer proves about a holder that is not in flight.
///
/// An agent may not show yet what it has just received: *none*, *not found* and the interrupted state of a task
/// that the message resumed count only from `settled` on. The first two count only as seen by the caller who took
/// the slot: others are told so of tasks that are not theirs.
pub(super) fn judge(holder: &Holder, answer: Answer, settings: &config::Conversation) -> Verdict {
    let settled = answer.asked >= holder.settled;
    let own = answer.asker.sees_as(holder.asker);
    let free = match answer.evidence {
        Evidence::Running(task) => return Verdict::GoesOn(task),
        Evidence::Terminal => true,
        Evidence::Interrupted => settled || !holder.resumes,
        Evidence::NotFound | Evidence::NoTask => own && settled,
        Evidence::Unsupported => {
            let hold = settings.unknown_hold.saturating_sub(settings.settle);
            let hold = Millis::try_from(hold.as_millis()).unwrap_or(Millis::MAX);
            holder.task.is_none() && answer.asked >= holder.settled.saturating_add(hold)
        }
        Evidence::Nothing => false,
    };
    if free {
        Verdict::Free
    } else {
        Verdict::Nothing
    }
}

type Cell = Arc<tokio::sync::Mutex<Option<Answered>>>;

/// A holder as it was when the agent was asked: what it is, and from when on it counts as settled. The second is not the
/// same by the clock of the store and by ours, which takes its place while the store is away: what was asked by one
/// says nothing of a holder that is judged by the other.
type Of = (Mark, Millis);

/// What the agent said, and what it is worth.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) evidence: Evidence,
    /// As whom it was asked.
    pub(super) asker: Asker,
    /// The store's time before it was asked: who shares it later has learned nothing newer.
    pub(super) asked: Millis,
}

struct Answered {
    of: Of,
    answer: Answer,
    at: Instant,
}

/// The questions that are asked now or were just now: one at a time for each slot.
#[derive(Default)]
pub(super) struct Questions(Mutex<HashMap<Key, Cell, ByKey>>);

impl Questions {
    /// The answer about a holder as it was at `now`. Newcomers share it where it says the same to them.
    pub(super) async fn ask<A>(
        &self,
        key: Key,
        holder: &Holder,
        (asker, now): (Asker, Millis),
        ask: impl FnOnce() -> A,
    ) -> Option<Answer>
    where
        A: Future<Output = Evidence>,
    {
        let of = (holder.mark(), holder.settled);
        let cell = self.0.lock().entry(key).or_default().clone();
        let cell = tokio::time::timeout(PATIENCE, cell.lock_owned()).await;
        let mut last = cell.ok()?;
        if let Some(last) = &*last
            && last.at.elapsed() < PACE
        {
            let answer = &last.answer;
            let ours = answer.evidence.is_shared() || asker.sees_as(answer.asker);
            if last.of == of && ours {
                return Some(answer.clone());
            }
            tokio::time::sleep_until(last.at + PACE).await;
        }
        let at = Instant::now();
        let evidence = tokio::time::timeout(PATIENCE, ask()).await;
        let answer = Answer {
            evidence: evidence.unwrap_or(Evidence::Nothing),
            asker,
            asked: now,
        };
        *last = Some(Answered {
            of,
            answer: answer.clone(),
            at,
        });
        Some(answer)
    }

    /// Forgets what nobody may share any more.
    pub(super) fn tick(&self) {
        self.0.lock().retain(|_, cell| {
            let fresh =
                |last: &Option<Answered>| last.as_ref().is_some_and(|a| a.at.elapsed() < PACE);
            Arc::strong_count(cell) > 1 || cell.try_lock().is_ok_and(|last| fresh(&last))
        });
    }
}
