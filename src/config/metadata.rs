//! Rules about the metadata of messages, of each route and of the agent without one.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tree::Tree;

/// What becomes of one member of a message's metadata, as said. It holds just one of `set`, `default` and `remove`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RuleSaid {
    /// The member: names with dots between them, such as memorylake.actorId; or a list of names, where one has a dot.
    pub(super) path: PathSaid,
    /// The member has this value, whatever the caller says of it. Where there is no such value it is taken out.
    #[schemars(with = "Option<SourceForm>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<SourceSaid>,
    /// The member has this value where the caller gives it none.
    #[schemars(with = "Option<SourceForm>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) default: Option<SourceSaid>,
    /// The member is taken out.
    pub(super) remove: bool,
    /// Refuse messages for which there is no value to set.
    pub(super) required: bool,
}

/// One text or a list of names.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected names with dots between them, or a list of names"
)]
#[schemars(inline)]
pub(super) enum PathSaid {
    /// With dots between them.
    Dotted(String),
    /// One by one.
    Names(Vec<String>),
}

impl Default for PathSaid {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

/// Where a value comes from: just one of these, which is checked later, to tell all mistakes at once.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SourceSaid {
    constant: Option<Value>,
    parameter: Option<String>,
    label: Option<String>,
    claim: Option<String>,
}

/// The same for the schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum SourceForm {
    /// This value.
    Constant(Value),
    /// A parameter of the route's path, by its name.
    Parameter(String),
    /// A label of the caller.
    Label(String),
    /// A claim in the caller's token.
    Claim(String),
}

/// What becomes of one member of a message's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRule {
    /// Its name, below those of the objects around it.
    pub path: Vec<String>,
    /// What becomes of it.
    pub value: MetadataValue,
}

/// What becomes of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataValue {
    /// It has this value; where there is none, messages are refused if it is required, else it is taken out.
    Set(MetadataSource, bool),
    /// It has this value where it has none.
    Default(MetadataSource),
    /// It is taken out.
    Remove,
    /// A message without it is refused.
    Require,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataSource {
    /// This JSON text.
    Constant(String),
    /// A parameter of the path.
    Parameter(String),
    /// A label of the caller.
    Label(String),
    /// A claim in the caller's token.
    Claim(String),
}

/// What the agent itself wants: members that must be there, and then those that have a value else.
pub(super) fn of_agent(
    defaults: &BTreeMap<String, Value>,
    required: &[String],
    tree: &mut Tree,
) -> Vec<MetadataRule> {
    if defaults.keys().any(String::is_empty) {
        tree.wrong("backend.default_metadata", "expected the names of members");
    }
    if required.iter().any(String::is_empty) {
        tree.wrong("backend.require_metadata", "expected the names of members");
    }
    let default = |(name, value): (&String, &Value)| MetadataRule {
        path: vec![name.clone()],
        value: MetadataValue::Default(MetadataSource::Constant(value.to_string())),
    };
    let required = self::required(required);
    required.chain(defaults.iter().map(default)).collect()
}

/// Members that must be there.
pub(crate) fn required(names: &[String]) -> impl Iterator<Item = MetadataRule> {
    names.iter().map(|name| MetadataRule {
        path: vec![name.clone()],
        value: MetadataValue::Require,
    })
}

/// The rules at `key`, where the path has these parameters.
pub(super) fn rules(
    key: &str,
    said: &[RuleSaid],
    parameters: &BTreeSet<&str>,
    tree: &mut Tree,
) -> Vec<MetadataRule> {
    let mut rules = Vec::new();
    for (index, rule) in said.iter().enumerate() {
        let key = format!("{key}[{index}]");
        let path = path(&rule.path);
        if path.is_none() && !tree.blames(&key) {
            let says = "expected the name of a member, such as memorylake.actorId";
            let at = format!("{key}.path");
            if tree.has(&at) {
                tree.wrong(at, says);
            } else {
                tree.missing(&key, "path", says);
            }
        }
        let value = value(&key, rule, parameters, tree);
        if let (Some(path), Some(value)) = (path, value) {
            rules.push(MetadataRule { path, value });
        }
    }
    rules
}

fn path(said: &PathSaid) -> Option<Vec<String>> {
    let names: Vec<String> = match said {
        PathSaid::Dotted(text) => text.split('.').map(str::to_owned).collect(),
        PathSaid::Names(names) => names.clone(),
    };
    let whole = !names.is_empty() && names.iter().all(|name| !name.is_empty());
    whole.then_some(names)
}

fn value(
    key: &str,
    rule: &RuleSaid,
    parameters: &BTreeSet<&str>,
    tree: &mut Tree,
) -> Option<MetadataValue> {
    let source = |name: &str, said: &SourceSaid, tree: &mut Tree| {
        source(&format!("{key}.{name}"), said, parameters, tree)
    };
    if rule.required && rule.set.is_none() {
        tree.wrong(
            format!("{key}.required"),
            "only what is set can be required",
        );
    }
    match (&rule.set, &rule.default, rule.remove) {
        (Some(said), None, false) => Some(MetadataValue::Set(
            source("set", said, tree)?,
            rule.required,
        )),
        (None, Some(said), false) => Some(MetadataValue::Default(source("default", said, tree)?)),
        (None, None, true) => Some(MetadataValue::Remove),
        _ if tree.blames(key) => None,
        _ => {
            tree.wrong(key, "expected just one of set, default and remove: true");
            None
        }
    }
}

fn source(
    key: &str,
    said: &SourceSaid,
    parameters: &BTreeSet<&str>,
    tree: &mut Tree,
) -> Option<MetadataSource> {
    let all = [
        said.constant
            .as_ref()
            .map(|value| MetadataSource::Constant(value.to_string())),
        said.parameter.clone().map(MetadataSource::Parameter),
        said.label.clone().map(MetadataSource::Label),
        said.claim.clone().map(MetadataSource::Claim),
    ];
    let mut given = all.into_iter().flatten();
    let (Some(source), None) = (given.next(), given.next()) else {
        if !tree.blames(key) {
            tree.wrong(
                key,
                "expected just one of constant, parameter, label, claim",
            );
        }
        return None;
    };
    if let MetadataSource::Parameter(name) = &source
        && !parameters.contains(name.as_str())
    {
        let says = "expected a parameter of the route's path, without its braces";
        tree.wrong(format!("{key}.parameter"), says);
    }
    Some(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Mistakes, Overrides};

    fn parse(rule: &str) -> Result<Config, Mistakes> {
        let text = format!(
            "routes:\n  - path: /w/{{w}}\n    backend: http://agent/{{w}}\n    metadata:\n      - {rule}\n"
        );
        Config::parse(&text, Overrides::default())
    }

    #[test]
    fn a_rule_is_a_member_and_what_becomes_of_it() {
        use MetadataSource::{Claim, Constant, Label, Parameter};
        use MetadataValue::{Default, Remove, Set};
        let name = |name: &str| name.to_owned();
        for (rule, path, value) in [
            (
                "{path: a.b, set: {claim: c}, required: true}",
                vec!["a", "b"],
                Set(Claim(name("c")), true),
            ),
            (
                "{path: a, set: {parameter: w}}",
                vec!["a"],
                Set(Parameter(name("w")), false),
            ),
            (
                "{path: ['https://x.y/z', b], default: {label: l}}",
                vec!["https://x.y/z", "b"],
                Default(Label(name("l"))),
            ),
            (
                "{path: a, default: {constant: {x: [1, 1.5, 'y', true]}}}",
                vec!["a"],
                Default(Constant(name(r#"{"x":[1,1.5,"y",true]}"#))),
            ),
            ("{path: a, remove: true}", vec!["a"], Remove),
        ] {
            let config = parse(rule).unwrap_or_else(|e| panic!("{rule}: {e}"));
            let path: Vec<String> = path.into_iter().map(name).collect();
            let rules = &config.routes[0].metadata;
            assert_eq!(*rules, [MetadataRule { path, value }], "{rule}");
        }
    }

    #[test]
    fn what_is_no_rule_is_told_where_it_stands() {
        for (rule, at) in [
            ("{set: {claim: c}}", ".path"),
            ("{path: '', remove: true}", ".path"),
            ("{path: a..b, remove: true}", ".path"),
            ("{path: [], remove: true}", ".path"),
            ("{path: [a, ''], remove: true}", ".path"),
            ("{path: a}", ""),
            ("{path: a, set: {claim: c}, remove: true}", ""),
            ("{path: a, set: {claim: c}, default: {claim: c}}", ""),
            ("{path: a, set: {}}", ".set"),
            ("{path: a, set: {claim: c, label: l}}", ".set"),
            ("{path: a, set: {parameter: x}}", ".set.parameter"),
            ("{path: a, default: {parameter: x}}", ".default.parameter"),
            ("{path: a, remove: true, required: true}", ".required"),
            ("{path: a, set: {header: h}}", ".set.header"),
        ] {
            let told = parse(rule).err().map(|e| e.to_string());
            let told = told.unwrap_or_else(|| panic!("{rule} is none"));
            let at = format!("routes[0].metadata[0]{at}: line ");
            assert!(
                told.lines().any(|line| line.starts_with(&at)),
                "{rule}\n{told}"
            );
        }
        // The agent without a route has no path with parameters.
        let root = "backend: {url: 'http://agent'}\nmetadata: [{path: a, set: {parameter: w}}]\n";
        let told = Config::parse(root, Overrides::default()).err().unwrap();
        assert!(
            told.to_string()
                .starts_with("metadata[0].set.parameter: line 2")
        );
    }
}
