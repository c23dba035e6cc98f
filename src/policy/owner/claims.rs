//! What a call makes belongs to its owner: each task and context that its answer tells of is claimed before the caller
//! sees it, so that its next call finds it, at whichever replica.
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use super::Owner;
use crate::{
    a2a::{Call, Fault, Kind, answer::Seen},
    state::{Settling, owner::Claiming},
};

/// The claims of one call.
pub struct Claims {
    owner: Owner,
    /// It sends a message; else it makes nothing.
    sends: bool,
    /// The task that the message resumes: it is somebody's already.
    resumes: Option<Box<str>>,
    /// What was claimed last.
    task: Option<Box<str>>,
    context: Option<Box<str>>,
    /// Something that it was answered with is another's.
    foreign: Arc<AtomicBool>,
}

impl Claims {
    pub(super) fn new(owner: Owner, call: &Call) -> Self {
        Self {
            owner,
            sends: call.op.sends(),
            resumes: call.facts.task.as_deref().map(Into::into),
            task: None,
            context: call.facts.context.as_deref().map(Into::into),
            foreign: Arc::default(),
        }
    }

    /// Whose they are.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        self.sends
    }

    /// Whether its caller may leave before anything was answered.
    pub fn can_be_left_at_once(&self) -> bool {
        !self.sends || self.resumes.is_some()
    }

    /// Whether its caller may leave without anybody having to read on: its task has its owner, or will.
    pub fn can_be_left(&self) -> bool {
        self.can_be_left_at_once() || self.task.is_some()
    }

    /// An answer or an event. What it claims is to be waited for before the caller sees it.
    pub fn seen(&mut self, seen: &Seen) -> Settling {
        if !self.sends {
            return Settling::Done;
        }
        let mut settling = Settling::Done;
        if let Some(task) = &seen.named.task
            && self.task.as_ref() != Some(task)
            && self.resumes.as_ref() != Some(task)
        {
            let claim = self.owner.task(task);
            let claim = self.owner.store().claim_surely(claim, self.owner.key);
            settling = self.claimed(claim, true);
            self.task = Some(task.clone());
        }
        if let Some(context) = &seen.named.context
            && self.context.as_ref() != Some(context)
        {
            let claim = self.owner.context(context);
            let claim = self.owner.store().claim_surely(claim, self.owner.key);
            settling = settling.and(self.claimed(claim, false));
            self.context = Some(context.clone());
        }
        settling
    }

    /// What becomes of a claim. An agent that puts everybody's tasks into one context gives no task away by it; one that
    /// answers with another's task does.
    fn claimed(&self, claim: Claiming, task: bool) -> Settling {
        let foreign = Arc::clone(&self.foreign);
        let judge = move |mine: bool| {
            if !mine && task {
                foreign.store(true, Relaxed);
            } else if !mine {
                tracing::warn!(
                    "an agent answered in a context that is another owner's; its sender cannot use it"
                );
            }
        };
        match claim {
            Claiming::Done(mine) => {
                judge(mine);
                Settling::Done
            }
            Claiming::Wait(claim) => Settling::Wait(Box::pin(async move {
                let mine = claim.await;
                // Not known in time: it is told later, and the caller gets what the agent made for it.
                mine.map(judge).is_some()
            })),
        }
    }

    /// Why the answer must not be seen, once what it claimed was waited for.
    pub fn objection(&self) -> Option<Fault> {
        self.foreign.load(Relaxed).then(|| {
            Fault::new(
                Kind::InvalidAgentResponse,
                "the agent answered with what is not this caller's",
            )
            .because("it told of a task that another owner has")
        })
    }
}
