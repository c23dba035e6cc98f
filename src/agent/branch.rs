//! One worker's ways to the agent's addresses: to each a pool of connections of its own. Where names are looked up the
//! list follows the shared one; what falls off it takes its idle connections along.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Settings;
use super::replica::Replica;
use super::room::{Pool, Room};
use super::streams::Lines;

/// One worker's way to one address.
pub(super) struct Branch {
    pub(super) replica: Arc<Replica>,
    pub(super) pool: Arc<Pool>,
    pub(super) lines: Lines,
}

impl Branch {
    fn new(replica: &Arc<Replica>, settings: &Settings) -> Self {
        let pool = Arc::new(Pool::default());
        replica.hall.join(&pool);
        Self {
            replica: Arc::clone(replica),
            pool,
            lines: Lines::new(settings),
        }
    }
}

/// The ways at one moment.
pub(super) type List = Arc<[Arc<Branch>]>;

/// All ways of one worker.
pub(super) enum Branches {
    /// Addresses that stay.
    Fixed(List),
    /// Addresses that names lead to.
    Moving(Mutex<(usize, List)>),
}

impl Branches {
    pub(super) fn new(room: &Room, settings: &Settings) -> Self {
        let (version, set) = room.set();
        let list = set.iter().map(|one| Arc::new(Branch::new(one, settings)));
        let list = list.collect();
        if room.moves() {
            Self::Moving(Mutex::new((version, list)))
        } else {
            Self::Fixed(list)
        }
    }

    /// The only one, where there is one only.
    pub(super) fn alone(&self, room: &Room, settings: &Settings) -> Result<Arc<Branch>, List> {
        let list = match self {
            Self::Fixed(list) => match &**list {
                [one] => return Ok(Arc::clone(one)),
                _ => Arc::clone(list),
            },
            Self::Moving(_) => self.list(room, settings),
        };
        match &*list {
            [one] => Ok(Arc::clone(one)),
            _ => Err(list),
        }
    }

    /// All of them, as they are now.
    pub(super) fn list(&self, room: &Room, settings: &Settings) -> List {
        let moving = match self {
            Self::Fixed(list) => return Arc::clone(list),
            Self::Moving(moving) => moving,
        };
        let mut moving = moving.lock();
        if moving.0 != room.version() {
            let (version, set) = room.set();
            let branch = |replica: &Arc<Replica>| {
                let old = moving.1.iter();
                let mut old = old.filter(|old| Arc::ptr_eq(&old.replica, replica));
                let old = old.next().cloned();
                old.unwrap_or_else(|| Arc::new(Branch::new(replica, settings)))
            };
            let list = set.iter().map(branch).collect();
            *moving = (version, list);
        }
        Arc::clone(&moving.1)
    }

    pub(super) fn sweep(&self, room: &Room, settings: &Settings, idle: Duration) {
        for branch in &*self.list(room, settings) {
            branch.pool.sweep(idle);
            branch.lines.sweep(idle);
        }
    }
}
