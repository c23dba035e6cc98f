//! The store task: one thread that owns the connection, the table of what this process holds, and all that is on its
//! way. Everything passes through it, so that it alone decides whether the store is there.
//!
//! ```text
//!            connected                    all is put back
//!  Away ───────────────► PuttingBack ─────────────────────► Here
//!   ▲  ▲                      │ broken                        │ broken, or late three times in a row
//!   │  └──────────────────────┘                               │
//!   └─────────────────────────────────────────────────────────┘
//! ```
//! It begins in `PuttingBack`, without a connection: nobody is served until the first attempt ended.
use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{LocalBoxFuture, pending},
    stream::FuturesUnordered,
};
use redis::RedisResult;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    super::{
        Key, Shown,
        recent::Recent,
        slot::{End, Entry, Millis},
    },
    Note, Settings, Shared,
    address::{Address, Link},
    flight::{Fail, Wire},
    keys::{Keys, TAGS},
    script::{Op, Reply, Told},
    table::{Table, There},
};

/// Commands on their way at once; the others wait in the channel.
const WINDOW: usize = 1024;

/// Commands in a row that may be late before the store counts as away.
const LATE: u8 = 3;

/// How often a store that is away is tried again, and what was late is told again.
const RETRY: Duration = Duration::from_secs(1);

/// How long what ended may take to get into the store when the process ends.
pub(super) const LAST: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum No {
    /// The store does not answer.
    Away,
    /// It has lost its data, and waits.
    Quiet,
    /// This process holds as much as it may.
    Full,
}

/// An answer about a conversation.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) yes: bool,
    pub(super) now: Millis,
    pub(super) entry: Entry,
    /// Until when a holder that was taken is good, by our clock; `None` while the store is away.
    pub(super) lease: Option<Instant>,
}

/// What workers ask.
pub(super) enum Command {
    Slot(Key, Op, oneshot::Sender<Result<Answer, No>>),
    Learn(Key, Box<str>),
    ContextOf(Key, oneshot::Sender<Option<Box<str>>>),
    Bind(Key, Box<str>, oneshot::Sender<Result<Option<Box<str>>, No>>),
    List(usize, oneshot::Sender<Result<Vec<Shown>, No>>),
}

/// What landed, and by which connection it went.
struct Landed {
    link: u64,
    what: Landing,
}

enum Landing {
    /// For a worker, when it was sent.
    Asked(
        Key,
        Op,
        Instant,
        oneshot::Sender<Result<Answer, No>>,
        Result<Reply, Fail>,
    ),
    /// Of our own table.
    Told(Key, u64, Op, Result<Reply, Fail>),
    Epoch(u8, Result<Reply, Fail>),
    Learned(Result<(), Fail>),
    ContextOf(
        Key,
        oneshot::Sender<Option<Box<str>>>,
        Result<Option<String>, Fail>,
    ),
    Bound(
        Key,
        Box<str>,
        Option<oneshot::Sender<Result<Option<Box<str>>, No>>>,
        Result<Option<String>, Fail>,
    ),
    Listed(
        oneshot::Sender<Result<Vec<Shown>, No>>,
        Result<Vec<(Key, Reply)>, Fail>,
    ),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Away,
    PuttingBack,
    Here,
}

/// The task.
pub(super) struct Task {
    settings: Settings,
    address: Address,
    wire: Arc<Wire>,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    table: Table,
    stand: Stand,
    link: Option<Link>,
    /// Counts connections.
    links: u64,
    connecting: Option<LocalBoxFuture<'static, RedisResult<Link>>>,
    flying: FuturesUnordered<LocalBoxFuture<'static, Landed>>,
    /// When the data of each tag began; 0 is not known.
    epochs: [Millis; TAGS as usize],
    /// Questions for them that are on their way.
    epochs_asked: usize,
    late: u8,
    /// Whether it has been said that the store is away.
    said: bool,
    contexts: Recent<Key, Box<str>>,
    /// Bound while the store was away.
    bound: HashMap<Key, Box<str>>,
    /// No worker is left, or the process ends: by then this thread has to.
    ends: Option<Instant>,
}

impl Task {
    pub(super) fn new(
        settings: Settings,
        address: Address,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let keys = Keys::new(&settings.prefix, address.is_cluster());
        Self {
            wire: Wire::new(keys, settings.times, settings.timeout),
            table: Table::new(settings.times, settings.slots),
            contexts: Recent::new(settings.tasks),
            settings,
            address,
            shared,
            commands,
            stand: Stand::PuttingBack,
            link: None,
            links: 0,
            connecting: None,
            flying: FuturesUnordered::new(),
            epochs: [0; TAGS as usize],
            epochs_asked: 0,
            late: 0,
            said: false,
            bound: HashMap::new(),
            ends: None,
        }
    }

    /// Runs until nobody can ask any more and all is settled.
    pub(super) async fn run(mut self) {
        let lease = self.settings.times.lease.unwrap_or(RETRY);
        let mut ticks = interval(RETRY.min(lease / 3).max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(&self.shared);
        self.connect();
        while !self.is_over() {
            self.tell();
            self.here_if_all_is_back();
            let serves = self.ends.is_none() && self.flying.len() < WINDOW;
            let serves = serves && self.stand != Stand::PuttingBack;
            tokio::select! {
                biased;
                Some(landed) = self.flying.next(), if !self.flying.is_empty() => self.land(landed),
                () = shared.news.notified() => self.read(),
                link = connected(&mut self.connecting) => self.connected(link),
                _ = ticks.tick() => self.tick(),
                command = self.commands.recv(), if serves => match command {
                    Some(command) => self.serve(command),
                    None => self.ends = Some(Instant::now() + LAST),
                },
            }
        }
    }

    fn is_over(&mut self) -> bool {
        let Some(by) = self.ends else {
            return false;
        };
        // Who dropped a holder and then the store left a note.
        self.read();
        self.table.is_settled() || Instant::now() >= by
    }

    fn tick(&mut self) {
        self.table.tick();
        if self.link.is_none() && self.connecting.is_none() {
            self.connect();
        }
        // A store that restarts is noticed while it is still quiet, also where nothing goes on.
        if self.stand == Stand::Here && self.epochs_asked == 0 {
            self.ask_epochs();
        }
    }

    fn ask_epochs(&mut self) {
        for tag in self.wire.keys.tags() {
            let shift = self.shared.shift();
            self.epochs_asked += 1;
            self.fly(|wire, link| async move {
                Landing::Epoch(tag, wire.epoch(link, tag, shift).await)
            });
        }
    }

    // What is there, and what is away

    fn connect(&mut self) {
        let (address, within) = (self.address.clone(), 3 * self.settings.timeout);
        self.connecting = Some(async move { address.connect(within).await }.boxed_local());
    }

    fn connected(&mut self, link: RedisResult<Link>) {
        self.connecting = None;
        let link = match link {
            Ok(link) => link,
            Err(error) => return self.away(&error),
        };
        self.links += 1;
        self.late = 0;
        self.link = Some(link);
        self.stand = Stand::PuttingBack;
        self.ask_epochs();
        self.table.put_back(false, |_| true);
        for (context, agent) in std::mem::take(&mut self.bound) {
            self.bind(context, agent, None);
        }
    }

    fn here_if_all_is_back(&mut self) {
        if self.stand != Stand::PuttingBack || self.link.is_none() {
            return;
        }
        if self.flying.is_empty() && self.table.is_quiet() {
            self.stand = Stand::Here;
            if std::mem::take(&mut self.said) {
                tracing::info!(store = %self.address, "the state store is back, and has what is in flight here");
            } else {
                tracing::debug!(store = %self.address, "connected to the state store");
            }
        }
    }

    fn away(&mut self, error: &dyn std::fmt::Display) {
        self.link = None;
        self.stand = Stand::Away;
        self.table.wait_no_more();
        if !std::mem::replace(&mut self.said, true) {
            let store = &self.address;
            if self.settings.local {
                tracing::warn!(%store, %error, "the state store is away: each gateway goes on by itself, and two of \
                    them may let one conversation's messages run at once; bring the store back, or set state.on_error: refuse");
            } else {
                tracing::warn!(%store, %error, "the state store is away: messages are refused until it is back; \
                    look whether it runs and can be reached from here");
            }
        }
    }

    /// What a failure says of the store.
    fn failed(&mut self, link: u64, fail: &Fail) {
        if link != self.links || self.link.is_none() {
            return; // of a connection that is given up already
        }
        if self.stand == Stand::PuttingBack {
            self.late = LATE; // what could not be put back is put back once more
        }
        match fail {
            Fail::Broken(error) => self.away(error),
            Fail::Late | Fail::Refused(_) => {
                self.late += 1;
                if self.late >= LATE {
                    match fail {
                        Fail::Refused(error) => self.away(error),
                        Fail::Late | Fail::Broken(_) => self.away(&"it does not answer in time"),
                    }
                }
            }
        }
    }

    /// The store has data of this age; another one than before is that it lost what it had.
    fn learn_epoch(&mut self, tag: u8, epoch: Millis) {
        let known = &mut self.epochs[usize::from(tag)];
        let before = std::mem::replace(known, epoch);
        if before != 0 && before != epoch {
            tracing::warn!(store = %self.address, "the state store has lost its data, and gets back what this gateway \
                knows; give it persistence, and see that it evicts nothing");
            let keys = &self.wire.keys;
            self.table.put_back(true, |key| keys.tag(key) == tag);
        }
    }

    // What is told and asked

    fn fly<F>(&self, go: impl FnOnce(Arc<Wire>, Link) -> F)
    where
        F: Future<Output = Landing> + 'static,
    {
        if let Some(link) = &self.link {
            let landing = go(Arc::clone(&self.wire), link.clone());
            let link = self.links;
            self.flying.push(
                async move {
                    Landed {
                        link,
                        what: landing.await,
                    }
                }
                .boxed_local(),
            );
        }
    }

    fn tell(&mut self) {
        while self.link.is_some() && self.flying.len() < WINDOW {
            let Some((key, token, op)) = self.table.next() else {
                return;
            };
            let shift = self.shared.shift();
            self.fly(|wire, link| async move {
                let said = wire.slot(link, key, op.clone(), shift).await;
                Landing::Told(key, token, op, said)
            });
        }
    }

    /// Notes of those who do not wait.
    fn read(&mut self) {
        for note in self.shared.take_notes() {
            match note {
                Note::Settle(key, token, end, waiter) => {
                    let done = self.table.settle(key, token, end, waiter);
                    if let Some(waiter) = done {
                        let _ = waiter.send(true);
                    }
                    if self.stand == Stand::Away {
                        self.settled_away(key, token);
                    }
                }
                Note::Name(key, token, task) => self.table.name(key, token, &task),
                Note::Close => self.ends = Some(Instant::now() + LAST),
            }
        }
    }

    /// Nobody can wait for a store that is away; going on alone, this gateway knows that it is free.
    fn settled_away(&mut self, key: Key, token: u64) {
        let local = self.settings.local;
        if let Some(mine) = self.table.find(key, token)
            && let Some(waiter) = mine.waiter()
        {
            let _ = waiter.send(local);
        }
    }

    fn serve(&mut self, command: Command) {
        let here = self.link.is_some();
        match command {
            Command::Slot(key, op, to) => self.ask(key, op, to),
            Command::Learn(task, context) => {
                self.contexts.put(task, context.clone());
                let ttl = millis(self.settings.times.max_hold);
                self.fly(|wire, link| async move {
                    Landing::Learned(wire.learn(link, task, context, ttl).await)
                });
            }
            Command::ContextOf(task, to) => {
                let known = self.contexts.get(&task).cloned();
                if known.is_some() || !here {
                    let _ = to.send(known);
                    return;
                }
                self.fly(|wire, link| async move {
                    Landing::ContextOf(task, to, wire.context_of(link, task).await)
                });
            }
            Command::Bind(context, agent, to) if here => self.bind(context, agent, Some(to)),
            Command::Bind(context, agent, to) => {
                let _ = to.send(self.bind_locally(context, agent));
            }
            Command::List(limit, to) if here => {
                let shift = self.shared.shift();
                self.fly(|wire, link| async move {
                    Landing::Listed(to, wire.list(link, limit, shift).await)
                });
            }
            Command::List(limit, to) => {
                let _ = to.send(self.list_locally(limit));
            }
        }
    }

    fn ask(&mut self, key: Key, op: Op, to: oneshot::Sender<Result<Answer, No>>) {
        if to.is_closed() {
            return; // who asked has given up
        }
        if matches!(op, Op::Take(..)) && self.table.is_full() {
            let _ = to.send(Err(No::Full));
        } else if self.link.is_some() {
            let shift = self.shared.shift();
            let sent = Instant::now();
            self.fly(|wire, link| async move {
                let said = wire.slot(link, key, op.clone(), shift).await;
                Landing::Asked(key, op, sent, to, said)
            });
        } else {
            self.answer_away(key, &op, false, to);
        }
    }

    fn bind(
        &mut self,
        context: Key,
        agent: Box<str>,
        to: Option<oneshot::Sender<Result<Option<Box<str>>, No>>>,
    ) {
        let ttl = millis(self.settings.binding_ttl);
        self.fly(|wire, link| async move {
            let said = wire.bind(link, context, agent.clone(), ttl).await;
            Landing::Bound(context, agent, to, said)
        });
    }

    // What was said

    fn land(&mut self, landed: Landed) {
        let link = landed.link;
        match landed.what {
            Landing::Asked(key, op, sent, to, said) => {
                let said = self.heard(link, Some(key), said);
                self.asked(key, &op, sent, to, said);
            }
            Landing::Told(key, token, op, said) => {
                let said = self.heard(link, Some(key), said).ok();
                if self.table.told(key, token, &op, said.as_ref()) {
                    tracing::warn!(conversation = %key, "a conversation was lost: its slot in the state store is \
                        another's or gone, while a message of it was in flight here");
                }
                if let Some(said) = said {
                    self.table.learn(key, &said);
                }
            }
            Landing::Epoch(tag, said) => {
                self.epochs_asked -= 1;
                if let Ok(said) = self.heard(link, None, said) {
                    self.learn_epoch(tag, said.epoch);
                }
            }
            Landing::Learned(said) => drop(self.heard(link, None, said)),
            Landing::ContextOf(task, to, said) => {
                let context = self.heard(link, None, said).ok().flatten();
                let context = context.map(String::into_boxed_str);
                if let Some(context) = &context {
                    self.contexts.put(task, context.clone());
                }
                let _ = to.send(context);
            }
            Landing::Bound(context, agent, to, said) => {
                let said = self.heard(link, None, said);
                self.was_bound(context, agent, to, said);
            }
            Landing::Listed(to, said) => {
                let said = self.heard(link, None, said).map_err(|_| No::Away);
                let shown = |(key, said): (Key, Reply)| Shown {
                    key,
                    entry: said.entry,
                    now: said.now,
                };
                let _ = to.send(said.map(|all| all.into_iter().map(shown).collect()));
            }
        }
    }

    /// What each answer says of the store itself.
    fn heard<T: Said>(
        &mut self,
        link: u64,
        key: Option<Key>,
        said: Result<T, Fail>,
    ) -> Result<T, Fail> {
        match &said {
            Ok(said) => {
                self.late = 0;
                if let (Some(key), Some(epoch)) = (key, said.epoch()) {
                    self.learn_epoch(self.wire.keys.tag(key), epoch);
                }
            }
            Err(fail) => self.failed(link, fail),
        }
        said
    }

    fn asked(
        &mut self,
        key: Key,
        op: &Op,
        sent: Instant,
        to: oneshot::Sender<Result<Answer, No>>,
        said: Result<Reply, Fail>,
    ) {
        let said = match said {
            Ok(said) => said,
            Err(_) if self.link.is_some() => return self.unanswered(key, op, to),
            Err(_) => return self.answer_away(key, op, true, to),
        };
        self.table.learn(key, &said);
        if said.told == Told::Quiet {
            let _ = to.send(Err(No::Quiet));
            return;
        }
        let yes = said.told == Told::Yes;
        let mut lease = None;
        if let Op::Join(of) = op {
            self.table.add(key, of, true).further = true;
        } else if let (Op::Take(_, of), true) = (op, yes) {
            let good = self.settings.times.lease;
            lease = Some(sent + good.unwrap_or(self.settings.times.max_hold));
            self.table.add(key, of, false);
        }
        let answer = Answer {
            yes,
            now: said.now,
            entry: said.entry,
            lease,
        };
        if to.send(Ok(answer)).is_err()
            && let Some(token) = token_of(op)
        {
            // Who asked is gone, and does not know that the slot is theirs. A message that is out stays told.
            let end = if matches!(op, Op::Join(_)) {
                End::Unknown
            } else {
                End::Free
            };
            self.table.settle(key, token, end, None);
        }
    }

    /// It may have been done; the store is still there.
    fn unanswered(&mut self, key: Key, op: &Op, to: oneshot::Sender<Result<Answer, No>>) {
        if let Op::Join(_) = op {
            return self.join_later(key, op, true, to);
        }
        self.undo(key, op);
        let _ = to.send(Err(No::Away));
    }

    /// A take of which nobody knows whether it was done ends free.
    fn undo(&mut self, key: Key, op: &Op) {
        if let Op::Take(_, of) = op {
            self.table.add(key, of, false);
            self.table.settle(key, of.token, End::Free, None);
        }
    }

    /// A message that is out is told when that is possible.
    fn join_later(
        &mut self,
        key: Key,
        op: &Op,
        sent: bool,
        to: oneshot::Sender<Result<Answer, No>>,
    ) {
        if self.table.is_full() {
            let _ = to.send(Err(No::Full));
            return;
        }
        let answer = self.locally(key, op, sent);
        if let Some(token) = token_of(op) {
            self.table.queue(key, token);
            if to.send(Ok(answer)).is_err() {
                self.table.settle(key, token, End::Unknown, None);
            }
        }
    }

    /// The store is away. It may have been done, if it was sent.
    fn answer_away(
        &mut self,
        key: Key,
        op: &Op,
        sent: bool,
        to: oneshot::Sender<Result<Answer, No>>,
    ) {
        if let Op::Join(_) = op {
            return self.join_later(key, op, sent, to);
        }
        if !self.settings.local {
            if sent {
                self.undo(key, op);
            }
            let _ = to.send(Err(No::Away));
            return;
        }
        let answer = self.locally(key, op, sent);
        let taken = answer.yes;
        let gone = to.send(Ok(answer)).is_err();
        if let Op::Take(_, of) = op {
            if taken && gone {
                self.table.settle(key, of.token, End::Free, None);
            } else if sent && !taken {
                self.undo(key, op);
            }
        }
    }

    fn locally(&mut self, key: Key, op: &Op, sent: bool) -> Answer {
        let answer = self.table.locally(key, |entry, now, times| {
            entry.lapse(now, times);
            let yes = match op {
                Op::Take(Some(seen), of) => entry.take_over(*seen, &of.as_newcomer(), now, times),
                Op::Take(None, of) => entry.take(&of.as_newcomer(), now, times),
                Op::Join(of) => entry.join(&of.as_newcomer(), now, times),
                Op::Free(seen) => entry.free(*seen, now, times),
                Op::GoesOn(seen, task) => {
                    entry.goes_on(*seen, task, now, times);
                    true
                }
                Op::Release => !std::mem::take(&mut entry.holders).is_empty(),
                Op::Look => !entry.is_free(),
                Op::Name(..) | Op::Renew(_) | Op::Settle(..) | Op::Restore(..) => false, // the table's own
            };
            Answer {
                yes,
                now,
                entry: entry.clone(),
                lease: None,
            }
        });
        if let Some(token) = token_of(op)
            && let Some(mine) = self.table.find(key, token)
        {
            mine.there = if sent { There::Perhaps } else { There::No };
            mine.further = matches!(op, Op::Join(_));
        }
        answer
    }

    fn was_bound(
        &mut self,
        context: Key,
        agent: Box<str>,
        to: Option<oneshot::Sender<Result<Option<Box<str>>, No>>>,
        said: Result<Option<String>, Fail>,
    ) {
        let said = match (said, &to) {
            (Ok(other), None) => {
                if other.is_some() {
                    tracing::warn!(%context, "a context was bound to another agent while the state store was away");
                }
                return;
            }
            (Ok(other), Some(_)) => Ok(other.map(String::into_boxed_str)),
            (Err(_), _) if self.link.is_none() => self.bind_locally(context, agent),
            (Err(_), _) => Err(No::Away),
        };
        if let Some(to) = to {
            let _ = to.send(said);
        }
    }

    fn bind_locally(&mut self, context: Key, agent: Box<str>) -> Result<Option<Box<str>>, No> {
        let full = self.bound.len() >= self.settings.bindings;
        match self.bound.get(&context) {
            _ if !self.settings.local => Err(No::Away),
            Some(bound) => Ok((*bound != agent).then(|| bound.clone())),
            None if full => Err(No::Full),
            None => {
                self.bound.insert(context, agent);
                Ok(None)
            }
        }
    }

    fn list_locally(&mut self, limit: usize) -> Result<Vec<Shown>, No> {
        if !self.settings.local {
            return Err(No::Away);
        }
        let now = self.table.now();
        let all = self.table.list(limit).into_iter();
        Ok(all.map(|(key, entry)| Shown { key, entry, now }).collect())
    }
}

/// An answer that may tell how old the store's data is.
trait Said {
    fn epoch(&self) -> Option<Millis> {
        None
    }
}

impl Said for Reply {
    fn epoch(&self) -> Option<Millis> {
        Some(self.epoch)
    }
}

impl Said for () {}
impl Said for Option<String> {}
impl Said for Vec<(Key, Reply)> {}

async fn connected(
    connecting: &mut Option<LocalBoxFuture<'static, RedisResult<Link>>>,
) -> RedisResult<Link> {
    match connecting {
        Some(link) => link.await,
        None => pending().await,
    }
}

/// Whose holding an operation begins.
fn token_of(op: &Op) -> Option<u64> {
    match op {
        Op::Take(_, of) | Op::Join(of) => Some(of.token),
        Op::Free(_)
        | Op::GoesOn(..)
        | Op::Name(..)
        | Op::Renew(_)
        | Op::Settle(..)
        | Op::Restore(..)
        | Op::Release
        | Op::Look => None,
    }
}

fn millis(d: Duration) -> Millis {
    Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX / 4)
}
