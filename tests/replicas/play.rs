//! The play: phases of load, in some of which something dies, and after each one line and a judgement.
use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    agent, hand_over,
    ledger::{Ledger, Sums},
    load::{Load, Outcome, QUIET, Tally},
    stand::{self, Redis, Replicas},
};

/// How long a gateway that says nothing keeps its conversations.
const LEASE: Duration = Duration::from_secs(3);
/// How long after a message went out its agent may not show it yet.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a question to the agent may take.
const QUESTION: Duration = Duration::from_secs(2);
/// How long a gateway may take to notice that the store is back: it tries once a second.
const NOTICES: Duration = Duration::from_secs(2);
/// How long what died stays away.
const DEAD: Duration = Duration::from_millis(1500);
/// How long a phase may take at most.
const PHASE: Duration = Duration::from_mins(1);
/// Faults happen after so many of a hundred messages of their phase.
const WHEN: usize = 20;

/// How large, and how strict.
pub struct Plan {
    pub name: &'static str,
    pub contexts: usize,
    /// Messages of each conversation, over all phases.
    pub each: usize,
    pub hand_overs: usize,
    pub on_error: &'static str,
    /// `state.settle_timeout` and `state.timeout`.
    pub settle_timeout: Duration,
    pub timeout: Duration,
    /// What a recovery may take beyond the sum of its deadlines.
    pub slack: Duration,
    /// All four phases, not only the one in which a replica dies.
    pub all: bool,
}

/// What dies in a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Replica,
    Store,
}

struct Play<'a> {
    plan: &'a Plan,
    ledger: Arc<Ledger>,
    redis: Redis,
    replicas: Replicas,
    wrong: Vec<String>,
}

/// Panics if a rule was broken.
pub fn play(plan: &Plan) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let wrong = runtime.block_on(all(plan));
    for wrong in &wrong {
        println!("{}: WRONG: {wrong}", plan.name);
    }
    let verdict = if wrong.is_empty() { "well" } else { "broken" };
    println!("{}: {verdict}", plan.name);
    assert!(wrong.is_empty(), "{} rules are broken", wrong.len());
}

async fn all(plan: &Plan) -> Vec<String> {
    let ledger = Arc::new(Ledger::default());
    let agent = agent::start(ledger.clone()).await;
    let redis = Redis::start();
    let millis = |d: Duration| format!("{}ms", d.as_millis());
    let state = format!(
        "on_error: {}, lease: {}, timeout: {}, settle_timeout: {}",
        plan.on_error,
        millis(LEASE),
        millis(plan.timeout),
        millis(plan.settle_timeout),
    );
    let settle = format!("settle: {}", millis(SETTLE));
    // Whoever is not admitted at once is refused.
    let hasty = format!("{settle}, busy_grace: 0");
    let hasty = stand::replicas(agent, &redis, &hasty, &state);
    let replicas = stand::replicas(agent, &redis, &settle, &state);
    let mut run = Play {
        plan,
        ledger,
        redis,
        replicas,
        wrong: vec![],
    };
    sleep(QUIET + Duration::from_secs(1)).await; // the store is new, and cannot know that nothing is in flight
    run.hand_overs(&hasty).await;
    drop(hasty);
    if plan.all {
        run.phase("steady", Fault::Nothing).await;
        run.phase("replica-killed", Fault::Replica).await;
        run.phase("store-restarted", Fault::Store).await;
        run.phase("afterwards", Fault::Nothing).await;
    } else {
        run.phase("replica-killed", Fault::Replica).await;
    }
    run.wrong
}

impl Play<'_> {
    async fn hand_overs(&mut self, hasty: &Replicas) {
        let times = self.plan.hand_overs;
        let mut took = hand_over::run(times, hasty, &self.ledger).await;
        took.sort();
        let sums = self.ledger.take_sums();
        println!(
            "{}: hand-overs: {} of {times} admitted; the agent has the next message {} after the last event was read, \
             {} at most; overlaps {}",
            self.plan.name,
            took.len(),
            shown(took.get(took.len() / 2)),
            shown(took.last()),
            sums.overlaps,
        );
        if took.len() < times {
            let refused = times - took.len();
            self.wrong.push(format!("{refused} hand-overs failed"));
        }
        self.judge("hand-overs", &sums);
    }

    /// One phase: all of its messages reach the agent, whatever dies meanwhile.
    async fn phase(&mut self, name: &'static str, fault: Fault) {
        let phases = if self.plan.all { 4 } else { 1 };
        let long = match fault {
            Fault::Nothing => None,
            Fault::Replica => Some(LEASE + DEAD),
            Fault::Store => Some(DEAD + NOTICES + QUIET + DEAD),
        };
        let load = Load {
            contexts: self.plan.contexts,
            each: self.plan.each / phases,
            long,
        };
        let began = Instant::now();
        let tally = Arc::new(Tally::default());
        let ledger = self.ledger.clone();
        let replicas = self.replicas.clone();
        let both = async {
            let sends = load.run(name, &replicas, &ledger, &tally);
            tokio::join!(sends, self.happens(fault, load.messages() * WHEN / 100));
        };
        let ended = timeout(PHASE, both).await.is_ok();
        let sums = self.ledger.take_sums();
        self.tell(name, began.elapsed(), &tally, &sums);
        if !ended {
            let wanting = self.ledger.wanting();
            let says = format!("{name} came to no end: {} wait: {wanting:?}", wanting.len());
            self.wrong.push(says);
            let logs = self.replicas.iter().map(|r| (r.name, r.log()));
            logs.for_each(|(name, log)| println!("the log of {name}:\n{log}"));
        }
        self.judge(name, &sums);
        self.judge_answers(name, fault, &tally);
        self.judge_recovery(name, sums.slowest);
    }

    /// What dies is there again a little later.
    async fn happens(&mut self, fault: Fault, after: usize) {
        while self.ledger.count() < after {
            sleep(Duration::from_millis(5)).await; // between two looks
        }
        match fault {
            Fault::Nothing => {}
            Fault::Replica => {
                self.replicas[1].kill();
                self.ledger.excuse(Instant::now());
                sleep(DEAD).await;
                self.replicas[1].begin();
            }
            Fault::Store => {
                self.ledger.store_is_away();
                self.redis.end();
                sleep(DEAD).await;
                self.redis.begin();
                let back = Instant::now();
                self.ledger.store_is_back(back + NOTICES);
                self.ledger.excuse(back + QUIET);
            }
        }
    }

    fn tell(&self, name: &str, took: Duration, tally: &Tally, sums: &Sums) {
        let of = |outcome| tally.of(&outcome);
        println!(
            "{}: {name}: {} admitted of {} sent in {:.1} s; {} busy; 503: {} away, {} quiet; {} cut, {} left; \
             overlaps {}, with the store away {}; slowest recovery {} of {}",
            self.plan.name,
            sums.received,
            tally.all(),
            took.as_secs_f64(),
            of(Outcome::Busy),
            of(Outcome::Away),
            of(Outcome::Quiet),
            of(Outcome::Cut),
            of(Outcome::Left),
            sums.overlaps,
            sums.overlaps_away,
            shown(Some(&sums.slowest)),
            shown(Some(&self.bound())),
        );
    }

    /// A lease lapses, or a message that was put back settles; then the agent is asked.
    fn bound(&self) -> Duration {
        LEASE + SETTLE + QUESTION + self.plan.slack
    }

    fn judge(&mut self, phase: &str, sums: &Sums) {
        let wrong = sums.wrong.iter().map(|w| format!("{phase}: {w}"));
        self.wrong.extend(wrong);
        if sums.overlaps_away > 0 && self.plan.on_error == "refuse" {
            let says = format!("{phase}: messages overlap though the store was away");
            self.wrong.push(says);
        }
    }

    fn judge_answers(&mut self, phase: &str, fault: Fault, tally: &Tally) {
        let others = tally.others().into_iter();
        self.wrong.extend(others.map(|o| format!("{phase}: {o}")));
        let cut = tally.of(&Outcome::Cut);
        if cut > 0 && fault != Fault::Replica {
            let says = format!("{phase}: {cut} were cut though nobody was killed");
            self.wrong.push(says);
        }
    }

    fn judge_recovery(&mut self, phase: &str, slowest: Duration) {
        let bound = self.bound();
        if slowest > bound {
            let says = format!("{phase}: a conversation was of no use for {slowest:?}");
            self.wrong.push(says);
        }
    }
}

fn shown(time: Option<&Duration>) -> String {
    match time {
        None => "never".to_owned(),
        Some(time) if *time < Duration::from_millis(10) => format!("{} us", time.as_micros()),
        Some(time) => format!("{:.2} s", time.as_secs_f64()),
    }
}
