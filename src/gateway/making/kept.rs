//! What goes on when settings change, and when it begins anew: caches whose own settings stayed the same, and the counts
//! of limits always.
use std::sync::Arc;

use super::{
    BadSetup, Budget, Callers, Cards, Config, Conversations, Hydrated, Options, Peers, Setup, Store,
};
use crate::{
    policy::limits::{Clock, Limits as Rules, Names},
    state::counters::{Counters, memory::Local},
};

/// New settings, and those before.
pub(super) struct Kept<'s> {
    pub(super) config: &'s Config,
    pub(super) options: &'s Arc<Options>,
    pub(super) before: Option<&'s Setup>,
}

impl Kept<'_> {
    /// Those before, if nothing that this shows differs.
    fn same<T: PartialEq>(&self, of: impl Fn(&Config) -> T) -> Option<&Setup> {
        let same = |before: &&Setup| of(&before.config) == of(self.config);
        self.before.filter(same)
    }

    pub(super) fn cards(&self) -> Cards {
        let same = self.same(|c| (c.card.clone(), c.limits.card, c.backend.clone()));
        if let Some(before) = same.filter(|before| before.options == *self.options) {
            return before.cards.clone();
        }
        let (card, limit) = (self.config.card.clone(), self.config.limits.card);
        Cards::new(card, limit, self.options.clone())
    }

    pub(super) fn budget(&self) -> Budget {
        match self.before {
            Some(before) => before.budget.clone(),
            None => Budget::new(self.config.limits.buffered),
        }
    }

    pub(super) fn peers(&self) -> Peers {
        match self.same(|c| c.limits.per_peer.clone()) {
            Some(before) => before.peers.clone(),
            None => Peers::new(&self.config.limits.per_peer),
        }
    }

    pub(super) fn callers(&self) -> Callers {
        match self.before {
            Some(before) => before.callers.clone(),
            None => Callers::new(self.config.admin.is_some()),
        }
    }

    pub(super) fn hydrated(&self) -> Hydrated {
        let same = self.same(|c| {
            let (limits, backend) = (&c.limits, &c.backend);
            let replays = (limits.replays, limits.replay, limits.replay_time);
            (replays, backend.clone(), c.routes.clone())
        });
        match same.filter(|before| before.options == *self.options) {
            Some(before) => before.hydrated.clone(),
            None => Hydrated::new(self.config.backend.hydrate_tasks, &self.config.limits),
        }
    }
}

/// What rules counted, whatever the rules are now.
#[derive(Clone)]
pub(super) struct Counted {
    pub(super) counters: Counters,
    clock: Clock,
    names: Names,
}

impl Counted {
    pub(super) fn new(
        config: &Config,
        conversations: &Conversations,
        before: Option<&Setup>,
    ) -> Result<Self, BadSetup> {
        let mut this = match before {
            Some(before) => before.counted.clone(),
            None => Self {
                counters: counters(config, conversations),
                clock: Clock::wall(),
                names: Names::default(),
            },
        };
        this.save(config, conversations)?;
        Ok(this)
    }

    pub(super) fn rules(&self, config: &Config) -> Rules {
        let (counters, clock) = (self.counters.clone(), self.clock.clone());
        Rules::with(&config.limits, counters, clock, self.names.clone())
    }

    /// Opens the file once there is something to write into it.
    fn save(&mut self, config: &Config, conversations: &Conversations) -> Result<(), BadSetup> {
        let Some(path) = &config.state.persist else {
            return Ok(());
        };
        let wanted = !config.limits.rules.is_empty() || config.ownership.is_on();
        let store = conversations.store();
        if !wanted || self.counters.is_saved() || !matches!(store, Store::Memory(_)) {
            return Ok(());
        }
        let (local, clock) = (self.counters.own().clone(), self.clock.clone());
        let file = store.persist(path, Some(local.clone()), move || clock.now());
        self.counters = Counters::persisted(local, file.map_err(BadSetup::Persist)?);
        Ok(())
    }
}

fn counters(config: &Config, conversations: &Conversations) -> Counters {
    let limits = &config.limits;
    let local = || Local::new(limits.max_keys, limits.max_minted);
    match conversations.store() {
        Store::Memory(_) => Counters::local(local()),
        Store::Redis(redis) => {
            let alone = config.state.on_error == crate::config::OnError::Local;
            Counters::shared(redis.clone(), local(), local(), alone)
        }
    }
}
