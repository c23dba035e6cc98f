//! Keys of the gateway's own. They are looked up by their digest, so that a known key and an unknown one take one way,
//! and how long it takes says nothing of any key.
use std::{collections::HashMap, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};

use super::{LONGEST, rights::Rights};
use crate::{
    a2a::{Op, op::OPS},
    config,
    policy::caller::Caller,
};

/// The digest of a key.
pub type Digest = [u8; 32];

/// All keys of a file.
#[derive(Debug, Default)]
pub struct Keys(HashMap<Digest, Arc<Key>>);

/// A key that is known.
#[derive(Debug)]
pub struct Key {
    /// Who has it.
    pub caller: Arc<Caller>,
    /// What its holder may do.
    pub rights: Arc<Rights>,
    /// Its digest.
    pub digest: Digest,
    /// Until when, in seconds since 1970.
    pub expires: Option<i64>,
}

impl Key {
    /// Whether it is still good. `now`, in seconds since 1970, is asked only where it has an end.
    pub fn is_good(&self, now: impl FnOnce() -> i64) -> bool {
        self.expires.is_none_or(|end| now() < end)
    }
}

impl Keys {
    /// Reads a file of keys; `routes` are those that a key may name, and `realm` is where their holders belong.
    pub fn read(text: &str, routes: &[String], realm: &config::Realm) -> Result<Self, String> {
        let names: Vec<&str> = OPS.iter().map(|row| row.v10.rpc).collect();
        let said = config::keys(text, routes, &names).map_err(|e| e.to_string())?;
        let all = said.into_iter();
        let all = all.map(|key| (key.digest, known(key, realm).into()));
        Ok(Self(all.collect()))
    }

    /// The key that somebody shows.
    pub fn find(&self, shown: &str) -> Option<&Arc<Key>> {
        self.of(&digest_of(shown)?)
    }

    /// The key with this digest.
    pub fn of(&self, digest: &Digest) -> Option<&Arc<Key>> {
        self.0.get(digest)
    }
}

fn digest_of(shown: &str) -> Option<Digest> {
    if shown.len() > LONGEST {
        return None;
    }
    digest(&SHA256, shown.as_bytes()).as_ref().try_into().ok()
}

fn known(said: config::Key, realm: &config::Realm) -> Key {
    let caller = Caller {
        name: format!("key:{}", realm.name(&said.name)).into(),
        tenant: said.tenant.map(|tenant| realm.tenant(&tenant).into()),
        labels: Arc::new(said.labels),
        verified: true,
        ..Caller::default()
    };
    let named = |name: &String| {
        OPS.iter()
            .find(|row| row.v10.rpc == *name)
            .map(|row| row.op)
    };
    let operations = said.operations.as_ref();
    let operations: Option<Vec<Op>> = operations.map(|all| all.iter().filter_map(named).collect());
    Key {
        caller: caller.into(),
        rights: Arc::new(Rights::new(said.routes, operations)),
        digest: said.digest,
        expires: said.expires.map(jiff::Timestamp::as_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FISH: &str = "swordfish";

    fn hex(of: &str) -> String {
        let digest = digest_of(of).unwrap();
        blake3::Hash::from_bytes(digest).to_hex().to_string()
    }

    #[test]
    fn a_key_is_found_by_what_it_is_and_nothing_near_it() {
        let text = format!(
            "- {{name: billing, digest: 'sha256:{}', tenant: acme, labels: {{plan: gold}}, operations: [GetTask], \
             routes: [/a], expires: 2027-01-01T00:00:00Z}}\n- {{name: other, digest: 'sha256:{}'}}",
            hex("one-long-random-key"),
            hex("another-long-random-key")
        );
        let keys = Keys::read(&text, &["/a".to_owned()], &config::Realm::default()).unwrap();
        let key = keys.find("one-long-random-key").unwrap();
        assert_eq!(&*key.caller.name, "key:billing");
        assert_eq!(key.caller.tenant.as_deref(), Some("acme"));
        assert_eq!(key.caller.labels["plan"], "gold");
        assert!(key.caller.verified);
        assert_eq!(key.expires, Some(1_798_761_600));
        assert!(key.is_good(|| 1_798_761_599) && !key.is_good(|| 1_798_761_600));
        assert!(key.rights.allow(Op::Get, "/a"));
        assert!(!key.rights.allow(Op::Get, "/b") && !key.rights.allow(Op::Send, "/a"));
        let other = keys.find("another-long-random-key").unwrap();
        assert!(other.is_good(|| i64::MAX) && other.rights.allow(Op::Cancel, "/b"));
        for wrong in ["", "one-long-random-ke", "One-long-random-key", FISH] {
            assert!(keys.find(wrong).is_none(), "{wrong}");
        }
        assert!(keys.find(&hex("one-long-random-key")).is_none());
        assert!(keys.find(&"x".repeat(LONGEST + 1)).is_none());
    }

    #[test]
    fn the_digest_is_the_one_that_the_docs_say_how_to_make() {
        // printf %s abc | sha256sum
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex("abc"), sum);
    }
}
