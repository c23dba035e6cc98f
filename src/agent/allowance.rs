//! How much may be sent again. Where much fails, repeating all of it makes double the load for who is already in
//! trouble; so repeats are a share of the calls, and a few besides, so that a quiet gateway may repeat as well.

use tokio::time::Instant;

/// So many seconds of the floor, and so many calls' share, are kept for later at most.
const KEPT_SECONDS: f64 = 10.0;
const KEPT_CALLS: f64 = 500.0;

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// So many in a hundred calls may be sent again.
    pub percent: u32,
    /// And so many a second besides.
    pub floor: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            percent: 20,
            floor: 10,
        }
    }
}

pub(super) struct Allowance {
    settings: Settings,
    left: f64,
    at: Instant,
}

impl Allowance {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            left: f64::from(settings.floor),
            at: now,
        }
    }

    /// So many calls were sent for the first time.
    pub(super) fn sent(&mut self, calls: u32) {
        self.add(f64::from(calls) * self.share());
    }

    /// Whether something may be sent again; then it counts.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.add(passed * f64::from(self.settings.floor));
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }

    fn share(&self) -> f64 {
        f64::from(self.settings.percent) / 100.0
    }

    fn add(&mut self, more: f64) {
        let most = KEPT_SECONDS * f64::from(self.settings.floor) + KEPT_CALLS * self.share();
        self.left = (self.left + more).min(most);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quiet_gateway_may_repeat_and_a_busy_one_a_share() {
        let start = Instant::now();
        let settings = Settings {
            percent: 20,
            floor: 2,
        };
        let mut allowance = Allowance::new(settings, start);
        let mut taken = |now| (0..1000).filter(|_| allowance.take(now)).count();
        assert_eq!(taken(start), 2);
        assert_eq!(taken(start + Duration::from_secs(3)), 6);
        allowance.sent(100);
        let now = start + Duration::from_secs(3);
        assert_eq!((0..1000).filter(|_| allowance.take(now)).count(), 20);
    }

    #[test]
    fn nothing_allowed_is_nothing() {
        let start = Instant::now();
        let none = Settings {
            percent: 0,
            floor: 0,
        };
        let mut allowance = Allowance::new(none, start);
        allowance.sent(1000);
        assert!(!allowance.take(start + Duration::from_secs(1000)));
    }

    proptest! {
        /// However calls, repeats and time fall: no more is repeated than the share of the calls and the floor.
        #[test]
        fn it_is_never_exceeded(
            percent in 0_u32..=100,
            floor in 0_u32..50,
            steps in proptest::collection::vec((0_u32..50, 0_u32..20, 0_u64..3000), 0..100),
        ) {
            let start = Instant::now();
            let mut now = start;
            let mut allowance = Allowance::new(Settings { percent, floor }, start);
            let (mut sent, mut repeated) = (0_u32, 0_u32);
            for (calls, repeats, millis) in steps {
                now += Duration::from_millis(millis);
                allowance.sent(calls);
                sent += calls;
                for _ in 0..repeats {
                    repeated += u32::from(allowance.take(now));
                }
                let floors = (1.0 + (now - start).as_secs_f64()) * f64::from(floor);
                let most = floors + f64::from(sent) * f64::from(percent) / 100.0;
                prop_assert!(f64::from(repeated) <= most + 1e-6, "{repeated} of {most}");
            }
        }
    }
}
