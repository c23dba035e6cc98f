//! What is known of a call so far. When it is dropped, nobody is left who could tell more of it: it is written.
use std::{cell::RefCell, sync::Arc};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    audit::{
        Log,
        entry::{Call, Decision, Who},
    },
    telemetry::{Ears, Heard, Told},
};

/// So much room is kept for the text of a record: most take less.
const USUAL: usize = 4096;

pub(super) struct Open {
    /// Where it is written, if it is.
    pub(super) log: Option<Arc<Log>>,
    /// Who else wants to know.
    pub(super) ears: Option<Arc<Ears>>,
    pub(super) begun: Instant,
    /// Whether somebody wants to know names and ids.
    pub(super) all: bool,
    /// Whether spans are made of it.
    pub(super) traced: bool,
    /// After so many microseconds it ended, where the last that knows of it has looked.
    pub(super) ended: Option<u64>,
    pub(super) call: Mutex<Call>,
}

impl Open {
    pub(super) fn micros(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or_else(|| self.micros());
        let call = self.call.get_mut();
        call.micros.ended = ended;
        if let Some(ears) = &self.ears {
            let mut heard = std::mem::take(&mut call.heard);
            heard.gone(ended); // at the latest
            ears.ended(&told(call, &heard), &heard);
        }
        if let Some(log) = &self.log {
            let write = |line: &mut Vec<u8>| {
                line.clear();
                call.write(line);
                log.queue.push(line, call.place);
                line.shrink_to(USUAL);
            };
            // A thread that ends has none any more.
            if LINE.try_with(|line| write(&mut line.borrow_mut())).is_err() {
                write(&mut vec![]);
            }
        }
    }
}

thread_local! {
    /// Where a record becomes text, before it goes behind the others.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
}

/// What telemetry is told of a call that has ended.
fn told<'a>(call: &'a Call, heard: &Heard) -> Told<'a> {
    Told {
        peer: call.peer,
        caller: match &call.caller {
            Who::Known(name) => Some(name),
            Who::Peer(_) => None,
        },
        route: call.route.as_deref(),
        method: heard.method,
        from: heard.from,
        to: heard.to,
        context: call.context.as_deref(),
        task: call.task.as_deref(),
        message: call.message.as_deref(),
        refused: call.decision == Decision::Refused,
        rule: call.rule.as_deref(),
        fault: call.fault,
        status: call.status,
        state: call.state,
        left: call.left,
        bytes: (call.bytes.from, call.bytes.to),
        events: call.events,
        micros: call.micros.ended,
    }
}
