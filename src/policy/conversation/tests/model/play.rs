//! One play: who is where. How each step changes that is in `effects`, how it ends in `rest`.
use std::{
    cell::RefCell,
    collections::HashSet,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::{
    sync::oneshot,
    time::{Duration, Instant},
};

use super::{
    Kept,
    agent::{Agent, OLD},
    dice::Dice,
    script::{Script, Task},
    steps::Reply,
};
use crate::{
    a2a::{Fault, shape::State},
    config,
    policy::conversation::{
        Conversations, Evidence, Question, Slot, Wanted, Watch, slot_key, tests::rules::times,
    },
    state::{
        Key, Store,
        memory::{self, Memory},
        slot::{Asker, Holder, Phase, Times},
    },
};

mod effects;
mod rest;

const SCOPE: &str = "agent";
const CONTEXT: &str = "talk";
const LEASE: Duration = Duration::from_secs(30);

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

pub(super) struct Play {
    pub(super) script: Script,
    pub(super) agent: Agent,
    pub(super) messages: Vec<Message>,
    pub(super) asked: Rc<RefCell<Vec<Asked>>>,
    pub(super) looks: Vec<Look>,
    pub(super) resets: usize,
    pub(super) deaths: usize,
    dice: Dice,
    settings: config::Conversation,
    store: Arc<Memory>,
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
        admitting: None,
    }
}

fn key() -> Key {
    slot_key(SCOPE, CONTEXT)
}

fn gateway(settings: &config::Conversation, store: &Arc<Memory>) -> Conversations {
    let gateway = Conversations::new(settings.clone(), Store::Memory(store.clone()));
    gateway.learn(SCOPE, OLD, CONTEXT);
    gateway
}

impl Play {
    pub(super) fn new(script: Script, seed: u64, told: bool) -> Self {
        let settings = config::Conversation {
            on_busy: script.on_busy,
            wait: Duration::from_secs(10),
            ..config::Conversation::default()
        };
        let store = Arc::new(Memory::new(memory::Settings {
            times: Times {
                lease: (script.kept == Kept::Shared).then_some(LEASE),
                ..times()
            },
            slots: 10,
            tasks: 1_000,
            bindings: 1_000,
            binding_ttl: Duration::from_secs(1),
            messages: 1_000,
            message_ttl: Duration::from_mins(10),
        }));
        Self {
            agent: Agent::new(&script),
            messages: script.specs.iter().map(|_| message()).collect(),
            asked: Rc::default(),
            looks: vec![],
            resets: script.resets,
            deaths: script.deaths,
            dice: Dice::new(seed),
            gateways: [gateway(&settings, &store), gateway(&settings, &store)],
            settings,
            store,
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
        for _ in 0..self.script.steps {
            let mut dice = std::mem::replace(&mut self.dice, Dice::new(0));
            let step = self.choose(&mut dice);
            self.dice = dice;
            let over = self.messages.iter().all(|m| m.stage == Stage::Over);
            let rest = !(0..self.messages.len()).any(|i| self.agent.lives(i));
            let Some(step) = step.filter(|_| !(over && rest)) else {
                break;
            };
            self.note(|| format!("{step:?}"));
            self.apply(step).await;
            self.poll().await;
            self.alone()?;
        }
        self.comes_free().await
    }

    /// The invariant.
    fn alone(&self) -> Result<(), String> {
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
            let shared = self.script.kept == Kept::Shared;
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
        if live.len() > 1 {
            return Err(format!("messages {live:?} are live at once"));
        }
        Ok(())
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
            self.messages[i].permit = admitted.ok();
            self.adopt(i).await;
        }
        self.asked.borrow_mut().retain(|a| !a.answer.is_closed());
    }

    /// A new holder is that of the message that just took it.
    async fn adopt(&mut self, i: usize) {
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
