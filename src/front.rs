//! The gateways of all workers, which are exchanged together when settings change.
//!
//! A worker asks for its gateway once a request: so the next request goes by new settings, on whichever connection it
//! comes, and a call goes by those that it began with until it ends. With the last of such calls their settings go.
use std::sync::{Arc, Weak};

use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::{Mutex, RwLock};

use crate::{
    audit::Recorded,
    config::Config,
    follow::Follow,
    gateway::{self, BadSetup, Gateway, Life, Setup},
    reply::Reply,
    server::{self, Worker},
};

/// All of them. Clones are the same.
#[derive(Clone)]
pub struct Front(Arc<Mutex<Now>>);

struct Now {
    setup: Setup,
    slots: Vec<Slot>,
    /// Settings from before, by which calls still go.
    earlier: Vec<Weak<Life>>,
}

/// The place of one worker's gateway. Only that worker reads it, so that its lock is free.
#[derive(Clone)]
pub struct Slot(Arc<RwLock<Gateway>>);

impl Front {
    /// None yet.
    pub fn new(setup: Setup) -> Self {
        Self(Arc::new(Mutex::new(Now {
            setup,
            slots: vec![],
            earlier: vec![],
        })))
    }

    /// One for this worker.
    ///
    /// # Panics
    /// Never: the same settings made one before, in `Setup::new`.
    pub fn worker(&self, worker: &Worker) -> Slot {
        let followers = worker.followers.clone();
        let follow: Follow = Arc::new(move |work| followers.follow(work));
        loop {
            // Not under the lock: workers begin together, and roots are read for each.
            let setup = self.setup();
            let (stop, refusing) = (worker.stop.clone(), worker.refusing.clone());
            let made = setup.gateway(follow.clone(), stop, refusing);
            let made = made.expect("settings that were checked make a gateway");
            let mut now = self.0.lock();
            if Weak::ptr_eq(&now.setup.life(), &setup.life()) {
                let slot = Slot(Arc::new(RwLock::new(made)));
                now.slots.push(slot.clone());
                return slot;
            }
        }
    }

    /// What is shared now.
    pub fn setup(&self) -> Setup {
        self.0.lock().setup.clone()
    }

    /// From the next request on, all workers go by these settings; where they cannot, nothing changes.
    pub fn exchange(&self, config: Config) -> Result<Setup, BadSetup> {
        let now = &mut *self.0.lock();
        let setup = now.setup.after(config)?;
        let made = now.slots.iter().map(|slot| {
            let before = slot.0.read().clone();
            setup.gateway_after(&before)
        });
        let made = made.collect::<Result<Vec<_>, _>>()?;
        setup.settle_in();
        for (slot, gateway) in now.slots.iter().zip(made) {
            let before = std::mem::replace(&mut *slot.0.write(), gateway);
            drop(before); // perhaps the last hold on it, and not under the lock
        }
        now.earlier.retain(|life| life.strong_count() > 0);
        now.earlier.push(now.setup.life());
        now.setup = setup.clone();
        Ok(setup)
    }

    /// How many settings from before calls still go by.
    pub fn earlier(&self) -> usize {
        let now = &mut *self.0.lock();
        now.earlier.retain(|life| life.strong_count() > 0);
        now.earlier.len()
    }
}

impl Slot {
    fn now(&self) -> Gateway {
        self.0.read().clone()
    }
}

impl server::Service for Slot {
    type Body = Recorded<Reply>;

    fn call(
        &self,
        request: Request<Incoming>,
        peer: server::Peer,
    ) -> impl Future<Output = Response<Recorded<Reply>>> + Send + 'static + use<> {
        let peer = gateway::Peer {
            addr: peer.addr,
            tls: peer.tls,
            certificate: peer.certificate,
        };
        self.now().answer(request, peer)
    }

    fn tick(&self) {
        self.now().tick();
    }
}
