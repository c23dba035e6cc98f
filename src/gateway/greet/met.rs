//! Somebody who was let in, and what is known of them.
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::Arc,
};

use super::{Auth, leash::Leash};
use crate::{
    policy::{
        auth::{passing::Mark, rights::Rights, tokens::Proven},
        caller::Caller,
    },
    reply::Outlived,
    state::slot::Asker,
};

/// Somebody who was let in.
pub(in crate::gateway) struct Met {
    /// Who.
    pub(in crate::gateway) caller: Arc<Caller>,
    /// Boxed: who is nobody must not make every call's future large.
    pub(super) more: Option<Box<More>>,
}

/// What comes with a credential.
#[derive(Default)]
pub(super) struct More {
    pub(super) rights: Option<Arc<Rights>>,
    pub(super) leash: Leash,
    /// Its credentials, where only the agent can tell whether they are good.
    pub(super) mark: Option<Shows>,
}

/// Credentials that pass through.
pub(super) struct Shows {
    /// What they are known by.
    pub(super) mark: Mark,
    /// Whether the agent has accepted them before.
    pub(super) known: bool,
    /// Who shows them.
    pub(super) from: IpAddr,
}

impl Met {
    /// Somebody of whom nothing more is known.
    pub(super) fn new(caller: Arc<Caller>) -> Self {
        Self { caller, more: None }
    }

    pub(super) fn with(caller: Arc<Caller>, more: More) -> Self {
        let more = Some(Box::new(more));
        Self { caller, more }
    }

    /// By a token of the issuer that is this way.
    pub(super) fn by_token(way: usize, proven: Arc<Proven>) -> Self {
        let caller = proven.caller.clone();
        let more = More {
            leash: Leash::Token(way, proven),
            ..More::default()
        };
        Self::with(caller, more)
    }

    /// Who sends a message: a name that was verified stays the same when its credential is renewed.
    pub(in crate::gateway) fn asker(&self) -> Option<Asker> {
        self.caller.verified.then(|| {
            let mut hash = DefaultHasher::new(); // without a key of its own: replicas must agree
            self.caller.name.hash(&mut hash);
            Asker::known(hash.finish())
        })
    }

    /// When its credential ends, where that is ours to know.
    pub(in crate::gateway) fn outlived(&self, auth: &Auth) -> Option<Outlived> {
        auth.outlived(&self.more.as_ref()?.leash)
    }

    /// Whether an answer is to be told to [`super::Auth::answered`].
    pub(in crate::gateway) fn waits_for_answer(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.mark.is_some())
    }
}
