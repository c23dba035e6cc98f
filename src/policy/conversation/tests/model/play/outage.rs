//! What befalls the store, and the gateways' ways to it.
use tokio::time::{Duration, Instant};

use super::{Far, Play, Stage};
use crate::{
    policy::conversation::tests::model::{dice::Dice, steps::Step},
    state::redis::tests::by_hand::Line,
};

/// How long after a loss nothing else befalls the store: gateways hear of it within a second or the next step, and
/// put back what they have while it admits nobody, for five.
const GATHERS: Duration = Duration::from_secs(16);

/// How long after its way was opened a gateway may still be without the store: an attempt to connect takes as long as
/// three commands, and the next one begins in the second after it.
const RETURNS: Duration = Duration::from_secs(5);
pub(super) const SHUT: [Line; 4] = [Line::Cut, Line::Deaf, Line::Mute, Line::Breaks];

impl Play {
    /// What can happen to the store now.
    pub(in super::super) fn of_store(&self, all: &mut Vec<Step>) {
        let Some(far) = self.stores.far() else {
            return;
        };
        let lines = [0, 1].map(|r| far.ways[r].line());
        let (gone, open) = (lines == [Line::Cut; 2], lines == [Line::Open; 2]);
        if gone {
            let comes = [Step::StoreComes(false), Step::StoreComes(false)];
            all.extend(comes);
            all.push(Step::StoreComes(true));
        } else {
            let shut = (0..2).filter(|r| lines[*r] != Line::Open);
            all.extend(shut.map(|r| Step::Way(r, Line::Open)));
        }
        if !self.may_suffer() {
            return;
        }
        if open && !self.is_lone(0) && !self.is_lone(1) {
            all.extend([Step::StoreGoes, Step::StoreLoses]);
        }
        for r in (0..2).filter(|r| lines[*r] == Line::Open) {
            all.extend(SHUT.map(|line| Step::Way(r, line)));
        }
    }

    /// Something befalls the way of the gateway that has just done something: this may be lost.
    pub(in super::super) fn at_once(&self, dice: &mut Dice) -> Option<Step> {
        let r = self.last.filter(|_| self.may_suffer())?;
        let open = self.stores.far()?.ways[r].line() == Line::Open;
        let both = (0..2).all(|r| !self.is_lone(r));
        match (dice.one_in(6), dice.one_in(3)) {
            (true, true) if both => Some(Step::StoreLoses),
            (true, _) if open => Some(Step::Way(r, dice.of(&SHUT))),
            _ => None,
        }
    }

    fn may_suffer(&self) -> bool {
        self.outages > 0 && !self.gathers() && (self.matters(0) || self.matters(1))
    }

    /// Which gateway a step was of.
    pub(super) fn acted(&mut self, step: Step) {
        self.last = match step {
            Step::Asks(i)
            | Step::GoesOut(i)
            | Step::Hears(i)
            | Step::LeavesUnsent(i)
            | Step::LeavesStream(i) => Some(self.script.specs[i].gateway),
            _ => None,
        };
    }

    /// Whether a message of this gateway is on its way.
    pub(in super::super) fn matters(&self, r: usize) -> bool {
        let mut all = self.messages.iter().zip(&self.script.specs);
        all.any(|(m, spec)| {
            spec.gateway == r && matches!(m.stage, Stage::Asks | Stage::Has | Stage::Out)
        })
    }

    /// Whether work goes on for a gateway that is dead.
    pub(in super::super) fn an_orphan_lives(&self) -> bool {
        let mut all = self.messages.iter().enumerate();
        all.any(|(i, m)| m.orphan && self.agent.lives(i))
    }

    /// Whether it lost its data a moment ago.
    pub(in super::super) fn gathers(&self) -> bool {
        self.lost.is_some_and(|at| at.elapsed() < GATHERS)
    }

    /// Whether a gateway may be without the store.
    pub(super) fn is_lone(&self, r: usize) -> bool {
        let open = |far: &Far| far.ways[r].line() == Line::Open;
        let returns = self.opened[r].is_some_and(|at| at.elapsed() < RETURNS);
        returns || !self.stores.far().is_none_or(open)
    }

    /// What a gateway admitted alone is merged by a take, which another's may have come before: then two are out,
    /// and the store knows one of them.
    pub(super) fn merges(&mut self) {
        let Some(far) = self.stores.far().filter(|_| self.script.local) else {
            return;
        };
        let open = [0, 1].map(|r| far.ways[r].line() == Line::Open);
        for (i, m) in self.messages.iter().enumerate() {
            self.agent.jobs[i].hidden |= m.lone && open[self.script.specs[i].gateway];
        }
    }

    pub(super) fn befalls(&mut self, step: Step) {
        let Some(far) = self.stores.far() else {
            return;
        };
        let (ways, world) = (&far.ways, &far.world);
        match step {
            Step::Way(r, line) => ways[r].becomes(line),
            Step::StoreGoes => ways.iter().for_each(|way| way.becomes(Line::Cut)),
            Step::StoreComes(empty) => {
                if empty {
                    world.loses();
                    self.lost = Some(Instant::now());
                }
                ways.iter().for_each(|way| way.becomes(Line::Open));
            }
            Step::StoreLoses => {
                world.loses();
                self.lost = Some(Instant::now());
            }
            _ => unreachable!("nothing of the store"),
        }
        for r in 0..2 {
            let opens = step == Step::Way(r, Line::Open) || matches!(step, Step::StoreComes(_));
            if opens {
                self.opened[r] = Some(Instant::now());
            }
        }
        let ends = matches!(step, Step::Way(_, Line::Open) | Step::StoreComes(_));
        self.outages -= usize::from(!ends);
        self.apart |= matches!(step, Step::Way(..) | Step::StoreGoes);
        if matches!(step, Step::StoreLoses | Step::StoreComes(true)) {
            self.forgets_the_dead();
        }
    }

    /// What only dead gateways have put into the store is known to nobody once its data are lost.
    pub(super) fn forgets_the_dead(&mut self) {
        for (i, m) in self.messages.iter().enumerate() {
            self.agent.jobs[i].hidden |= m.orphan;
        }
    }
}
