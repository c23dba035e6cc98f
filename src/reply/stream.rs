//! A stream of events on its way from the agent to the client.
//!
//! ```text
//!   agent's bytes ─► sse::Reader ─► a2a::answer::event ─► out ─► client
//!                                        │   ▲
//!                      interrupted v0.3  ▼   │ the next event, the end, or `final_grace`
//!                                       held ┘
//! ```
//! At the end of the agent's stream, and when it breaks, falls silent or is told to stop, the client hears of it:
//! `ended` is only reached by a clean end or by one error frame.
//!
//! All events that have already arrived leave in one write; a lone one leaves at once. Only a v0.3 status in
//! an interrupted state waits, to learn whether it is the last (streams 4).
use std::{
    fmt::Display,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::Body;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

mod clock;
mod ending;
mod onward;
mod voice;

pub use onward::Onward;
pub use voice::Speech;

use clock::Clock;
use voice::Voice;

use crate::{
    a2a::{Fault, Kind, Op, answer, reply::ReplyTo},
    audit::Record,
    budget::Hold,
    policy::Permit,
    sse,
    state::Settling,
};

/// A frame is handed on when it has grown to this, even if more has arrived: the client's socket takes no
/// more at once.
const FRAME: usize = 32 * 1024;
/// Bytes that a stream holds without being counted.
const FREE: usize = 64 * 1024;
/// An agent that always has more to say would keep us from hearing that we are to stop: so often we listen.
const TURNS: u8 = 16;

/// Asks the agent for the task as it is, and gives its whole answer. It brings its own deadline.
pub type AskTask = Pin<Box<dyn Future<Output = Result<Bytes, Fault>> + Send>>;

/// Ends when the credential does that a stream was asked for with.
pub type Outlived = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Hears whether the agent takes a credential: once, with the first event that is none about an error, or with one that
/// says that the credential is wrong.
pub type Proof = Box<dyn FnOnce(bool) + Send>;

/// Events, translated as they are polled for.
pub struct Stream<B> {
    agent: B,
    reader: sse::Reader,
    voice: Voice,
    /// An event that waits to learn whether it is the last, and until when.
    held: Option<(Vec<u8>, Instant)>,
    opening: Opening,
    clock: Clock,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Ends when its caller's credential does.
    outlived: Option<Outlived>,
    proof: Option<Proof>,
    /// Turns since we last listened for `stop`.
    turns: u8,
    hold: Hold,
    /// What the call owes news of its events.
    permit: Permit,
    /// Its task, as far as that was learned: who is sent away subscribes to it again.
    task: Option<Box<str>>,
    /// What it tells of itself.
    record: Record,
    /// Its settlement is on its way to the store, and what shows it waits here.
    settling: Option<Wait>,
    ready: Vec<u8>,
    /// Where it goes on without a client.
    onward: Option<Onward>,
    ended: bool,
}

type Wait = Pin<Box<dyn Future<Output = bool> + Send>>;

/// How a stream begins (streams 7): a subscription may have to begin with the task.
enum Opening {
    /// As the agent begins it.
    Any,
    /// With the task; asked for if the first event is something else.
    Task(AskTask),
    /// It was asked for, and what the first event became waits for it.
    Asked(AskTask, Vec<u8>),
}

/// What became of one look at the agent.
enum Step {
    More,
    Wait,
    End,
}

impl<B> Stream<B>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    /// A stream that begins now. `stop` ends it with an error frame, so that its client subscribes again.
    pub fn new(
        agent: B,
        to: ReplyTo,
        speech: Arc<Speech>,
        hold: Hold,
        stop: WaitForCancellationFutureOwned,
    ) -> Self {
        Self {
            agent,
            reader: sse::Reader::new(speech.event),
            voice: Voice {
                to,
                speech,
                lost: vec![],
            },
            held: None,
            opening: Opening::Any,
            clock: Clock::start(),
            stop: Some(Box::pin(stop)),
            outlived: None,
            proof: None,
            turns: 0,
            hold,
            permit: Permit::default(),
            task: None,
            record: Record::default(),
            settling: None,
            ready: vec![],
            onward: None,
            ended: false,
        }
    }

    /// It looks after what it owes, also when its client has left: then it goes `onward`.
    pub fn owes(&mut self, permit: Permit, onward: Onward) {
        self.permit = permit;
        self.onward = Some(onward);
    }

    /// It tells what passes.
    pub fn tells(&mut self, record: Record) {
        self.record = record;
    }

    /// It does not outlive its caller's credential.
    pub fn ends_with(&mut self, outlived: Outlived) {
        self.outlived = Some(outlived);
    }

    /// What the agent says shows whether it takes its caller's credential.
    pub fn proves(&mut self, proof: Proof) {
        self.proof = Some(proof);
    }

    fn proven(&mut self, good: bool) {
        if let Some(proof) = self.proof.take() {
            proof(good);
        }
    }

    /// The same, beginning with the task.
    #[must_use]
    pub fn task_first(mut self, ask: AskTask) -> Self {
        self.opening = Opening::Task(ask);
        self
    }

    /// The next bytes for the client, or the end.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.ready.is_empty() {
            return self.hand_on(cx);
        }
        let mut out = Vec::new();
        self.turns += 1;
        if self.turns >= TURNS {
            self.turns = 0;
            self.listen(cx, &mut out);
        }
        while !self.ended && out.len() < FRAME {
            match self.step(cx, &mut out) {
                Step::More => {}
                Step::End => self.ended = true,
                Step::Wait if !out.is_empty() => break,
                Step::Wait => {
                    self.listen(cx, &mut out);
                    if !self.ended && !self.due(cx, &mut out) {
                        return Poll::Pending;
                    }
                    break;
                }
            }
        }
        if out.is_empty() {
            return Poll::Ready(None);
        }
        self.clock.wrote();
        self.ready = out;
        self.hand_on(cx)
    }

    /// What is ready, once the store knows what it shows.
    fn hand_on(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(settling) = &mut self.settling {
            let _in_time = ready!(settling.as_mut().poll(cx)); // the store has a deadline of its own
            self.settling = None;
        }
        let mut ready = std::mem::take(&mut self.ready);
        if let Some(fault) = self.permit.objection() {
            ready.clear();
            self.held = None;
            self.fail(&fault, &mut ready);
            self.ended = true;
        }
        Poll::Ready(Some(self.counted(ready)))
    }

    /// Translates what has arrived, else asks the agent for more.
    fn step(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Step {
        if !self.opened(cx, out) {
            return Step::Wait;
        }
        if let Err(fault) = self.events(out) {
            return self.fail(&fault, out);
        }
        if matches!(self.opening, Opening::Asked(..)) {
            return Step::More;
        }
        match Pin::new(&mut self.agent).poll_frame(cx) {
            Poll::Pending => Step::Wait,
            Poll::Ready(Some(Ok(frame))) => {
                self.clock.read();
                if let Some(data) = frame.data_ref() {
                    self.reader.push(data);
                }
                self.count(out)
            }
            Poll::Ready(Some(Err(error))) => self.fail(&broken(error.to_string()), out),
            Poll::Ready(None) => self.finish(out),
        }
    }

    /// Whether events may be written: not while the task is asked for that goes before them.
    fn opened(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> bool {
        let Opening::Asked(ask, late) = &mut self.opening else {
            return true;
        };
        let Poll::Ready(answer) = ask.as_mut().poll(cx) else {
            return false;
        };
        let told = answer.and_then(|task| self.voice.task(&task, out));
        if let Err(fault) = told {
            tracing::warn!(%fault, "a subscription begins without its task; it could not be had");
        }
        out.append(late);
        self.opening = Opening::Any;
        true
    }

    /// Counts what a large event holds before it is whole.
    fn count(&mut self, out: &mut Vec<u8>) -> Step {
        let waiting = self.held.as_ref().map_or(0, |(held, _)| held.len());
        let held = self.reader.held() + waiting;
        if held < FREE {
            if self.hold.bytes() > 0 {
                self.hold.resize(0);
            }
            return Step::More;
        }
        if self.hold.resize(held) {
            return Step::More;
        }
        self.fail(&no_room(), out)
    }

    /// Large output stays counted until it is written.
    fn counted(&mut self, out: Vec<u8>) -> Bytes {
        self.permit.told(out.len());
        if out.len() < FREE {
            return out.into();
        }
        let mut hold = self.hold.another();
        if hold.grow(out.len()) {
            return hold.keep(out.into());
        }
        let mut short = vec![];
        self.fail(&no_room(), &mut short);
        self.ended = true;
        short.into()
    }

    fn events(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        while !matches!(self.opening, Opening::Asked(..)) {
            let event = match self.reader.event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(sse::TooLong) => {
                    return Err(Fault::answer("an event is longer than limits.event"));
                }
            };
            if event.other {
                continue;
            }
            let Some(data) = event.data else {
                out.extend_from_slice(event.head);
                out.push(b'\n');
                continue;
            };
            // What waited is not the last after all. `final` before what follows it.
            if let Some((held, _)) = self.held.take() {
                self.voice.say_at_last(&held, false, out)?;
            }
            if event.error {
                let text = String::from_utf8_lossy(data);
                return Err(answer::read_fault(500, &text, Op::Stream));
            }
            let start = out.len();
            out.extend_from_slice(event.head);
            let mut seen = self.voice.say(data, false, out)?;
            if let Some(proof) = self.proof.take() {
                proof(true);
            }
            let settling = self.permit.seen(&seen, data);
            wait_for(settling, &mut self.settling);
            self.record.event(&seen);
            if self.task.is_none() {
                self.task = seen.named.task.take();
            }
            self.record.lost(&std::mem::take(&mut self.voice.lost));
            self.voice.to.learn = self.permit.learns() || self.record.learns();
            if self.voice.waits(&seen) {
                out.truncate(start);
                out.extend_from_slice(event.head);
                let until = Instant::now() + self.voice.speech.final_grace;
                self.held = Some((data.to_vec(), until));
            }
            self.opening = match std::mem::replace(&mut self.opening, Opening::Any) {
                Opening::Task(ask) if !seen.task => Opening::Asked(ask, out.split_off(start)),
                Opening::Task(_) | Opening::Any | Opening::Asked(..) => Opening::Any,
            };
        }
        Ok(())
    }
}

/// Both before what shows them is written.
fn wait_for(settling: Settling, waiting: &mut Option<Wait>) {
    let Settling::Wait(more) = settling else {
        return;
    };
    *waiting = Some(match waiting.take() {
        None => more,
        Some(first) => Box::pin(async move { first.await & more.await }),
    });
}

fn broken(cause: impl Into<String>) -> Fault {
    Fault::new(Kind::BackendBroken, "upstream stream interrupted").because(cause)
}

fn no_room() -> Fault {
    Fault::new(Kind::Overloaded, "no memory is left for this event").because("limits.buffered")
}

#[cfg(test)]
mod tests;
