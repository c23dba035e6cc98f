//! Callers by the names in their certificates. Whether a certificate is good is said elsewhere; this is about who it
//! makes of somebody.
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    config::{self, Pattern},
    policy::caller::Caller,
};

/// Whom a name makes of somebody.
#[derive(Debug)]
pub struct Names {
    patterns: Vec<Pattern>,
    tenant: Option<String>,
    labels: BTreeMap<String, String>,
    realm: config::Realm,
    /// Tells it from all others in this process.
    pub id: u64,
}

impl Names {
    /// As settings have it.
    pub fn new(said: &config::Certificates, realm: config::Realm) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let patterns = said.names.iter();
        Self {
            patterns: patterns
                .filter_map(|text| Pattern::parse(text).ok())
                .collect(), // they were checked
            tenant: said.tenant.clone(),
            labels: said.labels.clone(),
            realm,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Who has one of these names: the first that fits, in the order of the certificate.
    pub fn caller<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<Arc<Caller>> {
        names
            .into_iter()
            .find_map(|name| self.of(name))
            .map(Arc::new)
    }

    fn of(&self, name: &str) -> Option<Caller> {
        let parts = if self.patterns.is_empty() {
            config::trust_domain(name)
        } else {
            self.patterns
                .iter()
                .find_map(|pattern| pattern.fits(name))?
        };
        let part = |of: &String| parts.get(of.as_str()).copied();
        // Whoever has no tenant where tenants are told apart would be in none.
        let tenant = match &self.tenant {
            None => None,
            Some(of) => Some(self.realm.tenant(part(of)?)),
        };
        let labels = self.labels.iter();
        let labels = labels.filter_map(|(label, of)| Some((label.clone(), part(of)?.to_owned())));
        Some(Caller {
            name: format!("cert:{}", self.realm.name(name)).into(),
            tenant: tenant.map(Into::into),
            labels: Arc::new(labels.collect()),
            verified: true,
            ..Caller::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_caller_with_its_parts() {
        let said = config::Certificates {
            names: vec![
                "spiffe://d/ns/{ns}/sa/{sa}".to_owned(),
                "{ns}.d.example".to_owned(),
            ],
            tenant: Some("ns".to_owned()),
            labels: [("team".to_owned(), "ns".to_owned())].into(),
            realm: None,
        };
        let names = Names::new(&said, config::Realm::default());
        let told = |of: &[&str]| {
            let caller = names.caller(of.iter().copied())?;
            assert!(
                caller.verified
                    && caller.labels.get("team").map(String::as_str) == caller.tenant.as_deref()
            );
            Some(caller.name.to_string())
        };
        assert_eq!(
            told(&["spiffe://d/ns/a/sa/b"]).as_deref(),
            Some("cert:spiffe://d/ns/a/sa/b")
        );
        assert_eq!(
            told(&["other.example", "a.d.example"]).as_deref(),
            Some("cert:a.d.example")
        );
        assert_eq!(told(&["spiffe://d/ns/a"]), None);
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn without_patterns_every_name_is_somebody_and_needs_a_tenant_where_there_are_any() {
        let mut said = config::Certificates::default();
        let names = Names::new(&said, config::Realm::default());
        assert!(names.caller(["a.example"].into_iter()).is_some());
        said.tenant = Some("trust_domain".to_owned());
        let names = Names::new(&said, config::Realm::default());
        assert!(names.caller(["a.example"].into_iter()).is_none());
        let caller = names.caller(["spiffe://d/x"].into_iter());
        assert_eq!(caller.and_then(|c| c.tenant.clone()).as_deref(), Some("d"));
    }
}
