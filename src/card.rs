//! The agent's public card: fetched once, kept while fresh, fetched again behind the back of whoever asks, and
//! served a while longer when the agent is away. Rewriting is `a2a`'s; this is the cache.
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header, uri::PathAndQuery};
use moka::{future::Cache, policy::EvictionPolicy};
use tokio::time::Instant;

use crate::{
    a2a::{Fault, Kind, answer, headers, shape},
    agent::Agent,
    config,
    follow::Follow,
};

/// Cards of so many agents are kept; routes with parameters make any number of them.
const KEPT: u64 = 1_000;
/// A card that calls itself fresh for longer is looked at again after this.
const FRESHEST: Duration = Duration::from_hours(24);
/// How long fetching a card may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A card as the agent sent it.
#[derive(Debug)]
pub struct Card {
    /// Its text: a JSON object that reads as a card.
    pub text: Bytes,
    /// How long it is still fresh, as it was when fetched.
    pub max_age: Duration,
    fresh_until: Instant,
    etag: Option<HeaderValue>,
    refreshing: AtomicBool,
}

/// Where a card is.
#[derive(Clone)]
pub struct Place {
    /// The connection.
    pub agent: Arc<Agent>,
    /// What tells agents apart: origin and base path.
    pub key: String,
    /// Paths to try, in this order.
    pub paths: Vec<PathAndQuery>,
}

/// The cards of all agents, shared by all workers.
#[derive(Clone)]
pub struct Cards {
    cache: Cache<String, Arc<Card>>,
    settings: config::Card,
    limit: usize,
    options: Arc<shape::Options>,
}

impl Cards {
    /// `limit` bounds one card, in bytes.
    pub fn new(settings: config::Card, limit: usize, options: Arc<shape::Options>) -> Self {
        let cache = Cache::builder()
            .max_capacity(KEPT)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            cache,
            settings,
            limit,
            options,
        }
    }

    /// The card, fresh if it can be had.
    pub async fn get(&self, place: &Place, follow: &Follow) -> Result<Arc<Card>, Fault> {
        let Some(card) = self.cache.get(&place.key).await else {
            return self
                .cache
                .try_get_with(place.key.clone(), self.fetch(place, None))
                .await
                .map_err(|fault: Arc<Fault>| (*fault).clone());
        };
        let now = Instant::now();
        if now < card.fresh_until {
            return Ok(card);
        }
        let usable = now < card.fresh_until + self.settings.stale;
        if usable && !card.max_age.is_zero() {
            self.refresh(place, &card, follow);
            return Ok(card);
        }
        match self.fetch(place, Some(&card)).await {
            Ok(new) => {
                self.cache.insert(place.key.clone(), new.clone()).await;
                Ok(new)
            }
            Err(fault) if usable => {
                stale(&fault);
                Ok(card)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Fetches again behind the caller's back, once at a time.
    fn refresh(&self, place: &Place, card: &Arc<Card>, follow: &Follow) {
        if card.refreshing.swap(true, Relaxed) {
            return;
        }
        let (cards, place, card) = (self.clone(), place.clone(), card.clone());
        let old = card.clone();
        let work = async move {
            match cards.fetch(&place, Some(&card)).await {
                Ok(new) => cards.cache.insert(place.key, new).await,
                Err(fault) => {
                    stale(&fault);
                    card.refreshing.store(false, Relaxed);
                }
            }
        };
        if !follow(Box::pin(work)) {
            old.refreshing.store(false, Relaxed);
        }
    }

    async fn fetch(&self, place: &Place, old: Option<&Card>) -> Result<Arc<Card>, Fault> {
        let mut last = None;
        for path in &place.paths {
            match self.fetch_at(place, path, old).await {
                Ok(card) => return Ok(card),
                Err(fault) => last = Some(fault),
            }
        }
        Err(last.unwrap_or_else(|| Fault::new(Kind::NoRoute, "the agent has no card")))
    }

    async fn fetch_at(
        &self,
        place: &Place,
        path: &PathAndQuery,
        old: Option<&Card>,
    ) -> Result<Arc<Card>, Fault> {
        let mut request = Request::get(path.clone())
            .header(header::ACCEPT, "application/json")
            .header(header::ACCEPT_ENCODING, "identity")
            .header(headers::VERSION, "1.0");
        if let Some(etag) = old.and_then(|o| o.etag.as_ref()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let request = request.body(Bytes::new()).map_err(|e| {
            Fault::new(Kind::Internal, "the card's address is not usable").because(e.to_string())
        })?;
        let response = place
            .agent
            .send(request, PATIENCE, true)
            .await
            .map_err(|e| away(&e))?;
        let (head, body) = response.into_parts();
        let max_age = max_age(&head.headers)
            .unwrap_or(self.settings.max_age)
            .min(FRESHEST);
        if head.status == StatusCode::NOT_MODIFIED
            && let Some(old) = old
        {
            return Ok(fresh(old.text.clone(), max_age, old.etag.clone()));
        }
        if !head.status.is_success() {
            let kind = match head.status {
                StatusCode::NOT_FOUND => Kind::NoRoute,
                _ => Kind::BackendUnreachable,
            };
            return Err(Fault::new(kind, "the agent has no card for us")
                .because(format!("HTTP status {}", head.status.as_u16())));
        }
        let coding = head.headers.get(header::CONTENT_ENCODING);
        let text = body
            .collect(coding, self.limit, PATIENCE, |_| true)
            .await
            .map_err(|e| away(&e))?;
        // Checked here, so that a broken card never takes the place of a good one.
        let readable = std::str::from_utf8(&text).map_err(|e| Fault::answer(e.to_string()))?;
        answer::card(readable, None, shape::View::V10, &self.options)?;
        Ok(fresh(
            text,
            max_age,
            head.headers.get(header::ETAG).cloned(),
        ))
    }
}

fn fresh(text: Bytes, max_age: Duration, etag: Option<HeaderValue>) -> Arc<Card> {
    Arc::new(Card {
        text,
        max_age,
        fresh_until: Instant::now() + max_age,
        etag,
        refreshing: AtomicBool::new(false),
    })
}

fn away(error: &crate::agent::Error) -> Fault {
    Fault::new(
        Kind::BackendUnreachable,
        "the agent's card cannot be fetched",
    )
    .because(error.to_string())
}

fn stale(fault: &Fault) {
    tracing::warn!(%fault, "the agent's card is stale and could not be fetched again; is the agent up?");
}

/// How long an answer says that it is fresh (RFC 9111 5.2.2). What must not be kept is fresh for no time, and
/// kept only for when the agent is away.
fn max_age(fields: &HeaderMap) -> Option<Duration> {
    let values = fields.get_all(header::CACHE_CONTROL).iter();
    let words = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|w| w.trim().to_ascii_lowercase());
    let mut age = None;
    for word in words {
        match word.split_once('=') {
            Some(("max-age", seconds)) => {
                age = seconds
                    .trim_matches('"')
                    .parse()
                    .ok()
                    .map(Duration::from_secs);
            }
            None if matches!(word.as_str(), "no-store" | "no-cache") => {
                return Some(Duration::ZERO);
            }
            _ => {}
        }
    }
    age
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_is_as_the_agent_says() {
        let age = |value: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(header::CACHE_CONTROL, value.parse().unwrap());
            max_age(&fields)
        };
        assert_eq!(age("public, max-age=60"), Some(Duration::from_mins(1)));
        assert_eq!(age("max-age=60, no-cache"), Some(Duration::ZERO));
        assert_eq!(age("private"), None);
        assert_eq!(age("max-age=soon"), None);
    }
}
