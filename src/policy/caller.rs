//! Who asks, once the gateway knows: the name that limits, records and ownership go by.
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use parking_lot::RwLock;
use serde_json::{Map, Value};

use crate::{config::OwnedBy, state::Key};

/// A caller. It never holds a credential.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caller {
    /// Its name, unique together with how it is known: `key:billing` or `key:realm|billing`,
    /// `jwt:issuer/subject`, `credential:` and a keyed digest, `peer:192.0.2.7`.
    pub name: Arc<str>,
    /// The tenant it belongs to, where the gateway's own settings or a verified token say so. With several ways to be
    /// let in it begins with where the way's tenants belong: `keys|acme`, `ISSUER|acme`, so that one name is one tenant.
    pub tenant: Option<Arc<str>>,
    /// Labels that settings give it, or claims are mapped to.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The claims of a verified token.
    pub claims: Option<Arc<Map<String, Value>>>,
    /// Whether the gateway itself verified it. A credential that is only passed through, or an address, never is.
    pub verified: bool,
    /// What policies have worked out of the above.
    pub(crate) kept: Kept,
}

/// What follows from a caller, worked out once: it is needed on each of its calls, and digests are dear. Whoever finds
/// what was worked out under other settings works it out again.
#[derive(Default)]
pub(crate) struct Kept {
    /// How things belong, whom the caller's belong to, the agent, and its conversations apart from others'.
    pub(crate) owner: OnceLock<(OwnedBy, Key, Arc<str>, Arc<str>)>,
    /// The rules of limits by their name, and the key of each that has one for all calls of the caller.
    pub(crate) limits: RwLock<Option<OfRules>>,
}

/// Rules by their name, and the key of each of them, if it has one.
pub(crate) type OfRules = (Key, Box<[Option<Key>]>);

/// It follows from the rest: a copy may be another caller before long.
impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}
