//! stdout, written by a thread of its own: it may be a pipe that nobody reads, and a write to a full one does not return.
//!
//! ```text
//!   writer ── tell: a checkpoint, if there is room ──► a few ──► thread ──► stdout
//!      ▲  └── push, write: all lines, waited for ──────▲           │
//!      └───────────────── what became of each ─────────────────────┘
//! ```
use std::{
    io::{self, ErrorKind, Write},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use super::outlet::Outlet;

/// So many checkpoints may wait: a reader that is slow for a while has all of them.
const FEW: usize = 4;
/// Who takes nothing for so long does not read.
const PATIENCE: Duration = Duration::from_secs(1);
const UNREAD: &str = "nobody reads stdout";
/// The same, where records wait for it.
const STALLED: &str = "nobody reads stdout, to which audit.stdout writes records: see to what reads it, or have them in \
    audit.folder alone";

pub(super) struct Stdout {
    /// What the thread is given; none once no more is to come.
    to: Option<SyncSender<Vec<u8>>>,
    /// What became of each.
    from: Receiver<io::Result<()>>,
    /// Lines that it was not given.
    lines: Vec<u8>,
    /// It was given lines, and did not say what became of them.
    waits: bool,
    /// It could not write all that it has.
    left: bool,
}

impl Stdout {
    /// Starts the thread. What it cannot write it tries again with what follows, if it `keeps` all; else it forgets it.
    pub(super) fn start(to: impl Write + Send + 'static, keeps: bool) -> io::Result<Self> {
        let (sender, given) = sync_channel(FEW);
        // Room for all that waits, for what is being written and for one that was not looked at yet.
        let (became, from) = sync_channel(FEW + 2);
        let thread = thread::Builder::new().name("audit-stdout".to_owned());
        thread.spawn(move || run(Outlet::new(to), keeps, &given, &became))?;
        Ok(Self {
            to: Some(sender),
            from,
            lines: vec![],
            waits: false,
            left: false,
        })
    }

    /// Lines that are to be written.
    pub(super) fn push(&mut self, lines: &[u8]) {
        self.lines.extend_from_slice(lines);
    }

    /// Waits until all of them are, for as long as somebody reads.
    pub(super) fn write(&mut self) -> io::Result<()> {
        loop {
            if !self.waits {
                if self.lines.is_empty() && !self.left {
                    return Ok(());
                }
                let lines = std::mem::take(&mut self.lines);
                self.give(lines)?;
                self.waits = true;
            }
            match self.from.recv_timeout(PATIENCE) {
                Ok(written) => {
                    self.waits = false;
                    self.left = written.is_err();
                    written?;
                }
                Err(RecvTimeoutError::Timeout) => return Err(late(STALLED)),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// A line that is told if there is room for it, without waiting.
    pub(super) fn tell(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.give(line)
    }

    /// Why lines were not told that there was room for, since this was asked last.
    pub(super) fn untold(&mut self) -> Vec<io::Error> {
        self.from.try_iter().filter_map(Result::err).collect()
    }

    fn give(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let to = self.to.as_ref().ok_or_else(gone)?;
        to.try_send(bytes).map_err(|_| late(UNREAD))
    }

    /// No more is to come: waits for what is under way, and says why lines were not told.
    pub(super) fn end(&mut self) -> Vec<io::Error> {
        self.to = None;
        let mut errors = vec![];
        loop {
            match self.from.recv_timeout(PATIENCE) {
                Ok(written) => errors.extend(written.err()),
                Err(RecvTimeoutError::Disconnected) => return errors,
                Err(RecvTimeoutError::Timeout) => {
                    errors.push(late(UNREAD));
                    return errors;
                }
            }
        }
    }
}

fn run(
    mut outlet: Outlet<impl Write>,
    keeps: bool,
    given: &Receiver<Vec<u8>>,
    became: &SyncSender<io::Result<()>>,
) {
    for bytes in given {
        outlet.push(&bytes);
        let written = outlet.write();
        if written.is_err() && !keeps {
            outlet.forget();
        }
        if became.send(written).is_err() {
            return;
        }
    }
}

fn late(why: &str) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, why)
}

fn gone() -> io::Error {
    io::Error::new(ErrorKind::BrokenPipe, "nobody writes to stdout any more")
}
