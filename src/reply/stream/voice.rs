//! How a stream's events are said to its client, one by one.
use std::{sync::Arc, time::Duration};

use crate::a2a::{
    Dialect, Fault, Version,
    answer::{self, Seen},
    reply::ReplyTo,
    shape::{Loss, Options, State},
};

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

/// How events are said.
pub(super) struct Voice {
    pub(super) to: ReplyTo,
    pub(super) speech: Arc<Speech>,
    /// What events lost.
    pub(super) lost: Vec<Loss>,
}

impl Voice {
    /// One event in the client's words; nothing is written if it cannot be told. `last` says whether an
    /// interrupted state ends the stream.
    pub(super) fn say(
        &mut self,
        data: &[u8],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<Seen, Fault> {
        let mut losses = vec![];
        let (to, from, options) = (&mut self.to, self.speech.from, &self.speech.options);
        let seen = answer::event(to, from, data, last, options, &mut losses, out)?;
        for loss in &losses {
            tracing::debug!(
                path = loss.label(),
                why = loss.why,
                "lost in a stream event"
            );
        }
        self.lost.append(&mut losses);
        Ok(seen)
    }

    /// An event that was told of before, but not written: what it lost is counted already.
    pub(super) fn say_at_last(
        &mut self,
        data: &[u8],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<Seen, Fault> {
        let counted = self.lost.len();
        let seen = self.say(data, last, out);
        self.lost.truncate(counted);
        seen
    }

    /// The agent's answer to `GetTask` as an event.
    pub(super) fn task(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        answer::task_event(
            &self.to,
            self.speech.from,
            answer,
            &self.speech.options,
            out,
        )
        .map(drop)
    }

    /// Whether an event waits to learn whether it is the last.
    pub(super) fn waits(&self, seen: &Seen) -> bool {
        seen.update
            && seen.state == Some(State::Interrupted)
            && self.to.dialect.shape.version() == Version::V03
            && !self.speech.final_grace.is_zero()
    }
}
