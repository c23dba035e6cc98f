//! A scrape, taken apart.
use std::collections::BTreeMap;

use crate::support::{gateway::Gateway, until};

/// One series: name, labels, value.
type Series = (String, Vec<(String, String)>, f64);

/// What Prometheus reads.
#[derive(Debug)]
pub(crate) struct Scrape {
    /// The type of each name.
    pub(crate) types: BTreeMap<String, String>,
    /// Each series.
    pub(crate) series: Vec<Series>,
}

pub(crate) const ADMIN: &str = "admin: 127.0.0.1:0\n";

impl Scrape {
    pub(crate) fn of(gateway: &Gateway) -> Self {
        let answer = gateway.ask_admin("GET /metrics", "");
        assert_eq!(answer.status(), 200, "{}", answer.body);
        let content = answer.head.get("content-type").unwrap();
        assert!(content.starts_with("text/plain; version=0.0.4"));
        Self::read(&answer.body)
    }

    fn read(text: &str) -> Self {
        let mut scrape = Self {
            types: BTreeMap::new(),
            series: vec![],
        };
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("# TYPE ") {
                let (name, kind) = said.split_once(' ').unwrap();
                let before = scrape.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} is there twice");
            } else if !line.starts_with('#') {
                let (what, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = what.split_once('{').unwrap_or((what, "}"));
                let labels = labels.trim_end_matches('}').trim_end_matches(',');
                let labels = labels.split("\",").filter(|l| !l.is_empty()).map(|label| {
                    let (name, value) = label.split_once("=\"").unwrap();
                    (name.to_owned(), value.trim_end_matches('"').to_owned())
                });
                let value = value.parse().unwrap();
                scrape
                    .series
                    .push((name.to_owned(), labels.collect(), value));
            }
        }
        scrape
    }

    /// The value of the one series that has these labels, or the sum of all that have.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |all: &[(String, String)]| {
            let there = |(n, v): &(&str, &str)| all.iter().any(|(k, w)| k == n && w == v);
            labels.iter().all(there)
        };
        let found = self
            .series
            .iter()
            .filter(|(n, all, _)| n == name && has(all));
        found.map(|(_, _, value)| value).sum()
    }
}

/// Waits until a scrape says so: what a call counts at its very end follows its answer by a moment.
pub(crate) fn until_scraped(
    gateway: &Gateway,
    name: &str,
    labels: &[(&str, &str)],
    value: f64,
) -> Scrape {
    let mut last = None;
    until(&format!("{name}{labels:?} is {value}"), || {
        let scrape = Scrape::of(gateway);
        let is = (scrape.value(name, labels) - value).abs() < 1e-9;
        last = Some(scrape);
        is
    });
    last.unwrap()
}
