//! Rules about the metadata of messages: who speaks plain A2A can talk to an agent that wants members of its own in it,
//! and what an agent believes of a caller is what the gateway knows, not what the caller says.
use std::borrow::Cow;

use crate::{
    a2a::{
        Fault,
        request::{Edit, What},
    },
    config::{self, MetadataRule, MetadataSource, MetadataValue},
};

use super::caller::Caller;

/// The rules of one route, in their order.
#[derive(Clone, Debug)]
pub struct Rules(Vec<MetadataRule>);

impl Rules {
    /// `None` where there are no rules, so that nobody looks for them on a call.
    pub fn new(rules: &[MetadataRule]) -> Option<Self> {
        (!rules.is_empty()).then(|| Self(rules.to_vec()))
    }

    /// What a route's clients must say by themselves, which no rule says for them; then its rules; then what its agent
    /// wants.
    pub fn with(
        rules: &[MetadataRule],
        required: &[String],
        of_agent: &[MetadataRule],
    ) -> Option<Self> {
        let required: Vec<_> = config::required(required).collect();
        Self::new(&[&required, rules, of_agent].concat())
    }

    /// What they make of a message of this caller. `parameter` gives a part of the path by its name.
    ///
    /// A member that is to be set from what the caller does not have is taken out, so that nobody says in the gateway's
    /// stead what the gateway does not know.
    pub fn edits(
        &self,
        caller: &Caller,
        parameter: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Edit<'_>>, Fault> {
        let mut edits = Vec::with_capacity(self.0.len());
        for rule in &self.0 {
            let value = |source| value(source, caller, &parameter);
            let what = match &rule.value {
                MetadataValue::Set(source, required) => match (value(source), required) {
                    (Some(value), _) => What::Set(value),
                    (None, false) => What::Remove,
                    (None, true) => return Err(lacks(rule, source)),
                },
                MetadataValue::Default(source) => match value(source) {
                    Some(value) => What::Default(value),
                    None => continue,
                },
                MetadataValue::Remove => What::Remove,
                MetadataValue::Require => What::Require,
            };
            edits.push(Edit {
                path: &rule.path,
                what,
            });
        }
        Ok(edits)
    }
}

/// The value as JSON text, if there is one.
fn value<'r>(
    source: &'r MetadataSource,
    caller: &Caller,
    parameter: &impl Fn(&str) -> Option<String>,
) -> Option<Cow<'r, str>> {
    let text = |text: &str| Cow::Owned(serde_json::Value::from(text).to_string());
    match source {
        MetadataSource::Constant(json) => Some(Cow::Borrowed(json)),
        MetadataSource::Parameter(name) => parameter(name).map(|value| text(&value)),
        MetadataSource::Label(name) => caller.labels.get(name).map(|value| text(value)),
        MetadataSource::Claim(name) => {
            let claim = caller.claims.as_ref()?.get(name)?;
            (!claim.is_null()).then(|| Cow::Owned(claim.to_string()))
        }
    }
}

fn lacks(rule: &MetadataRule, source: &MetadataSource) -> Fault {
    let (what, name) = match source {
        MetadataSource::Label(name) => ("label", name.as_str()),
        MetadataSource::Claim(name) => ("claim", name.as_str()),
        MetadataSource::Parameter(name) => ("path parameter", name.as_str()),
        MetadataSource::Constant(_) => ("constant", ""), // it always has a value
    };
    let member = rule.path.join(".");
    Fault::params(format!(
        "`metadata.{member}` is required here, and the caller has no {what} `{name}` to set it from"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::a2a::Kind;

    fn caller() -> Caller {
        let claims = json!({"actor": "actor-\"1", "level": 7, "none": null, "deep": {"a": [1]}});
        Caller {
            labels: Arc::new([("team".to_owned(), "blue".to_owned())].into()),
            claims: claims.as_object().cloned().map(Arc::new),
            ..Caller::default()
        }
    }

    fn edits_of(caller: &Caller, value: MetadataValue) -> Result<Option<What<'static>>, Fault> {
        let path = vec!["memorylake".to_owned(), "actorId".to_owned()];
        let rules = Rules::new(&[MetadataRule { path, value }]).unwrap();
        let parameter = |name: &str| (name == "w").then(|| "w 1".to_owned());
        let edits = rules.edits(caller, parameter)?;
        Ok(edits.into_iter().next().map(|edit| match edit.what {
            What::Set(text) => What::Set(text.into_owned().into()),
            What::Default(text) => What::Default(text.into_owned().into()),
            What::Remove => What::Remove,
            What::Require => What::Require,
        }))
    }

    fn from(kind: &str, name: &str) -> MetadataSource {
        let name = name.to_owned();
        match kind {
            "constant" => MetadataSource::Constant(name),
            "parameter" => MetadataSource::Parameter(name),
            "label" => MetadataSource::Label(name),
            _ => MetadataSource::Claim(name),
        }
    }

    #[test]
    fn a_value_is_what_the_caller_has_as_json() {
        let caller = caller();
        for (kind, name, text) in [
            ("constant", "[1.10]", "[1.10]"),
            ("parameter", "w", r#""w 1""#),
            ("label", "team", r#""blue""#),
            ("claim", "actor", r#""actor-\"1""#),
            ("claim", "level", "7"),
            ("claim", "deep", r#"{"a":[1]}"#),
        ] {
            let set = MetadataValue::Set(from(kind, name), true);
            let set = edits_of(&caller, set).unwrap();
            assert_eq!(set, Some(What::Set(text.into())), "{kind} {name}");
            let default = edits_of(&caller, MetadataValue::Default(from(kind, name)));
            assert_eq!(default.unwrap(), Some(What::Default(text.into())));
        }
    }

    #[test]
    fn what_the_caller_lacks_is_refused_taken_out_or_left() {
        let nobody = Caller::default();
        for (caller, kind, name) in [
            (&caller(), "label", "none"),
            (&caller(), "claim", "none"),
            (&caller(), "claim", "absent"),
            (&nobody, "claim", "actor"),
            (&nobody, "label", "team"),
            (&nobody, "parameter", "x"),
        ] {
            let refused = edits_of(caller, MetadataValue::Set(from(kind, name), true));
            let fault = refused.unwrap_err();
            assert_eq!(fault.kind, Kind::InvalidParams);
            assert!(fault.message.contains("`metadata.memorylake.actorId`"));
            assert!(fault.message.contains(&format!("`{name}`")), "{fault}");
            let set = edits_of(caller, MetadataValue::Set(from(kind, name), false));
            assert_eq!(set.unwrap(), Some(What::Remove), "{kind} {name}");
            let default = edits_of(caller, MetadataValue::Default(from(kind, name)));
            assert_eq!(default.unwrap(), None);
        }
        let removed = edits_of(&nobody, MetadataValue::Remove).unwrap();
        assert_eq!(removed, Some(What::Remove));
        assert!(Rules::new(&[]).is_none());
    }
}
