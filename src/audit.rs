//! What happened: one record for each call, written when its reply ends, in a chain that shows any later change.
//!
//! ```text
//!   call ── begin ──► Record ─── told by gateway and reply ───► last clone dropped ──► Queue ──► writer ──► files
//!              │        a clone each in the request, the exchange, the stream            │        chain      stdout
//!              └─ takes a place ─────────────────────────────── given back once it is written ◄───┘
//! ```
//! A record is made before anybody is refused. It goes with the call wherever that goes, to the followers too, and
//! whoever drops the last of it has written it: no way out of a call can forget it. Its place was taken at the
//! beginning, so that there is one at the end. Without audit a record is `None`, and all that it is told is a branch.
//!
//! It says who asked for what, what was decided and what came of it: names, numbers and words from our own tables;
//! nothing of a message and no credential, but what `audit.capture` asks for.
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

mod capture;
mod chain;
mod entry;
mod files;
mod otlp;
mod outlet;
mod queue;
mod record;
mod stdout;
#[cfg(test)]
mod tests;
pub mod verify;
mod writer;

pub use chain::Key;
pub use record::{Record, Recorded, Waiting};

use crate::{
    config::{self, OnFull},
    telemetry::{Ears, Heard, otlp::Client},
};
use capture::Captures;
use entry::Id;
use queue::{Place, Queue};

/// Why nothing can be recorded with these settings.
#[derive(Debug, thiserror::Error)]
pub enum BadAudit {
    /// The key.
    #[error("audit.key_file: {0}")]
    Key(String),
    /// The folder, or what is in it.
    #[error("audit.folder: {0}")]
    Folder(String),
    /// The way to the collector.
    #[error("audit.otlp: {0}")]
    Otlp(String),
    /// What it needs to begin.
    #[error("audit: it cannot begin: {0}")]
    Begin(std::io::Error),
}

/// There is no place for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// `audit.queue` calls are under way or wait to be written.
    Queue,
    /// So many of them are of one peer that it gets no more.
    Share,
}

/// How full a log's queue is, and what found no place in it since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Places.
    pub places: usize,
    /// Those that are taken.
    pub taken: usize,
    /// Calls that found all places taken.
    pub without_place: u64,
    /// Calls of peers that had their share.
    pub beyond_share: u64,
    /// Checkpoints that stdout did not take.
    pub untold_checkpoints: u64,
    /// Records that are written.
    pub written: u64,
    /// Of all that found no place, those that were served without a record.
    pub dropped: u64,
    /// And those that were refused.
    pub refused: u64,
}

/// Records calls. All clones write to one log.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Log>>);

/// What all calls share.
struct Log {
    queue: Arc<Queue>,
    /// With the last of it the writer ends.
    ends: Arc<Ends>,
    key: Arc<Key>,
    refuses: bool,
    /// Makes digests of what callers send, where they are wanted.
    digests: Option<Arc<Key>>,
    captures: Captures,
    /// What ids of calls begin with, by process.
    process: u64,
    calls: Arc<AtomicU64>,
}

impl Audit {
    /// Opens the log and starts to write it. With audit off, nothing is done.
    pub fn start(settings: &config::Audit, to: &config::Telemetry) -> Result<Self, BadAudit> {
        if !settings.is_on() {
            return Ok(Self::default());
        }
        let file = settings.key_file.clone().unwrap_or_default(); // asked for by `config`
        let key = Arc::new(Key::read(&file).map_err(BadAudit::Key)?);
        let queue = Arc::new(Queue::new(settings.queue));
        let outlets = writer::Outlets {
            folder: settings.folder.clone(),
            key_file: file,
            stdout: settings.stdout,
            otlp: sender(settings, to)?,
        };
        let writer::Goes { times, refuses } = goes(settings);
        writer::start(outlets, times, refuses, key.clone(), queue.clone())?;
        Ok(Self(Some(Arc::new(Log {
            refuses,
            digests: settings.digest.then(|| key.clone()),
            captures: Captures::new(&settings.capture, key.clone()),
            process: chain::random(),
            calls: Arc::default(),
            ends: Arc::new(Ends(queue.clone())),
            queue,
            key,
        }))))
    }

    /// The same log by other settings. Where it lies, its key, and whether there is one stay as they are.
    #[must_use]
    pub fn by(&self, settings: &config::Audit) -> Self {
        Self(self.0.as_ref().map(|log| {
            Arc::new(Log {
                refuses: settings.on_full == OnFull::Refuse,
                digests: settings.digest.then(|| log.key.clone()),
                captures: Captures::new(&settings.capture, log.key.clone()),
                process: log.process,
                calls: log.calls.clone(),
                ends: log.ends.clone(),
                queue: log.queue.clone(),
                key: log.key.clone(),
            })
        }))
    }

    /// From now on the queue and the writer go by these.
    pub fn settle_in(&self, settings: &config::Audit) {
        if let Some(log) = &self.0 {
            log.queue.set(settings.queue, goes(settings));
        }
    }

    /// Whether calls are recorded.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A call has come, and takes a place of the share of `whose`, if that is one of many. Its record is written when
    /// all that is lent of it is dropped.
    ///
    /// Who else is to be told of the call has its `hearing`, also where there is no place for a record: then the call is to
    /// be refused for what is full.
    pub fn open(
        &self,
        peer: SocketAddr,
        whose: Option<IpAddr>,
        hearing: Option<(Arc<Ears>, Heard)>,
    ) -> (Waiting, Option<Full>) {
        let unwritten = |hearing: Option<_>| match hearing {
            Some(hearing) => {
                let (id, place) = (Id(0, 0), Place::default());
                Waiting::new(Record::begin(None, Some(hearing), id, peer, place))
            }
            None => Waiting::default(),
        };
        let Some(log) = &self.0 else {
            return (unwritten(hearing), None);
        };
        match log.queue.take_place(whose) {
            Ok(place) => {
                let id = Id(log.process, log.calls.fetch_add(1, Relaxed) + 1);
                let record = Record::begin(Some(log.clone()), hearing, id, peer, place);
                (Waiting::new(record), None)
            }
            Err(full) => {
                log.queue.missed(log.refuses);
                (unwritten(hearing), log.refuses.then_some(full))
            }
        }
    }

    /// The same for a call that nobody else is told of.
    #[cfg(test)]
    fn begin(&self, peer: SocketAddr, whose: Option<IpAddr>) -> Result<Waiting, Full> {
        let (waiting, full) = self.open(peer, whose, None);
        full.map_or(Ok(waiting), Err)
    }

    /// How full its queue is, if there is one.
    pub fn usage(&self) -> Option<Usage> {
        let log = self.0.as_ref()?;
        let queue = &log.queue;
        let (without_place, beyond_share) = queue.all_missed();
        let (dropped, refused) = queue.without_record();
        Some(Usage {
            places: queue.places(),
            taken: queue.taken(),
            without_place,
            beyond_share,
            untold_checkpoints: queue.untold(),
            written: queue.written(),
            dropped,
            refused,
        })
    }

    /// Writes what waits, and writes no more. False if it could not in this time.
    pub fn close(&self, within: Duration) -> bool {
        self.0.as_ref().is_none_or(|log| log.queue.close(within))
    }
}

/// The end of the writer, when nobody can record any more.
struct Ends(Arc<Queue>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.closing(); // it ends by itself, after what waits
    }
}

fn goes(settings: &config::Audit) -> writer::Goes {
    writer::Goes {
        times: writer::Times {
            flush: settings.flush,
            sync: settings.sync,
            rotate_size: settings.rotate_size as u64,
            rotate_time: settings.rotate_time,
            checkpoint: settings.checkpoint,
        },
        refuses: settings.on_full == OnFull::Refuse,
    }
}

/// Who sends lines to the collector, if somebody is to.
fn sender(
    settings: &config::Audit,
    to: &config::Telemetry,
) -> Result<Option<otlp::Sender>, BadAudit> {
    if !settings.otlp {
        return Ok(None);
    }
    let client = Client::new(&to.otlp).map_err(|e| BadAudit::Otlp(e.to_string()))?;
    let more = to.resource.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let resource = [
        ("service.name", &*to.service),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ];
    Ok(Some(otlp::Sender::new(
        client,
        resource.into_iter().chain(more),
    )))
}

/// The name of a file, for messages.
fn shown(file: &std::path::Path) -> String {
    file.display().to_string()
}

/// The files of a log in a folder, the oldest first.
pub fn files_in(folder: &std::path::Path) -> std::io::Result<Vec<PathBuf>> {
    files::all_in(folder).map(|all| all.into_iter().map(|(_, file)| file).collect())
}
