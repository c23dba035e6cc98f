//! Page tokens of filtered lists: where the agent's list goes on, and how much of it was told. They are sealed, since an
//! agent's token may name a task that is another's, and bound to the owner and the agent. All replicas have the key: it
//! is in the state store, made by whoever lists first.
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{Owner, away};
use crate::a2a::{Fault, Kind};

/// The longest token of an agent that is carried.
const LONGEST: usize = 4096;
/// What the key is for.
const PURPOSE: &str = "a2a-gateway 2026-11-30 page tokens of filtered lists";

/// A place in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The agent's token of the page that it is in; none for the first one.
    pub token: Option<String>,
    /// So many tasks of that page are before it.
    pub skip: u32,
    /// So many of the owner's were told before it.
    pub told: u32,
}

/// Makes and reads tokens of one owner.
pub struct Tokens {
    key: RandomizedNonceKey,
    bound: Vec<u8>,
}

impl Owner {
    /// Its page tokens.
    pub async fn tokens(&self) -> Result<Tokens, Fault> {
        let mut offered = [0; 32];
        rand::fill(&mut offered).map_err(|_| broken())?;
        let secret = self.store().secret(offered).await.map_err(away)?;
        Tokens::new(&secret, &[&self.key.0, self.scope.as_bytes()].concat())
    }
}

impl Tokens {
    fn new(secret: &[u8; 32], bound: &[u8]) -> Result<Self, Fault> {
        let key = blake3::derive_key(PURPOSE, secret);
        Ok(Self {
            key: RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| broken())?,
            bound: bound.to_vec(),
        })
    }

    /// The token for a place.
    pub fn seal(&self, place: &Place) -> Result<String, Fault> {
        let token = place.token.as_deref();
        if token.is_some_and(|token| token.len() > LONGEST) {
            return Err(Fault::answer("its page token is too long"));
        }
        let mut text = Vec::with_capacity(64);
        text.extend_from_slice(&place.skip.to_le_bytes());
        text.extend_from_slice(&place.told.to_le_bytes());
        text.push(u8::from(token.is_some()));
        text.extend_from_slice(token.unwrap_or_default().as_bytes());
        let sealed = self
            .key
            .seal_in_place_append_tag(Aad::from(&self.bound), &mut text);
        let nonce = sealed.map_err(|_| broken())?;
        let mut whole = nonce.as_ref().to_vec();
        whole.extend_from_slice(&text);
        Ok(URL_SAFE_NO_PAD.encode(whole))
    }

    /// The place of a token; `None` if it is not this owner's.
    pub fn open(&self, token: &str) -> Option<Place> {
        if token.len() > 2 * LONGEST {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (nonce, sealed) = whole.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(&self.bound);
        let text = self.key.open_in_place(nonce, aad, &mut sealed).ok()?;
        let (skip, rest) = text.split_first_chunk()?;
        let (told, rest) = rest.split_first_chunk()?;
        let (is_there, token) = rest.split_first()?;
        Some(Place {
            skip: u32::from_le_bytes(*skip),
            told: u32::from_le_bytes(*told),
            token: match is_there {
                0 => None,
                _ => Some(String::from_utf8(token.to_vec()).ok()?),
            },
        })
    }
}

fn broken() -> Fault {
    Fault::new(Kind::Internal, "a page token cannot be made")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(secret: u8, bound: &str) -> Tokens {
        Tokens::new(&[secret; 32], bound.as_bytes()).unwrap()
    }

    #[test]
    fn a_token_says_its_place_to_its_owner_alone() {
        for token in [
            None,
            Some(String::new()),
            Some("task-of-another".to_owned()),
        ] {
            let place = Place {
                token,
                skip: 7,
                told: 1000,
            };
            let ann = tokens(1, "ann");
            let sealed = ann.seal(&place).unwrap();
            assert_eq!(ann.open(&sealed), Some(place.clone()));
            assert_eq!(tokens(1, "ann").open(&sealed), Some(place.clone()));
            assert_eq!(tokens(1, "bob").open(&sealed), None, "another owner");
            assert_eq!(tokens(2, "ann").open(&sealed), None, "another store");
            assert_ne!(ann.seal(&place).unwrap(), sealed, "no two are alike");
            let whole = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
            assert!(!whole.windows(4).any(|w| w == b"task"), "it is not sealed");
        }
    }

    #[test]
    fn what_is_no_token_of_ours_is_none() {
        let ann = tokens(1, "ann");
        let sealed = ann.seal(&Place::default()).unwrap();
        for n in 0..sealed.len() {
            let mut other = sealed.clone().into_bytes();
            other[n] = if other[n] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(ann.open(&other), None, "{n}");
            assert_eq!(ann.open(&sealed[..n]), None, "{n}");
        }
        for none in ["", "task-7", "\u{e4}", &"A".repeat(100_000)] {
            assert_eq!(ann.open(none), None);
        }
        let long = Place {
            token: Some("x".repeat(5000)),
            ..Place::default()
        };
        assert!(ann.seal(&long).is_err());
    }
}
