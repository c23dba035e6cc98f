//! Whose tasks, contexts and webhooks are. The agent knows only the gateway, so it is the gateway that keeps its callers
//! apart: what a call made belongs to its owner, the tenant or the caller, and nobody else hears that it is there.
//!
//! ```text
//!   names a task     ─► its owner is looked up ─► another's, or nobody's and settings refuse: no such task
//!   names a context  ─► the same; nobody's is claimed before anything is asked or taken for the message, another's is
//!                       refused; the claim is taken back if the message never went out or the agent refused it
//!   is answered      ─► tasks and contexts that the answer tells of are claimed before the caller sees them
//!   lists tasks      ─► pages of the agent are filtered and refilled (`page`)
//! ```
//! A webhook belongs to its task: every operation on one names the task. Whoever cannot be told apart owns nothing.
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{
    a2a::{Call, Fault, Kind, Op},
    config::{NewContexts, OfUnknown, OwnedBy, Ownership},
    state::{
        Key, Store,
        owner::{Claimed, Keys},
        slot::Asker,
    },
};

use super::{
    caller::Caller,
    conversation::{Conversations, away},
};

mod claims;
pub mod page;

pub use claims::Claims;

/// All owners, over all workers.
#[derive(Clone)]
pub struct Owners(Arc<Inner>);

struct Inner {
    settings: Ownership,
    conversations: Conversations,
}

/// Who owns what a call makes, and may see what it names.
#[derive(Clone)]
pub struct Owner {
    of: Owners,
    /// The agent, as conversations have it.
    scope: Arc<str>,
    key: Key,
    /// Whose conversations are apart from others', as conversations have it: nobody waits for another owner's message,
    /// nor is the agent asked about another owner's task, even where an agent has one context for all.
    apart: Arc<str>,
    /// The context that the call itself named.
    named: Option<Key>,
    /// It was nobody's until now.
    new: Option<Arc<New>>,
}

/// A context that was claimed just now. Dropping it takes the claim back, unless it was for something.
struct New {
    of: Owners,
    what: Key,
    owner: Key,
    name: u64,
    lasts: AtomicBool,
}

impl Drop for New {
    fn drop(&mut self) {
        if !self.lasts.load(Relaxed) {
            let store = self.of.0.conversations.store();
            store.unclaim(self.what, self.owner, self.name);
        }
    }
}

impl Owners {
    /// Remembered where the conversations are.
    pub fn new(settings: Ownership, conversations: Conversations) -> Self {
        Self(Arc::new(Inner {
            settings,
            conversations,
        }))
    }

    /// Whether anything belongs to anybody.
    pub fn on(&self) -> bool {
        self.0.settings.is_on()
    }

    /// Whether the store may have to be waited for.
    pub fn wait(&self) -> bool {
        matches!(self.0.conversations.store(), Store::Redis(_))
    }

    /// The owner that a caller stands for. Refused for who is only believed to be there: an address, or a credential
    /// that nobody looked at.
    pub fn of(&self, caller: &Caller, scope: &Arc<str>) -> Result<Owner, Fault> {
        if !caller.verified {
            return Err(Fault::new(
                Kind::Unauthenticated,
                "only callers whom the gateway knows may use this agent",
            ));
        }
        let by = self.0.settings.by;
        let known = caller.kept.owner.get_or_init(|| {
            let key = key(by, caller);
            let apart = apart(scope, key);
            (by, key, scope.clone(), apart)
        });
        let key = if known.0 == by {
            known.1
        } else {
            key(by, caller)
        };
        let apart = if known.1 == key && known.2 == *scope {
            known.3.clone()
        } else {
            apart(scope, key)
        };
        Ok(Owner {
            of: self.clone(),
            scope: scope.clone(),
            key,
            apart,
            named: None,
            new: None,
        })
    }
}

/// Whom a caller's things belong to.
fn key(by: OwnedBy, caller: &Caller) -> Key {
    let tenant = match by {
        OwnedBy::Tenant => caller.tenant.as_deref(),
        OwnedBy::Caller | OwnedBy::Off => None,
    };
    match tenant {
        Some(tenant) => Key::of(&["owner", "tenant", tenant]),
        None => Key::of(&["owner", "caller", &caller.name]),
    }
}

fn apart(scope: &str, key: Key) -> Arc<str> {
    format!("{scope}\n{key}").into()
}

impl Owner {
    fn store(&self) -> &Store {
        self.of.0.conversations.store()
    }

    fn task(&self, id: &str) -> Key {
        Key::of(&["own", "task", &self.scope, id])
    }

    fn context(&self, id: &str) -> Key {
        Key::of(&["own", "context", &self.scope, id])
    }

    /// Whether what is somebody's, or nobody's, may be seen.
    fn sees(&self, owner: Option<Key>) -> bool {
        match owner {
            Some(owner) => owner == self.key,
            None => self.of.0.settings.unknown == OfUnknown::Allow,
        }
    }

    /// The agent, as its conversations have it.
    pub fn apart(&self) -> &Arc<str> {
        &self.apart
    }

    /// Its messages, as conversations tell senders apart: others with its credential are itself.
    pub fn asker(&self) -> Asker {
        let first = self.key.0.first_chunk();
        Asker::known(first.map_or(0, |first| u64::from_le_bytes(*first)))
    }

    /// Whether a call may name all these tasks, and this context. The store is asked even where none is named: a call
    /// whose task could not be remembered must not begin.
    pub async fn may_name(&mut self, tasks: &[String], context: Option<&str>) -> Result<(), Fault> {
        let key = self.context(context.unwrap_or_default());
        self.named = context.map(|_| key);
        let mut keys: Keys = tasks.iter().map(|task| self.task(task)).collect();
        keys.push(key);
        let owners = self.store().owners(keys, self.key).await;
        let mut owners = owners.map_err(away)?;
        let context_owner = owners.pop().flatten();
        if !owners.into_iter().all(|owner| self.sees(owner)) {
            return Err(Fault::no_task());
        }
        if context.is_none() {
            return Ok(());
        }
        match (context_owner, self.of.0.settings.new_contexts) {
            (Some(owner), _) if owner != self.key => Err(not_yours()),
            (None, NewContexts::Refuse) => Err(not_yours()),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// A message wants to go out: the context that it names is its owner's from now on, unless another was faster. Before
    /// anything is asked of the agent for it, or anybody waits for it. What it makes must be remembered: it does not go
    /// out where there is no room for that.
    pub async fn takes(&mut self) -> Result<(), Fault> {
        let Some(what) = self.named else {
            return if self.store().has_room(self.key) {
                Ok(())
            } else {
                Err(no_room())
            };
        };
        let name = self.of.0.conversations.token();
        let claimed = self.store().claim(what, self.key, name).await;
        match claimed.map_err(away)? {
            Claimed::Own => Ok(()),
            Claimed::Others => Err(not_yours()),
            Claimed::Full => Err(no_room()),
            Claimed::New => {
                self.new = Some(Arc::new(New {
                    of: self.of.clone(),
                    what,
                    owner: self.key,
                    name,
                    lasts: AtomicBool::new(false),
                }));
                Ok(())
            }
        }
    }

    /// Which of these tasks may be seen, in their order.
    pub async fn sees_which<'t>(
        &self,
        tasks: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<bool>, Fault> {
        let keys = tasks.map(|task| self.task(task)).collect();
        let owners = self.store().owners(keys, self.key).await;
        let owners = owners.map_err(away)?.into_iter();
        Ok(owners.map(|owner| self.sees(owner)).collect())
    }

    /// The call is about to go out: what it owes is what its answer will tell of.
    ///
    /// A message that was sent before has become a question for its task by now, which its own answer has shown: it is
    /// not asked for if that is another's.
    pub async fn claims(self, asked: Op, call: &Call) -> Result<Claims, Fault> {
        if !call.op.sends()
            && asked.sends()
            && let Some(task) = &call.facts.task
        {
            let owners = self
                .store()
                .owners([self.task(task)].into_iter().collect(), self.key)
                .await;
            let owner = owners.map_err(away)?.pop().flatten();
            if owner.is_some_and(|owner| owner != self.key) {
                return Err(Fault::no_task());
            }
        }
        Ok(Claims::new(self, call))
    }
}

fn not_yours() -> Fault {
    Fault::params("`contextId` is not one of yours")
}

fn no_room() -> Fault {
    tracing::warn!(
        "a message was refused: the owner of what it makes could not be remembered; raise ownership.max_entries, or \
         lower ownership.ttl"
    );
    let mut fault = Fault::new(Kind::Overloaded, "there is no room for this message now");
    fault.retry_after = Some(60);
    fault.because("ownership.max_entries")
}

#[cfg(test)]
mod tests;
