//! Finished tasks whose agent shows their answer only to who subscribes: the replay is read once, and what it comes to
//! is kept for whoever asks again with the same credential. Whatever goes wrong with that, the agent's own answer passes.
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use moka::{future::Cache, policy::EvictionPolicy};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{exchange::Exchange, forward};
use crate::{
    a2a::{
        Dialect, Fault, Kind, Op,
        answer::{self, Bare, Document, Folded},
        headers, request,
    },
    config,
    policy::caller::Caller,
    reply::Reading,
};

/// What an entry costs beside what it holds.
const ENTRY: usize = 256;

/// Fields that differ from call to call and are nobody's credential. All others may be one, as far as we know.
const NOT_SECRET: [HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_TYPE,
    header::PRAGMA,
    header::USER_AGENT,
    header::VIA,
    headers::VERSION,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-request-id"),
];

type Key = [u8; 32];

/// One replay at a time of a task; with whose replay failed last, and when.
type Flight = tokio::sync::Mutex<Option<(Key, Instant)>>;

/// What replays came to, for all workers.
#[derive(Clone)]
pub(super) struct Hydrated(Option<Arc<Inner>>);

struct Inner {
    cache: Cache<Key, Arc<Folded>>,
    flights: Mutex<HashMap<Key, Weak<Flight>>>,
    /// The most that is kept.
    most: usize,
    /// The longest replay.
    limit: usize,
    /// How long all of it may take.
    time: Duration,
}

impl Hydrated {
    pub(super) fn new(on: bool, limits: &config::Limits) -> Self {
        if !on {
            return Self(None);
        }
        let cache = Cache::builder()
            .max_capacity(limits.replays as u64)
            .weigher(|_, folded: &Arc<Folded>| {
                u32::try_from(folded.size() + ENTRY).unwrap_or(u32::MAX)
            })
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self(Some(Arc::new(Inner {
            cache,
            flights: Mutex::default(),
            most: limits.replays,
            limit: limits.replay,
            time: limits.replay_time,
        })))
    }

    /// Whether any task is filled in.
    pub(super) fn on(&self) -> bool {
        self.0.is_some()
    }
}

impl Inner {
    /// The flight of a task, the same for all who are in it.
    fn board(&self, task: Key) -> Boarded<'_> {
        let mut flights = self.flights.lock();
        let known = flights.get(&task).and_then(Weak::upgrade);
        let flight = known.unwrap_or_default();
        flights.insert(task, Arc::downgrade(&flight));
        Boarded {
            of: self,
            task,
            flight: Some(flight),
        }
    }
}

/// Somebody in a flight. The last to leave forgets it.
struct Boarded<'i> {
    of: &'i Inner,
    task: Key,
    flight: Option<Arc<Flight>>,
}

impl Boarded<'_> {
    fn flight(&self) -> &Flight {
        let flight = self.flight.as_deref();
        flight.expect("only its drop takes it out")
    }
}

impl Drop for Boarded<'_> {
    fn drop(&mut self) {
        let mut flights = self.of.flights.lock();
        let last = self.flight.take().and_then(Arc::into_inner).is_some();
        if last {
            flights.remove(&self.task);
        }
    }
}

impl Exchange {
    /// The answer to a question for a task, with what the task has brought. None where nothing is to be filled in, or
    /// could be.
    pub(super) async fn hydrated(&mut self, body: &Bytes) -> Option<Document> {
        let gateway = self.gateway.clone();
        let kept = gateway.hydrated.0.as_deref()?;
        let bare = answer::bare(gateway.dialect, body, &gateway.options).ok()??;
        let in_time = tokio::time::timeout(kept.time, self.replayed(kept, &bare)).await;
        let late = |_| {
            Fault::new(
                Kind::BackendTimeout,
                "the replay took longer than limits.replay_time",
            )
        };
        let folded = in_time.map_err(late).flatten();
        let whole = folded.and_then(|folded| self.filled(&bare, &folded));
        whole
            .inspect_err(|fault| {
                tracing::warn!(
                    task = %bare.id, %fault,
                    "a finished task is answered as the agent shows it: its replay could not be had"
                );
            })
            .ok()
    }

    fn filled(&mut self, bare: &Bare, folded: &Folded) -> Result<Document, Fault> {
        if !self.hold.grow(folded.size() + bare.size()) {
            return Err(super::body::no_room());
        }
        let whole = folded
            .fill(bare)
            .map_err(|fault| fault.because("what was folded does not fit"))?;
        self.translate_from(Dialect::R10, &self.to, &whole) // as a v1.0 REST agent would answer
    }

    async fn replayed(&mut self, kept: &Inner, bare: &Bare) -> Result<Arc<Folded>, Fault> {
        let task = self.key_of_task(&bare.id);
        let key = key_of_asker(&task, &self.met.caller, &self.fields);
        if let Some(folded) = kept.cache.get(&key).await {
            return Ok(folded);
        }
        let asked = Instant::now();
        let boarded = kept.board(task);
        let mut last_failed = boarded.flight().lock().await;
        if let Some(folded) = kept.cache.get(&key).await {
            return Ok(folded);
        }
        if last_failed.is_some_and(|(whose, at)| whose == key && at >= asked) {
            return Err(Fault::answer("it failed for another call just now"));
        }
        match self.replay(kept, &bare.id).await {
            Ok(folded) => {
                let folded = Arc::new(folded);
                if folded.size() + ENTRY <= kept.most {
                    kept.cache.insert(key, folded.clone()).await; // else it would only push others out
                }
                Ok(folded)
            }
            Err(fault) => {
                *last_failed = Some((key, Instant::now()));
                Err(fault)
            }
        }
    }

    /// Subscribes to the task as its caller, and reads all that the agent tells.
    async fn replay(&mut self, kept: &Inner, task: &str) -> Result<Folded, Fault> {
        let gateway = &self.gateway;
        let call = request::subscribe(task, self.call.facts.tenant.as_deref());
        let mut exchange = Self::ours(gateway, &self.route, &self.base, &self.fields, call);
        let body = exchange.ask_events().await?;
        let reading = Reading {
            from: gateway.dialect,
            options: &gateway.options,
            event: gateway.limits.event,
            limit: kept.limit,
        };
        reading.read(task, body, &mut exchange.hold).await
    }

    fn key_of_task(&self, task: &str) -> Key {
        let tenant = self.call.facts.tenant.as_deref().unwrap_or_default();
        let mut hash = blake3::Hasher::new();
        for part in [&*self.route.origin, &*self.base, tenant, task] {
            add(&mut hash, part.as_bytes());
        }
        *hash.finalize().as_bytes()
    }
}

/// The task as one caller may see it: another credential may not get the same.
fn key_of_asker(task: &Key, caller: &Caller, fields: &HeaderMap) -> Key {
    let mut hash = blake3::Hasher::new();
    add(&mut hash, task);
    add(&mut hash, caller.name.as_bytes());
    add(
        &mut hash,
        caller.tenant.as_deref().unwrap_or_default().as_bytes(),
    );
    let mut shown: Vec<(&HeaderName, &HeaderValue)> = fields.iter().collect();
    // Others of a proxy's fields, such as `X-Forwarded-User`, may be what the agent knows the caller by.
    shown.retain(|(name, _)| !NOT_SECRET.contains(name) && !forward::tells_way(name));
    shown.sort_by_key(|(name, _)| name.as_str()); // stable: values of one name stay in their order
    for (name, value) in shown {
        add(&mut hash, name.as_str().as_bytes());
        add(&mut hash, value.as_bytes());
    }
    *hash.finalize().as_bytes()
}

/// With its length before it, so that no two lists of parts are one text.
fn add(hash: &mut blake3::Hasher, part: &[u8]) {
    hash.update(&(part.len() as u64).to_le_bytes());
    hash.update(part);
}

impl Exchange {
    /// Whether this answer may be filled in.
    pub(super) fn hydrates(&self) -> bool {
        self.call.op == Op::Get && self.gateway.hydrated.on() && self.route.plain_face
    }
}
