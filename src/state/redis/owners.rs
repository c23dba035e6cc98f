//! Whose a task or a context is, as workers ask it and as it goes over the wire. Each look is one short script: it reads
//! the owner, and lets it be remembered for longer if it is the owner who asks. A value is who has it, and behind that
//! the name of the claim where that can still be taken back.
use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::Script;
use tokio::{sync::oneshot, time::timeout};

use super::{
    super::{
        Key, Trouble,
        owner::{Claimed, Claiming},
    },
    Note, Redis,
    address::Link,
    flight::{Fail, Wire},
    task::{Command, No},
};

/// What is asked of the store task.
pub(super) enum Ask {
    /// What, by whom, and under which name.
    Claim(Key, Key, u64, oneshot::Sender<Result<Claimed, No>>),
    /// Of these, for whom.
    Owners(Vec<Key>, Key, oneshot::Sender<Result<Vec<Option<Key>>, No>>),
    Secret([u8; 32], oneshot::Sender<Result<[u8; 32], No>>),
}

/// What landed.
pub(super) enum Landing {
    Claimed(oneshot::Sender<Result<Claimed, No>>, Result<Claimed, Fail>),
    Unclaimed(Result<(), Fail>),
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
    claim: Script,
    unclaim: Script,
    owner: Script,
    secret: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            // Of whom, for how long, and its name.
            claim: Script::new(
                "local known = redis.call('GET', KEYS[1])
                if not known then
                    redis.call('SET', KEYS[1], ARGV[1] .. ARGV[3], 'PX', ARGV[2])
                    return 0
                end
                if string.sub(known, 1, 32) ~= ARGV[1] then return 2 end
                redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
                return 1",
            ),
            unclaim: Script::new(
                "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
                return 0",
            ),
            // For how long, and who asks.
            owner: Script::new(
                "local known = redis.call('GET', KEYS[1])
                if not known then return false end
                local owner = string.sub(known, 1, 32)
                if owner == ARGV[2] then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
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
    pub(in crate::state) async fn claim(
        &self,
        what: Key,
        owner: Key,
        name: u64,
    ) -> Result<Claimed, Trouble> {
        self.owned(|to| Ask::Claim(what, owner, name, to)).await
    }

    pub(in crate::state) fn unclaim(&self, what: Key, owner: Key, name: u64) {
        self.shared.leave(Note::Unclaim(what, owner, name));
    }

    pub(in crate::state) fn claim_surely(&self, what: Key, owner: Key) -> Claiming {
        let (to, said) = oneshot::channel();
        self.shared.leave(Note::Claim(what, owner, to));
        let within = self.patience;
        Claiming::Wait(Box::pin(
            async move { timeout(within, said).await.ok()?.ok() },
        ))
    }

    pub(in crate::state) async fn owners(
        &self,
        of: Vec<Key>,
        by: Key,
    ) -> Result<Vec<Option<Key>>, Trouble> {
        self.owned(|to| Ask::Owners(of, by, to)).await
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
    /// What becomes of a claim. Without a name it cannot be taken back.
    pub(super) async fn claim(
        self: Arc<Self>,
        mut link: Link,
        what: Key,
        owner: Key,
        name: Option<u64>,
        ttl: u64,
    ) -> Result<Claimed, Fail> {
        let mut call = self.owned.claim.key(self.keys.owner(what));
        call.arg(owner.to_string()).arg(ttl).arg(named(name));
        let said: u8 = self.timed(call.invoke_async(&mut link)).await?;
        Ok(match said {
            0 => Claimed::New,
            1 => Claimed::Own,
            _ => Claimed::Others,
        })
    }

    pub(super) async fn unclaim(
        self: Arc<Self>,
        mut link: Link,
        what: Key,
        owner: Key,
        name: u64,
    ) -> Result<(), Fail> {
        let mut call = self.owned.unclaim.key(self.keys.owner(what));
        call.arg(format!("{owner}{}", named(Some(name))));
        let _said: u8 = self.timed(call.invoke_async(&mut link)).await?;
        Ok(())
    }

    pub(super) async fn owners(
        self: Arc<Self>,
        link: Link,
        of: Vec<Key>,
        by: Key,
        ttl: u64,
    ) -> Result<Vec<Option<Key>>, Fail> {
        let one = |what: Key| {
            let mut link = link.clone();
            let mut call = self.owned.owner.key(self.keys.owner(what));
            call.arg(ttl).arg(by.to_string());
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

/// A claim's name, behind its owner.
fn named(name: Option<u64>) -> String {
    name.map_or_else(String::new, |name| format!(":{name:x}"))
}
