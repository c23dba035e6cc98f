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
use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{LocalBoxFuture, pending},
    stream::FuturesUnordered,
};
use redis::RedisResult;
use smallvec::SmallVec;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    super::{
        Key, Shown,
        recent::Recent,
        retry::{Begun, Record},
        slot::{Entry, Millis},
    },
    Note, Settings, Shared,
    address::{Address, Link},
    flight::{Fail, Wire},
    keys::{Keys, TAGS},
    owners::{Ask, Landing as OwnedLanding},
    script::{Counted, Counting, Found, Op, Reply, Saying, Wants},
    sent::Sent,
    table::{Table, There},
};

mod answers;
mod counts;
mod landed;
mod owners;
mod retries;
mod serve;
mod stand;

use self::owners::Owed;
use counts::{Outcome, Telling, Untold};

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

/// Where an answer goes.
type To<T> = oneshot::Sender<Result<T, No>>;

/// What workers ask.
pub(super) enum Command {
    Slot(Key, Op, To<Answer>),
    Learn(Key, Box<str>),
    ContextOf(Key, oneshot::Sender<Option<Box<str>>>),
    Bind(Key, Box<str>, To<Option<Box<str>>>),
    Begin(Key, Record, To<Begun>),
    List(usize, To<Vec<Shown>>),
    Owned(Ask),
    Count(Counting, To<Outcome>),
    LookAt(Counting, To<Vec<(u64, u64)>>),
}

/// What landed, and by which connection it went.
struct Landed {
    link: u64,
    what: Landing,
}

enum Landing {
    /// For a worker, when it was sent.
    Asked(Key, Op, Instant, To<Answer>, Result<Reply, Fail>),
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
        Option<To<Option<Box<str>>>>,
        Result<Option<String>, Fail>,
    ),
    /// A message is about to be sent, or was before.
    Begun(Key, Record, To<Begun>, Result<Found, Fail>),
    /// Of a message that was sent here.
    Said(Key, Saying, Result<Found, Fail>),
    Listed(To<Vec<Shown>>, Result<Vec<(Key, Reply)>, Fail>),
    Owned(OwnedLanding),
    Taken(To<Outcome>, SmallVec<[Counted; 4]>, Result<Outcome, Fail>),
    /// What is left to be told, and why.
    Counted(Untold, Result<(), Fail>),
    LookedAt(To<Vec<(u64, u64)>>, Result<Vec<(u64, u64)>, Fail>),
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
    sent: Sent,
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
    /// Whether it has been said in this second that it refuses something.
    refused: bool,
    /// Whether it has been said in this second that it lost data.
    lost: bool,
    /// Whether it has been said that the store is away.
    said: bool,
    contexts: Recent<Box<str>>,
    /// What is still to be told of counts, and when what is held was last renewed.
    counts: Telling,
    /// Bound while the store was away.
    bound: HashMap<Key, Box<str>>,
    owed: Owed,
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
            wire: Wire::new(keys, &settings),
            table: Table::new(settings.times, settings.slots),
            sent: Sent::new(settings.times, settings.message_ttl, settings.messages),
            contexts: Recent::new(settings.tasks),
            counts: Telling::new(Arc::clone(&shared)),
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
            refused: false,
            lost: false,
            said: false,
            bound: HashMap::new(),
            owed: Owed::default(),
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
            shared.slots.store(self.table.len(), Relaxed);
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
        self.counts.close();
    }

    fn is_over(&mut self) -> bool {
        let Some(by) = self.ends else {
            return false;
        };
        // Who dropped a holder and then the store left a note.
        self.read();
        let told = self.owed.is_empty() && self.counts.is_empty();
        self.table.is_settled() && self.sent.is_settled() && told || Instant::now() >= by
    }

    fn tick(&mut self) {
        self.table.tick();
        self.counts.again();
        self.renew_counts();
        self.sent.tick();
        self.tell_owed(false);
        (self.refused, self.lost) = (false, false);
        if self.link.is_none() && self.connecting.is_none() {
            self.connect();
        }
        // A store that restarts is noticed while it is still quiet, also where nothing goes on.
        if self.stand == Stand::Here && self.epochs_asked == 0 {
            self.ask_epochs();
        }
    }

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
        self.tell_of_messages();
        self.tell_of_counts();
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
                Note::Join(key, of) => self.join(key, &of),
                Note::Became(key, record) => self.sent.became(key, record),
                Note::Forget(key, token) => self.sent.forget(key, token),
                Note::Claim(what, owner, to) => self.owe(what, owner, to),
                Note::Unclaim(what, owner, name) => self.unclaim(what, owner, name),
                Note::Count(counting) => self.counts.add(counting),
                Note::Close => self.ends = Some(Instant::now() + LAST),
            }
        }
    }

    /// A message that is out is of this conversation: the store is told, whoever else has it.
    fn join(&mut self, key: Key, of: &Wants) {
        let token = of.token;
        let mine = self.table.add(key, of, true);
        (mine.further, mine.there) = (true, There::No);
        self.table.queue(key, token);
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
}

async fn connected(
    connecting: &mut Option<LocalBoxFuture<'static, RedisResult<Link>>>,
) -> RedisResult<Link> {
    match connecting {
        Some(link) => link.await,
        None => pending().await,
    }
}
