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
    /// How long an owner is remembered, from the last time that it used what it owns. What nobody remembers is refused
    /// as `unknown` says, and a context of that kind is claimed as `new_contexts` says.
    #[serde(with = "Time")]
    pub ttl: Duration,
    /// The most tasks and contexts whose owner is remembered in memory; beyond, new ones are refused (503), and nobody's
    /// are forgotten. In a shared store it is `ttl` that bounds them; it must not evict any (`maxmemory-policy:
    /// noeviction`).
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// The most of them that are one owner's; beyond, its own oldest are forgotten. Never more than half of
    /// `max_entries`.
    #[schemars(range(min = 1))]
    pub max_per_owner: usize,
}

impl Ownership {
    /// Whether anything belongs to anybody.
    pub fn is_on(&self) -> bool {
        self.by != OwnedBy::Off
    }

    /// The most that is remembered of one owner: never so much that others have no room.
    pub fn share(&self) -> usize {
        self.max_per_owner.min(self.max_entries / 2).max(1)
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
            max_per_owner: 20_000,
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
    let sizes = [
        ("max_entries", said.max_entries),
        ("max_per_owner", said.max_per_owner),
    ];
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

/// What is no mistake, but may surprise.
pub(super) fn warning(config: &Config) -> Option<&'static str> {
    let state = &config.state;
    let forgets = config.ownership.is_on() && state.is_memory() && state.persist.is_none();
    if !forgets {
        return None;
    }
    Some(match config.ownership.unknown {
        OfUnknown::Refuse => {
            "ownership: owners are in memory alone and lost when the gateway stops: then nobody finds the tasks from \
             before, and a context from before belongs to whoever names it next; set state.persist or state.store"
        }
        OfUnknown::Allow => {
            "ownership: owners are in memory alone and lost when the gateway stops: then everybody may use the tasks from \
             before, and a context from before belongs to whoever names it next; set state.persist or state.store"
        }
    })
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
        assert_eq!(warning(&config), None);
        config.ownership.by = OwnedBy::Tenant;
        let says = warning(&config).unwrap();
        assert!(says.contains("state.persist") && says.contains("nobody finds"));
        config.ownership.unknown = OfUnknown::Allow;
        assert!(warning(&config).unwrap().contains("everybody may use"));
        for safe in ["state: redis://host\n", "state: {persist: file}\n"] {
            let mut config = parse(safe);
            config.ownership.by = OwnedBy::Caller;
            assert_eq!(warning(&config), None);
        }
    }

    #[test]
    fn one_owner_never_takes_all_the_room() {
        for (all, one, share) in [
            (200_000, 20_000, 20_000),
            (1000, 20_000, 500),
            (1, 20_000, 1),
            (100, 1, 1),
        ] {
            let said = Ownership {
                max_entries: all,
                max_per_owner: one,
                ..Ownership::default()
            };
            assert_eq!(said.share(), share);
        }
    }
}
