//! Where the gateways of a play keep their slots.
use std::{rc::Rc, sync::Arc};

use tokio::time::Duration;

use super::LEASE;
use crate::{
    config,
    policy::conversation::tests::{
        model::{Kept, script::Script, world::World},
        rules::times,
    },
    state::{
        Key, Store,
        memory::{self, Memory},
        redis::{
            self, Redis,
            tests::by_hand::{ByHand, Way},
        },
        slot::Times,
    },
};

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// A server that took this long for what is done at once had a clock that was ahead of the play's.
const STILL: Duration = Duration::from_millis(90);

pub(in super::super) enum Stores {
    Memory(Arc<Memory>),
    Redis(Box<Far>),
}

/// A real server, and the stores of both gateways.
pub(in super::super) struct Far {
    pub(super) world: Rc<World>,
    pub(super) ways: [Arc<Way>; 2],
    settings: redis::Settings,
    hands: Vec<ByHand>,
    slowest: Duration,
}

impl Stores {
    /// With a store for each gateway.
    pub(super) fn of(
        script: &Script,
        settings: &config::Conversation,
        far: Option<(&Rc<World>, String)>,
    ) -> (Self, [Store; 2]) {
        let times = Times {
            lease: (script.kept != Kept::Alone).then_some(LEASE),
            settle: settings.settle,
            ..times()
        };
        let Some((world, prefix)) = far else {
            let memory = Arc::new(Memory::new(memory::Settings {
                times,
                slots: 10,
                tasks: 1_000,
                bindings: 1_000,
                binding_ttl: Duration::from_secs(1),
                messages: 1_000,
                message_ttl: Duration::from_mins(10),
                owners: crate::state::owner::Settings::default(),
            }));
            let store = || Store::Memory(Arc::clone(&memory));
            let stores = [store(), store()];
            return (Self::Memory(memory), stores);
        };
        let mut far = Far {
            world: Rc::clone(world),
            ways: Default::default(),
            settings: redis::Settings {
                prefix,
                local: script.local,
                times,
                timeout: TIMEOUT,
                settle_timeout: Duration::from_millis(100),
                slots: 10,
                tasks: 1_000,
                bindings: 1_000,
                binding_ttl: Duration::from_hours(1),
                messages: 10,
                message_ttl: Duration::from_mins(10),
                owners: crate::state::owner::Settings::default(),
            },
            hands: vec![],
            slowest: Duration::ZERO,
        };
        let stores = [0, 1].map(|r| {
            let (store, hand) = far.starts(r);
            far.hands.push(hand);
            Store::Redis(store.into())
        });
        (Self::Redis(Box::new(far)), stores)
    }

    /// That of a gateway that starts in place of a dead one.
    pub(super) fn again(&mut self, r: usize) -> Store {
        match self {
            Self::Memory(memory) => Store::Memory(Arc::clone(memory)),
            Self::Redis(far) => {
                let (store, hand) = far.starts(r);
                far.hands[r] = hand;
                Store::Redis(store.into())
            }
        }
    }

    /// The holder is still there; a real store's own task says so.
    pub(super) fn renew(&self, key: Key, token: u64) -> bool {
        match self {
            Self::Memory(memory) => memory.renew(key, token),
            Self::Redis(_) => unreachable!("no step of these plays"),
        }
    }

    /// Until only time moves them.
    pub(super) async fn rest(&mut self) {
        if let Self::Redis(far) = self {
            let took = far.world.rest(&mut far.hands).await;
            far.slowest = far.slowest.max(took);
        }
    }

    pub(super) const fn far(&self) -> Option<&Far> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(far) => Some(far),
        }
    }
}

impl Far {
    fn starts(&self, r: usize) -> (Redis, ByHand) {
        Redis::by_hand(&self.world.url(), &self.ways[r], self.settings.clone())
    }

    /// The machine stood still for a moment: then the server's clock was not the play's.
    pub(super) fn stood_still(&self) -> bool {
        self.slowest >= STILL
    }
}
