//! One play: who is where, and how each step changes that.
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
    time::{Duration, Instant, advance},
};

use super::{
    Kept,
    agent::{Agent, At, OLD},
    dice::Dice,
    script::{Kind, Script, Task},
    steps::{Reply, Step},
};
use crate::{
    a2a::{
        Fault, Kind as FaultKind,
        answer::{Named, Seen},
        shape::State,
    },
    config::{self, OnBusy},
    policy::conversation::{
        Conversations, Evidence, Permit, Question, Wanted, Watch, slot_key, tests::rules::times,
    },
    state::{
        Key, Store,
        memory::{self, Memory},
        slot::{Asker, Phase, Times},
    },
};

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

type Admitting = Pin<Box<dyn Future<Output = Result<Permit, Fault>>>>;

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
    pub(super) permit: Option<Permit>,
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
    dead: Vec<Permit>,
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
        let new = |h: &&crate::state::slot::Holder| {
            h.phase == Phase::InFlight && !known.contains(&h.token)
        };
        if let Some(holder) = entry.holders.iter().find(new) {
            self.messages[i].token = Some(holder.token);
        }
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Asks(i) => {
                let admitting = self.admit(self.script.specs[i].gateway, i, self.wanted(i));
                let m = &mut self.messages[i];
                (m.stage, m.admitting) = (Stage::Asks, Some(admitting));
                m.tries += 1;
            }
            Step::HangsUp(i) => {
                self.messages[i].admitting = None;
                self.messages[i].stage = Stage::New;
            }
            Step::GoesOut(i) => self.goes_out(i),
            Step::LeavesUnsent(i) => {
                self.messages[i].permit = None;
                self.messages[i].stage = Stage::New;
            }
            Step::LeavesStream(i) => {
                let m = &mut self.messages[i];
                m.here = false;
                if m.permit.as_ref().is_some_and(Permit::can_be_left) {
                    self.over(i);
                }
            }
            Step::Arrives(i) => self.agent.arrives(i),
            Step::AgentRefuses(i) => self.agent.jobs[i].at = At::Never,
            Step::Shows(i) => self.agent.jobs[i].at = At::Works,
            Step::Comes(i, at) => {
                let job = &mut self.agent.jobs[i];
                job.woke |= at == At::Works;
                job.at = at;
            }
            Step::Answers(i, reply) => {
                let m = &mut self.messages[i];
                m.reply = Some(reply);
                m.told |= reply == Reply::Working;
                m.auth_told = reply == Reply::Auth;
                let lost = reply == Reply::Lost || reply == Reply::Refused && m.told;
                self.resets -= usize::from(lost && self.resets > 0);
            }
            Step::Hears(i) => self.hears(i).await,
            Step::Forgets(i) => {
                let task = self.agent.task_of(i);
                self.agent.forget(task);
            }
            Step::Renews(i) => {
                let token = self.messages[i].token.unwrap();
                let there = self.store.renew(key(), token);
                self.note(|| format!("  still held: {there}"));
            }
            Step::GatewayDies(r) => self.dies(r),
            Step::Says(_)
            | Step::Tells(_)
            | Step::Looks(..)
            | Step::Shown(_)
            | Step::Watches(_) => {
                self.looks_and_questions(step).await;
            }
            Step::Passes(ms) => advance(Duration::from_millis(ms)).await,
        }
    }

    async fn looks_and_questions(&mut self, step: Step) {
        match step {
            Step::Says(q) => {
                let mut asked = self.asked.borrow_mut();
                let asked = &mut asked[q];
                let says = self
                    .agent
                    .says(asked.asker, &asked.question, &mut self.dice);
                let fails = self.dice.one_in(12);
                let says = if fails { Evidence::Nothing } else { says };
                if let Some(steps) = &mut self.steps {
                    let (i, question) = (asked.message, &asked.question);
                    steps.push(format!("  for {i}, {question:?}: {says:?}"));
                }
                asked.evidence = Some(says);
            }
            Step::Tells(q) => {
                let asked = self.asked.borrow_mut().swap_remove(q);
                let _gone = asked.answer.send(asked.evidence.unwrap());
            }
            Step::Looks(i, replays) => {
                let (task, gateway) = (self.agent.task_of(i), self.script.specs[i].gateway);
                let watch = self.gateways[gateway].watch(SCOPE, &task, replays);
                self.looks.extend(watch.await.map(|watch| Look {
                    shown: None,
                    gateway,
                    task,
                    replays,
                    watch,
                }));
            }
            Step::Shown(w) => {
                let past = self.looks[w].replays && self.dice.one_in(2);
                let state = self.agent.state(&self.looks[w].task).map(state_of);
                let state = if past {
                    Some(State::Interrupted)
                } else {
                    state
                };
                self.note(|| format!("  {state:?}"));
                self.looks[w].shown = Some(state);
            }
            Step::Watches(w) => {
                let look = self.looks.swap_remove(w);
                let seen = seen(&look.task, look.shown.unwrap());
                look.watch.seen(&seen).done().await;
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn goes_out(&mut self, i: usize) {
        let m = &mut self.messages[i];
        if m.permit.as_mut().unwrap().goes_out().is_err() {
            self.note(|| "  too late".into());
            return self.over(i);
        }
        m.stage = Stage::Out;
        let job = &mut self.agent.jobs[i];
        (job.at, job.sent) = (At::Net, Instant::now());
    }

    /// Its permit is dropped.
    fn over(&mut self, i: usize) {
        let m = &mut self.messages[i];
        (m.stage, m.permit) = (Stage::Over, None);
        self.agent.jobs[i].hidden |= self.agent.jobs[i].is_bare();
    }

    async fn hears(&mut self, i: usize) {
        let task = self.agent.task_of(i);
        let kind = self.script.specs[i].kind;
        let m = &mut self.messages[i];
        let permit = m.permit.as_mut().unwrap();
        let reply = m.reply.take().unwrap();
        let state = match reply {
            Reply::Working => State::Running,
            Reply::Ended => State::Terminal,
            Reply::Input | Reply::Auth => State::Interrupted,
            Reply::Bare => {
                let seen = Seen {
                    message: true,
                    ..named(None)
                };
                permit.seen(&seen).done().await;
                return self.over(i);
            }
            Reply::Refused | Reply::Lost => {
                let lost = reply == Reply::Lost;
                if !lost || self.dice.one_in(2) {
                    let kind = if lost {
                        FaultKind::BackendTimeout
                    } else {
                        FaultKind::InvalidParams
                    };
                    permit.failed(&Fault::new(kind, ""), true).done().await;
                }
                return self.over(i);
            }
        };
        permit.seen(&seen(&task, Some(state))).done().await;
        m.replied = true;
        let document = kind != Kind::Stream;
        if document {
            permit.left().done().await;
        }
        let last = matches!(reply, Reply::Ended | Reply::Input);
        if document || last || !m.here {
            self.over(i);
        }
        self.adopt(i).await;
    }

    fn dies(&mut self, r: usize) {
        self.deaths -= 1;
        for i in 0..self.messages.len() {
            let m = &mut self.messages[i];
            if self.script.specs[i].gateway != r || m.stage == Stage::New {
                continue;
            }
            m.admitting = None;
            self.dead.extend(m.permit.take());
            self.over(i);
        }
        self.looks.retain(|look| look.gateway != r);
        self.gateways[r] = gateway(&self.settings, &self.store);
    }

    /// Liveness: all comes to rest, and its caller gets the slot in time.
    async fn comes_free(&mut self) -> Result<(), String> {
        for i in 0..self.messages.len() {
            self.messages[i].admitting = None;
            let job = &mut self.agent.jobs[i];
            if job.at != At::Home {
                job.at = At::Ended;
            }
            if self.messages[i].permit.is_none() {
                continue;
            }
            if self.messages[i].stage == Stage::Out && self.dice.one_in(2) {
                self.messages[i].reply = Some(Reply::Ended);
                self.hears(i).await;
            }
            self.over(i);
        }
        self.looks.clear();
        self.asked.borrow_mut().clear();
        let strangers = self.dice.one_in(8);
        if strangers {
            advance(self.settings.max_hold + LEASE).await;
        }
        let (settle, hold) = (self.settings.settle, self.settings.unknown_hold);
        let mut longest = if self.script.lists { settle } else { hold };
        if self.script.kept == Kept::Shared {
            longest += LEASE;
        }
        if self.script.on_busy == OnBusy::Wait {
            longest += 4 * self.settings.wait; // two holders may need each caller in turn
        }
        longest += Duration::from_secs(3);
        let until = Instant::now() + if strangers { Duration::ZERO } else { longest };
        self.note(|| format!("all is at rest; {longest:?} are left"));
        loop {
            for asker in self.script.callers {
                if self.gets(asker).await {
                    return self.is_free().await;
                }
            }
            if Instant::now() > until {
                let found = self.gateways[0].store().look(key()).await;
                return Err(format!("nobody is admitted: {found:?}"));
            }
        }
    }

    /// Whether this caller is admitted, the agent answering at once.
    async fn gets(&mut self, as_whom: Asker) -> bool {
        let wanted = Wanted {
            context: Some(CONTEXT.into()),
            ..plain(as_whom)
        };
        let mut admitting = self.admit(0, 0, wanted);
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(admitted) = admitting.as_mut().poll(&mut cx) {
                return admitted.is_ok(); // the permit is dropped, unsent
            }
            let asked = std::mem::take(&mut *self.asked.borrow_mut());
            if asked.is_empty() {
                advance(Duration::from_millis(50)).await;
            }
            for asked in asked {
                let says = self.agent.says(as_whom, &asked.question, &mut self.dice);
                self.note(|| format!("  {:?}: {says:?}", asked.question));
                let _gone = asked.answer.send(says);
            }
        }
    }

    /// Nothing is left of it, either.
    async fn is_free(&self) -> Result<(), String> {
        match self.gateways[0].store().look(key()).await {
            None => Ok(()),
            Some(held) => Err(format!("an unsent message left its slot: {held:?}")),
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

fn state_of(at: At) -> State {
    match at {
        At::Ended => State::Terminal,
        At::Input | At::Auth => State::Interrupted,
        At::Home | At::Net | At::Arrived | At::Works | At::Never => State::Running,
    }
}

fn named(task: Option<Box<str>>) -> Seen {
    Seen {
        named: Named {
            task,
            context: Some(CONTEXT.into()),
        },
        ..Seen::default()
    }
}

fn seen(task: &str, state: Option<State>) -> Seen {
    Seen {
        state,
        update: true,
        ..named(Some(task.into()))
    }
}
