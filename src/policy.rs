//! What decides whether a call may go on: guards that a call takes on its way in, and that settle when dropped.
//! Policies see facts read from canonical text, never the client's spelling, and never talk to the agent.
use http::HeaderMap;

pub mod auth;
pub mod caller;
pub mod callers;
pub mod conversation;
pub mod limits;
pub mod metadata;
pub mod owner;
pub mod retry;

use bytes::Bytes;

use crate::{
    a2a::{
        Fault,
        answer::{Named, Seen},
    },
    state::Settling,
};
use conversation::Care;
use limits::Guard;
use owner::Claims;
use retry::First;

/// What a call was admitted with, and owes news of its answer. Dropping it settles all.
#[derive(Default)]
pub struct Permit {
    /// Its conversation.
    pub slot: Care,
    /// Its message, where it may be sent again.
    pub first: Option<Box<First>>,
    /// What it makes, where that is to belong to somebody.
    pub owner: Option<Box<Claims>>,
    /// What it took of the limits.
    pub limits: Option<Box<Guard>>,
    /// Who is to be told the ids that are seen.
    learner: Option<Box<Learner>>,
}

/// Told the ids in an answer; true once it needs no more.
type Learner = dyn FnMut(&Named) -> bool + Send + Sync;

impl Permit {
    /// Whether it sends a message, and so has to know what comes of it.
    pub const fn sends(&self) -> bool {
        matches!(self.slot, Care::Slot(_)) || self.first.is_some()
    }

    /// Has the ids in its answer told to `learner`, until that says that it needs no more.
    pub fn tells_ids(&mut self, learner: impl FnMut(&Named) -> bool + Send + Sync + 'static) {
        self.learner = Some(Box::new(learner));
    }

    fn tell_ids(&mut self, seen: &Seen) {
        if let Some(learner) = &mut self.learner
            && learner(&seen.named)
        {
            self.learner = None;
        }
    }

    /// The call is about to go out.
    pub fn goes_out(&mut self) -> Result<(), Fault> {
        if let Care::Slot(slot) = &mut self.slot {
            slot.goes_out()?;
        }
        if let Some(first) = &mut self.first {
            first.goes_out();
        }
        if let Some(owner) = &self.owner {
            owner.goes_out();
        }
        if let Some(limits) = &mut self.limits {
            limits.goes_out();
        }
        Ok(())
    }

    /// An event and the agent's text of it. What it settles is to be waited for before the client sees it.
    pub fn seen(&mut self, seen: &Seen, text: &[u8]) -> Settling {
        self.tell_ids(seen);
        let settling = match &mut self.owner {
            None => self.slot.seen(seen),
            Some(owner) => {
                let claimed = owner.seen(seen);
                if seen.message && self.first.is_some() {
                    // It would be told to who sends the message again: not before it is known to be for them.
                    owner.held = Some((seen.clone(), Bytes::copy_from_slice(text)));
                    return claimed.and(self.slot.seen(seen));
                }
                claimed.and(self.slot.seen(seen))
            }
        };
        if let Some(first) = &mut self.first {
            first.seen(seen, text);
        }
        settling
    }

    /// Why what was seen must not be told, once what it settles was waited for. If it may, it is kept for who sends the
    /// message again.
    pub fn objection(&mut self) -> Option<Fault> {
        let owner = self.owner.as_mut()?;
        let objection = owner.objection();
        let held = owner.held.take().filter(|_| objection.is_none());
        if let (Some((seen, text)), Some(first)) = (held, &mut self.first) {
            first.seen(&seen, &text);
        }
        objection
    }

    /// The agent's whole answer. What it settles is to be waited for before the client sees it.
    /// An error is told in place of the answer.
    pub async fn answered(
        &mut self,
        seen: &Seen,
        fields: &HeaderMap,
        text: &Bytes,
    ) -> Result<(), Fault> {
        self.tell_ids(seen);
        if let Some(owner) = &mut self.owner {
            owner.seen(seen).done().await;
        }
        self.slot.seen(seen).done().await;
        self.slot.left().done().await;
        if let Some(fault) = self.objection() {
            return Err(fault);
        }
        if let Some(first) = &mut self.first {
            first.answered(seen, fields, text); // last: who waits for it finds the conversation free
        }
        Ok(())
    }

    /// The call failed, before or after somebody answered it.
    pub fn failed(&mut self, fault: &Fault, answered: bool) -> Settling {
        if let Some(first) = &mut self.first {
            first.failed(fault, answered);
        }
        if let Some(limits) = &mut self.limits {
            limits.failed(fault, answered);
        }
        if let Some(owner) = &self.owner {
            owner.failed(fault, answered);
        }
        self.slot.failed(fault, answered)
    }

    /// So many bytes go to the client.
    pub fn told(&mut self, bytes: usize) {
        if let Some(limits) = &mut self.limits {
            limits.told(bytes);
        }
    }

    /// Whether ids in answers are of use.
    pub fn learns(&self) -> bool {
        self.learner.is_some()
            || self.slot.learns()
            || self.first.as_ref().is_some_and(|first| first.learns())
            || self.owner.as_ref().is_some_and(|owner| owner.learns())
    }

    /// Whether a message of it is at rest, or there is none.
    pub fn is_settled(&self) -> bool {
        self.slot.is_settled() && self.first.as_ref().is_none_or(|first| first.is_settled())
    }

    /// Whether its caller may leave even before the agent has said anything.
    pub fn can_be_left_at_once(&self) -> bool {
        self.slot.can_be_left_at_once()
            && (self.owner.as_ref()).is_none_or(|owner| owner.can_be_left_at_once())
    }

    /// Whether its caller may leave without anybody having to read on.
    pub fn can_be_left(&self) -> bool {
        self.slot.can_be_left()
            && self.first.as_ref().is_none_or(|first| first.can_be_left())
            && self.owner.as_ref().is_none_or(|owner| owner.can_be_left())
    }
}
