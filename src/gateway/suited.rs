//! Messages as this agent needs them, and what it does not heed of them.
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Inner;
use crate::a2a::{Call, Fault, Op, request};

impl Inner {
    /// What the agent needs of a message, and what it does not heed of one.
    pub(super) fn suit(&self, call: &mut Call) -> Result<(), Fault> {
        if !call.op.sends() {
            return Ok(());
        }
        let facts = &call.facts;
        let at_once = facts.at_once && call.op == Op::Send;
        if self.backend.ignores_configuration && (at_once || facts.webhook) && self.ignored.now() {
            tracing::warn!(
                at_once,
                webhook = facts.webhook,
                "the agent ignores the configuration of messages: sends wait for the end of their task, and webhooks that come with a message are not registered"
            );
        }
        if self.backend.always_output_modes {
            request::fill_output_modes(call, &self.options)?;
        }
        Ok(())
    }
}

/// Lets a thing be told once in a while, where each call could tell it. All workers share one.
#[derive(Default)]
pub(super) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    const WHILE: Duration = Duration::from_mins(10);

    /// Whether it is to be told now.
    pub(super) fn now(&self) -> bool {
        let now = Instant::now();
        let mut last = self.0.lock();
        let told = last.is_some_and(|last| now < last + Self::WHILE);
        if !told {
            *last = Some(now);
        }
        !told
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        config::{Config, Overrides},
        gateway::Setup,
    };

    #[test]
    fn what_one_worker_told_no_other_tells() {
        let text = "backend: {url: 'http://127.0.0.1:1'}";
        let setup = Setup::new(Config::parse(text, Overrides::default()).unwrap()).unwrap();
        let worker = || {
            let follow = Arc::new(|_| false);
            let stop = CancellationToken::new();
            setup.gateway(follow, stop, Arc::default()).unwrap()
        };
        let (one, other) = (worker(), worker());
        assert!(one.0.ignored.now());
        assert!(!other.0.ignored.now());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_once_in_a_while_is_told_again_later() {
        let seldom = Seldom::default();
        assert!(seldom.now());
        assert!(!seldom.now());
        tokio::time::advance(Seldom::WHILE / 2).await;
        assert!(!seldom.now());
        tokio::time::advance(Seldom::WHILE).await;
        assert!(seldom.now() && !seldom.now());
    }
}
