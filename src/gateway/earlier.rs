//! A gateway of settings from before: calls may still go by it, but nobody asks for it any more.
use std::sync::{Arc, Weak};

use super::{Gateway, Inner};

/// One that goes with the last of its calls.
pub struct Earlier(Weak<Inner>);

impl Gateway {
    /// Itself, once another takes its place.
    pub fn earlier(&self) -> Earlier {
        Earlier(Arc::downgrade(&self.0))
    }
}

impl Earlier {
    /// Once in a while: closes connections to agents that nobody uses, or that the agent has closed. False once no call
    /// goes by it any more.
    pub fn sweep(&self) -> bool {
        let Some(of) = self.0.upgrade() else {
            return false;
        };
        for agent in of.routes.agents() {
            agent.sweep();
        }
        true
    }
}
