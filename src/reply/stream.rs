//! A stream of events on its way from the agent to the client.
//!
//! ```text
//!   agent's bytes ─► sse::Reader ─► a2a::answer::event ─► out ─► client
//!                                        │   ▲
//!                      interrupted v0.3  ▼   │ the next event, the end, or `final_grace`
//!                                       held ┘
//! ```
//! All events that have already arrived leave in one write; a lone one leaves at once. Only a v0.3 status in
//! an interrupted state waits, to learn whether it is the last (streams 4).
use std::{
    fmt::Display,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    a2a::{
        Dialect, Fault, Kind, Op, Version,
        answer::{self, Seen},
        reply::ReplyTo,
        shape::{Loss, Options, State},
    },
    gateway::budget::Hold,
    sse,
};

/// A frame is handed on when it has grown to this, even if more has arrived: the client's socket takes no
/// more at once.
const FRAME: usize = 32 * 1024;
/// Bytes that a stream holds without being counted.
const FREE: usize = 64 * 1024;

/// What a stream goes by.
#[derive(Clone, Debug)]
pub struct Speech {
    /// How the agent speaks.
    pub from: Dialect,
    /// What the operator chose about translation.
    pub options: Arc<Options>,
    /// How long an interrupted status may wait to learn whether it is the last.
    pub final_grace: Duration,
    /// How often a silent stream gets a comment; zero is never.
    pub keep_alive: Duration,
    /// How long the agent may be silent.
    pub idle: Duration,
    /// The longest event.
    pub event: usize,
}

/// Events, translated as they are polled for.
pub struct Stream<B> {
    agent: B,
    reader: sse::Reader,
    to: ReplyTo,
    speech: Arc<Speech>,
    /// An event that waits to learn whether it is the last.
    held: Option<(Vec<u8>, Instant)>,
    /// One timer for all that is waited for; armed only when there is nothing to do.
    timer: Option<Pin<Box<Sleep>>>,
    read_at: Instant,
    wrote_at: Instant,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    hold: Hold,
    ended: bool,
    losses: usize,
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
        let now = Instant::now();
        Self {
            agent,
            reader: sse::Reader::new(speech.event),
            to,
            speech,
            held: None,
            timer: None,
            read_at: now,
            wrote_at: now,
            stop: Some(Box::pin(stop)),
            hold,
            ended: false,
            losses: 0,
        }
    }

    /// The next bytes for the client, or the end.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.ended && out.len() < FRAME {
            match self.step(cx, &mut out) {
                Step::More => {}
                Step::End => self.ended = true,
                Step::Wait if !out.is_empty() => break,
                Step::Wait => {
                    if !self.due(cx, &mut out) {
                        return Poll::Pending;
                    }
                    break;
                }
            }
        }
        if out.is_empty() {
            return Poll::Ready(None);
        }
        self.wrote_at = Instant::now();
        Poll::Ready(Some(out.into()))
    }

    /// Translates what has arrived, else asks the agent for more.
    fn step(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Step {
        if let Err(fault) = self.events(out) {
            return self.fail(&fault, out);
        }
        match Pin::new(&mut self.agent).poll_frame(cx) {
            Poll::Pending => Step::Wait,
            Poll::Ready(Some(Ok(frame))) => {
                self.read_at = Instant::now();
                if let Some(data) = frame.data_ref() {
                    self.reader.push(data);
                    return self.counted(out);
                }
                Step::More
            }
            Poll::Ready(Some(Err(error))) => {
                let fault = Fault::new(Kind::BackendBroken, "upstream stream interrupted")
                    .because(error.to_string());
                self.fail(&fault, out)
            }
            Poll::Ready(None) => self.finish(out),
        }
    }

    /// Counts what a large event holds.
    fn counted(&mut self, out: &mut Vec<u8>) -> Step {
        let held = self.reader.held();
        if held < FREE || self.hold.resize(held) {
            return Step::More;
        }
        let fault = Fault::new(Kind::Overloaded, "no memory is left for this event");
        self.fail(&fault, out)
    }

    fn events(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        loop {
            let event = match self.reader.next() {
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
                say(
                    &mut self.to,
                    &self.speech,
                    &held,
                    false,
                    &mut self.losses,
                    out,
                )?;
            }
            if event.error {
                let text = String::from_utf8_lossy(data);
                return Err(answer::read_fault(500, &text, Op::Stream));
            }
            let start = out.len();
            out.extend_from_slice(event.head);
            let seen = say(
                &mut self.to,
                &self.speech,
                data,
                false,
                &mut self.losses,
                out,
            )?;
            if waits(&self.to, &self.speech, seen) {
                out.truncate(start);
                out.extend_from_slice(event.head);
                self.held = Some((data.to_vec(), Instant::now() + self.speech.final_grace));
            }
        }
    }

    /// The agent's stream has ended well.
    fn finish(&mut self, out: &mut Vec<u8>) -> Step {
        if let Err(fault) = self.release(true, out) {
            return self.fail(&fault, out);
        }
        let rest = self.reader.rest().map(<[u8]>::to_vec);
        let Some(rest) = rest.filter(|r| !r.is_empty()) else {
            return Step::End;
        };
        // The blank line is missing: taken if it is whole, else told as broken, never guessed.
        let start = out.len();
        match say(
            &mut self.to,
            &self.speech,
            &rest,
            true,
            &mut self.losses,
            out,
        ) {
            Ok(_) => Step::End,
            Err(_) => {
                out.truncate(start);
                let fault = Fault::new(Kind::BackendBroken, "upstream stream interrupted")
                    .because("it ended within an event");
                self.fail(&fault, out)
            }
        }
    }

    /// Lets go of the event that waits.
    fn release(&mut self, last: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        if let Some((held, _)) = self.held.take() {
            say(
                &mut self.to,
                &self.speech,
                &held,
                last,
                &mut self.losses,
                out,
            )?;
        }
        Ok(())
    }

    /// Ends the stream with a frame that says why. Never a cut without a word, never a clean end.
    fn fail(&mut self, fault: &Fault, out: &mut Vec<u8>) -> Step {
        if let Err(worse) = self.release(false, out) {
            tracing::debug!(fault = %worse, "the held event could not be told");
        }
        tracing::warn!(
            fault = %fault,
            dialect = self.to.dialect.name(),
            "a stream ended with an error frame; look at the agent's log for this time"
        );
        self.to.frame(fault, out);
        Step::End
    }

    /// Nothing is there: looks at the clock and at the drain. True if something is to be written (or the
    /// stream has ended).
    fn due(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(stop) = &mut self.stop
            && stop.as_mut().poll(cx).is_ready()
        {
            self.stop = None;
            let fault = Fault::new(
                Kind::Overloaded,
                "the gateway is stopping; subscribe to the task again",
            );
            self.fail(&fault, out);
            self.ended = true;
            return true;
        }
        loop {
            let (at, what) = self.next_due();
            let Some(timer) = &mut self.timer else {
                self.timer = Some(Box::pin(tokio::time::sleep_until(at)));
                continue;
            };
            // A timer that is early is only armed again when it fires: an event costs no timer.
            if timer.deadline() > at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            if at > Instant::now() {
                timer.as_mut().reset(at);
                continue;
            }
            self.timer = None;
            match what {
                Due::Grace => {
                    if let Err(fault) = self.release(false, out) {
                        self.fail(&fault, out);
                        self.ended = true;
                    }
                }
                Due::KeepAlive => out.extend_from_slice(b": keep-alive\n\n"),
                Due::Idle => {
                    let fault = Fault::new(Kind::BackendTimeout, "the agent fell silent");
                    self.fail(&fault, out);
                    self.ended = true;
                }
            }
            return true;
        }
    }

    fn next_due(&self) -> (Instant, Due) {
        let mut due = (self.read_at + self.speech.idle, Due::Idle);
        if !self.speech.keep_alive.is_zero() {
            let at = self.wrote_at + self.speech.keep_alive;
            if at < due.0 {
                due = (at, Due::KeepAlive);
            }
        }
        match &self.held {
            Some((_, at)) if *at < due.0 => (*at, Due::Grace),
            _ => due,
        }
    }
}

enum Due {
    Grace,
    KeepAlive,
    Idle,
}

/// One event in the client's words.
fn say(
    to: &mut ReplyTo,
    speech: &Speech,
    data: &[u8],
    last: bool,
    losses: &mut usize,
    out: &mut Vec<u8>,
) -> Result<Seen, Fault> {
    let mut lost: Vec<Loss> = vec![];
    let seen = answer::event(to, speech.from, data, last, &speech.options, &mut lost, out)?;
    if !lost.is_empty() {
        *losses += lost.len();
        for loss in &lost {
            tracing::debug!(
                path = loss.label(),
                why = loss.why,
                "lost in a stream event"
            );
        }
    }
    Ok(seen)
}

/// Whether an event waits to learn whether it is the last.
fn waits(to: &ReplyTo, speech: &Speech, seen: Seen) -> bool {
    seen.update
        && seen.state == Some(State::Interrupted)
        && to.dialect.shape.version() == Version::V03
        && !speech.final_grace.is_zero()
}

#[cfg(test)]
mod tests;
