//! The gateways of all workers, which are exchanged together when settings change.
//!
//! A worker asks for its gateway once a request: so the next request goes by new settings, on whichever connection it
//! comes, and a call goes by those that it began with until it ends. With the last of such calls their settings go.
use std::{
    mem,
    sync::{Arc, Weak},
};

use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::{Mutex, RwLock};

use crate::{
    audit::Recorded,
    config::Config,
    follow::Follow,
    gateway::{self, BadSetup, Earlier, Gateway, Life, Setup},
    reply::Reply,
    server::{self, Worker},
};

/// All of them. Clones are the same.
#[derive(Clone)]
pub struct Front(Arc<All>);

struct All {
    now: Mutex<Now>,
    /// Held by who exchanges them: one at a time.
    exchange: Mutex<()>,
}

struct Now {
    setup: Setup,
    slots: Vec<Slot>,
    /// Settings from before, by which calls still go.
    earlier: Vec<Weak<Life>>,
}

/// The place of one worker's gateway. Only that worker reads it, so that its lock is free.
#[derive(Clone)]
pub struct Slot(Arc<Place>);

struct Place {
    now: RwLock<Gateway>,
    /// Those of settings from before, by which calls of this worker may still go.
    earlier: Mutex<Vec<Earlier>>,
}

impl Front {
    /// None yet.
    pub fn new(setup: Setup) -> Self {
        Self(Arc::new(All {
            now: Mutex::new(Now {
                setup,
                slots: vec![],
                earlier: vec![],
            }),
            exchange: Mutex::default(),
        }))
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
            let mut now = self.0.now.lock();
            if Weak::ptr_eq(&now.setup.life(), &setup.life()) {
                let slot = Slot::of(made);
                now.slots.push(slot.clone());
                return slot;
            }
        }
    }

    /// What is shared now.
    pub fn setup(&self) -> Setup {
        self.0.now.lock().setup.clone()
    }

    /// From the next request on, all workers go by these settings; where they cannot, nothing changes.
    pub fn exchange(&self, config: Config) -> Result<Setup, BadSetup> {
        let _one = self.0.exchange.lock();
        // Files are read here, and may not come for long: probes look at what is there meanwhile.
        let setup = self.setup().after(config)?;
        loop {
            let slots = self.0.now.lock().slots.clone();
            let made = slots.iter().map(|slot| setup.gateway_after(&slot.now()));
            let made = made.collect::<Result<Vec<_>, _>>()?;
            let mut now = self.0.now.lock();
            if now.slots.len() != slots.len() {
                continue; // a worker has begun by those before
            }
            setup.settle_in();
            let before: Vec<_> = slots
                .iter()
                .zip(made)
                .map(|(s, made)| s.put(made))
                .collect();
            now.earlier.retain(|life| life.strong_count() > 0);
            let life = now.setup.life();
            now.earlier.push(life);
            let last = mem::replace(&mut now.setup, setup.clone());
            drop(now);
            drop((before, last)); // perhaps the last hold on them, and not under the lock
            return Ok(setup);
        }
    }

    /// How many settings from before calls still go by.
    pub fn earlier(&self) -> usize {
        let now = &mut *self.0.now.lock();
        now.earlier.retain(|life| life.strong_count() > 0);
        now.earlier.len()
    }
}

impl Slot {
    fn of(gateway: Gateway) -> Self {
        Self(Arc::new(Place {
            now: RwLock::new(gateway),
            earlier: Mutex::default(),
        }))
    }

    fn now(&self) -> Gateway {
        self.0.now.read().clone()
    }

    /// The one before, which this one follows.
    fn put(&self, gateway: Gateway) -> Gateway {
        let before = mem::replace(&mut *self.0.now.write(), gateway);
        self.0.earlier.lock().push(before.earlier());
        before
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
        self.0.earlier.lock().retain(Earlier::sweep);
    }
}
