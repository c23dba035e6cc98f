//! Presets: what is known of an agent by the name of its product, spelled out as single settings of `backend`. Each
//! can be set by itself as well, and then goes before the preset. Nothing else knows that there are presets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw;
use super::sections::{RestPaths, Verb};
use super::tree::Tree;

/// A product that the agent is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The A2A v1.0 service of ADK-Rust (feature `a2a-v1`).
    AdkRust,
    /// `MemoryLake`.
    Memorylake,
}

impl Preset {
    /// Lays its settings under what the file says.
    pub(super) fn spell_out(self, backend: &mut raw::Backend, tree: &Tree) {
        let said = |key: &str| tree.has(&format!("backend.{key}"));
        match self {
            Self::AdkRust => {
                under(
                    &mut backend.rest_paths,
                    RestPaths::Slash,
                    said("rest_paths"),
                );
                let said_modes = said("always_output_modes");
                under(&mut backend.always_output_modes, true, said_modes);
                let said_ignores = said("ignores_configuration");
                under(&mut backend.ignores_configuration, true, said_ignores);
                // It runs only as far as its stream is read, and leaves the task working for ever.
                let said_follow = said("follow_streams");
                under(&mut backend.follow_streams, true, said_follow);
            }
            Self::Memorylake => {
                under(
                    &mut backend.subscribe_verb,
                    Verb::Get,
                    said("subscribe_verb"),
                );
                // It refuses a message without, which no client of the plain protocol sends.
                let default = [("memorylake".to_owned(), serde_json::json!({}))].into();
                let said_default = said("default_metadata");
                under(&mut backend.default_metadata, default, said_default);
                let said_wait = said("explicit_wait");
                under(&mut backend.explicit_wait, true, said_wait);
                let said_push = said("push_notifications");
                under(&mut backend.push_notifications, false, said_push);
                let said_hydrate = said("hydrate_tasks");
                under(&mut backend.hydrate_tasks, true, said_hydrate);
            }
        }
    }
}

/// Fills the place of a setting that the file does not have.
fn under<T>(place: &mut T, value: T, said: bool) {
    if !said {
        *place = value;
    }
}
