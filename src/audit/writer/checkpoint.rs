//! How far the chain has got, for whoever keeps what the gateway says where nobody can cut it.
use std::{io, time::Duration};

use jiff::Timestamp;

use super::{Writer, later};
use crate::audit::{
    chain::hex,
    entry::{Checkpoint, Line},
};

/// Between two words about checkpoints that stdout does not take.
const SELDOM: Duration = Duration::from_mins(10);

impl Writer {
    /// Tells it. Nobody waits for it but lines that go the same way.
    pub(super) fn checkpoint(&mut self) {
        self.next_anchor = later(self.times.checkpoint);
        if !self.lines_to_stdout {
            let errors = self.stdout.untold();
            if !errors.is_empty() {
                self.anchored = 0; // what was taken for told was not
            }
            self.not_told(&errors);
        }
        if self.anchored == self.chain.seq {
            return;
        }
        self.sync(); // what others are told is there stays there
        let line = Line::Checkpoint(Checkpoint {
            time: Timestamp::now(),
            log: &self.log,
            seq: self.chain.seq,
            link: &hex(&self.chain.last),
        });
        let mut text = serde_json::to_vec(&line).expect("it has no key that is not a string");
        text.push(b'\n');
        if let Some(otlp) = self.otlp.as_ref().filter(|otlp| !otlp.is_behind()) {
            otlp.push(text.clone(), vec![]);
        }
        if self.lines_to_stdout {
            self.stdout.push(&text); // else it could stand within a line
            match self.stdout.write() {
                Ok(()) => self.anchored = self.chain.seq,
                Err(error) => tracing::debug!(%error, "a checkpoint waits to be written"), // with the next lines
            }
            return;
        }
        match self.stdout.tell(text) {
            Ok(()) => self.anchored = self.chain.seq,
            Err(error) => self.not_told(&[error]),
        }
    }

    /// Counts checkpoints that were not told, and says so once in a while.
    pub(super) fn not_told(&mut self, errors: &[io::Error]) {
        let Some(error) = errors.last() else { return };
        self.queue.not_told(errors.len());
        if Timestamp::now() >= self.next_word {
            self.next_word = later(SELDOM);
            tracing::warn!(
                %error,
                "checkpoints of the audit log are not told on stdout: what is cut off the log's end meanwhile cannot be \
                 shown; see to who reads stdout, or set audit.checkpoint: 0"
            );
        }
    }
}
