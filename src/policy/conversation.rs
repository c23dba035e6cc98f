//! One message in flight per conversation. The slots lie in [`crate::state`]; here is who takes them, what frees
//! them, and what a newcomer does who finds one taken.
//!
//! ```text
//! admit ─► free ───────────────────────────────► Slot ─► goes_out ─► seen … ─► settled
//!   └────► taken ─► wait `busy_grace` ─► still in flight ─► refused       └─ dropped: settles by what is known
//!                          └─► Held, Unknown ─► one question to the agent ─► take over, or refused
//! ```
//! Only the gateway talks to the agent: it is handed a [`Question`] and gives back [`Evidence`].
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

mod question;
mod queue;
mod slot;

pub use question::{Evidence, Question};
pub use slot::{Care, Slot, Watch};

use question::{Questions, Verdict, judge};
use queue::Queue;

use crate::{
    a2a::{Fault, Kind},
    config::{self, OnBusy},
    state::{
        Key, Store, Take, Trouble,
        slot::{Asker, Holder, Millis, Newcomer, Phase},
    },
};

/// The longest context id, in bytes of its decoded text.
pub const LONGEST_CONTEXT: usize = 1024;
/// How often a slot is looked at that another process may free.
const LOOK: Duration = Duration::from_millis(25);

/// All conversations, over all workers.
#[derive(Clone)]
pub struct Conversations(Arc<Inner>);

struct Inner {
    store: Store,
    settings: config::Conversation,
    queue: Arc<Queue>,
    questions: Arc<Questions>,
    tokens: Arc<AtomicU64>,
}

/// A message that wants its conversation.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The agent, by its address without what names one agent among others.
    pub scope: Arc<str>,
    /// The conversation, where it is known.
    pub context: Option<String>,
    /// The task that the message resumes.
    pub task: Option<String>,
    /// Who sends it.
    pub asker: Asker,
    /// The agent that the context is to be bound to.
    pub agent: Option<Box<str>>,
    /// What waiting for it holds in memory.
    pub bytes: usize,
}

impl Wanted {
    fn newcomer(&self, token: u64) -> Newcomer<'_> {
        Newcomer {
            token,
            asker: self.asker,
            task: self.task.as_deref(),
        }
    }
}

fn slot_key(scope: &str, context: &str) -> Key {
    Key::of(&["slot", scope, context])
}

fn task_key(scope: &str, task: &str) -> Key {
    Key::of(&["task", scope, task])
}

impl Conversations {
    /// No conversation yet.
    pub fn new(settings: config::Conversation, store: Store) -> Self {
        // Tokens are told apart across processes by their random beginning.
        let seed = uuid::Uuid::new_v4().as_u64_pair().0;
        Self(Arc::new(Inner {
            queue: Queue::new(settings.max_waiting, settings.max_waiting_bytes).into(),
            questions: Arc::default(),
            store,
            settings,
            tokens: Arc::new(AtomicU64::new(seed)),
        }))
    }

    /// The same conversations by other settings: who holds one or waits for it, here or by the settings before, is seen
    /// by both.
    #[must_use]
    pub fn by(&self, settings: config::Conversation) -> Self {
        let of = &*self.0;
        Self(Arc::new(Inner {
            store: of.store.clone(),
            settings,
            queue: of.queue.clone(),
            questions: of.questions.clone(),
            tokens: of.tokens.clone(),
        }))
    }

    /// From now on the queue has the room that these settings give it.
    pub fn settle_in(&self) {
        let settings = &self.0.settings;
        let (messages, bytes) = (settings.max_waiting, settings.max_waiting_bytes);
        self.0.queue.set(messages, bytes);
    }

    /// Whether messages are held apart at all.
    pub fn on(&self) -> bool {
        self.0.settings.on_busy != OnBusy::Off
    }

    /// Whether a context is named in a message that names only its task.
    pub fn fills(&self) -> bool {
        self.0.settings.fill_context
    }

    /// Where slots are kept.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Frees a conversation, whoever holds it: for an operator. True if somebody did.
    pub async fn release(&self, key: Key) -> Result<bool, Trouble> {
        let released = self.0.store.release(key).await?;
        if released {
            tracing::warn!(conversation = %key, "a conversation was released by an operator");
        }
        self.changed(key);
        Ok(released)
    }

    /// Names one holding, or one sending; no two are alike.
    pub(super) fn token(&self) -> u64 {
        self.0.tokens.fetch_add(1, Relaxed)
    }

    /// Once a second, by anybody: forgets what is over.
    pub fn tick(&self) {
        self.0.store.tick();
        self.0.questions.tick();
    }

    /// The context of a task, as far as replies have shown it.
    pub async fn context_of(&self, scope: &str, task: &str) -> Option<Box<str>> {
        self.0.store.context_of(task_key(scope, task)).await
    }

    /// Remembers the context of a task.
    pub fn learn(&self, scope: &str, task: &str, context: &str) {
        self.0.store.learn(task_key(scope, task), context);
    }

    /// A context stays with the agent that it was first used with.
    pub async fn bind(&self, wanted: &Wanted) -> Result<(), Fault> {
        let (Some(agent), Some(context)) = (&wanted.agent, &wanted.context) else {
            return Ok(());
        };
        let key = Key::of(&["bound", &wanted.scope, context]);
        match self.0.store.bind(key, agent).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(Fault::new(
                Kind::ContextBound,
                "this contextId belongs to another agent",
            )),
            Err(trouble) => Err(away(trouble)),
        }
    }

    /// Takes the conversation, waiting for it as settings say. `ask` puts a question to the agent, as the caller.
    pub async fn admit<A>(
        &self,
        wanted: Wanted,
        ask: impl FnMut(Question) -> A,
    ) -> Result<Slot, Fault>
    where
        A: Future<Output = Evidence>,
    {
        let Some(context) = &wanted.context else {
            return Ok(Slot::open(self, wanted));
        };
        let key = slot_key(&wanted.scope, context);
        let inner = &*self.0;
        let place = inner.queue.place(key);
        if inner.settings.on_busy != OnBusy::Wait || !place.others() {
            let token = self.token();
            let newcomer = wanted.newcomer(token);
            match inner.store.take(key, &newcomer).await.map_err(away)? {
                Take::Taken(until) => return Ok(Slot::new(self, wanted, key, token, until)),
                Take::Full => return Err(no_slot()),
                Take::Busy(..) => {}
            }
        }
        // Boxed: what is rare must not make every call's future large.
        Box::pin(self.contend(wanted, key, place, ask)).await
    }

    /// Takes a conversation that somebody else has.
    async fn contend<A>(
        &self,
        wanted: Wanted,
        key: Key,
        mut place: queue::Place<'_>,
        mut ask: impl FnMut(Question) -> A,
    ) -> Result<Slot, Fault>
    where
        A: Future<Output = Evidence>,
    {
        let inner = &*self.0;
        let longest = match inner.settings.on_busy {
            OnBusy::Wait => inner.settings.wait.max(inner.settings.busy_grace),
            OnBusy::Reject | OnBusy::Off => inner.settings.busy_grace,
        };
        let context = wanted.context.as_deref().unwrap_or_default();
        let began = Instant::now();
        if inner.settings.on_busy == OnBusy::Wait {
            self.wait_turn(&mut place, &wanted, began + longest).await?;
        }
        loop {
            let freed = place.listen(); // before looking, so that nothing is missed in between
            let token = self.token();
            let newcomer = wanted.newcomer(token);
            let answer = inner.store.take(key, &newcomer).await.map_err(away)?;
            let (mut holder, now) = match answer {
                Take::Busy(holder, now) => (holder, now),
                Take::Taken(until) => return Ok(Slot::new(self, wanted, key, token, until)),
                Take::Full => return Err(no_slot()),
            };
            let so_far = began.elapsed();
            let mut next = inner.settings.busy_grace.saturating_sub(so_far);
            if next.is_zero() && holder.phase != Phase::InFlight {
                next = question::PACE;
                let verdict = self.question(key, context, &wanted, &holder, now, &mut ask);
                match verdict.await {
                    Verdict::Free => {
                        // Not the same: where the answer to the first take was lost, that is still to be settled free.
                        let token = self.token();
                        let newcomer = wanted.newcomer(token);
                        let over = inner.store.take_over(key, holder.mark(), &newcomer);
                        match over.await.map_err(away)? {
                            Take::Taken(until) => {
                                return Ok(Slot::new(self, wanted, key, token, until));
                            }
                            Take::Full => return Err(no_slot()),
                            Take::Busy(other, _) => holder = other, // it is asked about next
                        }
                    }
                    Verdict::GoesOn(task) => {
                        inner.store.goes_on(key, holder.mark()).await;
                        holder.task = Some(task);
                    }
                    Verdict::Nothing => {}
                }
            }
            if so_far >= longest {
                return Err(self.busy(&holder, now, wanted.asker));
            }
            if next.is_zero() {
                next = longest.saturating_sub(so_far);
            }
            if inner.store.is_shared() {
                next = next.min(LOOK);
            }
            let _elapsed = tokio::time::timeout(next, freed).await;
        }
    }

    /// Into the queue, and to its head.
    async fn wait_turn(
        &self,
        place: &mut queue::Place<'_>,
        wanted: &Wanted,
        until: Instant,
    ) -> Result<(), Fault> {
        let full = |_| full("too many messages wait; see conversation.max_waiting");
        place.enter(wanted.bytes).map_err(full)?;
        place.turn(until).await;
        Ok(())
    }

    async fn question<A>(
        &self,
        key: Key,
        context: &str,
        wanted: &Wanted,
        holder: &Holder,
        now: Millis,
        ask: &mut impl FnMut(Question) -> A,
    ) -> Verdict
    where
        A: Future<Output = Evidence>,
    {
        let question = match &holder.task {
            Some(task) => Question::Task(task.clone()),
            None => Question::Tasks(context.into()),
        };
        let inner = &self.0;
        let whom = (wanted.asker, now);
        let answer = inner.questions.ask(key, holder, whom, || ask(question));
        let judged = |answer| judge(holder, answer, &inner.settings);
        answer.await.map_or(Verdict::Nothing, judged)
    }

    /// A slot came free, or nobody is in flight there any more: who waits for it here may look, and ask.
    fn changed(&self, key: Key) {
        self.0.queue.wake(key);
    }

    fn busy(&self, holder: &Holder, now: Millis, asker: Asker) -> Fault {
        let conflict = self.0.settings.busy_status == config::BusyStatus::Conflict;
        let mut fault = Fault::new(
            Kind::ConversationBusy { conflict },
            "another message of this conversation is in flight",
        );
        fault.retry_after = Some(1);
        if holder.asker == asker {
            let age = now.saturating_sub(holder.taken) / 1000;
            fault = fault.with("ageSeconds", age.to_string());
            if let Some(task) = &holder.task {
                fault = fault.with("taskId", task.to_string());
            }
        }
        fault
    }
}

fn no_slot() -> Fault {
    full("too many conversations are held; see conversation.max_held")
}

fn full(words: &'static str) -> Fault {
    tracing::warn!("a message was refused: {words}");
    let mut fault = Fault::new(Kind::Overloaded, "there is no room for this message now");
    fault.retry_after = Some(1);
    fault.because(words)
}

pub(super) fn away(trouble: Trouble) -> Fault {
    let mut fault = Fault::new(Kind::Overloaded, "the gateway's state store is away");
    fault.retry_after = Some(match trouble {
        Trouble::Away => 1,
        Trouble::Quiet => 5,
    });
    fault.because(trouble.to_string())
}

#[cfg(test)]
mod tests;
