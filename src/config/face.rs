//! Faces: what clients see, the plain protocol or a product's own habits, each a setting by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A face by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Like {
    /// The plain protocol.
    #[default]
    A2a,
    /// What `MemoryLake`'s own clients are used to.
    Memorylake,
}

/// The name alone, or all of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a2a, memorylake or an object such as {like: memorylake}"
)]
#[schemars(inline)]
pub(super) enum Said {
    /// The name.
    Like(Like),
    /// All of it.
    Full(Full),
}

impl Default for Said {
    fn default() -> Self {
        Self::Like(Like::default())
    }
}

/// What clients see: a name, and what differs from it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Full {
    /// Whose habits: stands for those of the settings below that this product has.
    like: Like,
    /// Tell errors as that product does: `{success, message, error_code}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_errors: Option<bool>,
    /// Tell all errors of v0.3 JSON-RPC calls with the code -32603.
    #[serde(skip_serializing_if = "Option::is_none")]
    v03_flat_errors: Option<bool>,
    /// The history of a v0.3 REST message that does not say how much it wants: all of it, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    v03_rest_default_history: Option<bool>,
    /// Give the time of the status with a task that is got by v0.3 REST.
    #[serde(skip_serializing_if = "Option::is_none")]
    v03_rest_timestamp: Option<bool>,
    /// Understand only that product's way to write v0.3 over REST, `ProtoJSON`.
    #[serde(skip_serializing_if = "Option::is_none")]
    v03_rest_proto_only: Option<bool>,
    /// Members of the metadata that a client must give by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    require_metadata: Option<Vec<String>>,
}

/// What clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one habit of clients, switched by itself"
)]
pub struct Face {
    /// Whose habits.
    pub like: Like,
    /// Whether errors are told as the product does.
    pub product_errors: bool,
    /// Whether all errors of v0.3 JSON-RPC calls have one code.
    pub v03_flat_errors: bool,
    /// Whether a v0.3 REST message that does not say how much history it wants gets all of it.
    pub v03_rest_default_history: bool,
    /// Whether a task that is got by v0.3 REST has the time of its status.
    pub v03_rest_timestamp: bool,
    /// Whether only `ProtoJSON` is understood of v0.3 over REST.
    pub v03_rest_proto_only: bool,
    /// Members of the metadata that a client must give by itself.
    pub require_metadata: Vec<String>,
}

impl Default for Face {
    fn default() -> Self {
        Said::default().into()
    }
}

impl From<Said> for Face {
    fn from(said: Said) -> Self {
        let said = match said {
            Said::Full(full) => full,
            Said::Like(like) => Full {
                like,
                ..Full::default()
            },
        };
        let lake = said.like == Like::Memorylake;
        let required = if lake { &["memorylake"][..] } else { &[] };
        Self {
            like: said.like,
            product_errors: said.product_errors.unwrap_or(lake),
            // Its page says so; who reads it cannot rely on better codes, nor be harmed by them.
            v03_flat_errors: said.v03_flat_errors.unwrap_or(false),
            v03_rest_default_history: said.v03_rest_default_history.unwrap_or(!lake),
            v03_rest_timestamp: said.v03_rest_timestamp.unwrap_or(!lake),
            v03_rest_proto_only: said.v03_rest_proto_only.unwrap_or(lake),
            require_metadata: said
                .require_metadata
                .unwrap_or_else(|| required.iter().map(|&name| name.to_owned()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides};

    fn config(text: &str) -> Config {
        let text = format!("backend: {{url: 'http://agent'}}\n{text}");
        Config::parse(&text, Overrides::default()).unwrap_or_else(|e| panic!("{text}\n{e}"))
    }

    #[test]
    fn a_face_is_single_settings_and_what_is_said_goes_before_its_name() {
        let spelled = config(
            "face: {like: memorylake, product_errors: true, v03_flat_errors: false, \
             v03_rest_default_history: false, v03_rest_timestamp: false, v03_rest_proto_only: true, \
             require_metadata: [memorylake]}",
        );
        assert_eq!(config("face: memorylake"), spelled);
        assert_eq!(config("face: a2a").face, Face::default());
        assert_eq!(config("").face, Face::default());
        let own = config("face: {like: memorylake, v03_flat_errors: true, require_metadata: []}");
        assert!(own.face.v03_flat_errors && own.face.product_errors);
        assert!(own.face.require_metadata.is_empty());
    }

    #[test]
    fn a_route_has_the_face_of_all_unless_it_has_its_own() {
        let route = "routes: [{path: '/a/{x}', backend: 'http://b/{x}'";
        let of = |text: &str| config(text).routes[0].face.like;
        assert_eq!(of(&format!("{route}}}]")), Like::A2a);
        let inherits = format!("face: memorylake\n{route}}}]");
        assert_eq!(of(&inherits), Like::Memorylake);
        let own = format!("face: memorylake\n{route}, face: a2a}}]");
        assert_eq!(of(&own), Like::A2a);
    }
}
