//! How long somebody who was let in may stay: streams outlive credentials.
use std::{future::pending, sync::Arc, time::Duration};

use super::{
    Auth,
    ways::{Issuer, Way},
};
use crate::{
    follow::Follow,
    gateway::fetch::Fetch,
    policy::auth::{
        keys::{Key, Keys},
        tokens::Proven,
        wall,
    },
    reply::Outlived,
    tls::Certificate,
    watch::Watched,
};

/// The wall's clock may be set, or its machine sleep: it is read again at least this often.
const LOOK: Duration = Duration::from_secs(30);
/// How often an issuer's keys are looked at, and how old they may be by then while streams live by them: one that was
/// taken back is missed within twice as long and the time of a fetch, less than a minute.
const LOOK_AT_KEYS: Duration = Duration::from_secs(15);

/// What somebody's stay depends on.
#[derive(Default)]
pub(super) enum Leash {
    /// Nothing that we know of.
    #[default]
    None,
    /// The key, as it was: without another holder or other rights.
    Key(Watched<Keys>, Arc<Key>),
    /// A token by this way: its time, and the key that it was signed with.
    Token(usize, Arc<Proven>),
    /// A certificate that the connection began with.
    Certificate(Arc<Certificate>),
}

impl Auth {
    /// When a leash ends.
    pub(super) fn outlived(&self, by: &Leash) -> Option<Outlived> {
        match by {
            Leash::None => None,
            Leash::Key(file, key) => Some(Box::pin(revoked(file.clone(), key.clone()))),
            Leash::Certificate(shown) => Some(Box::pin(shown.clone().outlived())),
            Leash::Token(way, proven) => {
                let Way::Tokens(issuer) = self.ways.all.get(*way)? else {
                    return None;
                };
                let fetch = self.fetches.get(*way)?.clone();
                let follow = self.follow.clone();
                let (issuer, proven) = (issuer.clone(), proven.clone());
                Some(Box::pin(withdrawn(issuer, fetch, follow, proven)))
            }
        }
    }
}

async fn revoked(file: Watched<Keys>, was: Arc<Key>) {
    let mut changes = file.changes();
    loop {
        let Some(key) = file.now().of(&was.digest).cloned() else {
            return;
        };
        if (&key.caller, &key.rights) != (&was.caller, &was.rights) {
            return;
        }
        let change = async {
            if changes.changed().await.is_err() {
                pending::<()>().await;
            }
        };
        match key.expires {
            None => change.await,
            Some(end) => tokio::select! {
                () = change => {}
                () = expired(end) => return,
            },
        }
    }
}

/// The issuer has taken back the key of a token, or the token's time is over. Keys that cannot be fetched hold.
async fn withdrawn(
    issuer: Arc<Issuer>,
    fetch: Option<Arc<Fetch>>,
    follow: Follow,
    proven: Arc<Proven>,
) {
    while issuer.now().is_none_or(|keys| keys.holds(&proven.key)) {
        tokio::select! {
            () = expired(proven.until) => return,
            () = tokio::time::sleep(LOOK_AT_KEYS) => {}
        }
        if let (Some(kept), Some(fetch)) = (issuer.kept(), &fetch)
            && kept
                .now()
                .is_none_or(|keys| keys.at.elapsed() >= LOOK_AT_KEYS)
        {
            // One fetch for all streams; boxed, since all of them keep this future for as long as they live.
            Box::pin(kept.fetched(&follow, issuer.fetch(fetch))).await;
        }
    }
}

async fn expired(end: i64) {
    loop {
        let Ok(left @ 1..) = u64::try_from(end - wall()) else {
            return;
        };
        tokio::time::sleep(Duration::from_secs(left).min(LOOK)).await;
    }
}
