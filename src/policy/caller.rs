//! Who asks, once the gateway knows: the name that limits, records and ownership go by.
use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

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
}
