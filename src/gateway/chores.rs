//! Work beside the calls: names looked up, agents asked how they are. It is nobody's call, so it takes no place of one, a
//! drain does not wait for it, and it ends with the worker at the latest.
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinSet};

use crate::agent::Agent;

/// What a worker does beside its calls. It goes on when settings change: who took a turn at something sees it through.
#[derive(Default)]
pub(super) struct Chores(Mutex<JoinSet<()>>);

impl Chores {
    /// Begins what is due at these agents.
    pub(super) fn begin<'a>(&self, agents: impl Iterator<Item = &'a Arc<Agent>>) {
        let Ok(runtime) = Handle::try_current() else {
            return; // asked for no chore, so that none is lost
        };
        let mut under_way = self.0.lock();
        while under_way.try_join_next().is_some() {}
        for chore in agents.filter_map(Agent::chore) {
            under_way.spawn_on(chore, &runtime);
        }
    }
}
