//! Tokens of an issuer (RFC 7519). What a token says counts only after its signature was checked, with a key of the
//! issuer and by an algorithm of the settings: what it says of itself can narrow that, never widen it.
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use jsonwebtoken::{
    Algorithm, Validation, dangerous::insecure_decode_claims, decode, decode_header,
    errors::ErrorKind,
};
use moka::{future::Cache, policy::EvictionPolicy};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    LONGEST,
    sets::{Digest, Missing, Set},
};
use crate::{config, policy::caller::Caller};

/// How far the issuer's clock and ours may be apart.
pub const LEEWAY: Duration = Duration::from_secs(30);
/// The longest name that a token may give its caller or tenant.
const LONGEST_NAME: usize = 256;
/// So many checked tokens are remembered: checking one takes as long as a hundred look-ups.
const REMEMBERED: u64 = 10_000;
/// For so long: keys that the issuer takes back are noticed when they are fetched again.
const FOR: Duration = Duration::from_mins(10);
/// In a name these would make two subjects one, or two lines of one record.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%').add(b' ');

/// The tokens of one issuer.
pub struct Tokens {
    issuer: String,
    /// All but the algorithms, which go by the key.
    rules: Validation,
    algorithms: Vec<Algorithm>,
    tenant: Option<String>,
    labels: BTreeMap<String, String>,
    realm: config::Realm,
    proven: Cache<blake3::Hash, Arc<Proven>>,
}

/// A token that was checked.
#[derive(Debug)]
pub struct Proven {
    /// Whose it is.
    pub caller: Arc<Caller>,
    /// Until when it is good, in seconds since 1970, the leeway included.
    pub until: i64,
    /// The key that it was checked with.
    pub key: Digest,
    /// The keys of which that is one; they are held, so that no others can take their address.
    keys: Arc<Set>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The set has no such key; a newer one may.
    UnknownKey,
    /// Its signature is wrong by the key that it names; one that was changed under its name may fit.
    WrongSignature,
    /// It has expired.
    Expired,
    /// For this reason, which is for the log.
    Invalid(&'static str),
}

#[derive(Deserialize)]
struct Issuer {
    iss: String,
}

impl Tokens {
    /// As settings say; `realm` is where its tenants belong.
    pub fn new(said: &config::Jwt, realm: config::Realm) -> Self {
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_issuer(&[&said.issuer]);
        rules.set_audience(&said.audience);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.validate_nbf = true;
        rules.leeway = LEEWAY.as_secs();
        Self {
            issuer: said.issuer.clone(),
            rules,
            algorithms: said.algorithms.iter().map(|a| algorithm(*a)).collect(),
            tenant: said.tenant.clone(),
            labels: said.labels.clone(),
            realm,
            proven: Cache::builder()
                .max_capacity(REMEMBERED)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(FOR)
                .build(),
        }
    }

    /// How they may be signed.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// Whether this may be one of them: it looks like a token and names the issuer. That proves nothing yet.
    pub fn concern(&self, shown: &str) -> bool {
        let dots = shown.bytes().filter(|b| *b == b'.').count();
        if shown.len() > LONGEST || dots != 2 {
            return false;
        }
        insecure_decode_claims::<Issuer>(shown).is_ok_and(|said| said.iss == self.issuer)
    }

    /// A token that was checked before, with these keys, and is still good.
    pub async fn proven(&self, shown: &str, keys: &Arc<Set>, now: i64) -> Option<Arc<Proven>> {
        if shown.len() > LONGEST {
            return None;
        }
        let proven = self.proven.get(&blake3::hash(shown.as_bytes())).await?;
        (Arc::ptr_eq(&proven.keys, keys) && now < proven.until).then_some(proven)
    }

    /// Checks a token.
    pub async fn check(&self, shown: &str, keys: &Arc<Set>) -> Result<Arc<Proven>, Refused> {
        let proven = Arc::new(self.checked(shown, keys)?);
        let digest = blake3::hash(shown.as_bytes());
        self.proven.insert(digest, proven.clone()).await;
        Ok(proven)
    }

    fn checked(&self, shown: &str, keys: &Arc<Set>) -> Result<Proven, Refused> {
        if shown.len() > LONGEST {
            return Err(Refused::Invalid("it is too long"));
        }
        let head = decode_header(shown).map_err(|e| refused(e.kind()))?;
        if !self.algorithms.contains(&head.alg) {
            return Err(Refused::Invalid("its algorithm is not in the settings"));
        }
        let key = keys.find(head.kid.as_deref(), head.alg);
        let key = key.map_err(|missing| match missing {
            Missing::Unknown => Refused::UnknownKey,
            Missing::Unfit => Refused::Invalid("the issuer's keys do not fit its algorithm"),
        })?;
        let rules = Validation {
            algorithms: key.algorithms.clone(),
            ..self.rules.clone()
        };
        let token = decode::<Map<String, Value>>(shown, &key.public, &rules);
        let claims = token.map_err(|e| refused(e.kind()))?.claims;
        Ok(Proven {
            until: expiry(&claims),
            caller: self.caller(claims)?.into(),
            key: key.digest,
            keys: keys.clone(),
        })
    }

    fn caller(&self, claims: Map<String, Value>) -> Result<Caller, Refused> {
        let named = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let fits = |name: &&str| !name.is_empty() && name.len() <= LONGEST_NAME;
        let subject = named("sub").filter(fits);
        let subject = subject.ok_or(Refused::Invalid("its `sub` is no name"))?;
        let tenant = self.tenant.as_ref().map(|claim| {
            let tenant = named(claim).filter(fits);
            tenant.ok_or(Refused::Invalid("it does not name its tenant"))
        });
        let tenant = tenant.transpose()?;
        let tenant = tenant.map(|tenant| self.realm.tenant(tenant).into());
        let mut name = format!("jwt:{}/", self.issuer);
        let _infallible = write!(name, "{}", utf8_percent_encode(subject, ESCAPED));
        let labels = self.labels.iter();
        let labels = labels.filter_map(|(label, claim)| {
            let value = text(claims.get(claim)?)?;
            Some((label.clone(), value))
        });
        let labels = Arc::new(labels.collect());
        Ok(Caller {
            name: name.into(),
            tenant,
            labels,
            claims: Some(claims.into()),
            verified: true,
            ..Caller::default()
        })
    }
}

/// A claim as a label: a text, a number or a truth value.
fn text(claim: &Value) -> Option<String> {
    match claim {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(claim.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The library has checked that it is a number.
fn expiry(claims: &Map<String, Value>) -> i64 {
    let said = claims.get("exp");
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float beyond all times becomes the last one"
    )]
    let seconds = said.and_then(|e| e.as_i64().or_else(|| Some(e.as_f64()? as i64)));
    let leeway = i64::try_from(LEEWAY.as_secs()).unwrap_or(0);
    seconds
        .unwrap_or(0)
        .saturating_add(leeway)
        .saturating_add(1)
}

/// In words of our own: the library's may repeat what the token says.
fn refused(kind: &ErrorKind) -> Refused {
    let known = [
        (ErrorKind::InvalidAlgorithm, "its algorithm does not fit"),
        (ErrorKind::InvalidAudience, "it is for somebody else"),
        (ErrorKind::InvalidIssuer, "it is of somebody else"),
        (ErrorKind::ImmatureSignature, "its time has not come"),
    ];
    if *kind == ErrorKind::ExpiredSignature {
        return Refused::Expired;
    }
    if *kind == ErrorKind::InvalidSignature {
        return Refused::WrongSignature;
    }
    let why = known.iter().find(|(known, _)| known == kind);
    Refused::Invalid(why.map_or("it is malformed, or lacks a claim", |(_, why)| *why))
}

fn algorithm(said: config::Algorithm) -> Algorithm {
    match said {
        config::Algorithm::RS256 => Algorithm::RS256,
        config::Algorithm::RS384 => Algorithm::RS384,
        config::Algorithm::RS512 => Algorithm::RS512,
        config::Algorithm::PS256 => Algorithm::PS256,
        config::Algorithm::PS384 => Algorithm::PS384,
        config::Algorithm::PS512 => Algorithm::PS512,
        config::Algorithm::ES256 => Algorithm::ES256,
        config::Algorithm::ES384 => Algorithm::ES384,
        config::Algorithm::EdDSA => Algorithm::EdDSA,
    }
}

#[cfg(test)]
mod tests;
