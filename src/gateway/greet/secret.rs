//! The secret by which credentials that pass through are named. Whoever shares the counts has to share the names, so it
//! lies where the counts do: in the shared store, or in the file of a gateway alone. Without either it dies with the
//! process, as they do.
use std::time::Duration;

use aws_lc_rs::rand;
use tokio::time::Instant;

use crate::{
    config::Config,
    follow::Follow,
    gateway::making::BadSetup,
    kept::Kept,
    policy::{auth::passing::Secret, conversation::Conversations},
    state::persist,
};

/// It is looked for again after this: a store that has lost its data has another one by then, and all replicas must
/// agree on that.
const FRESH: Duration = Duration::from_mins(1);
/// Its name in the file.
const NAME: &str = "credentials";
const ADVICE: &str = "the state store does not say by what secret credentials are named; until it does, callers that \
                      only pass through are known by their addresses. Is state.store right, and reachable from here?";

/// The secret, or the way to it.
#[derive(Default)]
pub(super) enum Shared {
    /// Nobody wants to know.
    #[default]
    None,
    Own(Secret),
    /// In the store that these are in.
    Store(Conversations, Kept<(Secret, Instant)>),
}

impl Shared {
    pub(super) fn new(config: &Config, conversations: &Conversations) -> Result<Self, BadSetup> {
        if !config.state.is_memory() {
            return Ok(Self::Store(conversations.clone(), Kept::new(ADVICE)));
        }
        let mut secret = random().map_err(BadSetup::Auth)?;
        if let Some(path) = &config.state.persist {
            secret = persist::secret(path, NAME, secret).map_err(BadSetup::Persist)?;
        }
        Ok(Self::Own(Secret::of(&secret)))
    }

    /// As far as it is known; what is not known is asked for.
    pub(super) fn now(&self, follow: &Follow) -> Option<Secret> {
        match self {
            Self::None => None,
            Self::Own(secret) => Some(*secret),
            Self::Store(_, kept) => {
                let known = kept.now().map(|known| known.0);
                if known.is_none() {
                    self.look(follow);
                }
                known
            }
        }
    }

    /// Asks the store, unless that was done lately.
    pub(super) fn look(&self, follow: &Follow) {
        let Self::Store(conversations, kept) = self else {
            return;
        };
        if kept.now().is_some_and(|known| known.1.elapsed() < FRESH) {
            return;
        }
        let conversations = conversations.clone();
        kept.begin(follow, async move {
            let said = conversations.store().secret(random()?).await;
            let said = said.map_err(|trouble| trouble.to_string())?;
            Ok((Secret::of(&said), Instant::now()))
        });
    }
}

fn random() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| "the system gives no random bytes".to_owned())?;
    Ok(bytes)
}
