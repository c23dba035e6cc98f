//! Whose tasks, contexts and webhooks are, where the gateway knows its callers and the agent knows only the gateway.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::mean::above_zero;
use super::tree::Tree;
use super::units::Time;

/// Whom what is made belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OwnedBy {
    /// Nobody: the agent tells its callers apart by itself.
    #[default]
    Off,
    /// The tenant of the caller who made it; the caller, where it has no tenant.
    Tenant,
    /// The caller who made it.
    Caller,
}

/// What becomes of a call for a task whose owner is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OfUnknown {
    /// It finds no such task.
    #[default]
    Refuse,
    /// It goes on, whoever asks.
    Allow,
}

/// What becomes of a message for a context that nobody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NewContexts {
    /// It belongs to the sender from then on.
    #[default]
    Claim,
    /// The message is refused: contexts are made by the agent.
    Refuse,
}

/// Whose tasks, contexts and webhooks are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ownership {
    /// Whom tasks, contexts and webhooks belong to: "off", the tenant or the caller who made them. Others find no such
    /// task, do not see it in lists and cannot use its context. The gateway must know its callers by itself (`auth`) and
    /// have a credential of its own with the agent (`backend.credentials`). Who belongs to no tenant is one by itself.
    /// Owners are remembered in the state store; while it is away, calls are refused.
    pub by: OwnedBy,
    /// What becomes of a call for a task whose owner is not known, such as one from before: refuse or allow (whoever
    /// asks). With `allow`, what the store forgets is everybody's.
    pub unknown: OfUnknown,
    /// What becomes of a message for a context that nobody has: claim (it belongs to the sender from then on, since
    /// clients may make up contexts) or refuse (only the agent makes contexts).
    pub new_contexts: NewContexts,
    /// How long an owner is remembered, from the last use of what it owns.
    #[serde(with = "Time")]
    pub ttl: Duration,
    /// The most tasks and contexts whose owner is remembered in memory; beyond, the oldest are nobody's. In a shared
    /// store it is `ttl` that bounds them, and the store's own `maxmemory`.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
}

impl Ownership {
    /// Whether anything belongs to anybody.
    pub fn is_on(&self) -> bool {
        self.by != OwnedBy::Off
    }
}

impl Default for Ownership {
    fn default() -> Self {
        Self {
            by: OwnedBy::default(),
            unknown: OfUnknown::default(),
            new_contexts: NewContexts::default(),
            ttl: Duration::from_hours(30 * 24),
            max_entries: 200_000,
        }
    }
}

/// What other sections must say before anything can belong to anybody.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// The gateway makes sure of its callers.
    pub(super) auth: bool,
    /// It has a credential of its own with the agent.
    pub(super) credentials: bool,
}

/// What the section says by itself, and what it needs of others.
pub(super) fn check(said: &Ownership, needs: Needs, tree: &mut Tree) {
    let sizes = [("max_entries", said.max_entries)];
    above_zero("ownership", &sizes, &[("ttl", said.ttl)], tree);
    if !said.is_on() {
        return;
    }
    if !needs.auth {
        let says = "needs `auth`: an owner is who the gateway itself made sure of";
        tree.wrong("ownership.by", says);
    }
    if !needs.credentials {
        let says = "needs `backend.credentials`: else the agent tells its callers apart by itself";
        tree.wrong("ownership.by", says);
    }
}

/// What is no mistake, but may surprise. `persist` says that the memory store outlives the process.
pub(super) fn warning(config: &Config, persist: bool) -> Option<&'static str> {
    let forgets = config.ownership.is_on() && config.state.is_memory() && !persist;
    forgets.then_some(
        "ownership: with the memory store, owners are forgotten when the gateway stops, and their tasks are found by \
         nobody; set state.store",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;

    fn said(by: OwnedBy, needs: Needs) -> String {
        let mut tree = Tree::parse("ownership:\n  by: tenant\n").unwrap();
        let said = Ownership {
            by,
            ..Ownership::default()
        };
        check(&said, needs, &mut tree);
        tree.finish(())
            .err()
            .map_or_else(String::new, |m| m.to_string())
    }

    #[test]
    fn nothing_is_owned_by_callers_whom_the_gateway_does_not_know() {
        let all = |auth, credentials| Needs { auth, credentials };
        for by in [OwnedBy::Tenant, OwnedBy::Caller] {
            assert_eq!(said(by, all(true, true)), "");
            let lacks = said(by, all(false, true));
            assert!(
                lacks.starts_with("ownership.by: line 2: needs `auth`"),
                "{lacks}"
            );
            let lacks = said(by, all(true, false));
            assert!(lacks.contains("needs `backend.credentials`"), "{lacks}");
            assert_eq!(said(by, all(false, false)).lines().count(), 2);
        }
        assert_eq!(said(OwnedBy::Off, all(false, false)), "");
    }

    #[test]
    fn owners_that_do_not_outlive_the_process_are_warned_of() {
        let parse = |text: &str| {
            let text = format!("backend: {{url: 'http://agent'}}\n{text}");
            Config::parse(&text, Overrides::default()).unwrap()
        };
        let mut config = parse("");
        assert_eq!(warning(&config, false), None);
        config.ownership.by = OwnedBy::Tenant;
        assert!(warning(&config, false).unwrap().contains("state.store"));
        assert_eq!(warning(&config, true), None);
        let mut shared = parse("state: redis://host\n");
        shared.ownership.by = OwnedBy::Caller;
        assert_eq!(warning(&shared, false), None);
    }
}
