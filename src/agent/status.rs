//! How the agent's addresses are, for who looks after them: gauges, `/readyz?verbose`.

use std::fmt;

/// How a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// The address gets calls.
    Closed,
    /// It gets none while there is another.
    Open,
    /// One call tries whether it is back.
    HalfOpen,
}

/// One address of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address; the name, until it is known where that leads.
    pub address: String,
    /// Whether nothing says that it is down: no health check, and no breaker that is open for some time yet. One that is
    /// due to be tried counts as up.
    pub up: bool,
    /// Its breaker.
    pub breaker: Breaker,
    /// Connections to it, idle ones too.
    pub connections: usize,
    /// Calls under way there.
    pub busy: usize,
    /// Calls that wait for a connection to it.
    pub waiting: usize,
}

/// All addresses of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Each of them.
    pub addresses: Vec<Address>,
    /// What was sent again so far.
    pub retries: u64,
}

impl Status {
    /// Whether no address is up.
    pub fn is_down(&self) -> bool {
        self.addresses.iter().all(|address| !address.up)
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = if self.up { "up" } else { "down" };
        write!(
            f,
            "backend {} {up} breaker={} connections={} busy={} waiting={}",
            self.address, self.breaker, self.connections, self.busy, self.waiting
        )
    }
}
