//! Whose a task or a context is, in one process: bounded, so that the oldest is forgotten when there is too much.
use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    super::{Key, owner::Settings, recent::Recent},
    SHARDS,
};

pub(in crate::state) struct Owners {
    settings: Settings,
    shards: Vec<Mutex<Recent<Owned>>>,
    secret: OnceLock<[u8; 32]>,
}

struct Owned {
    by: Key,
    used: Instant,
}

impl Owners {
    pub(super) fn new(settings: Settings) -> Self {
        let shard = || Mutex::new(Recent::new(settings.most / SHARDS));
        Self {
            settings,
            shards: (0..SHARDS).map(|_| shard()).collect(),
            secret: OnceLock::new(),
        }
    }

    fn shard(&self, key: Key) -> &Mutex<Recent<Owned>> {
        &self.shards[usize::from(key.0[0]) % SHARDS]
    }

    /// False if it is another's.
    pub(in crate::state) fn claim(&self, what: Key, owner: Key) -> bool {
        let now = Instant::now();
        let mut shard = self.shard(what).lock();
        if let Some(known) = shard.get(&what)
            && now < known.used + self.settings.ttl
            && known.by != owner
        {
            return false;
        }
        let new = Owned {
            by: owner,
            used: now,
        };
        shard.put(what, new);
        true
    }

    pub(in crate::state) fn owner(&self, what: Key) -> Option<Key> {
        let now = Instant::now();
        let mut shard = self.shard(what).lock();
        let known = shard.get(&what)?;
        if now >= known.used + self.settings.ttl {
            return None;
        }
        known.used = now;
        Some(known.by)
    }

    pub(in crate::state) fn secret(&self, offered: [u8; 32]) -> [u8; 32] {
        *self.secret.get_or_init(|| offered)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> Key {
        Key::of(&[name])
    }

    fn owners(most: usize) -> Owners {
        Owners::new(Settings {
            most,
            ttl: Duration::from_mins(1),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_who_claims_it_has_it() {
        let owners = owners(1000);
        let (ann, bob, task) = (key("ann"), key("bob"), key("task"));
        assert_eq!(owners.owner(task), None);
        assert!(owners.claim(task, ann));
        assert!(owners.claim(task, ann));
        assert!(!owners.claim(task, bob));
        assert_eq!(owners.owner(task), Some(ann));
        assert_eq!(owners.secret([1; 32]), owners.secret([2; 32]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_uses_is_nobody_s() {
        let owners = owners(1000);
        let (ann, bob, task) = (key("ann"), key("bob"), key("task"));
        assert!(owners.claim(task, ann));
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(50)).await;
            assert_eq!(owners.owner(task), Some(ann), "it is used");
        }
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(owners.owner(task), None);
        assert!(owners.claim(task, bob));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_never_too_much() {
        let owners = owners(640);
        for n in 0..10_000 {
            assert!(owners.claim(key(&n.to_string()), key("ann")));
        }
        let kept: usize = owners.shards.iter().map(|s| s.lock().len()).sum();
        assert!(kept <= 640, "{kept}");
        assert_eq!(owners.owner(key("9999")), Some(key("ann")));
        assert_eq!(owners.owner(key("0")), None, "the oldest is forgotten");
    }
}
