//! Credentials that only pass through. One counts as a caller once the agent has accepted it; before that anybody
//! could make up any number of them. They are known by a digest whose key dies with the process.
use std::{sync::Arc, time::Duration};

use aws_lc_rs::rand;
use http::{HeaderMap, HeaderName, header};
use moka::{future::Cache, policy::EvictionPolicy};

use crate::policy::caller::Caller;

/// The most that are remembered; beyond, the one goes that was not used for longest.
const MOST: u64 = 100_000;
/// One that is not used is forgotten.
const UNUSED: Duration = Duration::from_hours(1);
/// Where many agents take their keys.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What a request may show of who sends it.
pub const CREDENTIALS: [HeaderName; 3] = [header::AUTHORIZATION, header::COOKIE, API_KEY];

/// What a request's credentials are known by.
pub type Mark = [u8; 16];

/// All credentials that the agent has accepted.
pub struct Passing {
    key: [u8; 32],
    accepted: Cache<Mark, Arc<Caller>>,
}

impl Passing {
    /// None yet. Fails where the system has no random bytes.
    pub fn new() -> Result<Self, String> {
        let mut key = [0; 32];
        rand::fill(&mut key).map_err(|_| "the system gives no random bytes".to_owned())?;
        Ok(Self {
            key,
            accepted: Cache::builder()
                .max_capacity(MOST)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_idle(UNUSED)
                .build(),
        })
    }

    /// What a request's credentials are known by, if it shows any: the first of them alone. An agent that looks only at
    /// that one accepts it whatever stands beside it, so that one credential would else be any number of callers. One
    /// that `Connection` names never reaches the agent, and makes the request nobody's.
    pub fn mark(&self, fields: &HeaderMap) -> Option<Mark> {
        let name = CREDENTIALS
            .into_iter()
            .find(|name| fields.contains_key(name))?;
        let mut dropped = fields.get_all(header::CONNECTION).iter();
        if dropped.any(|names| names_field(names.as_bytes(), &name)) {
            return None;
        }
        let mut hash = blake3::Hasher::new_keyed(&self.key);
        hash.update(name.as_str().as_bytes());
        for value in fields.get_all(&name) {
            let length = (value.len() as u64).to_le_bytes();
            hash.update(&length).update(value.as_bytes());
        }
        let mut mark = [0; 16];
        mark.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        Some(mark)
    }

    /// The caller, if the agent has accepted these credentials before.
    pub async fn known(&self, mark: &Mark) -> Option<Arc<Caller>> {
        self.accepted.get(mark).await
    }

    /// The agent has accepted them.
    pub async fn accepted(&self, mark: Mark) {
        let mut name = "credential:".to_owned();
        name.extend(mark.iter().map(|b| format!("{b:02x}")));
        let caller = Caller {
            name: name.into(),
            ..Caller::default()
        };
        self.accepted.insert(mark, caller.into()).await;
    }

    /// The agent has refused them.
    pub async fn refused(&self, mark: &Mark) {
        self.accepted.invalidate(mark).await;
    }
}

fn names_field(names: &[u8], name: &HeaderName) -> bool {
    let mut names = names.split(|b| *b == b',');
    names.any(|n| {
        n.trim_ascii()
            .eq_ignore_ascii_case(name.as_str().as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let all = all.iter().cloned();
        let mut fields = HeaderMap::new();
        for (name, value) in all {
            fields.append(name, http::HeaderValue::from_static(value));
        }
        fields
    }

    #[tokio::test]
    async fn a_credential_is_nobody_until_it_is_accepted() {
        let passing = Passing::new().unwrap();
        let ann = fields(&[(header::AUTHORIZATION, "Bearer ann")]);
        let mark = passing.mark(&ann).unwrap();
        assert_eq!(passing.known(&mark).await, None);
        passing.accepted(mark).await;
        let caller = passing.known(&mark).await.unwrap();
        assert!(caller.name.starts_with("credential:") && !caller.name.contains("ann"));
        assert!(!caller.verified && caller.tenant.is_none());
        let bob = passing.mark(&fields(&[(header::AUTHORIZATION, "Bearer bob")]));
        assert_eq!(passing.known(&bob.unwrap()).await, None);
        passing.refused(&mark).await;
        assert_eq!(passing.known(&mark).await, None);
    }

    #[test]
    fn what_stands_beside_a_credential_makes_no_other_caller() {
        let passing = Passing::new().unwrap();
        let ann = (header::AUTHORIZATION, "Bearer ann");
        let alone = passing.mark(&fields(std::slice::from_ref(&ann)));
        let beside = fields(&[(header::COOKIE, "n=1"), ann.clone(), (API_KEY, "k")]);
        assert!(alone.is_some());
        assert_eq!(passing.mark(&beside), alone);
        let dropped = fields(&[ann, (header::CONNECTION, "close, Authorization")]);
        assert_eq!(passing.mark(&dropped), None);
    }

    #[test]
    fn marks_differ_by_field_and_process() {
        let passing = Passing::new().unwrap();
        assert_eq!(passing.mark(&HeaderMap::new()), None);
        let by = |name: HeaderName| passing.mark(&fields(&[(name, "a")]));
        assert_ne!(by(header::AUTHORIZATION), by(header::COOKIE));
        let cut = |all: &[&'static str]| {
            let all: Vec<_> = all.iter().map(|v| (header::COOKIE, *v)).collect();
            passing.mark(&fields(&all))
        };
        assert_ne!(cut(&["ab", "c"]), cut(&["a", "bc"]));
        let other = Passing::new().unwrap();
        let ann = fields(&[(header::AUTHORIZATION, "Bearer ann")]);
        assert_ne!(passing.mark(&ann), other.mark(&ann));
    }
}
