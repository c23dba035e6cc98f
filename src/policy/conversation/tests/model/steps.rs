//! What can happen next.
use tokio::time::Instant;

use super::{
    Kept,
    agent::{At, TRANSIT},
    dice::Dice,
    play::{Play, Stage},
    script::{Kind, Task},
};
use crate::state::redis::tests::by_hand::Line;

/// An answer on its way from the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Working,
    Ended,
    Input,
    Auth,
    Bare,
    /// A fault that says "not started".
    Refused,
    /// A fault that does not.
    Lost,
}

/// One step; numbers are messages where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Asks(usize),
    HangsUp(usize),
    GoesOut(usize),
    LeavesUnsent(usize),
    LeavesStream(usize),
    Arrives(usize),
    AgentRefuses(usize),
    Shows(usize),
    Comes(usize, At),
    Answers(usize, Reply),
    Hears(usize),
    /// A question is answered by the agent, the answer still under way.
    Says(usize),
    /// The answer comes in.
    Tells(usize),
    /// A client gets or subscribes to the task of a message.
    Looks(usize, bool),
    Shown(usize),
    Watches(usize),
    Forgets(usize),
    Renews(usize),
    GatewayDies(usize),
    /// A gateway's way to the store.
    Way(usize, Line),
    StoreGoes,
    /// True if it has lost its data.
    StoreComes(bool),
    /// Its data, behind open connections.
    StoreLoses,
    /// Milliseconds.
    Passes(u64),
}

impl Step {
    /// What would soon end the play if it came as often as the rest.
    const fn is_rare(self) -> bool {
        matches!(
            self,
            Self::HangsUp(_)
                | Self::LeavesUnsent(_)
                | Self::AgentRefuses(_)
                | Self::Comes(..)
                | Self::Forgets(_)
                | Self::Renews(_)
                | Self::Looks(..)
                | Self::GatewayDies(_)
                | Self::Way(..)
                | Self::StoreGoes
                | Self::StoreComes(_)
                | Self::StoreLoses
        )
    }
}

impl Play {
    /// One of the steps that are possible now.
    pub(super) fn choose(&self, dice: &mut Dice) -> Option<Step> {
        let mut all = vec![];
        for i in 0..self.messages.len() {
            self.of_message(i, &mut all);
            self.of_agent(i, &mut all);
        }
        self.of_gateways(&mut all);
        if let Some(step) = self.at_once(dice) {
            return Some(step);
        }
        let often = if self.gathers() { 2 } else { 4 };
        if dice.one_in(often) || all.is_empty() {
            let ms = dice.of(&[1, 50, 200, 250, 250, 260, 1_000, 2_100, 4_800, 5_000, 9_000]);
            // Now and then just up to where a message is to be shown.
            let room = self.room();
            let ms = if room < 5_000 && dice.one_in(4) {
                room
            } else {
                ms
            };
            // A lease is renewed, or lapses.
            let far = self.script.kept == Kept::Redis;
            let often = if self.an_orphan_lives() { 2 } else { 10 };
            let ms = if far && dice.one_in(often) {
                31_000
            } else {
                ms
            };
            match room.min(ms) {
                0 => {}
                ms => return Some(Step::Passes(ms)),
            }
        }
        let mut step = (!all.is_empty()).then(|| dice.of(&all))?;
        for _ in 0..3 {
            if step.is_rare() {
                step = dice.of(&all);
            }
        }
        Some(step)
    }

    /// How long nothing is due, in milliseconds: messages are shown in time.
    fn room(&self) -> u64 {
        let on_its_way = |at| matches!(at, At::Net | At::Arrived);
        let jobs = self.agent.jobs.iter().filter(|job| on_its_way(job.at));
        let due = jobs.map(|job| job.sent + TRANSIT).min();
        let room = due.map_or(u128::MAX, |due| {
            due.duration_since(Instant::now()).as_millis()
        });
        u64::try_from(room).unwrap_or(u64::MAX)
    }

    fn of_message(&self, i: usize, all: &mut Vec<Step>) {
        let m = &self.messages[i];
        let spec = &self.script.specs[i];
        match m.stage {
            Stage::New => {
                let there = match spec.task {
                    Task::New | Task::Old => true,
                    Task::Of(j) => self.messages[j].replied,
                };
                if there && m.tries < self.script.tries {
                    all.push(Step::Asks(i));
                }
            }
            Stage::Asks => all.push(Step::HangsUp(i)),
            Stage::Has => all.extend([Step::GoesOut(i), Step::GoesOut(i), Step::LeavesUnsent(i)]),
            Stage::Out => {
                if m.reply.is_some() {
                    all.extend([Step::Hears(i), Step::Hears(i)]);
                }
                if m.here && spec.kind == Kind::Stream {
                    all.push(Step::LeavesStream(i));
                }
            }
            Stage::Over => {}
        }
        let leased = self.script.kept == Kept::Shared;
        if leased && m.token.is_some() && m.permit.is_some() {
            all.push(Step::Renews(i));
        }
    }

    fn of_agent(&self, i: usize, all: &mut Vec<Step>) {
        let (job, m) = (&self.agent.jobs[i], &self.messages[i]);
        let bare = job.is_bare();
        match job.at {
            At::Home => return,
            At::Net | At::Arrived if self.script.slow && self.room() > 0 => {}
            At::Net => all.extend([Step::Arrives(i), Step::AgentRefuses(i)]),
            At::Arrived => all.push(Step::Shows(i)),
            At::Works if bare => all.push(Step::Comes(i, At::Ended)),
            At::Works => {
                all.extend([Step::Comes(i, At::Ended), Step::Comes(i, At::Input)]);
                if self.script.auth && !job.woke {
                    all.push(Step::Comes(i, At::Auth));
                }
            }
            // Only while nobody has resumed it.
            At::Auth if self.agent.state(&self.agent.task_of(i)) == Some(At::Auth) => {
                all.push(Step::Comes(i, At::Works));
            }
            At::Ended if bare || self.agent.has_forgotten(i) => {}
            At::Auth | At::Input | At::Never => {}
            At::Ended => all.push(Step::Forgets(i)),
        }
        if m.stage != Stage::Out || m.reply.is_some() {
            return;
        }
        let kind = job.spec.kind;
        let reply = match job.at {
            At::Works if m.auth_told => Some(Reply::Working),
            At::Works if kind == Kind::Stream || kind == Kind::NoWait => {
                (!m.told).then_some(Reply::Working)
            }
            At::Ended if bare => Some(Reply::Bare),
            At::Ended => Some(Reply::Ended),
            At::Input => Some(Reply::Input),
            At::Auth => (!m.auth_told).then_some(Reply::Auth),
            At::Never => Some(Reply::Refused),
            At::Home | At::Net | At::Arrived | At::Works => None,
        };
        all.extend(reply.map(|reply| Step::Answers(i, reply)));
        if self.resets > 0 && job.at != At::Never {
            all.push(Step::Answers(i, Reply::Lost));
            if m.told {
                all.push(Step::Answers(i, Reply::Refused));
            }
        }
    }

    fn of_gateways(&self, all: &mut Vec<Step>) {
        for (q, asked) in self.asked.borrow().iter().enumerate() {
            let step = if asked.evidence.is_none() {
                Step::Says(q)
            } else {
                Step::Tells(q)
            };
            all.extend([step, step]);
        }
        for (w, look) in self.looks.iter().enumerate() {
            all.push(if look.shown.is_none() {
                Step::Shown(w)
            } else {
                Step::Watches(w)
            });
        }
        let seen = (0..self.messages.len()).filter(|i| self.messages[*i].replied);
        if self.looks.len() + self.looking.len() < 2
            && let Some(i) = seen.max_by_key(|i| self.agent.jobs[*i].sent)
        {
            all.extend([Step::Looks(i, false), Step::Looks(i, true)]);
        }
        if self.deaths > 0 {
            let dies = (0..2).filter(|r| self.script.kept == Kept::Shared || self.matters(*r));
            all.extend(dies.map(Step::GatewayDies));
        }
        self.of_store(all);
    }
}
