//! Whose a task or a context is, as workers ask it and as it goes over the wire. Each look is one short script: it reads
//! the owner, and lets it be remembered for longer.
use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::Script;
use tokio::{sync::oneshot, time::timeout};

use super::{
    super::{Key, Trouble, owner::Claiming},
    Note, Redis,
    address::Link,
    flight::{Fail, Wire},
    task::{Command, No},
};

/// What is asked of the store task.
pub(super) enum Ask {
    /// What, by whom; whether it holds.
    Claim(Key, Key, oneshot::Sender<Result<bool, No>>),
    Owners(Vec<Key>, oneshot::Sender<Result<Vec<Option<Key>>, No>>),
    Secret([u8; 32], oneshot::Sender<Result<[u8; 32], No>>),
}

/// What landed.
pub(super) enum Landing {
    Claimed(oneshot::Sender<Result<bool, No>>, Result<bool, Fail>),
    /// One that is told until it is there.
    Sure(Key, Key, oneshot::Sender<bool>, Result<bool, Fail>),
    Owners(
        oneshot::Sender<Result<Vec<Option<Key>>, No>>,
        Result<Vec<Option<Key>>, Fail>,
    ),
    Secret(
        oneshot::Sender<Result<[u8; 32], No>>,
        Result<[u8; 32], Fail>,
    ),
}

/// The scripts.
pub(super) struct Scripts {
    owner: Script,
    secret: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            owner: Script::new(
                "local owner = redis.call('GET', KEYS[1])
                if owner then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
                return owner",
            ),
            secret: Script::new(
                "local secret = redis.call('GET', KEYS[1])
                if secret then return secret end
                redis.call('SET', KEYS[1], ARGV[1])
                return ARGV[1]",
            ),
        }
    }
}

impl Redis {
    pub(in crate::state) async fn claim(&self, what: Key, owner: Key) -> Result<bool, Trouble> {
        self.owned(|to| Ask::Claim(what, owner, to)).await
    }

    pub(in crate::state) fn claim_surely(&self, what: Key, owner: Key) -> Claiming {
        let (to, said) = oneshot::channel();
        self.shared.leave(Note::Claim(what, owner, to));
        let within = self.patience;
        Claiming::Wait(Box::pin(
            async move { timeout(within, said).await.ok()?.ok() },
        ))
    }

    pub(in crate::state) async fn owners(&self, of: Vec<Key>) -> Result<Vec<Option<Key>>, Trouble> {
        self.owned(|to| Ask::Owners(of, to)).await
    }

    pub(in crate::state) async fn secret(&self, offered: [u8; 32]) -> Result<[u8; 32], Trouble> {
        self.owned(|to| Ask::Secret(offered, to)).await
    }

    async fn owned<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<T, No>>) -> Ask,
    ) -> Result<T, Trouble> {
        let said = self
            .ask(self.patience, |to| Command::Owned(ask(to)))
            .await?;
        said.map_err(No::trouble)
    }
}

impl Wire {
    /// Whether the claim holds.
    pub(super) async fn claim(
        self: Arc<Self>,
        link: Link,
        what: Key,
        owner: Key,
        ttl: u64,
    ) -> Result<bool, Fail> {
        let (name, owner) = (self.keys.owner(what), owner.to_string());
        let other = self.set_once(link, &name, &owner, ttl).await?;
        Ok(other.is_none())
    }

    pub(super) async fn owners(
        self: Arc<Self>,
        link: Link,
        of: Vec<Key>,
        ttl: u64,
    ) -> Result<Vec<Option<Key>>, Fail> {
        let one = |what: Key| {
            let mut link = link.clone();
            let mut call = self.owned.owner.key(self.keys.owner(what));
            call.arg(ttl);
            async move { call.invoke_async::<Option<String>>(&mut link).await }
        };
        let all = self.timed(try_join_all(of.into_iter().map(one))).await?;
        // What is no key was not written by us: it is nobody's who asks.
        let key = |text: String| text.parse().unwrap_or(Key([0; 16]));
        Ok(all.into_iter().map(|text| text.map(key)).collect())
    }

    pub(super) async fn secret(
        self: Arc<Self>,
        mut link: Link,
        offered: [u8; 32],
    ) -> Result<[u8; 32], Fail> {
        let mut call = self.owned.secret.key(self.keys.secret());
        call.arg(&offered[..]);
        let said: Vec<u8> = self.timed(call.invoke_async(&mut link)).await?;
        Ok(*blake3::hash(&said).as_bytes())
    }
}
