//! What each step does to the agent, the gateways and the network between.
use std::task::{Context, Poll, Waker};

use tokio::time::{Duration, Instant, advance};

use super::{CONTEXT, Look, Looking, Play, Reply, SCOPE, Settling, Stage, gateway, key};
use crate::{
    a2a::{
        Fault, Kind as FaultKind,
        answer::{Named, Seen},
        shape::State,
    },
    policy::conversation::{
        Evidence, Slot,
        tests::model::{agent::At, script::Kind, steps::Step},
    },
};

/// Store tasks look at their leases that often at least.
const STRIDE: Duration = Duration::from_secs(4);

impl Play {
    pub(super) async fn apply(&mut self, step: Step) {
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
                if m.permit.as_ref().is_some_and(Slot::can_be_left) {
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
                let there = self.stores.renew(key(), token);
                self.note(|| format!("  still held: {there}"));
            }
            Step::GatewayDies(r) => self.dies(r),
            Step::Says(q) => self.says(q),
            Step::Tells(q) => {
                let asked = self.asked.borrow_mut().swap_remove(q);
                let _gone = asked.answer.send(asked.evidence.unwrap());
            }
            Step::Looks(i, replays) => self.looks_at(i, replays),
            Step::Shown(w) => self.shown(w),
            Step::Watches(w) => {
                let look = self.looks.swap_remove(w);
                let event = seen(&look.task, look.shown.unwrap());
                let settling = look.watch.seen(&event);
                self.is_on_its_way(settling);
            }
            Step::Way(..) | Step::StoreGoes | Step::StoreComes(_) | Step::StoreLoses => {
                self.befalls(step);
            }
            Step::Passes(ms) => self.pass(Duration::from_millis(ms)).await,
        }
    }

    async fn pass(&mut self, mut time: Duration) {
        // What is asked is asked at its time, and leases are renewed in time.
        while self.stores.far().is_some() && time > STRIDE {
            self.stores.rest().await;
            advance(STRIDE).await;
            time -= STRIDE;
        }
        self.stores.rest().await;
        advance(time).await;
    }

    /// The agent answers a question, as things are now.
    fn says(&mut self, q: usize) {
        let mut all = self.asked.borrow_mut();
        let asked = &mut all[q];
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

    fn looks_at(&mut self, i: usize, replays: bool) {
        let (task, gateway) = (self.agent.task_of(i), self.script.specs[i].gateway);
        let (of, about) = (self.gateways[gateway].clone(), task.clone());
        self.looking.push(Looking {
            gateway,
            task,
            replays,
            watch: Box::pin(async move { of.watch(SCOPE, &about, replays).await }),
        });
        self.look();
    }

    /// Those go on for whom the store was asked.
    pub(super) fn look(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for mut looking in std::mem::take(&mut self.looking) {
            match looking.watch.as_mut().poll(&mut cx) {
                Poll::Pending => self.looking.push(looking),
                Poll::Ready(watch) => self.looks.extend(watch.map(|watch| Look {
                    shown: None,
                    gateway: looking.gateway,
                    task: looking.task,
                    replays: looking.replays,
                    watch,
                })),
            }
        }
    }

    /// Its client need not see it before the store does.
    fn is_on_its_way(&mut self, settling: Settling) {
        if let Settling::Wait(wait) = settling {
            self.settling.push(wait);
        }
    }

    fn shown(&mut self, w: usize) {
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
    pub(super) fn over(&mut self, i: usize) {
        let m = &mut self.messages[i];
        (m.stage, m.permit) = (Stage::Over, None);
        self.agent.jobs[i].hidden |= self.agent.jobs[i].is_bare();
    }

    pub(super) async fn hears(&mut self, i: usize) {
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
                let settling = permit.seen(&seen);
                self.is_on_its_way(settling);
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
                    let settling = permit.failed(&Fault::new(kind, ""), true);
                    self.is_on_its_way(settling);
                }
                return self.over(i);
            }
        };
        let settling = permit.seen(&seen(&task, Some(state)));
        m.replied = true;
        let document = kind != Kind::Stream;
        let left = document.then(|| permit.left());
        let here = m.here;
        self.is_on_its_way(settling);
        left.into_iter().for_each(|left| self.is_on_its_way(left));
        let last = matches!(reply, Reply::Ended | Reply::Input);
        if document || last || !here {
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
            m.orphan = true;
            if self.agent.lives(i) {
                self.note(|| format!("  {i} lives on"));
            }
            let m = &mut self.messages[i];
            self.dead.extend(m.permit.take());
            self.over(i);
        }
        self.looks.retain(|look| look.gateway != r);
        self.looking.retain(|looking| looking.gateway != r);
        self.gateways[r] = gateway(&self.settings, self.stores.again(r));
        if self.gathers() {
            self.forgets_the_dead();
        }
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
