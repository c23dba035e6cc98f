//! The agent: what it does with each message, and what it says of its tasks to whom.
use tokio::time::{Duration, Instant};

use super::{
    dice::Dice,
    script::{Kind, Script, Spec, Task},
};
use crate::{
    policy::conversation::{Evidence, Question},
    state::slot::Asker,
};

/// The longest that a message is on its way and not yet shown; under `settle`.
pub(super) const TRANSIT: Duration = Duration::from_millis(4_990);
/// The task of before the play.
pub(super) const OLD: &str = "old";

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// It was not sent.
    Home,
    Net,
    /// It will be worked on; no question shows it yet.
    Arrived,
    Works,
    /// Waits for authentication: may go on by itself.
    Auth,
    Input,
    Ended,
    /// Was refused.
    Never,
}

/// One message, as the agent has it.
pub(super) struct Job {
    pub(super) at: At,
    pub(super) sent: Instant,
    /// It went on by itself.
    pub(super) woke: bool,
    /// Its work can no longer be known of.
    pub(super) hidden: bool,
    pub(super) spec: Spec,
    owner: Asker,
}

pub(super) struct Agent {
    pub(super) jobs: Vec<Job>,
    forgotten: Vec<Box<str>>,
    first: Asker,
    lists: bool,
    hides: bool,
}

impl Job {
    pub(super) fn is_bare(&self) -> bool {
        self.spec.kind == Kind::Bare
    }
}

impl Agent {
    pub(super) fn new(script: &Script) -> Self {
        let job = |spec: &Spec| Job {
            at: At::Home,
            sent: Instant::now(),
            woke: false,
            hidden: false,
            spec: *spec,
            owner: script.callers[spec.caller],
        };
        Self {
            jobs: script.specs.iter().map(job).collect(),
            forgotten: vec![],
            first: script.callers[0],
            lists: script.lists,
            hides: script.hides,
        }
    }

    /// The task that a message is of.
    pub(super) fn task_of(&self, i: usize) -> Box<str> {
        match self.jobs[i].spec.task {
            Task::New => format!("t{i}").into(),
            Task::Old => OLD.into(),
            Task::Of(j) => self.task_of(j),
        }
    }

    fn owner(&self, task: &str) -> Asker {
        let first = (0..self.jobs.len()).find(|i| *self.task_of(*i) == *task);
        match first {
            Some(i) if task != OLD => self.jobs[i].owner,
            Some(_) | None => self.first,
        }
    }

    /// The state of a task, if it is there.
    pub(super) fn state(&self, task: &str) -> Option<At> {
        let of_task = |(i, job): (usize, &Job)| {
            (!job.is_bare() && *self.task_of(i) == *task).then_some(job.at)
        };
        let all: Vec<At> = self.jobs.iter().enumerate().filter_map(of_task).collect();
        let shown = [At::Works, At::Ended, At::Auth, At::Input];
        let found = shown.into_iter().find(|at| all.contains(at));
        found.or((task == OLD).then_some(At::Input))
    }

    /// A message comes in; one for a task that does not wait for it is refused.
    pub(super) fn arrives(&mut self, i: usize) {
        let at = if self.fits(i) { At::Arrived } else { At::Never };
        self.jobs[i].at = at;
    }

    fn fits(&self, i: usize) -> bool {
        let (job, task) = (&self.jobs[i], self.task_of(i));
        let waits = matches!(self.state(&task), Some(At::Input | At::Auth));
        // Who is told that there is no such task cannot resume it, either.
        job.spec.task == Task::New || waits && self.sees(job.owner, &task)
    }

    /// Its work goes on, or can begin.
    pub(super) fn lives(&self, i: usize) -> bool {
        match self.jobs[i].at {
            At::Net => self.fits(i),
            At::Arrived | At::Works => true,
            At::Home | At::Auth | At::Input | At::Ended | At::Never => false,
        }
    }

    pub(super) fn has_forgotten(&self, i: usize) -> bool {
        self.forgotten.contains(&self.task_of(i))
    }

    pub(super) fn forget(&mut self, task: Box<str>) {
        self.forgotten.push(task);
    }

    fn sees(&self, asker: Asker, task: &str) -> bool {
        !self.hides || asker.sees_as(self.owner(task))
    }

    pub(super) fn says(&self, asker: Asker, question: &Question, dice: &mut Dice) -> Evidence {
        let sees = |task: &str| self.sees(asker, task);
        match question {
            Question::Task(task) if self.forgotten.contains(task) || !sees(task) => {
                Evidence::NotFound
            }
            Question::Task(task) => match self.state(task) {
                Some(At::Works) => Evidence::Running(task.clone()),
                Some(At::Ended) => Evidence::Terminal,
                Some(At::Auth | At::Input) => Evidence::Interrupted,
                Some(At::Home | At::Net | At::Arrived | At::Never) | None => Evidence::NotFound,
            },
            Question::Tasks(_) if !self.lists => Evidence::Unsupported,
            Question::Tasks(_) => {
                let run = |i: &usize| {
                    let job = &self.jobs[*i];
                    job.at == At::Works && !job.is_bare() && sees(&self.task_of(*i))
                };
                let run: Vec<usize> = (0..self.jobs.len()).filter(run).collect();
                if run.is_empty() {
                    Evidence::NoTask
                } else {
                    Evidence::Running(self.task_of(dice.of(&run)))
                }
            }
        }
    }
}
