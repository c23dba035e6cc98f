//! One play: who is where. How each step changes that is in `effects`, how it ends in `rest`.
use std::{
    cell::RefCell,
    collections::HashSet,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use tokio::{
    sync::oneshot,
    time::{Duration, Instant, advance},
};

use super::{
    Kept,
    agent::{Agent, OLD},
    dice::Dice,
    script::{Script, Task},
    steps::{Reply, Step},
};
use crate::{
    a2a::{Fault, shape::State},
    config,
    policy::conversation::{
        Conversations, Evidence, Question, Slot, Wanted, Watch, slot_key,
        tests::model::world::World,
    },
    state::{
        Key, Settling, Store,
        slot::{Asker, Holder, Phase},
    },
};

mod effects;
mod outage;
mod rest;
mod stores;

use stores::{Far, Stores};

const SCOPE: &str = "agent";
const CONTEXT: &str = "talk";
const LEASE: Duration = Duration::from_secs(30);
/// After so many steps in which only time has passed, hardly anything comes.
const IDLE: usize = 20;
/// A real server is a little late, and its clock so much ahead.
const OF_THE_SERVER: Duration = Duration::from_millis(100);

/// Where a message is at its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Asks,
    Has,
    Out,
    Over,
}

type Admitting = Pin<Box<dyn Future<Output = Result<Slot, Fault>>>>;

pub(super) struct Message {
    pub(super) stage: Stage,
    pub(super) tries: usize,
    /// Its caller is there.
    pub(super) here: bool,
    /// The agent has answered that it works.
    pub(super) told: bool,
    pub(super) auth_told: bool,
    /// The gateway knows its task from an answer.
    pub(super) replied: bool,
    pub(super) reply: Option<Reply>,
    pub(super) permit: Option<Slot>,
    pub(super) token: Option<u64>,
    /// Its gateway is dead.
    orphan: bool,
    /// It was admitted by a gateway that may have been without the store.
    lone: bool,
    admitting: Option<Admitting>,
}

/// A question that a gateway has put.
pub(super) struct Asked {
    pub(super) evidence: Option<Evidence>,
    message: usize,
    asker: Asker,
    question: Question,
    answer: oneshot::Sender<Evidence>,
}

/// A client's own look at a task.
pub(super) struct Look {
    pub(super) shown: Option<Option<State>>,
    gateway: usize,
    task: Box<str>,
    replays: bool,
    watch: Watch,
}

/// One for which the store is asked first.
pub(super) struct Looking {
    gateway: usize,
    task: Box<str>,
    replays: bool,
    watch: Pin<Box<dyn Future<Output = Option<Watch>>>>,
}

pub(super) struct Play {
    pub(super) script: Script,
    pub(super) agent: Agent,
    pub(super) messages: Vec<Message>,
    pub(super) asked: Rc<RefCell<Vec<Asked>>>,
    pub(super) looks: Vec<Look>,
    pub(super) looking: Vec<Looking>,
    pub(super) resets: usize,
    pub(super) deaths: usize,
    pub(super) outages: usize,
    dice: Dice,
    settings: config::Conversation,
    stores: Stores,
    /// When the store lost its data.
    lost: Option<Instant>,
    /// When each way was opened again.
    opened: [Option<Instant>; 2],
    /// A gateway may have been without the store.
    apart: bool,
    /// Which gateway has done something in the last step.
    last: Option<usize>,
    /// What is on its way into the store.
    settling: Vec<Pin<Box<dyn Future<Output = bool> + Send>>>,
    gateways: [Conversations; 2],
    /// What dead gateways held: it settles nothing before the play is over.
    dead: Vec<Slot>,
    steps: Option<Vec<String>>,
}

fn message() -> Message {
    Message {
        stage: Stage::New,
        tries: 0,
        here: true,
        told: false,
        auth_told: false,
        replied: false,
        reply: None,
        permit: None,
        token: None,
        orphan: false,
        lone: false,
        admitting: None,
    }
}

fn key() -> Key {
    slot_key(SCOPE, CONTEXT)
}

fn gateway(settings: &config::Conversation, store: Store) -> Conversations {
    let gateway = Conversations::new(settings.clone(), store);
    gateway.learn(SCOPE, OLD, CONTEXT);
    gateway
}

impl Play {
    pub(super) fn new(script: Script, seed: u64, told: bool, world: Option<&Rc<World>>) -> Self {
        let mut settings = config::Conversation {
            on_busy: script.on_busy,
            wait: Duration::from_secs(10),
            ..config::Conversation::default()
        };
        if world.is_some() {
            settings.settle += OF_THE_SERVER;
        }
        let far = world.map(|world| (world, format!("play{seed}")));
        let (stores, both) = Stores::of(&script, &settings, far);
        Self {
            agent: Agent::new(&script),
            messages: script.specs.iter().map(|_| message()).collect(),
            asked: Rc::default(),
            looks: vec![],
            looking: vec![],
            resets: script.resets,
            deaths: script.deaths,
            outages: script.outages,
            dice: Dice::new(seed),
            gateways: both.map(|store| gateway(&settings, store)),
            settings,
            stores,
            lost: None,
            opened: [None; 2],
            apart: false,
            last: None,
            settling: vec![],
            dead: vec![],
            steps: told.then(|| vec![format!("{script:?}")]),
            script,
        }
    }

    /// What has happened.
    pub(super) fn told(&self) -> String {
        self.steps.as_deref().unwrap_or_default().join("\n")
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.steps {
            steps.push(what());
        }
    }

    pub(super) async fn run(&mut self) -> Result<(), String> {
        self.begins().await;
        let mut idle = 0;
        for _ in 0..self.script.steps {
            let mut dice = std::mem::replace(&mut self.dice, Dice::new(0));
            let step = self.choose(&mut dice);
            self.dice = dice;
            let over = self.messages.iter().all(|m| m.stage == Stage::Over);
            let rest = !(0..self.messages.len()).any(|i| self.agent.lives(i));
            let Some(step) = step.filter(|_| !(over && rest)) else {
                break;
            };
            idle = if matches!(step, Step::Passes(_)) {
                idle + 1
            } else {
                0
            };
            if idle > IDLE && self.stores.far().is_some() {
                break;
            }
            self.note(|| format!("{step:?}"));
            self.apply(step).await;
            self.acted(step);
            // Now and then a store's task is late, or a worker.
            let far = self.stores.far().is_some();
            if far && !self.dice.one_in(6) {
                self.stores.rest().await;
            }
            if !(far && self.dice.one_in(6)) {
                self.poll().await;
            }
            self.alone()?;
        }
        self.comes_free().await
    }

    /// A server that knows nothing admits nobody at first.
    async fn begins(&mut self) {
        if self.stores.far().is_some() {
            self.stores.rest().await;
            advance(Duration::from_secs(6)).await;
            self.stores.rest().await;
        }
    }

    /// The machine stood still for a moment, so that nothing is proved.
    pub(super) fn stood_still(&self) -> bool {
        self.stores.far().is_some_and(Far::stood_still)
    }

    /// The invariant.
    fn alone(&mut self) -> Result<(), String> {
        self.merges();
        let now = Instant::now();
        let by_time = |i: usize| {
            let (job, m) = (&self.agent.jobs[i], &self.messages[i]);
            let nameless = !m.replied && job.spec.task == Task::New;
            let held = job.sent + self.settings.unknown_hold <= now;
            !self.script.lists && m.stage == Stage::Over && nameless && held
        };
        // A lease that lapsed under a bare message: no question shows the work on it.
        let lapsed = |i: usize| {
            let job = &self.agent.jobs[i];
            let shared = self.script.kept != Kept::Alone;
            shared && job.is_bare() && job.sent + self.settings.settle <= now
        };
        let counts = |i: &usize| {
            if by_time(*i) || lapsed(*i) {
                return false;
            }
            let job = &self.agent.jobs[*i];
            self.agent.lives(*i) && job.spec.context && !job.woke && !job.hidden
        };
        let live: Vec<usize> = (0..self.messages.len()).filter(counts).collect();
        if live.len() < 2 {
            return Ok(());
        }
        if self.script.local && self.apart {
            // Each gateway keeps the rule by itself, as far as it lives to remember.
            let known =
                |r: usize, i: usize| self.script.specs[i].gateway == r && !self.messages[i].orphan;
            let of = |r: usize| live.iter().filter(|i| known(r, **i)).count();
            if of(0) < 2 && of(1) < 2 {
                return Ok(());
            }
        }
        Err(format!("messages {live:?} are live at once"))
    }

    fn admit(&self, gateway: usize, message: usize, wanted: Wanted) -> Admitting {
        let (of, asked, who) = (
            self.gateways[gateway].clone(),
            self.asked.clone(),
            wanted.asker,
        );
        Box::pin(async move {
            let ask = |question| {
                let (answer, says) = oneshot::channel();
                asked.borrow_mut().push(Asked {
                    evidence: None,
                    message,
                    asker: who,
                    question,
                    answer,
                });
                async { says.await.unwrap_or(Evidence::Nothing) }
            };
            of.admit(wanted, ask).await
        })
    }

    fn wanted(&self, i: usize) -> Wanted {
        let spec = self.script.specs[i];
        let task = (spec.task != Task::New).then(|| self.agent.task_of(i).into());
        Wanted {
            context: spec.context.then(|| CONTEXT.to_owned()),
            task,
            ..plain(self.script.callers[spec.caller])
        }
    }

    /// Lets those go on who wait to be admitted, in any order.
    async fn poll(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let waits = |s: &mut Pin<Box<dyn Future<Output = bool> + Send>>| {
            s.as_mut().poll(&mut cx).is_pending()
        };
        self.settling.retain_mut(waits);
        self.look();
        let n = self.messages.len();
        let first = self.dice.below(n);
        for i in (0..n).map(|i| (first + i) % n) {
            let Some(admitting) = &mut self.messages[i].admitting else {
                continue;
            };
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(admitted) = admitting.as_mut().poll(&mut cx) else {
                continue;
            };
            self.messages[i].admitting = None;
            self.note(|| match &admitted {
                Ok(_) => format!("  {i} is admitted"),
                Err(fault) => format!("  {i} is refused: {fault}"),
            });
            self.messages[i].stage = if admitted.is_ok() {
                Stage::Has
            } else {
                Stage::New
            };
            self.messages[i].lone = self.is_lone(self.script.specs[i].gateway);
            self.messages[i].permit = admitted.ok();
            self.adopt(i).await;
        }
        self.asked.borrow_mut().retain(|a| !a.answer.is_closed());
    }

    /// A new holder is that of the message that just took it.
    async fn adopt(&mut self, i: usize) {
        if self.script.kept == Kept::Redis {
            return; // its store's task renews it
        }
        let Some((entry, _)) = self.gateways[0].store().look(key()).await else {
            return;
        };
        let known: HashSet<u64> = self.messages.iter().filter_map(|m| m.token).collect();
        let new = |h: &&Holder| h.phase == Phase::InFlight && !known.contains(&h.token);
        if let Some(holder) = entry.holders.iter().find(new) {
            self.messages[i].token = Some(holder.token);
        }
    }
}

fn plain(asker: Asker) -> Wanted {
    Wanted {
        scope: SCOPE.into(),
        context: None,
        task: None,
        asker,
        agent: None,
        bytes: 1,
    }
}
