//! How long somebody who was let in may stay: streams outlive credentials.
use std::{future::pending, sync::Arc, time::Duration};

use crate::{
    policy::auth::{
        keys::{Key, Keys},
        wall,
    },
    reply::Outlived,
    watch::Watched,
};

/// The wall's clock may be set, or its machine sleep: it is read again at least this often.
const LOOK: Duration = Duration::from_secs(30);

/// What somebody's stay depends on.
#[derive(Default)]
pub(super) enum Leash {
    /// Nothing that we know of.
    #[default]
    None,
    /// The key, as it was: without another holder or other rights.
    Key(Watched<Keys>, Arc<Key>),
    /// The time of a token, in seconds since 1970.
    Until(i64),
}

impl Leash {
    pub(super) fn outlived(&self) -> Option<Outlived> {
        match self {
            Self::None => None,
            Self::Key(file, key) => Some(Box::pin(revoked(file.clone(), key.clone()))),
            Self::Until(end) => Some(Box::pin(expired(*end))),
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

async fn expired(end: i64) {
    loop {
        let Ok(left @ 1..) = u64::try_from(end - wall()) else {
            return;
        };
        tokio::time::sleep(Duration::from_secs(left).min(LOOK)).await;
    }
}
