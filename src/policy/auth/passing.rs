//! Credentials that only pass through. One counts as a caller once the agent has accepted it; before that anybody
//! could make up any number of them. They are known by a digest whose key all replicas share, so that a caller has one
//! name wherever it is counted, and nobody else can tell a credential by it.
use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, header};
use moka::{policy::EvictionPolicy, sync::Cache};

use crate::{
    config::PerPeer,
    policy::{caller::Caller, limits::Peers},
};

/// The most that are remembered; beyond, the one goes that was not used for longest.
const MOST: u64 = 100_000;
/// One that is not used is forgotten.
const UNUSED: Duration = Duration::from_hours(1);
/// How many new ones each address may have accepted, in a second and at once: an agent that accepts whatever it is
/// shown lets nobody fill more than a twentieth of the table. Beyond, the address stands for them.
const NEWCOMERS: PerPeer = PerPeer {
    rate: 1,
    burst: 120,
};
/// What the key of the digests is for.
const PURPOSE: &str = "a2a-gateway 2026-11-30 names of credentials that pass through";
/// Where many agents take their keys.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What a request may show of who sends it. Names in stores are made of them in this order.
pub const CREDENTIALS: [HeaderName; 3] = [header::AUTHORIZATION, header::COOKIE, API_KEY];

/// What a request's credentials are known by.
pub type Mark = [u8; 16];

/// The key of the digests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Made of what all who are to have the same one share.
    pub fn of(shared: &[u8; 32]) -> Self {
        Self(blake3::derive_key(PURPOSE, shared))
    }
}

/// All credentials that the agent has accepted.
pub struct Passing {
    accepted: Cache<Mark, Arc<Caller>>,
    newcomers: Peers,
}

impl Default for Passing {
    fn default() -> Self {
        Self {
            accepted: Cache::builder()
                .max_capacity(MOST)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_idle(UNUSED)
                .build(),
            newcomers: Peers::new(&NEWCOMERS),
        }
    }
}

impl Passing {
    /// Once in a while: forgets who brought nobody new.
    pub fn tick(&self) {
        self.newcomers.tick();
    }

    /// What a request's credentials are known by, if it shows any: the first of them alone. An agent that looks only at
    /// that one accepts it whatever stands beside it, so that one credential would else be any number of callers. One
    /// that `Connection` names never reaches the agent, and makes the request nobody's.
    pub fn mark(secret: &Secret, fields: &HeaderMap) -> Option<Mark> {
        let name = CREDENTIALS
            .into_iter()
            .find(|name| fields.contains_key(name))?;
        let mut dropped = fields.get_all(header::CONNECTION).iter();
        if dropped.any(|names| names_field(names.as_bytes(), &name)) {
            return None;
        }
        let mut hash = blake3::Hasher::new_keyed(&secret.0);
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
    pub fn known(&self, mark: &Mark) -> Option<Arc<Caller>> {
        self.accepted.get(mark)
    }

    /// The agent has accepted them, as they came from this address.
    pub fn accepted(&self, mark: Mark, from: IpAddr) {
        if self.newcomers.admit(from).is_err() {
            return;
        }
        let mut name = "credential:".to_owned();
        name.extend(mark.iter().map(|b| format!("{b:02x}")));
        let caller = Caller {
            name: name.into(),
            ..Caller::default()
        };
        self.accepted.insert(mark, caller.into());
    }

    /// The agent has refused them.
    pub fn refused(&self, mark: &Mark) {
        self.accepted.invalidate(mark);
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

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn mark(fields: &HeaderMap) -> Option<Mark> {
        Passing::mark(&Secret::of(&[1; 32]), fields)
    }

    #[test]
    fn a_credential_is_nobody_until_it_is_accepted() {
        let passing = Passing::default();
        let ann = fields(&[(header::AUTHORIZATION, "Bearer ann")]);
        let ann = mark(&ann).unwrap();
        assert_eq!(passing.known(&ann), None);
        passing.accepted(ann, HERE);
        let caller = passing.known(&ann).unwrap();
        assert!(caller.name.starts_with("credential:") && !caller.name.contains("ann"));
        assert!(!caller.verified && caller.tenant.is_none());
        let bob = mark(&fields(&[(header::AUTHORIZATION, "Bearer bob")]));
        assert_eq!(passing.known(&bob.unwrap()), None);
        passing.refused(&ann);
        assert_eq!(passing.known(&ann), None);
    }

    #[test]
    fn an_address_brings_no_more_than_its_share() {
        let passing = Passing::default();
        let all: Vec<Mark> = (0..1000_u128).map(u128::to_le_bytes).collect();
        for mark in &all {
            passing.accepted(*mark, HERE);
        }
        let known = all.iter().filter(|m| passing.known(m).is_some()).count();
        assert!((120..150).contains(&known), "{known}");
        let last = all.last().unwrap();
        passing.accepted(*last, [192, 0, 2, 1].into());
        assert!(passing.known(last).is_some());
    }

    #[test]
    fn what_stands_beside_a_credential_makes_no_other_caller() {
        let ann = (header::AUTHORIZATION, "Bearer ann");
        let alone = mark(&fields(std::slice::from_ref(&ann)));
        let beside = fields(&[(header::COOKIE, "n=1"), ann.clone(), (API_KEY, "k")]);
        assert!(alone.is_some());
        assert_eq!(mark(&beside), alone);
        let dropped = fields(&[ann, (header::CONNECTION, "close, Authorization")]);
        assert_eq!(mark(&dropped), None);
    }

    #[test]
    fn marks_differ_by_field_and_secret_alone() {
        assert_eq!(mark(&HeaderMap::new()), None);
        let by = |name: HeaderName| mark(&fields(&[(name, "a")]));
        assert_ne!(by(header::AUTHORIZATION), by(header::COOKIE));
        let cut = |all: &[&'static str]| {
            let all: Vec<_> = all.iter().map(|v| (header::COOKIE, *v)).collect();
            mark(&fields(&all))
        };
        assert_ne!(cut(&["ab", "c"]), cut(&["a", "bc"]));
        let ann = fields(&[(header::AUTHORIZATION, "Bearer ann")]);
        assert_ne!(mark(&ann), Passing::mark(&Secret::of(&[2; 32]), &ann));
        assert_eq!(mark(&ann), mark(&ann.clone()));
    }
}
