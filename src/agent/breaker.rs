//! Whether an address is to be given calls: a circuit breaker, as a plain state machine that is told the time.
//!
//! ```text
//!          too many failures              its time is over: one call is the trial
//!  Closed ───────────────────► Open ─────────────────────────────────────────────► Trial
//!    ▲                          ▲                                                    │
//!    │                          └──────────────── it failed: twice as long ──────────┤
//!    └─────────────────────────────────────────── it went well ──────────────────────┘
//! ```
//!
//! Whoever has no better address may call all the same, and closes it again if that goes well. What was begun before the
//! breaker opened last tells of another time, and is not heard.

use std::time::Duration;

use tokio::time::Instant;

/// A rate is made of that many calls at least.
const ENOUGH: u32 = 20;
/// A rate looks back over one to two of these.
const HALF: Duration = Duration::from_secs(5);
/// A trial that is not decided by then makes way for another: a message may take minutes.
const TRIAL: Duration = Duration::from_secs(10);

/// When an address is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// So many failures in a row open it; 0 never does.
    pub failures: u32,
    /// So many in a hundred calls open it, of twenty in some seconds at least; 0 never does.
    pub percent: u32,
    /// How long it is open at first.
    pub open: Duration,
    /// How long it is open at most, after it opened again and again.
    pub longest: Duration,
}

impl Settings {
    /// It never opens, and nothing is told of the address: for what is no agent.
    pub const OFF: Self = Self {
        failures: 0,
        percent: 0,
        open: Duration::ZERO,
        longest: Duration::ZERO,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            failures: 3,
            percent: 50,
            open: Duration::from_secs(5),
            longest: Duration::from_mins(5),
        }
    }
}

/// What an address may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Calls.
    Closed,
    /// One call, as a trial.
    Due,
    /// Nothing, while there is another.
    Out,
}

/// What happened to the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It opened, for so long.
    Opened(Duration),
    /// It closed.
    Closed,
}

/// A call that is to tell how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    era: u32,
    /// Which trial it is, if it is one.
    trial: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant },
    Trial { until: Instant, nth: u32 },
}

pub(super) struct Breaker {
    settings: Settings,
    state: State,
    in_a_row: u32,
    window: Window,
    /// How often it opened: calls of an earlier era are not heard.
    era: u32,
    trials: u32,
    /// How often it opened in close succession, and until when another opening counts as one of those.
    times: u32,
    uneasy_until: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Closed,
            in_a_row: 0,
            window: Window::default(),
            era: 0,
            trials: 0,
            times: 0,
            uneasy_until: None,
        }
    }

    pub(super) fn stand(&self, now: Instant) -> Stand {
        match self.state {
            State::Closed => Stand::Closed,
            State::Open { until } | State::Trial { until, .. } if now >= until => Stand::Due,
            State::Open { .. } | State::Trial { .. } => Stand::Out,
        }
    }

    /// Whether it is left alone at this moment, for so long as was said. Afterwards nothing is known: were that told as
    /// "down", who sends calls only to what is up would never find out.
    pub(super) fn is_shut(&self, now: Instant) -> bool {
        matches!(self.state, State::Open { until } if now < until)
    }

    /// Whether a trial is under way.
    pub(super) fn is_tried(&self) -> bool {
        matches!(self.state, State::Trial { .. })
    }

    /// Whether nothing is known against the address.
    pub(super) fn is_calm(&self) -> bool {
        self.state == State::Closed && self.in_a_row == 0
    }

    /// A call goes to the address.
    pub(super) fn begin(&mut self, now: Instant) -> Ticket {
        if self.stand(now) != Stand::Due {
            return self.present();
        }
        self.trials = self.trials.wrapping_add(1);
        let nth = self.trials;
        let until = now + TRIAL;
        self.state = State::Trial { until, nth };
        Ticket {
            era: self.era,
            trial: Some(nth),
        }
    }

    /// The same for one that nobody counts.
    pub(super) fn present(&self) -> Ticket {
        Ticket {
            era: self.era,
            trial: None,
        }
    }

    pub(super) fn succeeded(&mut self, ticket: Ticket, now: Instant) -> Option<Change> {
        if ticket.era != self.era {
            return None;
        }
        self.in_a_row = 0;
        if self.state == State::Closed {
            self.window.count(now, true);
            return None;
        }
        self.state = State::Closed;
        self.uneasy_until = Some(now + self.length() * 2);
        Some(Change::Closed)
    }

    /// A question that is no call was answered well: as good as a trial, once one is due.
    pub(super) fn answered(&mut self, ticket: Ticket, now: Instant) -> Option<Change> {
        if self.stand(now) != Stand::Due {
            return None;
        }
        self.succeeded(ticket, now)
    }

    pub(super) fn failed(&mut self, ticket: Ticket, now: Instant) -> Option<Change> {
        if ticket.era != self.era {
            return None;
        }
        match self.state {
            State::Closed => {
                self.in_a_row = self.in_a_row.saturating_add(1);
                self.window.count(now, false);
                let Settings {
                    failures, percent, ..
                } = self.settings;
                let enough = failures > 0 && self.in_a_row >= failures;
                if !enough && !self.window.is_bad(percent) {
                    return None;
                }
                if self.uneasy_until.is_none_or(|until| now >= until) {
                    self.times = 0;
                }
                Some(self.open(now))
            }
            State::Trial { nth, .. } if ticket.trial == Some(nth) => Some(self.open(now)),
            // Somebody had no better address: that it does not answer is known.
            State::Open { .. } | State::Trial { .. } => None,
        }
    }

    /// The call ended without telling anything of the address.
    pub(super) fn given_up(&mut self, ticket: Ticket, now: Instant) {
        let under_way = match self.state {
            State::Trial { nth, .. } => Some(nth),
            State::Closed | State::Open { .. } => return,
        };
        if ticket.era == self.era && ticket.trial == under_way {
            self.state = State::Open { until: now };
        }
    }

    fn open(&mut self, now: Instant) -> Change {
        self.times = self.times.saturating_add(1);
        self.era = self.era.wrapping_add(1);
        self.in_a_row = 0;
        self.window = Window::default();
        let length = self.length();
        self.state = State::Open {
            until: now + length,
        };
        Change::Opened(length)
    }

    fn length(&self) -> Duration {
        let doubled = 1_u32 << self.times.saturating_sub(1).min(16);
        let most = self.settings.longest.max(self.settings.open);
        self.settings.open.saturating_mul(doubled).min(most)
    }
}

/// How calls went lately: what is counted now, and what was before.
#[derive(Default)]
struct Window {
    since: Option<Instant>,
    now: Count,
    before: Count,
}

#[derive(Clone, Copy, Default)]
struct Count {
    all: u32,
    bad: u32,
}

impl Window {
    fn count(&mut self, now: Instant, well: bool) {
        let age = self.since.map(|since| now.saturating_duration_since(since));
        if age.is_none_or(|age| age >= HALF) {
            let kept = age.is_some_and(|age| age < HALF * 2);
            self.before = if kept { self.now } else { Count::default() };
            self.now = Count::default();
            self.since = Some(now);
        }
        self.now.all = self.now.all.saturating_add(1);
        self.now.bad = self.now.bad.saturating_add(u32::from(!well));
    }

    fn is_bad(&self, percent: u32) -> bool {
        let all = u64::from(self.now.all) + u64::from(self.before.all);
        let bad = u64::from(self.now.bad) + u64::from(self.before.bad);
        percent > 0 && all >= u64::from(ENOUGH) && bad * 100 >= all * u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn opened(times: usize) -> (Breaker, Instant, Duration) {
        let mut breaker = Breaker::new(Settings::default());
        let mut now = Instant::now();
        let mut length = Duration::ZERO;
        for _ in 0..times {
            while breaker.stand(now) != Stand::Out {
                let ticket = breaker.begin(now);
                if let Some(Change::Opened(long)) = breaker.failed(ticket, now) {
                    length = long;
                }
            }
            now += length;
        }
        (breaker, now, length)
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_success_starts_the_row_anew() {
        let mut breaker = Breaker::new(Settings::default());
        let now = Instant::now();
        for _ in 0..2 {
            for _ in 0..2 {
                assert_eq!(breaker.failed(breaker.present(), now), None);
            }
            assert!(!breaker.is_calm());
            assert_eq!(breaker.succeeded(breaker.present(), now), None);
            assert!(breaker.is_calm());
        }
        assert_eq!(breaker.stand(now), Stand::Closed);
        let (breaker, now, length) = opened(1);
        assert_eq!(length, 5 * SECOND);
        assert_eq!(breaker.stand(now - SECOND), Stand::Out);
        assert_eq!(breaker.stand(now), Stand::Due);
    }

    #[test]
    fn a_bad_rate_opens_it_without_a_row() {
        let mut breaker = Breaker::new(Settings::default());
        let now = Instant::now();
        let mut opened = None;
        for at in 0..ENOUGH {
            assert_eq!(opened, None);
            let ticket = breaker.present();
            opened = if at % 2 == 0 {
                breaker.succeeded(ticket, now)
            } else {
                breaker.failed(ticket, now)
            };
        }
        assert_eq!(opened, Some(Change::Opened(5 * SECOND)));
        // The same over a longer time is no bad rate.
        let mut breaker = Breaker::new(Settings::default());
        for at in 0..100 {
            let (ticket, now) = (breaker.present(), now + SECOND * at);
            let change = match at % 2 {
                0 => breaker.succeeded(ticket, now),
                _ => breaker.failed(ticket, now),
            };
            assert_eq!(change, None);
        }
    }

    #[test]
    fn it_opens_for_longer_each_time_and_forgets_that_in_quiet_times() {
        let lengths: Vec<_> = (1..=8).map(|times| opened(times).2.as_secs()).collect();
        assert_eq!(lengths, [5, 10, 20, 40, 80, 160, 300, 300]);
        let (mut breaker, mut now, _) = opened(3);
        let trial = breaker.begin(now);
        assert_eq!(breaker.succeeded(trial, now), Some(Change::Closed));
        let mut fail = |now| {
            let fails = (0..3).map(|_| breaker.failed(breaker.present(), now));
            let last = fails.last().flatten();
            let close = breaker.begin(now + 1000 * SECOND);
            breaker.succeeded(close, now + 1000 * SECOND);
            last
        };
        assert_eq!(fail(now + SECOND), Some(Change::Opened(40 * SECOND)));
        now += 5000 * SECOND;
        assert_eq!(fail(now), Some(Change::Opened(5 * SECOND)));
    }

    #[test]
    fn a_trial_decides_and_one_that_was_given_up_makes_way() {
        let (mut breaker, now, _) = opened(1);
        let trial = breaker.begin(now);
        assert_eq!(breaker.stand(now), Stand::Out);
        breaker.given_up(trial, now);
        assert_eq!(breaker.stand(now), Stand::Due);
        let trial = breaker.begin(now);
        let without_better = breaker.begin(now);
        assert_eq!(breaker.failed(without_better, now), None);
        assert_eq!(
            breaker.failed(trial, now),
            Some(Change::Opened(10 * SECOND))
        );
        // What was begun before it opened again is not heard.
        assert_eq!(breaker.succeeded(without_better, now), None);
        let trial = breaker.begin(now + 10 * SECOND);
        assert_eq!(
            breaker.succeeded(trial, now + 10 * SECOND),
            Some(Change::Closed)
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin,
        Well(usize),
        Badly(usize),
        GiveUp(usize),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Begin),
            1 => any::<usize>().prop_map(Step::Well),
            3 => any::<usize>().prop_map(Step::Badly),
            1 => any::<usize>().prop_map(Step::GiveUp),
            1 => (0_u64..20_000).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        /// Whoever heeds `stand` is never the second trial within the time of one.
        #[test]
        fn one_trial_at_a_time(steps in steps()) {
            let mut breaker = Breaker::new(Settings::default());
            let mut now = Instant::now();
            let mut out: Vec<Ticket> = vec![];
            let mut trial: Option<(Ticket, Instant)> = None;
            for step in steps {
                let taken = |at: usize, out: &mut Vec<Ticket>| {
                    (!out.is_empty()).then(|| out.remove(at % out.len()))
                };
                match step {
                    Step::Wait(millis) => now += Duration::from_millis(millis),
                    Step::Begin if breaker.stand(now) == Stand::Out => {}
                    Step::Begin => {
                        let ticket = breaker.begin(now);
                        if ticket.trial.is_some() {
                            let other = trial.replace((ticket, now));
                            prop_assert!(other.is_none_or(|(_, since)| now >= since + TRIAL));
                        }
                        out.push(ticket);
                    }
                    Step::Well(at) | Step::Badly(at) | Step::GiveUp(at) => {
                        let Some(ticket) = taken(at, &mut out) else { continue };
                        let change = match step {
                            Step::Well(_) => breaker.succeeded(ticket, now),
                            Step::Badly(_) => breaker.failed(ticket, now),
                            Step::GiveUp(_) | Step::Begin | Step::Wait(_) => {
                                breaker.given_up(ticket, now);
                                None
                            }
                        };
                        if let Some(Change::Opened(long)) = change {
                            prop_assert!(long >= 5 * SECOND && long <= Duration::from_mins(5));
                            prop_assert_eq!(breaker.stand(now), Stand::Out);
                        }
                        if change.is_some() || trial.is_some_and(|(t, _)| t == ticket) {
                            trial = None;
                        }
                    }
                }
            }
            // Left alone for long enough, it may always be tried.
            prop_assert!(breaker.stand(now + Duration::from_mins(6)) != Stand::Out);
        }
    }
}
