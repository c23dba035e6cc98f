//! The store that all replicas share: Redis or Valkey.
//!
//! One thread, the store task (`task`), owns the connection; workers ask it by a bounded channel and wait no longer
//! than a deadline. Entries are changed by one script (`script`, `slot.lua`) in the store's own time. What this
//! process holds is also in the task's table (`table`): it renews the leases, is the queue of what could not be told
//! in time, puts slots back into a store that lost them, and is the whole state while the store is away and settings
//! say `local`. Of messages that may be sent again it keeps the same, with leases that are renewed beside (`sent`,
//! `message.lua`).
//!
//! | Key | Holds |
//! |---|---|
//! | `{prefix:NN}s:<key>` | the holders of a conversation, as JSON |
//! | `{prefix:NN}t:<key>` | the context of a task |
//! | `{prefix:NN}b:<key>` | the agent of a context |
//! | `{prefix:NN}r:<key>` | what became of a message, as a hash: its digest, fate and task |
//! | `{prefix:NN}o:<key>` | whose a task or a context is, as a digest |
//! | `{prefix:00}pages` | what replicas make secrets of: of page tokens, of names of credentials |
//! | `{prefix:NN}l:<key>` | what a rule counts |
//! | `{prefix:NN}epoch` | when the data began: a store without it has lost them |
//!
//! NN is 00, and in a cluster one of 64 by the key. None of this may be evicted (`maxmemory-policy noeviction`).
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};

use super::{
    Key, Settling, Shown, Take, Trouble, owner,
    retry::{Begun, Record},
    slot::{End, Entry, Mark, Millis, Newcomer, Times},
};

pub mod address;
mod counts;
mod flight;
mod keys;
mod owners;
mod script;
mod sent;
mod table;
mod task;

pub use address::{Address, AddressError};
use counts::Held;
use script::{Counting, Op, Wants};
use task::{Answer, Command, LAST, No, Task};

#[cfg(test)]
pub(crate) mod tests;

/// Commands that wait for the store task; beyond, it is as if the store was away.
const WAITING: usize = 4096;

/// How much longer a worker waits than a command may take, for the way to the store task and back.
const SLACK: Duration = Duration::from_millis(250);

/// How long a list may take.
const LIST: Duration = Duration::from_secs(10);

/// What may be kept, and how long things may take.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What all keys begin with.
    pub prefix: String,
    /// Go on alone while the store is away, instead of refusing.
    pub local: bool,
    /// The times that slots go by, with a lease.
    pub times: Times,
    /// How long one command may take.
    pub timeout: Duration,
    /// How long an answer waits for its slot to be settled.
    pub settle_timeout: Duration,
    /// Conversations that this process may hold at once.
    pub slots: usize,
    /// Tasks whose context is remembered in this process as well.
    pub tasks: usize,
    /// Contexts that may be bound to an agent while the store is away.
    pub bindings: usize,
    /// How long a binding lasts without use.
    pub binding_ttl: Duration,
    /// Messages of this process that it remembers as well.
    pub messages: usize,
    /// How long a message is remembered, from the last news of it.
    pub message_ttl: Duration,
    /// Whose tasks and contexts are.
    pub owners: owner::Settings,
}

/// A note to the store task, of who does not wait until it is read. Each holder leaves few of them, so that the bound
/// on holders bounds them as well.
enum Note {
    Settle(Key, u64, End, Option<oneshot::Sender<bool>>),
    Name(Key, u64, Box<str>),
    Join(Key, Wants),
    Became(Key, Record),
    Forget(Key, u64),
    /// Of a task or context that exists already, by its owner.
    Claim(Key, Key, oneshot::Sender<bool>),
    /// Of what was claimed under this name, which came to nothing.
    Unclaim(Key, Key, u64),
    Count(Counting),
    Close,
}

/// What the store task and its callers share.
struct Shared {
    notes: Mutex<Vec<Note>>,
    news: Notify,
    /// What calls of this process hold at once.
    held: Mutex<Held>,
    /// What was used or given back, and the store was never told.
    lost: AtomicU64,
    /// The store is there.
    here: AtomicBool,
    /// Slots that this process holds, as of the last tick.
    slots: AtomicUsize,
    /// Tests let the store's clock go ahead.
    shift: AtomicU64,
}

impl Shared {
    fn leave(&self, note: Note) {
        self.notes.lock().push(note);
        self.news.notify_one();
    }

    fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock())
    }

    fn shift(&self) -> u64 {
        self.shift.load(Relaxed)
    }
}

/// A take that was sent and whose answer is not read, since who asked has given up, ends free: the answer may be on
/// its way from the store task, which then believes that somebody has the slot.
struct Unread<'s>(&'s Shared, Option<(Key, u64)>);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some((key, token)) = self.1 {
            self.0.leave(Note::Settle(key, token, End::Free, None));
        }
    }
}

/// Without its task the store is away for good, in `local` mode too: nothing else would say why.
struct SaysIfItPanics;

impl Drop for SaysIfItPanics {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(
                "the state store's task ended in a panic; messages are refused until this gateway is restarted"
            );
        }
    }
}

/// The store.
pub struct Redis {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    /// How long a worker waits for an answer.
    patience: Duration,
    settle_timeout: Duration,
    /// Says that the thread ended, by being dropped with it.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Redis {
    /// Starts the store task, which connects by itself.
    pub fn start(address: Address, settings: Settings) -> std::io::Result<Self> {
        Self::start_at(address, settings, 0)
    }

    /// The same, with a clock that goes ahead.
    fn start_at(address: Address, settings: Settings, shift: u64) -> std::io::Result<Self> {
        let (this, asked, ends) = Self::apart(&settings, shift);
        let shared = Arc::clone(&this.shared);
        // A runtime of its own: a busy worker must not make renewals late.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || {
                let _says = SaysIfItPanics;
                runtime.block_on(Task::new(settings, address, shared, asked).run());
                drop(ends);
            })?;
        Ok(this)
    }

    /// The store without its task, what that is asked by, and what it drops when it ends.
    fn apart(
        settings: &Settings,
        shift: u64,
    ) -> (Self, mpsc::Receiver<Command>, oneshot::Sender<()>) {
        let (commands, asked) = mpsc::channel(WAITING);
        let (ends, ended) = oneshot::channel();
        let shared = Arc::new(Shared {
            notes: Mutex::new(vec![]),
            news: Notify::new(),
            held: Mutex::default(),
            lost: AtomicU64::new(0),
            here: AtomicBool::new(false),
            slots: AtomicUsize::new(0),
            shift: AtomicU64::new(shift),
        });
        let this = Self {
            commands,
            shared,
            patience: settings.timeout + SLACK,
            settle_timeout: settings.settle_timeout,
            ended: Mutex::new(Some(ended)),
        };
        (this, asked, ends)
    }

    /// Whether the store is there.
    pub fn is_up(&self) -> bool {
        self.shared.here.load(Relaxed)
    }

    /// Conversations that this process holds.
    pub fn held(&self) -> usize {
        self.shared.slots.load(Relaxed)
    }

    /// Lets what ended get into the store, and ends the task. For the end of a process, within that time.
    pub async fn close(&self, within: Duration) {
        self.shared.leave(Note::Close);
        let ended = self.ended.lock().take();
        if let Some(ended) = ended {
            let _ = timeout(within.min(LAST + SLACK), ended).await; // its thread ends with the process
        }
    }

    async fn ask<T>(
        &self,
        within: Duration,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Trouble> {
        answered(within, self.send(command)?).await
    }

    fn send<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<oneshot::Receiver<T>, Trouble> {
        let (to, said) = oneshot::channel();
        let sent = self.commands.try_send(command(to));
        sent.map_err(|_| Trouble::Away)?;
        Ok(said)
    }

    async fn slot(&self, key: Key, op: Op) -> Result<Result<Answer, No>, Trouble> {
        self.ask(self.patience, |to| Command::Slot(key, op, to))
            .await
    }

    pub(super) async fn take(
        &self,
        key: Key,
        over: Option<Mark>,
        of: &Newcomer<'_>,
    ) -> Result<Take, Trouble> {
        let take = Op::Take(over, of.into());
        let said = self.send(|to| Command::Slot(key, take, to))?;
        let mut unread = Unread(&self.shared, Some((key, of.token)));
        let said = answered(self.patience, said).await?;
        unread.1 = None;
        let answer = match said {
            Ok(answer) => answer,
            Err(No::Full) => return Ok(Take::Full),
            Err(No::Away) => return Err(Trouble::Away),
            Err(No::Quiet) => return Err(Trouble::Quiet),
        };
        if answer.yes {
            return Ok(Take::Taken(answer.lease));
        }
        let holder = answer.entry.holder().cloned();
        let holder = holder.ok_or(Trouble::Away)?; // it says no without a holder
        Ok(Take::Busy(holder, answer.now))
    }

    pub(super) fn join(&self, key: Key, of: &Newcomer<'_>) {
        self.shared.leave(Note::Join(key, of.into()));
    }

    pub(super) fn free(&self, key: Key, seen: Mark) -> Settling {
        let (to, done) = oneshot::channel();
        let sent = self
            .commands
            .try_send(Command::Slot(key, Op::Free(seen), to));
        if sent.is_err() {
            return Settling::Done; // the next newcomer asks the agent
        }
        let within = self.settle_timeout;
        Settling::Wait(Box::pin(async move {
            matches!(timeout(within, done).await, Ok(Ok(Ok(answer))) if answer.yes)
        }))
    }

    pub(super) async fn goes_on(&self, key: Key, seen: Mark) {
        // What cannot be told is learned again by the next question.
        let _ = self.slot(key, Op::GoesOn(seen)).await;
    }

    pub(super) fn name(&self, key: Key, token: u64, task: &str) {
        self.shared.leave(Note::Name(key, token, task.into()));
    }

    pub(super) fn settle(&self, key: Key, token: u64, end: End) -> Settling {
        let (to, done) = oneshot::channel();
        self.shared.leave(Note::Settle(key, token, end, Some(to)));
        let within = self.settle_timeout;
        Settling::Wait(Box::pin(async move {
            matches!(timeout(within, done).await, Ok(Ok(true)))
        }))
    }

    pub(super) fn settle_later(&self, key: Key, token: u64, end: End) {
        self.shared.leave(Note::Settle(key, token, end, None));
    }

    pub(super) async fn look(&self, key: Key) -> Option<(Entry, Millis)> {
        let answer = self.slot(key, Op::Look).await.ok()?.ok()?;
        answer.yes.then_some((answer.entry, answer.now))
    }

    pub(super) async fn list(&self, limit: usize) -> Result<Vec<Shown>, Trouble> {
        let all = self.ask(LIST, |to| Command::List(limit, to)).await?;
        all.map_err(No::trouble)
    }

    pub(super) async fn release(&self, key: Key) -> Result<bool, Trouble> {
        let answer = self.slot(key, Op::Release).await?;
        answer.map(|a| a.yes).map_err(No::trouble)
    }

    pub(super) fn learn(&self, task: Key, context: &str) {
        // One that is not remembered is asked of the agent.
        let _ = self.commands.try_send(Command::Learn(task, context.into()));
    }

    pub(super) async fn context_of(&self, task: Key) -> Option<Box<str>> {
        let context = self.ask(self.patience, |to| Command::ContextOf(task, to));
        context.await.ok()?
    }

    pub(super) async fn bind(
        &self,
        context: Key,
        agent: &str,
    ) -> Result<Option<Box<str>>, Trouble> {
        let command = |to| Command::Bind(context, agent.into(), to);
        let bound = self.ask(self.patience, command).await?;
        bound.map_err(No::trouble)
    }

    pub(super) fn bind_later(&self, context: Key, agent: &str) {
        let (to, _) = oneshot::channel();
        if self
            .commands
            .try_send(Command::Bind(context, agent.into(), to))
            .is_err()
        {
            tracing::warn!(%context, "a context was not bound to its agent: the state store has too much to do");
        }
    }

    pub(super) async fn begin_retry(&self, message: Key, new: Record) -> Result<Begun, Trouble> {
        let command = |to| Command::Begin(message, new, to);
        let begun = self.ask(self.patience, command).await?;
        begun.map_err(No::trouble)
    }

    pub(super) fn retry_is(&self, message: Key, record: Record) {
        self.shared.leave(Note::Became(message, record));
    }

    pub(super) fn forget_retry(&self, message: Key, token: u64) {
        self.shared.leave(Note::Forget(message, token));
    }

    #[cfg(test)]
    fn shift(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.shared.shift.fetch_add(by, Relaxed);
    }
}

async fn answered<T>(within: Duration, said: oneshot::Receiver<T>) -> Result<T, Trouble> {
    let said = timeout(within, said).await;
    said.map_err(|_| Trouble::Away)?.map_err(|_| Trouble::Away)
}

impl No {
    /// Where there is no word for a full table.
    const fn trouble(self) -> Trouble {
        match self {
            Self::Away | Self::Full => Trouble::Away,
            Self::Quiet => Trouble::Quiet,
        }
    }
}
