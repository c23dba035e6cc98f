//! Counts and owners in a file of this process, so that they survive a restart: an embedded store (redb) with a table
//! for each, which a thread of its own writes once a second, all that has changed together. A crash loses the last
//! second; a clean end loses nothing.
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError,
    backends::FileBackend,
};

mod changes;

use super::{Key, counters::Micros};
pub use changes::{Changed, Changes};

type Table = TableDefinition<'static, [u8; 16], &'static [u8]>;

/// The counts of limits.
pub const COUNTS: Table = TableDefinition::new("counts");
/// Whose tasks and contexts are.
pub const OWNERS: Table = TableDefinition::new("owners");
const SECRETS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("secrets");
const EVERY: Duration = Duration::from_secs(1);

/// An entry as it is now; nothing if it is gone.
pub type Change = (Key, Option<Vec<u8>>);

/// What is kept in a table. Times are those of the clock on the wall.
pub trait Kept: Send + Sync {
    /// From now on changes are noted: who calls this asks for them.
    fn saves(&self);

    /// An entry as it was saved. False if it says nothing any more.
    fn restore(&self, key: Key, saved: &[u8], now: Micros) -> bool;

    /// What has changed since this was last asked.
    fn changed(&self, now: Micros) -> Changed;

    /// These could not be saved.
    fn change_again(&self, keys: Vec<Key>);

    /// All that there is could not be saved.
    fn change_all(&self);
}

/// All that is kept, each in its table.
pub type All = Vec<(Table, Arc<dyn Kept>)>;

/// How long the end waits for the file: a disk may hang.
const LAST: Duration = Duration::from_secs(5);

/// The file, and the thread that writes it.
pub struct Persist {
    stop: Mutex<Option<Stop>>,
}

/// How its thread is told to end, and tells that it has: each by hanging up.
struct Stop {
    told: Sender<()>,
    ended: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Persist {
    /// Fills all with what the file says, and writes it from now on. A file that is damaged is moved aside, and said so:
    /// what was in it begins anew. One that cannot be opened for another reason may be good, and is left alone.
    pub fn start(
        path: &Path,
        all: All,
        now: impl Fn() -> Micros + Send + 'static,
    ) -> io::Result<Self> {
        let file = open(path, &all, now())?;
        let (stop, stopped) = channel();
        let (lives, ended) = channel();
        let thread = thread::Builder::new()
            .name("persist".to_owned())
            .spawn(move || {
                let _lives: Sender<()> = lives;
                write_on(&file, &all, &now, &stopped);
            })?;
        Ok(Self {
            stop: Mutex::new(Some(Stop {
                told: stop,
                ended,
                thread,
            })),
        })
    }

    /// Writes what is left, and lets go of the file.
    pub fn close(&self) {
        self.close_within(LAST);
    }

    /// The same in this time. Who is late is left behind, and ends with the process.
    pub fn close_within(&self, within: Duration) {
        let Some(Stop {
            told,
            ended,
            thread,
        }) = self.stop.lock().take()
        else {
            return;
        };
        drop(told);
        if ended.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
            tracing::error!(
                "state.persist was not written to its end: its disk does not answer; counts of limits and owners of the \
                 last seconds are lost"
            );
            return;
        }
        let _panicked = thread.join();
    }
}

impl Drop for Persist {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the file and reads all of it.
fn open(path: &Path, all: &All, now: Micros) -> io::Result<Database> {
    match read(path, all, now) {
        Ok(file) => Ok(file),
        Err(error) if is_damaged(&error) => {
            let aside = aside(path);
            tracing::error!(
                path = %path.display(), aside = %aside.display(), %error,
                "state.persist is damaged and is moved aside: the counts of limits begin anew, tasks from before have no \
                 owner, and contexts from before belong to who names them next"
            );
            fs::rename(path, &aside).map_err(|error| refused(path, &error))?;
            read(path, all, now).map_err(|error| refused(path, &error))
        }
        Err(error) => Err(refused(path, &error)),
    }
}

/// The secret of this name that is in the file: the first that was offered. For a start, while nobody has the file.
pub fn secret(path: &Path, name: &str, offered: [u8; 32]) -> io::Result<[u8; 32]> {
    let file = open(path, &vec![], 0)?;
    first_secret(&file, name, offered)
        .map_err(|error| io::Error::other(format!("state.persist: {}: {error}", path.display())))
}

fn first_secret(file: &Database, name: &str, offered: [u8; 32]) -> Result<[u8; 32], redb::Error> {
    let write = file.begin_write()?;
    let secret = {
        let mut table = write.open_table(SECRETS)?;
        let known = table.get(name)?;
        let known = known.and_then(|known| known.value().try_into().ok());
        if known.is_none() {
            table.insert(name, offered.as_slice())?;
        }
        known.unwrap_or(offered)
    };
    write.commit()?;
    Ok(secret)
}

/// Whether what is in the file is wrong, and not the way to it.
fn is_damaged(error: &redb::Error) -> bool {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    if let redb::Error::Io(error) = error {
        return matches!(error.kind(), InvalidData | UnexpectedEof);
    }
    matches!(error, redb::Error::Corrupted(_))
}

fn read(path: &Path, all: &All, now: Micros) -> Result<Database, redb::Error> {
    let file = Database::builder().create_with_backend(FileBackend::new(create(path)?)?)?;
    for (table, kept) in all {
        let gone = load(&file, *table, &**kept, now)?;
        kept.saves();
        kept.change_again(gone); // they are to go from the file
    }
    Ok(file)
}

/// The file, which may be new: then nobody else may read it, since a secret and whose all is are in it. What rights one
/// has that is there already is for who made it to say.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut how = fs::OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
    how.open(path)
}

/// Why the gateway does not start, and what to do about it.
fn refused(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!(
        "state.persist: {} cannot be opened: {error}; see that this gateway alone uses the file, and may read and write \
         it and its folder; it is not touched, and may be moved away to begin anew",
        path.display()
    ))
}

/// A name that no file has.
fn aside(path: &Path) -> PathBuf {
    let named = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".unreadable-{n}"));
        PathBuf::from(name)
    };
    let free = (1..u32::MAX).map(named).find(|name| !name.exists());
    free.unwrap_or_else(|| named(0))
}

/// Gives what says nothing any more.
fn load(
    file: &Database,
    table: Table,
    kept: &dyn Kept,
    now: Micros,
) -> Result<Vec<Key>, redb::Error> {
    let name = redb::TableHandle::name(&table).to_owned();
    let read = file.begin_read()?;
    let table = match read.open_table(table) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(vec![]),
        Err(error) => return Err(error.into()),
    };
    let (mut loaded, mut gone) = (0, vec![]);
    for entry in table.iter()? {
        let (key, saved) = entry?;
        let key = Key(key.value());
        if kept.restore(key, saved.value(), now) {
            loaded += 1;
        } else {
            gone.push(key);
        }
    }
    tracing::debug!(name, loaded, "what was kept is read");
    Ok(gone)
}

fn write_on(file: &Database, all: &All, now: &impl Fn() -> Micros, stopped: &Receiver<()>) {
    let mut fails = false;
    loop {
        let ends = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
        let now = now();
        let changed: Vec<_> = all.iter().map(|(_, kept)| kept.changed(now)).collect();
        let some = changed.iter().any(|c| c.all || !c.of.is_empty());
        if some && let Err(error) = write(file, all, &changed) {
            for ((_, kept), changed) in all.iter().zip(changed) {
                if changed.all {
                    kept.change_all();
                } else {
                    kept.change_again(changed.of.into_iter().map(|(key, _)| key).collect());
                }
            }
            if !std::mem::replace(&mut fails, true) {
                tracing::error!(
                    %error,
                    "state.persist cannot be written: limits forget what is used, and tasks and contexts whose they are, \
                     if the gateway ends; see that its disk has room, and restart it then: the file may stay as it is \
                     until it is opened again"
                );
            }
        } else {
            fails = false;
        }
        if ends {
            return;
        }
    }
}

fn write(file: &Database, all: &All, changed: &[Changed]) -> Result<(), redb::Error> {
    let write = file.begin_write()?;
    for ((table, _), changed) in all.iter().zip(changed) {
        if changed.all {
            write.delete_table(*table)?;
        }
        let mut table = write.open_table(*table)?;
        for (key, saved) in &changed.of {
            match saved {
                Some(saved) => drop(table.insert(key.0, saved.as_slice())?),
                None => drop(table.remove(key.0)?),
            }
        }
    }
    write.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
