//! The file with the keys of callers: no key itself stands in it, but the digest of each, so that who reads the file
//! can use none of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::config::Mistakes;
use crate::config::tree::Tree;

const DIGEST_SAYS: &str = "expected sha256: and 64 hexadecimal digits";
/// What a digest begins with. SHA-256 needs no salt here: a key is long and random.
const DIGEST: &str = "sha256:";

/// One caller's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Who has it. One name may have two keys, while one takes the other's place.
    pub name: String,
    /// The SHA-256 of it.
    pub digest: [u8; 32],
    /// The tenant of the caller.
    pub tenant: Option<String>,
    /// Labels of the caller.
    pub labels: BTreeMap<String, String>,
    /// The routes that it is good for, by their paths in the settings; `/` is `backend.url`.
    pub routes: Option<Vec<String>>,
    /// The operations that it is good for, by their v1.0 names.
    pub operations: Option<Vec<String>>,
    /// Until when.
    pub expires: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Said {
    name: String,
    digest: String,
    tenant: Option<String>,
    labels: BTreeMap<String, String>,
    routes: Option<Vec<String>>,
    operations: Option<Vec<String>>,
    expires: Option<String>,
}

/// Reads a file of keys. `routes` and `operations` are those that a key may name.
pub fn keys(text: &str, routes: &[String], operations: &[&str]) -> Result<Vec<Key>, Mistakes> {
    let mut tree = Tree::parse_long(text)?;
    let said: Option<Vec<Said>> = tree.read(); // a file with nothing but comments has no keys
    let said = said.unwrap_or_default();
    let mut all: Vec<Key> = Vec::with_capacity(said.len());
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    let mut digests = BTreeMap::new();
    for (index, said) in said.into_iter().enumerate() {
        let at = format!("[{index}]");
        let key = meant(&at, said, routes, operations, &mut tree);
        if let Some(first) = digests.insert(key.digest, index) {
            tree.wrong(format!("{at}.digest"), format!("is that of [{first}]"));
        }
        let namesake = by_name.get(&key.name).map(|first| (*first, &all[*first]));
        if let Some((first, other)) = namesake
            && (&other.tenant, &other.labels) != (&key.tenant, &key.labels)
        {
            let says = format!("[{first}] has the same name and another tenant or labels");
            tree.wrong(format!("{at}.name"), says);
        }
        by_name.entry(key.name.clone()).or_insert(index);
        all.push(key);
    }
    tree.finish(all)
}

fn meant(at: &str, said: Said, routes: &[String], operations: &[&str], tree: &mut Tree) -> Key {
    if said.name.is_empty() {
        tree.missing(at, "name", "every key has a name");
    } else if !said.name.bytes().all(|b| b.is_ascii_graphic()) {
        tree.wrong(format!("{at}.name"), "expected a word without spaces");
    }
    if said.tenant.as_ref().is_some_and(String::is_empty) {
        tree.wrong(format!("{at}.tenant"), "expected a name, or nothing at all");
    }
    let digest = digest(&said.digest);
    match digest {
        None if said.digest.is_empty() => tree.missing(at, "digest", DIGEST_SAYS),
        None => tree.wrong(format!("{at}.digest"), DIGEST_SAYS),
        Some(_) => {}
    }
    for (index, route) in said.routes.iter().flatten().enumerate() {
        if !routes.contains(route) {
            let says = "expected the path of a route as the settings have it, or / for backend.url";
            tree.wrong(format!("{at}.routes[{index}]"), says);
        }
    }
    for (index, operation) in said.operations.iter().flatten().enumerate() {
        if !operations.contains(&operation.as_str()) {
            let says = format!("expected one of: {}", operations.join(", "));
            tree.wrong(format!("{at}.operations[{index}]"), says);
        }
    }
    let expires = said.expires.map(|text| text.parse::<Timestamp>());
    if matches!(expires, Some(Err(_))) {
        let says = "expected a time such as 2027-01-31T00:00:00Z";
        tree.wrong(format!("{at}.expires"), says);
    }
    Key {
        name: said.name,
        digest: digest.unwrap_or_default(),
        tenant: said.tenant,
        labels: said.labels,
        routes: said.routes,
        operations: said.operations,
        expires: expires.and_then(Result::ok),
    }
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let hex = text.strip_prefix(DIGEST)?.as_bytes();
    let mut digest = [0; 32];
    if hex.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        let value = digit(pair[0])? * 16 + digit(pair[1])?;
        *byte = u8::try_from(value).ok()?;
    }
    Some(digest)
}
