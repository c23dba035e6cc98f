//! How often, how much and how many at once: the rules of `limits`. All rules that concern a call are taken together, or
//! none of them is; what a call that never reached its agent took is given back.
//!
//! ```text
//! take ─► refused: nothing was taken
//!   └───► Guard ─► dropped, or failed before the agent can have seen it ─► all is given back
//!            └───► goes_out ─► bytes and seconds are charged as they pass ─► dropped: what is held at once is free
//! ```
//! The counts lie in [`crate::state::counters`]. Who may ask is known before; only what callers choose themselves, a
//! context or a parameter of a path, makes keys that they could make up: those are bounded for each of them.
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use smallvec::SmallVec;

mod clock;
mod guard;
mod peers;
mod rule;
mod told;
mod window;

pub use clock::Clock;
pub use guard::Guard;
pub use peers::Peers;

use rule::Rule;

use super::caller::Caller;
use crate::{
    a2a::{Fault, Op},
    config,
    state::{
        Key,
        counters::{Ask, Counters, Level, Micros, What},
        recent::Recent,
    },
};

/// So many keys are known by name, for operators.
const NAMED: usize = 10_000;
/// How long the end waits for the file of counts.
const LAST: Duration = Duration::from_secs(5);

/// All rules, over all workers.
#[derive(Clone)]
pub struct Limits(Option<Arc<Inner>>);

struct Inner {
    rules: Vec<Rule>,
    counters: Counters,
    clock: Clock,
    /// Names that no two calls share.
    calls: AtomicU64,
    /// Which rules these are: the same ones have it again.
    name: Key,
    names: Names,
}

/// What keys of rules stand for: the rule by its stem, what was counted, and the name.
#[derive(Clone)]
pub struct Names(Arc<Mutex<Recent<Name>>>);

type Name = (Key, What, Box<str>);

impl Default for Names {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Recent::new(NAMED))))
    }
}

/// A call, as rules see it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// For what.
    pub op: Op,
    /// How the client speaks.
    pub dialect: &'static str,
    /// The conversation.
    pub context: Option<&'a str>,
    /// The parameters of the route's path.
    pub parameter: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The bytes of its body.
    pub bytes: usize,
}

/// How full the count of one key of a rule is.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The rule's name.
    pub rule: Option<String>,
    /// What the key stands for.
    pub key: String,
    /// Used: calls of a rate that are not at rest, or what a quota counts.
    pub used: u64,
    /// How much there is.
    pub limit: Option<u64>,
    /// When its window ends, in seconds from now.
    pub resets: Option<u64>,
}

impl Limits {
    /// No rule, or those of the settings, counted there.
    pub fn new(settings: &config::Limits, counters: Counters, clock: Clock) -> Self {
        Self::with(settings, counters, clock, Names::default())
    }

    /// The same, where names of keys are known already. Counts are found by what a rule is, its name, its kind and its
    /// key: one that stayed the same goes on with what it had counted.
    pub fn with(settings: &config::Limits, counters: Counters, clock: Clock, names: Names) -> Self {
        if settings.rules.is_empty() {
            return Self(None);
        }
        let rules: Vec<_> = settings.rules.iter().map(Rule::new).collect();
        let stems: Vec<_> = rules.iter().map(Rule::stem).collect();
        let stems: Vec<_> = stems.iter().map(String::as_str).collect();
        Self(Some(Arc::new(Inner {
            name: Key::of(&stems),
            rules,
            counters,
            clock,
            calls: AtomicU64::new(uuid::Uuid::new_v4().as_u64_pair().0),
            names,
        })))
    }

    /// Whether there is any rule.
    pub const fn on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the counts may have to be waited for.
    pub fn wait(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.counters.wait())
    }

    /// Takes what the call needs of all rules that concern it.
    pub async fn take(&self, asked: &Asked<'_>) -> Result<Option<Box<Guard>>, Fault> {
        let Some(inner) = &self.0 else {
            return Ok(None);
        };
        let now = inner.clock.now();
        let asks = inner.asks(asked, now);
        if asks.is_empty() {
            return Ok(None);
        }
        let call = inner.calls.fetch_add(1, Relaxed);
        let taken = match inner.counters.take(&asks, call, now).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(refused)) => {
                let rule = &inner.rules[usize::from(asks[refused.which].rule)];
                return Err(told::refusal(rule, &refused));
            }
            Err(trouble) => return Err(super::conversation::away(trouble)),
        };
        for (one, ask) in taken.of.iter().zip(&asks) {
            if one.new {
                inner.remember(one.key, ask, asked);
            }
        }
        let rules = asks.iter().map(|ask| ask.rule).collect();
        Ok(Some(Box::new(Guard::new(
            self, taken, rules, call, asked.op,
        ))))
    }

    /// Up to `limit` counts, as they are.
    pub async fn usage(&self, limit: usize) -> Result<Vec<Usage>, crate::state::Trouble> {
        let Some(inner) = &self.0 else {
            return Ok(vec![]);
        };
        let now = inner.clock.now();
        let known: Vec<(Key, What)> = {
            let names = inner.names.0.lock();
            let all = names.iter().take(limit);
            all.map(|(key, (_, what, _))| (*key, *what)).collect()
        };
        let levels = inner.counters.list(limit, &known, now).await?;
        Ok(levels.iter().map(|level| inner.shown(level, now)).collect())
    }

    /// How often something was used or given back that the store of all replicas was never told.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.counters.lost())
    }

    /// At the end of the process: what is counted gets into its file.
    pub fn close(&self) {
        self.close_within(LAST);
    }

    /// The same in this time.
    pub fn close_within(&self, within: Duration) {
        if let Some(inner) = &self.0 {
            inner.counters.close_within(within);
        }
    }

    /// Once a second, by anybody: forgets what is at rest.
    pub fn tick(&self) {
        if let Some(inner) = &self.0 {
            inner.clock.set();
            inner.counters.tick(inner.clock.now());
        }
    }
}

impl Inner {
    /// What the call needs of each rule.
    fn asks(&self, asked: &Asked<'_>, now: Micros) -> SmallVec<[Ask; 4]> {
        let kept = &asked.caller.kept.limits;
        let mut keys = kept.read();
        if keys.as_ref().is_none_or(|(name, _)| *name != self.name) {
            drop(keys);
            let all = self.rules.iter().map(|rule| rule.own_key(asked.caller));
            *kept.write() = Some((self.name, all.collect()));
            keys = kept.read();
        }
        // Somebody who goes by other rules may have come in between.
        let keys = keys.as_ref().filter(|(name, _)| *name == self.name);
        let mut asks = SmallVec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            let known = keys.and_then(|(_, keys)| keys.get(number).copied().flatten());
            asks.extend(rule.ask(number, known, asked, now));
        }
        asks
    }

    fn remember(&self, key: Key, ask: &Ask, asked: &Asked<'_>) {
        let rule = &self.rules[usize::from(ask.rule)];
        let name = if key == ask.key {
            rule.shown(asked)
        } else {
            "all others".to_owned()
        };
        let name = (ask.stem, ask.what, name.into());
        self.names.0.lock().put(key, name);
    }

    fn shown(&self, level: &Level, now: Micros) -> Usage {
        let known = self.names.0.lock().get(&level.key).cloned();
        let of = |stem: &Key| self.rules.iter().find(|rule| rule.is(*stem));
        let rule = known.as_ref().and_then(|(stem, _, _)| of(stem));
        let left = level.until.map(|until| until.saturating_sub(now));
        Usage {
            rule: rule.map(|rule| rule.name.clone()),
            key: known.map_or_else(|| level.key.to_string(), |(_, _, name)| name.into()),
            used: rule.map_or(level.used, |rule| rule.used(level.used)),
            limit: rule.map(Rule::limit),
            resets: left.map(|left| left.div_ceil(1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests;
