//! `overrides.capabilitiesOverride`: turns capabilities on for one message. Mistakes in it do not return errors, except
//! that it has to be an object.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{refusal::Refusal, rules::Rules};

/// Capabilities with their configuration, by their name in `snake_case`.
pub type Capabilities = BTreeMap<String, Value>;

/// The Open Data collections that there are.
const COLLECTIONS: [&str; 2] = ["research/academic", "clinical/trials"];

/// What the agent has for this message: its own capabilities, and over them what is asked for.
pub fn turn_on(own: &Capabilities, asked: &Value, rules: &Rules) -> Result<Capabilities, Refusal> {
    let mut all = own.clone();
    let asked = match asked {
        _ if !rules.overrides_capabilities => return Ok(all),
        Value::Null => return Ok(all),
        Value::Object(asked) => asked,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(Refusal::invalid("capabilitiesOverride is no object"));
        }
    };
    for (name, configuration) in asked {
        let name = snake(name);
        // `null`, and what is no object, is dropped: the agent's own stays.
        let Some(configuration) = configuration.as_object() else {
            continue;
        };
        let configuration = match name.as_str() {
            "web_search" => web_search(configuration),
            "web_fetch" | "pii" | "vega" => Some(json!({})),
            "dataset" if rules.has_dataset => dataset(configuration),
            _ => None,
        };
        if let Some(configuration) = configuration {
            all.insert(name, configuration);
        }
    }
    Ok(all)
}

fn web_search(given: &Map<String, Value>) -> Option<Value> {
    let Some(sets) = field(given, "open_datasets") else {
        return Some(json!({}));
    };
    let sets = sets.as_array()?.iter().map(Value::as_str);
    let sets: Vec<_> = sets.collect::<Option<_>>()?;
    let known: Vec<_> = sets
        .into_iter()
        .filter(|s| COLLECTIONS.contains(s))
        .collect();
    Some(if known.is_empty() {
        json!({})
    } else {
        json!({"open_datasets": known})
    })
}

/// Only this one value is supported.
fn dataset(given: &Map<String, Value>) -> Option<Value> {
    let bundles = field(given, "enabled_service_bundles")?;
    (*bundles == json!(["nl2sql"])).then(|| json!({"enabled_service_bundles": bundles}))
}

/// A member by its name in `snake_case`; camelCase is accepted as well.
fn field<'a>(given: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    given.iter().find(|(k, _)| snake(k) == name).map(|(_, v)| v)
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// What the model gets of a text when `pii` is on. Only mail addresses are masked here.
pub fn masked(text: &str) -> String {
    let word = |w: &str| match w.split_once('@') {
        Some((name, host)) if !name.is_empty() && host.contains('.') => {
            "[EMAIL_REDACTED]".to_owned()
        }
        _ => w.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
