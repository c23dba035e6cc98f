//! How a stream ends: as its agent ends it, or by a fault, a stop, a credential that is over, too long a silence. Of each
//! but the first the client hears in one error frame.
use std::{
    fmt::Display,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Body;

use super::{Opening, Outlived, Step, Stream, broken, clock::Due, wait_for};
use crate::a2a::{Fault, Kind, Op, answer, fault::Blame};

impl<B> Stream<B>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    /// The agent's stream has ended well, perhaps without the blank line after its last event: that event is
    /// taken if it is whole, else told as broken, never guessed.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Step {
        let rest = self.reader.rest().filter(|rest| !rest.other);
        let rest =
            rest.and_then(|rest| Some((rest.head.to_vec(), rest.data?.to_vec(), rest.error)));
        if let Err(fault) = self.release(rest.is_none(), out) {
            return self.fail(&fault, out);
        }
        let Some((head, data, error)) = rest else {
            return Step::End;
        };
        if error {
            let text = String::from_utf8_lossy(&data);
            return self.fail(&answer::read_fault(500, &text, Op::Stream), out);
        }
        out.extend_from_slice(&head);
        match self.voice.say(&data, true, out) {
            Ok(seen) => {
                self.proven(true);
                wait_for(self.permit.seen(&seen, &data), &mut self.settling);
                self.record.event(&seen);
                self.record.lost(&std::mem::take(&mut self.voice.lost));
                Step::End
            }
            Err(fault) if fault.kind == Kind::InvalidAgentResponse => {
                self.fail(&broken("it ended within an event"), out)
            }
            Err(fault) => self.fail(&fault, out),
        }
    }

    /// Lets go of the event that waits.
    fn release(&mut self, last: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        if let Some((held, _)) = self.held.take() {
            self.voice.say_at_last(&held, last, out)?;
        }
        Ok(())
    }

    /// Ends the stream with a frame that says why, and with a line in the log that says whose fault it is.
    pub(super) fn fail(&mut self, fault: &Fault, out: &mut Vec<u8>) -> Step {
        let dialect = self.voice.to.dialect.name();
        if fault.kind == Kind::Unauthenticated {
            self.proven(false);
        }
        if fault.blame != Blame::Gateway {
            wait_for(self.permit.failed(fault, true), &mut self.settling); // else nothing is known of the agent
        }
        match fault.blame {
            Blame::Caller => tracing::debug!(dialect, %fault, "a stream ended with an error frame"),
            Blame::Agent => tracing::warn!(
                dialect, %fault,
                "the agent failed a stream, which ended with an error frame; look at its log for this time"
            ),
            Blame::Gateway => tracing::warn!(
                dialect, %fault,
                "the gateway ended a stream with an error frame; see limits"
            ),
        }
        self.part(fault, out);
        Step::End
    }

    /// The last frame: never a cut without a word, never a clean end.
    fn part(&mut self, fault: &Fault, out: &mut Vec<u8>) {
        if let Opening::Asked(_, late) = &mut self.opening {
            out.append(late);
        }
        if let Err(worse) = self.release(false, out) {
            tracing::debug!(fault = %worse, "the held event could not be told");
        }
        self.record.failed(fault);
        self.voice.to.frame(fault, out);
    }

    /// Ends the stream if that was asked for.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        let ready = |outlived: &mut Outlived| outlived.as_mut().poll(cx).is_ready();
        if self.outlived.as_mut().is_some_and(ready) {
            self.outlived = None;
            let words = "the credential is no longer good; subscribe to the task with another";
            self.part(&Fault::new(Kind::Unauthenticated, words), out);
            self.ended = true;
            return;
        }
        let Some(stop) = &mut self.stop else { return };
        if stop.as_mut().poll(cx).is_ready() {
            self.stop = None;
            let words = "the gateway is stopping; subscribe to the task again";
            let mut fault = Fault::new(Kind::Overloaded, words);
            if let Some(task) = &self.task {
                fault = fault.with("taskId", &**task);
            }
            self.part(&fault, out);
            self.ended = true;
        }
    }

    /// Nothing is there: does what time asks for. True if something is to be written.
    pub(super) fn due(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> bool {
        // Nothing held goes before the task that is asked for.
        let asking = matches!(self.opening, Opening::Asked(..));
        let grace = self.held.as_ref().map(|(_, until)| *until);
        let grace = grace.filter(|_| !asking);
        let Poll::Ready(due) = self.clock.due(cx, &self.voice.speech, grace) else {
            return false;
        };
        let done = match due {
            Due::Grace => self.release(false, out),
            Due::KeepAlive => {
                out.extend_from_slice(b": keep-alive\n\n");
                Ok(())
            }
            Due::Idle => Err(Fault::new(Kind::BackendTimeout, "the agent fell silent")),
        };
        if let Err(fault) = done {
            self.fail(&fault, out);
            self.ended = true;
        }
        true
    }
}
