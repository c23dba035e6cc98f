//! The writer: a thread that takes records from the queue, links them and writes them.
//!
//! ```text
//!   look ──► link what waits ──► write ──► give places back ──► sync ──► checkpoint ──┐
//!    ▲          │ file full or old            │ failed                                │
//!    │          └─ begin the next             └─ pause and try again                  │
//!    └──────────────────── half of audit.flush, or many records wait ◄────────────────┘
//! ```
//! With or without `audit.sync`, the disk has all of a file before the next is begun, and what a checkpoint tells of: so a
//! loss of power leaves a log that is shorter, and never one with a hole.
//!
//! A record that cannot be written keeps its place. So a disk that is full ends in a full queue, and there
//! `audit.on_full` decides. A checkpoint has no place and waits for nobody: one that stdout does not take is counted.
use std::{fs::File, io, path::PathBuf, sync::Arc, thread, time::Duration};

use jiff::Timestamp;

use super::{
    BadAudit,
    chain::{Chain, Key, NO_LINK, hex, random},
    entry::{Head, Line, Missed},
    files::{Folder, Tail},
    otlp::{self, Sink},
    outlet::Outlet,
    queue::{Batch, Place, Queue},
    stdout::Stdout,
};

mod checkpoint;

/// So many bytes are written at once.
const CHUNK: usize = 256 * 1024;
/// How long to wait before what failed is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How long to go on with a file where the next cannot be begun, and between two words about missing records.
const LATER: Duration = Duration::from_secs(10);

/// Where lines go.
pub(super) struct Outlets {
    pub(super) folder: Option<PathBuf>,
    /// Must not be in it.
    pub(super) key_file: PathBuf,
    pub(super) stdout: bool,
    /// Who sends all lines to a collector.
    pub(super) otlp: Option<otlp::Sender>,
}

/// How often.
pub(super) struct Times {
    pub(super) flush: Duration,
    pub(super) sync: bool,
    pub(super) rotate_size: u64,
    pub(super) rotate_time: Duration,
    pub(super) checkpoint: Duration,
}

/// What the writer goes by, and may be told anew.
pub(super) struct Goes {
    pub(super) times: Times,
    /// Whether calls without a place are refused.
    pub(super) refuses: bool,
}

/// Opens the log and starts the thread.
pub(super) fn start(
    outlets: Outlets,
    times: Times,
    refuses: bool,
    key: Arc<Key>,
    queue: Arc<Queue>,
) -> Result<(), BadAudit> {
    let stdout = io::stdout();
    let stdout = std::os::fd::AsFd::as_fd(&stdout).try_clone_to_owned();
    let stdout = File::from(stdout.map_err(BadAudit::Begin)?);
    let writer = Writer::open(outlets, stdout, times, refuses, key, queue)?;
    let thread = thread::Builder::new().name("audit".to_owned());
    thread
        .spawn(move || writer.run())
        .map_err(BadAudit::Begin)?;
    Ok(())
}

struct Writer {
    chain: Chain,
    /// The name of the chain.
    log: String,
    files: Option<Files>,
    stdout: Stdout,
    /// Whether all lines go there, or checkpoints alone.
    lines_to_stdout: bool,
    /// The collector.
    otlp: Option<Sink>,
    /// Linked, and not yet given to where they go.
    lines: Vec<u8>,
    /// The places of calls in what is not yet written.
    linked: Vec<Place>,
    /// Calls without a record that nobody was told of, and when somebody may be.
    untold: u64,
    next_told: Timestamp,
    /// The last try to write failed.
    fails: bool,
    /// The last line that a checkpoint told.
    anchored: u64,
    next_anchor: Timestamp,
    /// When somebody may be told of checkpoints that could not be.
    next_word: Timestamp,
    times: Times,
    refuses: bool,
    queue: Arc<Queue>,
}

struct Files {
    folder: Folder,
    current: Option<Current>,
}

/// The file that lines go to.
struct Current {
    outlet: Outlet<File>,
    name: String,
    bytes: u64,
    /// Something was written that the disk was not asked to keep.
    unsynced: bool,
    /// When the next is due.
    until: Timestamp,
}

impl Writer {
    /// Opens the log, and begins a file of it.
    fn open(
        outlets: Outlets,
        stdout: File,
        times: Times,
        refuses: bool,
        key: Arc<Key>,
        queue: Arc<Queue>,
    ) -> Result<Self, BadAudit> {
        let folder = outlets.folder.as_deref();
        let folder = folder.map(|path| Folder::take(path, &outlets.key_file));
        let folder = folder.transpose().map_err(BadAudit::Folder)?;
        let tail = folder.as_ref().map(|folder| folder.tail(&key));
        let tail = tail.transpose().map_err(BadAudit::Folder)?.flatten();
        let (seq, last) = tail.as_ref().map_or((0, NO_LINK), |t| (t.seq, t.link));
        let log = match &tail {
            Some(tail) => tail.log.clone(),
            None => format!("{:016x}", random()),
        };
        let stdout = Stdout::start(stdout, outlets.stdout).map_err(BadAudit::Begin)?;
        let sink = |sender| Sink::start(sender, queue.clone());
        let otlp = outlets.otlp.map(sink).transpose();
        let mut writer = Self {
            otlp: otlp.map_err(BadAudit::Begin)?,
            chain: Chain::new(key, seq, last),
            log,
            files: folder.map(|folder| Files {
                folder,
                current: None,
            }),
            stdout,
            lines_to_stdout: outlets.stdout,
            lines: vec![],
            linked: vec![],
            untold: 0,
            next_told: Timestamp::now(),
            fails: false,
            anchored: 0,
            next_anchor: Timestamp::now(),
            next_word: Timestamp::now(),
            times,
            refuses,
            queue,
        };
        let begun = writer.begin_file(tail.as_ref());
        begun.map_err(|e| BadAudit::Folder(e.to_string()))?;
        Ok(writer)
    }

    fn run(mut self) {
        let mut batch = Batch::default();
        loop {
            if let Some(Goes { times, refuses }) = self.queue.news() {
                (self.times, self.refuses) = (times, refuses);
            }
            let look = self.times.flush / 2; // half of it may go by before, and half for writing
            let more = self.queue.next(look, &mut batch);
            let done = self.turn(&batch);
            batch.clear(); // also what was given up
            if !more {
                self.end(done);
                return;
            }
        }
    }

    /// Writes what waits. False if that was given up.
    fn turn(&mut self, batch: &Batch) -> bool {
        // What has no place waits for a collector that is far behind; it is told together then.
        let behind = self.otlp.as_ref().is_some_and(Sink::is_behind);
        let missed = if behind { 0 } else { self.queue.take_missed() };
        if missed > 0 {
            self.missed(missed);
        }
        if self.untold > 0 && Timestamp::now() >= self.next_told {
            self.tell_of_missed();
        }
        for (record, place) in batch.iter() {
            self.make_room();
            self.chain.link(record, &mut self.lines);
            self.linked.push(place);
            if self.lines.len() >= CHUNK && !self.write() {
                return false;
            }
        }
        if !self.write() {
            return false;
        }
        if self.times.sync {
            self.sync();
        }
        if self.times.checkpoint > Duration::ZERO && Timestamp::now() >= self.next_anchor {
            self.checkpoint();
        }
        true
    }

    fn missed(&mut self, calls: u64) {
        let served = !self.refuses;
        let time = Timestamp::now();
        let missed = Missed {
            time,
            calls,
            served,
        };
        self.chain.add(&Line::Missed(missed), &mut self.lines);
        self.untold += calls;
    }

    /// Once in a while: whoever makes calls too many must not fill our log as well.
    fn tell_of_missed(&mut self) {
        self.next_told = later(LATER);
        let calls = std::mem::take(&mut self.untold);
        if self.refuses {
            tracing::warn!(
                calls,
                "calls were refused: they found no place in audit.queue, or their peer had its share of it"
            );
        } else {
            tracing::warn!(
                calls,
                "calls are not in the audit log: they found no place in audit.queue, or their peer had its share of it"
            );
        }
    }

    /// Begins the next file if this one is full or old.
    fn make_room(&mut self) {
        let Some(current) = self.files.as_ref().and_then(|f| f.current.as_ref()) else {
            return;
        };
        let full = current.bytes + self.lines.len() as u64 >= self.times.rotate_size;
        if !full && Timestamp::now() < current.until {
            return;
        }
        if !self.write() {
            return;
        }
        if let Err(error) = self.begin_file(None) {
            tracing::error!(%error, "the audit log's next file cannot be begun; this one goes on");
            self.put_off();
        }
    }

    /// The file goes on for a while, however full.
    fn put_off(&mut self) {
        if let Some(current) = self.files.as_mut().and_then(|f| f.current.as_mut()) {
            current.bytes = self.times.rotate_size.saturating_sub(CHUNK as u64 * 64);
            current.until = later(LATER);
        }
    }

    /// Begins a file, and with it the chain here. `tail` is of another process.
    fn begin_file(&mut self, tail: Option<&Tail>) -> io::Result<()> {
        let current = self.files.as_ref().and_then(|f| f.current.as_ref());
        if let Some(current) = current {
            current.outlet.inner().sync_all()?; // what follows would say that its end was cut off
        }
        let (seq, last) = (self.chain.seq, self.chain.last);
        let after = (seq > 0).then(|| hex(&last));
        let head = Head {
            time: Timestamp::now(),
            log: &self.log,
            previous: tail.map(|t| &*t.file).or(current.map(|c| &*c.name)),
            after: after.as_deref(),
            torn: tail.map_or(0, |t| t.torn),
        };
        let mut line = vec![];
        self.chain.add(&Line::File(head), &mut line);
        if let Some(files) = &mut self.files {
            let begun = files.folder.begin(self.chain.seq, &line);
            let (file, name) = begun.inspect_err(|_| {
                (self.chain.seq, self.chain.last) = (seq, last);
            })?;
            files.current = Some(Current {
                outlet: Outlet::new(file),
                name,
                bytes: line.len() as u64,
                unsynced: false,
                until: later(self.times.rotate_time),
            });
        }
        if self.lines_to_stdout {
            self.stdout.push(&line);
        }
        if let Some(otlp) = &self.otlp {
            otlp.push(line, vec![]);
        }
        Ok(())
    }

    /// Writes what is linked, however often that has to be tried. False once nobody waits for it any more.
    fn write(&mut self) -> bool {
        if let Some(current) = self.files.as_mut().and_then(|f| f.current.as_mut()) {
            current.outlet.push(&self.lines);
            current.bytes += self.lines.len() as u64;
            current.unsynced |= !self.lines.is_empty();
        }
        if self.lines_to_stdout {
            self.stdout.push(&self.lines);
        }
        let lines = std::mem::take(&mut self.lines);
        while let Err(error) = self.try_to_write() {
            if !std::mem::replace(&mut self.fails, true) {
                tracing::error!(%error, "the audit log cannot be written; it is tried again until audit.queue is full");
            }
            if !self.queue.pause(RETRY) {
                return false;
            }
        }
        if std::mem::take(&mut self.fails) {
            tracing::info!("the audit log is written again");
        }
        if let Some(otlp) = &self.otlp {
            otlp.push(lines, std::mem::take(&mut self.linked));
            return true;
        }
        self.lines = lines; // its room is used again
        self.lines.clear();
        self.queue.give_back(&self.linked);
        self.linked.clear();
        true
    }

    fn try_to_write(&mut self) -> io::Result<()> {
        if let Some(current) = self.files.as_mut().and_then(|f| f.current.as_mut()) {
            current.outlet.write()?;
        }
        if self.lines_to_stdout {
            self.stdout.write()?;
        }
        Ok(())
    }

    /// Asks the disk to keep what was written.
    fn sync(&mut self) {
        let current = self.files.as_mut().and_then(|f| f.current.as_mut());
        let Some(current) = current.filter(|c| c.unsynced) else {
            return;
        };
        current.unsynced = false;
        if let Err(error) = current.outlet.inner().sync_data() {
            tracing::error!(%error, "the audit log may not outlive a loss of power: its disk does not say that it is kept");
        }
    }

    /// No more is to come.
    fn end(mut self, done: bool) {
        if self.untold > 0 {
            self.tell_of_missed();
        }
        if self.times.checkpoint > Duration::ZERO && done {
            self.checkpoint();
        }
        if let Some(otlp) = &self.otlp {
            otlp.end();
        }
        let lost = self.queue.taken();
        if lost > 0 {
            tracing::error!(
                lost,
                "records of calls are not in the audit log, which has ended"
            );
        }
        let errors = self.stdout.end();
        if !self.lines_to_stdout {
            self.not_told(&errors);
        }
        self.files = None; // its folder is free for another
        self.queue.has_ended();
    }
}

fn later(than_now: Duration) -> Timestamp {
    Timestamp::now()
        .checked_add(than_now)
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
