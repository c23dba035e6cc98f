//! What reached the agent, kept beside it: which messages are live in which conversation, what overlaps, and how long
//! a conversation that nobody works in kept its own callers out.
use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;

use super::work::{Message, State};

/// How many things that went wrong are told one by one.
const TOLD: usize = 10;
/// How many tasks at rest a list shows beside those that work.
const SHOWN: usize = 20;

#[derive(Default)]
pub struct Ledger(Mutex<Known>);

#[derive(Default)]
struct Known {
    contexts: HashMap<String, Context>,
    received: HashMap<String, Instant>,
    /// No wait counts from before.
    excused: Option<Instant>,
    /// The store was away then, or is since.
    away: Option<(Instant, Option<Instant>)>,
    sums: Sums,
}

/// What is counted in each phase.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub received: usize,
    pub overlaps: usize,
    /// Of messages that came while the store was away.
    pub overlaps_away: usize,
    /// The longest time that a conversation was wanted, with nobody working in it.
    pub slowest: Duration,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

#[derive(Default)]
struct Context {
    live: Vec<Live>,
    /// When the last of them ended.
    free: Option<Instant>,
    /// Who wants it, and since when.
    wanted: HashMap<String, Instant>,
    tasks: Vec<Task>,
}

struct Live {
    id: String,
    since: Instant,
}

struct Task {
    id: String,
    state: State,
    /// The state that is shown until then: an agent may take its time to show what it has received.
    before: (Option<State>, Instant),
}

impl Task {
    fn shows(&self, now: Instant) -> Option<State> {
        let (before, until) = self.before;
        if now < until {
            before
        } else {
            Some(self.state)
        }
    }
}

/// Messages are named after who sends them.
fn sender(message: &str) -> &str {
    message
        .rsplit_once('.')
        .map_or(message, |(sender, _)| sender)
}

impl Ledger {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    /// Somebody is about to send this, perhaps not for the first time.
    pub fn wants(&self, context: &str, message: &str) {
        let mut known = self.known();
        let context = known.contexts.entry(context.to_owned()).or_default();
        let since = context.wanted.entry(sender(message).to_owned());
        since.or_insert_with(Instant::now);
    }

    /// It is here, and lives. The agent shows it a little later.
    pub fn receives(&self, message: &Message, shows_after: Duration) {
        let now = Instant::now();
        let known = &mut *self.known();
        let context = known.contexts.entry(message.context.clone()).or_default();
        let sums = &mut known.sums;
        sums.received += 1;
        if known.received.insert(message.id.clone(), now).is_some() {
            sums.tell(format!("{} was sent to the agent twice", message.id));
        }
        for other in &context.live {
            let away = known.away.is_some_and(|(from, to)| {
                [other.since, now]
                    .iter()
                    .any(|at| *at >= from && to.is_none_or(|to| *at <= to))
            });
            if away {
                sums.overlaps_away += 1;
            } else {
                sums.overlaps += 1;
                let age = (now - other.since).as_millis();
                let (new, old) = (&message.id, &other.id);
                sums.tell(format!("{new} overlaps {old}, which lives since {age} ms"));
            }
        }
        let wanted = context.wanted.values().min().copied();
        if context.live.is_empty()
            && let Some(since) = wanted.max(context.free).max(known.excused)
        {
            sums.slowest = sums.slowest.max(now.saturating_duration_since(since));
        }
        context.wanted.remove(sender(&message.id));
        context.live.push(Live {
            id: message.id.clone(),
            since: now,
        });
        if message.work.is_task() {
            context.begins(message.task(), now, shows_after);
        }
    }

    /// Its work is done: from now on the conversation is free.
    pub fn ends(&self, message: &Message) {
        let now = Instant::now();
        let mut known = self.known();
        let context = known.contexts.get_mut(&message.context).unwrap();
        context.live.retain(|l| l.id != message.id);
        context.free = Some(now);
        let id = message.task();
        if let Some(task) = context.tasks.iter_mut().find(|t| t.id == id) {
            task.state = message.work.end();
        }
    }

    /// The state of this task, as the agent shows it to this caller.
    pub fn task(&self, caller: &str, id: &str) -> Option<State> {
        let known = self.known();
        let task = known.contexts.get(caller)?.tasks.iter();
        let task = task.rev().find(|t| t.id == id)?;
        task.shows(Instant::now())
    }

    /// The tasks of a conversation as the agent shows them: all that work, and the last of the others.
    pub fn tasks(&self, context: &str) -> Vec<(String, State)> {
        let now = Instant::now();
        let known = self.known();
        let tasks = known.contexts.get(context).map(|c| c.tasks.iter().rev());
        let shown = |t: &Task| t.shows(now).map(|state| (t.id.clone(), state));
        let mut left = SHOWN;
        let mut some = |state: State| {
            left -= usize::from(state != State::Works && left > 0);
            state == State::Works || left > 0
        };
        let tasks = tasks.into_iter().flatten().filter_map(shown);
        tasks.filter(|(_, state)| some(*state)).collect()
    }

    /// When this message came.
    pub fn received(&self, message: &str) -> Option<Instant> {
        self.known().received.get(message).copied()
    }

    /// How many came since the sums were taken.
    pub fn count(&self) -> usize {
        self.known().sums.received
    }

    /// Nobody need have been let in before.
    pub fn excuse(&self, until: Instant) {
        self.known().excused = Some(until);
    }

    /// The store is away; what comes then may overlap.
    pub fn store_is_away(&self) {
        self.known().away = Some((Instant::now(), None));
    }

    /// Until then, gateways may not have noticed that it is back.
    pub fn store_is_back(&self, until: Instant) {
        if let Some((_, to)) = &mut self.known().away {
            *to = Some(until);
        }
    }

    /// Whether a refusal for want of the store is right: it is away, or was so short a time ago.
    pub fn may_lack_store(&self, quiet: Duration) -> bool {
        let now = Instant::now();
        let away = self.known().away;
        away.is_some_and(|(_, to)| to.is_none_or(|to| now <= to + quiet))
    }

    /// Something is not as it must be.
    pub fn tell(&self, wrong: String) {
        self.known().sums.tell(wrong);
    }

    /// Who still wants what, for a run that came to no end.
    pub fn wanting(&self) -> Vec<String> {
        let known = self.known();
        let wanting = known.contexts.values().flat_map(|c| c.wanted.keys());
        let all: HashSet<_> = wanting.cloned().collect();
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort();
        all
    }

    /// What was counted since this was last asked.
    pub fn take_sums(&self) -> Sums {
        std::mem::take(&mut self.known().sums)
    }
}

impl Sums {
    fn tell(&mut self, wrong: String) {
        if self.wrong.len() < TOLD {
            self.wrong.push(wrong);
        }
    }
}

impl Context {
    fn begins(&mut self, id: String, now: Instant, shows_after: Duration) {
        let known = self.tasks.iter_mut().find(|t| t.id == id);
        let until = now + shows_after;
        if let Some(task) = known {
            task.before = (task.shows(now), until);
            task.state = State::Works;
        } else {
            self.tasks.push(Task {
                id,
                state: State::Works,
                before: (None, until),
            });
        }
    }
}
