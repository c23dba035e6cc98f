//! An issuer's public keys (RFC 7517), as far as they are of use: those that fit the algorithms that settings allow. A
//! shared secret is never one of them: who could check a token could make one.
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{
        AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, KeyOperations, PublicKeyUse,
    },
};

/// An issuer with more keys than this is none that we know.
const MOST: usize = 100;

/// The keys of an issuer.
#[derive(Debug)]
pub struct Set(Vec<Key>);

/// A key, and what it may be used with.
#[derive(Debug)]
pub struct Key {
    id: Option<String>,
    pub(super) digest: Digest,
    pub(super) public: DecodingKey,
    /// All of one family, as the library wants them.
    pub(super) algorithms: Vec<Algorithm>,
}

/// What a key is known by: its name and the key itself, whatever else its issuer says of it.
pub type Digest = blake3::Hash;

/// Why a set has no key for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nobody here has heard of it: the issuer may have a new one.
    Unknown,
    /// It is there, for other algorithms, or the token does not say which of several it is.
    Unfit,
}

impl Set {
    /// Reads a set for these algorithms. One that is of no use at all takes no other's place.
    pub fn read(text: &str, allowed: &[Algorithm]) -> Result<Self, String> {
        let said: JwkSet = serde_json::from_str(text).map_err(|e| {
            format!(
                "it is no set of keys (line {}, column {})",
                e.line(),
                e.column()
            )
        })?;
        if said.keys.len() > MOST {
            return Err(format!("it holds more than {MOST} keys"));
        }
        let keys: Vec<Key> = said
            .keys
            .iter()
            .filter_map(|k| usable(k, allowed))
            .collect();
        if keys.is_empty() {
            return Err("it holds no key for the algorithms in the settings".to_owned());
        }
        Ok(Self(keys))
    }

    /// Whether the key with this digest is still one of them.
    pub fn holds(&self, digest: &Digest) -> bool {
        self.0.iter().any(|key| key.digest == *digest)
    }

    /// The key for a token that names it, or the only one that fits.
    pub fn find(&self, id: Option<&str>, by: Algorithm) -> Result<&Key, Missing> {
        let fits = |key: &&Key| key.algorithms.contains(&by);
        if let Some(id) = id {
            let mut named = self
                .0
                .iter()
                .filter(|key| key.id.as_deref() == Some(id))
                .peekable();
            if named.peek().is_none() {
                return Err(Missing::Unknown);
            }
            return named.find(fits).ok_or(Missing::Unfit);
        }
        let mut fitting = self.0.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(Missing::Unfit),
        }
    }
}

fn usable(said: &Jwk, allowed: &[Algorithm]) -> Option<Key> {
    let common = &said.common;
    let signs = !matches!(&common.public_key_use, Some(u) if *u != PublicKeyUse::Signature);
    let verify = |all: &Vec<KeyOperations>| all.contains(&KeyOperations::Verify);
    if !signs
        || common
            .key_operations
            .as_ref()
            .is_some_and(|all| !verify(all))
    {
        return None;
    }
    let mut algorithms = fitting(&said.algorithm).to_vec();
    algorithms.retain(|a| {
        let own = common.key_algorithm;
        allowed.contains(a) && own.is_none_or(|own| own == KeyAlgorithm::from(*a))
    });
    if algorithms.is_empty() {
        return None;
    }
    Some(Key {
        id: common.key_id.clone(),
        digest: digest(said)?,
        public: DecodingKey::from_jwk(said).ok()?,
        algorithms,
    })
}

fn digest(said: &Jwk) -> Option<Digest> {
    let known = (&said.common.key_id, &said.algorithm);
    Some(blake3::hash(&serde_json::to_vec(&known).ok()?))
}

/// What a key of this kind may be used with.
fn fitting(kind: &AlgorithmParameters) -> &'static [Algorithm] {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    if let AlgorithmParameters::RSA(_) = kind {
        return &[RS256, RS384, RS512, PS256, PS384, PS512];
    }
    if let AlgorithmParameters::EllipticCurve(of) = kind {
        return match of.curve {
            EllipticCurve::P256 => &[ES256],
            EllipticCurve::P384 => &[ES384],
            EllipticCurve::P521 | EllipticCurve::Ed25519 | _ => &[],
        };
    }
    if let AlgorithmParameters::OctetKeyPair(of) = kind
        && of.curve == EllipticCurve::Ed25519
    {
        return &[EdDSA];
    }
    &[]
}
