//! Asking addresses how they are, for who wants to know before a call finds out: a GET of a path of the agent's host, on
//! a connection of its own. Off unless settings name a path.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use tokio::time::Instant;

use super::branch::Branch;
use super::link::Failed;
use super::{Agent, after};

/// How addresses are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is fetched, below the host.
    pub path: PathAndQuery,
    /// How often.
    pub interval: Duration,
    /// How long the head of the answer may take.
    pub timeout: Duration,
    /// So many good answers in a row bring an address back.
    pub healthy: u32,
    /// So many bad ones in a row take it out.
    pub unhealthy: u32,
    /// Whether only a success will do; otherwise whatever is no error of the server.
    pub success: bool,
}

/// What the answers say of an address.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) down: bool,
    /// Answers in a row that speak against that.
    against: u32,
    next: Option<Instant>,
}

impl Checked {
    pub(super) fn count(&mut self, well: bool, check: &Check) {
        if well != self.down {
            self.against = 0;
            return;
        }
        self.against += 1;
        let needed = if well { check.healthy } else { check.unhealthy };
        if self.against >= needed {
            self.down = !well;
            self.against = 0;
        }
    }

    /// Whether it is to be asked now; whoever hears so does it, and after `interval` it is to be asked again.
    pub(super) fn is_due(&mut self, now: Instant, interval: Duration) -> bool {
        let due = self.next.is_none_or(|next| now >= next);
        if due {
            self.next = Some(now + interval);
        }
        due
    }
}

impl Agent {
    /// The addresses that are to be asked now.
    pub(super) fn to_check(&self) -> Vec<Arc<Branch>> {
        let Some(check) = &self.settings.check else {
            return Vec::new();
        };
        let now = Instant::now();
        let due = |branch: &&Arc<Branch>| {
            let interval = self.room.jittered(check.interval);
            branch.replica.is_check_due(now, interval)
        };
        self.list().iter().filter(due).cloned().collect()
    }

    /// Asks one address.
    pub(super) async fn check(&self, branch: Arc<Branch>) {
        let Some(check) = &self.settings.check else {
            return;
        };
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = Uri::from(check.path.clone());
        let Ok(request) = self.address(request) else {
            return; // a path that settings were checked for
        };
        let deadline = after(check.timeout);
        let asked = branch.replica.is_asked();
        let answer = self.attempt(&branch, Box::new(request), false, deadline);
        // What connects and what waits have deadlines of their own; together they have this one.
        let answer = tokio::time::timeout_at(deadline, answer).await;
        let outcome = match answer {
            Ok(Ok((response, _))) => good(response.status(), check.success),
            Ok(Err(failed)) => Err(cause(&failed)),
            Err(_) => Err(format!("no answer within {:?}", check.timeout)),
        };
        let outcome = outcome.map_err(|cause| format!("health check of {}: {cause}", check.path));
        branch.replica.checked(asked, outcome, check);
    }
}

fn good(status: StatusCode, success: bool) -> Result<(), String> {
    if status.is_success() || !success && !status.is_server_error() {
        return Ok(());
    }
    Err(format!("HTTP status {}", status.as_u16()))
}

fn cause(failed: &Failed) -> String {
    match failed {
        Failed::Unsent { cause, .. } => cause.clone(),
        Failed::Undialled { error, .. } | Failed::Broken { error, .. } | Failed::Final(error) => {
            error.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_a_row_decide() {
        let check = Check {
            path: PathAndQuery::from_static("/"),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            healthy: 2,
            unhealthy: 3,
            success: false,
        };
        let mut checked = Checked::default();
        let mut downs = |answers: &str| {
            let each = answers.chars().map(|answer| {
                checked.count(answer == '+', &check);
                if checked.down { 'v' } else { '^' }
            });
            each.collect::<String>()
        };
        assert_eq!(downs("+--+---"), "^^^^^^v");
        assert_eq!(downs("-+-++"), "vvvv^");
        assert_eq!(downs("--+--"), "^^^^^");
    }

    #[test]
    fn what_counts_as_alive() {
        for (status, alive, success) in [
            (200, true, true),
            (204, true, true),
            (301, true, false),
            (404, true, false),
            (500, false, false),
            (503, false, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(good(status, false).is_ok(), alive, "{status}");
            assert_eq!(good(status, true).is_ok(), success, "{status}");
        }
    }
}
