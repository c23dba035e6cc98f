//! What a call makes belongs to its owner: each task and context that its answer tells of is claimed before the caller
//! sees it, so that its next call finds it, at whichever replica. An answer that tells of another owner's is not for this
//! caller, whoever made the mistake.
use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bytes::Bytes;

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
    /// The task that it is about: it is somebody's already.
    about: Option<Box<str>>,
    /// The caller named the context.
    given: bool,
    /// What was looked at last.
    task: Option<Box<str>>,
    context: Option<Box<str>>,
    /// Something that it was answered with is another's: as far as that was known at once, and what had to be waited for.
    foreign: bool,
    waited: Option<Arc<AtomicBool>>,
    /// A message that is not known yet to be for this caller.
    pub(in crate::policy) held: Option<(Seen, Bytes)>,
}

impl Claims {
    pub(super) fn new(owner: Owner, call: &Call) -> Self {
        Self {
            sends: call.op.sends(),
            about: call.facts.task.as_deref().map(Into::into),
            given: owner.named.is_some(),
            task: None,
            context: call.facts.context.as_deref().map(Into::into),
            foreign: false,
            waited: None,
            held: None,
            owner,
        }
    }

    /// Whose they are.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        self.sends || self.about.is_some()
    }

    /// Whether its caller may leave before anything was answered.
    pub fn can_be_left_at_once(&self) -> bool {
        !self.sends || self.about.is_some()
    }

    /// Whether its caller may leave without anybody having to read on: its task has its owner, or will.
    pub fn can_be_left(&self) -> bool {
        self.can_be_left_at_once() || self.task.is_some()
    }

    /// The agent may have it from now on: the context that its caller made up is remembered.
    pub fn goes_out(&self) {
        self.keep(true);
    }

    /// The call failed, before or after somebody answered it. What it never began has claimed nothing.
    pub fn failed(&self, fault: &Fault, answered: bool) {
        if !fault.may_have_started(answered) && self.task.is_none() {
            self.keep(false);
        }
    }

    fn keep(&self, lasts: bool) {
        if let Some(new) = &self.owner.new {
            new.lasts.store(lasts, Relaxed);
        }
    }

    /// An answer or an event. What it claims is to be waited for before the caller sees it.
    pub fn seen(&mut self, seen: &Seen) -> Settling {
        let mut settling = Settling::Done;
        if let Some(task) = &seen.named.task
            && self.task.as_ref() != Some(task)
            && self.about.as_ref() != Some(task)
        {
            settling = if self.sends {
                let claim = self.owner.task(task);
                let claim = self.owner.store().claim_surely(claim, self.owner.key);
                self.claimed(claim, true)
            } else {
                self.looked_at(task.clone())
            };
            self.task = Some(task.clone());
        }
        if self.sends
            && let Some(context) = &seen.named.context
            && self.context.as_ref() != Some(context)
        {
            let claim = self.owner.context(context);
            let claim = self.owner.store().claim_surely(claim, self.owner.key);
            settling = settling.and(self.claimed(claim, self.given));
            self.context = Some(context.clone());
        }
        settling
    }

    /// What becomes of a claim. An agent that puts everybody's tasks into one context gives no task away by it; one that
    /// answers with another's task does, and so does one that answers in another's context what was said in the caller's.
    fn claimed(&mut self, claim: Claiming, strict: bool) -> Settling {
        match claim {
            Claiming::Done(mine) => {
                self.foreign |= is_foreign(mine, strict);
                Settling::Done
            }
            Claiming::Wait(claim) => {
                let foreign = self.waited();
                Settling::Wait(Box::pin(async move {
                    let mine = claim.await;
                    // Not known in time: it is told later, and the caller gets what the agent made for it.
                    let known = mine.map(|mine| is_foreign(mine, strict));
                    foreign.fetch_or(known.unwrap_or(false), Relaxed);
                    known.is_some()
                }))
            }
        }
    }

    fn waited(&mut self) -> Arc<AtomicBool> {
        self.waited.get_or_insert_default().clone()
    }

    /// A question for one task is answered with another: it may be told if that is the caller's as well.
    fn looked_at(&mut self, task: Box<str>) -> Settling {
        let (owner, foreign) = (self.owner.clone(), self.waited());
        Settling::Wait(Box::pin(async move {
            let seen = owner.sees_which(iter::once(&*task)).await;
            let good = seen.is_ok_and(|seen| seen == [true]);
            if !good {
                foreign.store(true, Relaxed);
            }
            good
        }))
    }

    /// Why the answer must not be seen, once what it claimed was waited for.
    pub fn objection(&self) -> Option<Fault> {
        let waited = self.waited.as_ref();
        let foreign = self.foreign || waited.is_some_and(|foreign| foreign.load(Relaxed));
        foreign.then(|| {
            Fault::new(
                Kind::InvalidAgentResponse,
                "the agent answered with what is not this caller's",
            )
            .because("it told of a task or a context that another owner has")
        })
    }
}

fn is_foreign(mine: bool, strict: bool) -> bool {
    if !mine && !strict {
        tracing::warn!(
            "an agent answered in a context that is another owner's; its sender cannot use it"
        );
    }
    !mine && strict
}
