//! Names of several ways. Each way makes sure of callers and tenants of its own; what it calls them says nothing of
//! another's, so that with several ways a tenant is told together with where it comes from, unless settings say that
//! ways share them.

use super::{Tree, Way};

/// Stands between a realm and a name in it, and in no realm.
const BETWEEN: char = '|';
/// The realm of keys that have no other.
const KEYS: &str = "keys";
/// The realm of certificates that have no other.
const CERTIFICATES: &str = "certificates";

/// What is laid before the names that a way gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Realm {
    /// Before names of keys. An issuer stands in its callers' names anyway.
    pub names: Option<String>,
    /// Before tenants.
    pub tenants: Option<String>,
}

impl Realm {
    /// A key's name, as it is told apart from those of other files.
    pub fn name(&self, name: &str) -> String {
        within(self.names.as_deref(), name)
    }

    /// A tenant, as it is told apart from those of other ways.
    pub fn tenant(&self, tenant: &str) -> String {
        within(self.tenants.as_deref(), tenant)
    }
}

fn within(realm: Option<&str>, name: &str) -> String {
    match realm {
        Some(realm) => format!("{realm}{BETWEEN}{name}"),
        None => name.to_owned(),
    }
}

/// The realm of each way, in their order.
pub fn realms(ways: &[Way]) -> Vec<Realm> {
    let several = ways.iter().filter(|way| way.verifies()).count() > 1;
    let of = |way: &Way| {
        let (said, own) = match way {
            Way::ApiKeys(keys) => (&keys.realm, KEYS),
            Way::Jwt(jwt) => (&jwt.realm, &*jwt.issuer),
            Way::ClientCertificates(said) => (&said.realm, CERTIFICATES),
            Way::Passthrough | Way::Anyone => return Realm::default(),
        };
        Realm {
            names: said.clone(),
            tenants: said.clone().or_else(|| several.then(|| own.to_owned())),
        }
    };
    ways.iter().map(of).collect()
}

pub(super) fn check(ways: &[Way], tree: &mut Tree) {
    let all = realms(ways);
    let of_keys = |way: &Way| matches!(way, Way::ApiKeys(_));
    let files = ways.iter().filter(|way| of_keys(way)).count();
    for (index, (way, realm)) in ways.iter().zip(&all).enumerate() {
        let (kind, said) = match way {
            Way::ApiKeys(keys) => ("api_keys", &keys.realm),
            Way::Jwt(jwt) => ("jwt", &jwt.realm),
            Way::ClientCertificates(said) => ("client_certificates", &said.realm),
            Way::Passthrough | Way::Anyone => continue,
        };
        let key = format!("auth[{index}].{kind}.realm");
        let word = |realm: &str| {
            !realm.is_empty() && realm.bytes().all(|b| b.is_ascii_graphic() && b != b'|')
        };
        if realm.tenants.as_deref().is_some_and(|realm| !word(realm)) {
            let says = "expected a word without spaces and `|`; without it, an issuer must be one";
            tree.wrong(key, says);
            continue;
        }
        if of_keys(way) && files > 1 && said.is_none() {
            let says = "each of several files needs one: the same names may stand in another";
            tree.missing(&format!("auth[{index}].{kind}"), "realm", says);
            continue;
        }
        let same = |(other, its): &(&Way, &Realm)| {
            let both_said = said.is_some() && its.names.is_some();
            its.tenants.is_some()
                && its.tenants == realm.tenants
                && (!both_said || of_keys(way) && of_keys(other))
        };
        if ways.iter().zip(&all).take(index).any(|pair| same(&pair)) {
            let says = "is that of another way: ways that are to share tenants both say so, and two files of keys \
                        cannot, since they may name two callers alike";
            tree.wrong(key, says);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Overrides};

    fn told(auth: &str) -> String {
        let text = format!("backend: {{url: http://agent}}\nauth: [{auth}]\n");
        let parsed = Config::parse(&text, Overrides::default());
        parsed.err().map_or_else(String::new, |m| m.to_string())
    }

    fn jwt(issuer: &str, more: &str) -> String {
        format!(
            "{{jwt: {{issuer: '{issuer}', audience: [a], algorithms: [ES256], jwks_file: /j{more}}}}}"
        )
    }

    #[test]
    fn realms_that_would_make_two_names_one_are_refused() {
        let keys = |more: &str| format!("{{api_keys: {{file: /k{more}}}}}");
        let all = |ways: &[String]| told(&ways.join(", "));
        for good in [
            &[keys(""), jwt("i", ""), jwt("j", "")][..],
            &[keys(", realm: a"), jwt("i", ", realm: a"), jwt("j", "")],
            &[keys(", realm: a"), keys(", realm: b")],
            &[jwt("a|b", "")],
            &[jwt("a|b", ", realm: a"), jwt("c", "")],
        ] {
            assert_eq!(all(good), "", "{good:?}");
        }
        for (bad, says) in [
            (
                &[keys(""), keys(", realm: b")][..],
                "auth[0].api_keys.realm: line 2: each of",
            ),
            (
                &[keys(", realm: b"), keys(", realm: b")],
                "auth[1].api_keys.realm: line 2: is that",
            ),
            (
                &[keys(", realm: 'a|b'")],
                "auth[0].api_keys.realm: line 2: expected a word",
            ),
            (&[keys(", realm: ''")], "expected a word"),
            (&[jwt("a|b", ""), jwt("c", "")], "auth[0].jwt.realm"),
            (
                &[jwt("a", ""), jwt("c", ", realm: a")],
                "auth[1].jwt.realm: line 2: is that",
            ),
            (&[keys(""), jwt("keys", "")], "auth[1].jwt.realm"),
        ] {
            assert!(all(bad).contains(says), "{bad:?}\n{}", all(bad));
        }
    }
}
