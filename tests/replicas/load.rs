//! The load: in each conversation two senders of one caller, who send through either replica, try again when they are
//! refused, and sometimes leave before they are answered.
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{StatusCode, header, response};
use http_body_util::BodyExt as _;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    dice::Dice,
    ledger::Ledger,
    line::{Cut, Line},
    stand::Replicas,
    work::{How, Message, Work, task_of},
};

/// Senders of each conversation.
const SENDERS: usize = 2;
/// How many of a hundred leave early, and within how many milliseconds.
const LEAVE: (u64, u64) = (6, 60);

/// How long an answer may take beyond the work.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a store that came back empty admits nobody.
pub const QUIET: Duration = Duration::from_secs(5);

/// What became of sending a message once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Answered,
    /// Another message of the conversation is in flight.
    Busy,
    /// The store is away.
    Away,
    /// The store came back empty, and waits.
    Quiet,
    /// The replica has gone.
    Cut,
    /// The sender has.
    Left,
    /// Nothing that should be.
    Else(String),
}

impl Outcome {
    fn read(head: &response::Parts, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let seconds = head.headers.get(header::RETRY_AFTER);
        let away = text.contains("the gateway's state store is away");
        match head.status {
            StatusCode::OK => Self::Answered,
            _ if text.contains("CONVERSATION_BUSY") => Self::Busy,
            StatusCode::SERVICE_UNAVAILABLE if away && seconds.is_some_and(|s| s == "5") => {
                Self::Quiet
            }
            StatusCode::SERVICE_UNAVAILABLE if away => Self::Away,
            status => Self::Else(format!("{status}: {text}")),
        }
    }

    /// How long to wait before trying again, in milliseconds at most.
    fn pause(&self) -> u64 {
        match self {
            Self::Answered | Self::Left => 1,
            Self::Busy | Self::Cut => 80,
            Self::Away | Self::Quiet | Self::Else(_) => 400,
        }
    }
}

/// How often what became of it.
#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<Outcome, usize>>);

impl Tally {
    fn count(&self, outcome: Outcome) {
        *self.0.lock().unwrap().entry(outcome).or_default() += 1;
    }

    pub fn of(&self, outcome: &Outcome) -> usize {
        self.0.lock().unwrap().get(outcome).copied().unwrap_or(0)
    }

    pub fn all(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }

    /// What should not be.
    pub fn others(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let others = all.iter().filter_map(|(outcome, count)| match outcome {
            Outcome::Else(says) => Some(format!("{count} times: {says}")),
            Outcome::Answered
            | Outcome::Busy
            | Outcome::Away
            | Outcome::Quiet
            | Outcome::Cut
            | Outcome::Left => None,
        });
        others.collect()
    }
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub contexts: usize,
    /// Messages of each conversation.
    pub each: usize,
    /// In every fourth conversation one message takes that long, so that it outlives a lease or a store.
    pub long: Option<Duration>,
}

impl Load {
    pub fn messages(&self) -> usize {
        self.contexts * self.each
    }

    /// Sends all, until each of them has reached the agent.
    pub async fn run(
        self,
        phase: &'static str,
        replicas: &Replicas,
        ledger: &Arc<Ledger>,
        tally: &Arc<Tally>,
    ) {
        let mut senders = JoinSet::new();
        for context in 0..self.contexts {
            for number in 0..SENDERS {
                let name = format!("{phase}-{context}-{number}");
                let sender = Sender {
                    dice: Dice::of(&name),
                    name,
                    context: format!("context-{context}"),
                    sent: 0,
                    asking: None,
                    lines: [Line::new(&replicas[0]), Line::new(&replicas[1])],
                    ledger: ledger.clone(),
                    tally: tally.clone(),
                };
                let count = (self.each + SENDERS - 1 - number) / SENDERS;
                let long = self.long.filter(|_| number == 0 && context % 4 == 0);
                senders.spawn(sender.sends(count, long));
            }
        }
        while let Some(ended) = senders.join_next().await {
            ended.expect("no sender panics");
        }
    }
}

struct Sender {
    name: String,
    context: String,
    dice: Dice,
    /// Messages so far.
    sent: usize,
    /// A task that wants an answer.
    asking: Option<String>,
    lines: [Line; 2],
    ledger: Arc<Ledger>,
    tally: Arc<Tally>,
}

impl Sender {
    async fn sends(mut self, count: usize, long: Option<Duration>) {
        for n in 0..count {
            let long = long.filter(|_| n == count / 5);
            let task = self.asking.take().filter(|_| self.dice.percent(70));
            let work = self.work(long, task.is_some());
            self.send(work, task, long.is_some()).await;
            let thinks = self.dice.below(30);
            sleep(Duration::from_millis(thinks)).await;
        }
    }

    fn work(&mut self, long: Option<Duration>, resumes: bool) -> Work {
        let dice = &mut self.dice;
        if let Some(takes) = long {
            let hows = [How::Send, How::AtOnce, How::Stream];
            let how = hows[usize::try_from(dice.below(3)).unwrap()];
            let asks = false;
            return Work { how, takes, asks };
        }
        let asks = dice.percent(50);
        match dice.below(100) {
            0..15 if !resumes => Work::new(How::Send, 0),
            15..30 if !resumes => Work::new(How::Word, dice.below(20)),
            30..45 => Work::new(How::Send, dice.below(100)).that_asks(asks),
            45..65 => Work::new(How::AtOnce, dice.below(300)),
            _ => Work::new(How::Stream, 5 + dice.below(195)).that_asks(asks),
        }
    }

    /// Sends it until it has reached the agent, each time under another id.
    async fn send(&mut self, work: Work, task: Option<String>, stays: bool) {
        loop {
            self.sent += 1;
            let message = Message {
                id: format!("{}.{}", self.name, self.sent),
                context: self.context.clone(),
                task: task.clone(),
                work,
            };
            self.ledger.wants(&message.context, &message.id);
            let outcome = self.outcome(&message, stays).await;
            let pause = outcome.pause();
            let lacks_store = matches!(outcome, Outcome::Away | Outcome::Quiet);
            let refused = lacks_store || outcome == Outcome::Busy;
            if lacks_store && !self.ledger.may_lack_store(QUIET) {
                let wrong = format!(
                    "{} is refused though the store is up: {outcome:?}",
                    message.id
                );
                self.ledger.tell(wrong);
            }
            self.tally.count(outcome);
            if self.ledger.received(&message.id).is_some() {
                if refused {
                    let wrong = format!("{} was refused though it was sent", message.id);
                    self.ledger.tell(wrong);
                }
                if work.asks {
                    self.asking = Some(task.unwrap_or_else(|| task_of(&message.id)));
                }
                return;
            }
            let pause = pause / 2 + self.dice.below(pause);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn outcome(&mut self, message: &Message, stays: bool) -> Outcome {
        let leaves = !stays && self.dice.percent(LEAVE.0);
        let after = self.dice.below(LEAVE.1);
        let line = &mut self.lines[usize::try_from(self.dice.below(2)).unwrap()];
        let within = if leaves {
            Duration::from_millis(after)
        } else {
            message.work.takes + ANSWER
        };
        if let Ok(answered) = timeout(within, answered(line, message)).await {
            return answered.unwrap_or(Outcome::Cut);
        }
        line.hang_up();
        if leaves {
            return Outcome::Left;
        }
        let received = self.ledger.received(&message.id).map(|at| at.elapsed());
        Outcome::Else(format!(
            "no answer to {} of {}; received {received:?} ago",
            message.id, message.work
        ))
    }
}

async fn answered(line: &mut Line, message: &Message) -> Result<Outcome, Cut> {
    let (head, body) = line.post(message).await?.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?;
    Ok(Outcome::read(&head, &body.to_bytes()))
}
