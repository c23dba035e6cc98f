//! Counts in a file of this process, so that they survive a restart: an embedded store (redb) that a thread of its own
//! writes once a second, all that has changed together. A crash loses the last second; a clean end loses nothing.
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
use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{
    Key,
    counters::{Micros, memory::Local},
};

const COUNTS: TableDefinition<'_, [u8; 16], &[u8]> = TableDefinition::new("counts");
const SECRETS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("secrets");
const EVERY: Duration = Duration::from_secs(1);

/// The file, and the thread that writes it.
pub struct Persist {
    stop: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Persist {
    /// Fills the counts with what the file says, and writes it from now on. A file that cannot be read is moved aside,
    /// and said so: its counts begin anew.
    pub fn start(
        path: &Path,
        counts: Arc<Local>,
        now: impl Fn() -> Micros + Send + 'static,
    ) -> io::Result<Self> {
        let file = open(path)?;
        let loaded = load(&file, &counts, now()).map_err(io::Error::other)?;
        tracing::debug!(path = %path.display(), loaded, "counts of limits are read");
        counts.saves();
        let (stop, stopped) = channel();
        let thread = thread::Builder::new()
            .name("persist".to_owned())
            .spawn(move || write_on(&file, &counts, &now, &stopped))?;
        Ok(Self {
            stop: Mutex::new(Some((stop, thread))),
        })
    }

    /// Writes what is left, and lets go of the file.
    pub fn close(&self) {
        if let Some((stop, thread)) = self.stop.lock().take() {
            drop(stop);
            let _panicked = thread.join();
        }
    }
}

impl Drop for Persist {
    fn drop(&mut self) {
        self.close();
    }
}

fn open(path: &Path) -> io::Result<Database> {
    let wrong = |error: DatabaseError| {
        io::Error::other(format!("state.persist: {}: {error}", path.display()))
    };
    match Database::create(path) {
        Ok(file) => Ok(file),
        Err(error @ DatabaseError::DatabaseAlreadyOpen) => Err(wrong(error)),
        // What is there cannot be used; what is not there, in a folder that is not, cannot be made either.
        Err(error) if path.is_file() => {
            let aside = aside(path);
            tracing::error!(
                path = %path.display(), aside = %aside.display(), %error,
                "state.persist cannot be read and is moved aside: the counts of limits begin anew"
            );
            fs::rename(path, &aside)?;
            Database::create(path).map_err(wrong)
        }
        Err(error) => Err(wrong(error)),
    }
}

/// The secret of this name that is in the file: the first that was offered. For a start, while nobody has the file.
pub fn secret(path: &Path, name: &str, offered: [u8; 32]) -> io::Result<[u8; 32]> {
    let file = open(path)?;
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

fn load(file: &Database, counts: &Local, now: Micros) -> Result<usize, redb::Error> {
    let read = file.begin_read()?;
    let table = match read.open_table(COUNTS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let mut loaded = 0;
    for entry in table.iter()? {
        let (key, saved) = entry?;
        loaded += usize::from(counts.restore(Key(key.value()), saved.value(), now));
    }
    Ok(loaded)
}

fn write_on(file: &Database, counts: &Local, now: &impl Fn() -> Micros, stopped: &Receiver<()>) {
    let mut fails = false;
    loop {
        let ends = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
        let changed = counts.changed(now());
        if !changed.is_empty()
            && let Err(error) = write(file, &changed)
        {
            counts.change_again(changed.into_iter().map(|(key, _)| key));
            if !std::mem::replace(&mut fails, true) {
                tracing::error!(%error, "state.persist cannot be written: limits forget what is used if the gateway ends");
            }
        } else {
            fails = false;
        }
        if ends {
            return;
        }
    }
}

fn write(file: &Database, changed: &[(Key, Option<Vec<u8>>)]) -> Result<(), redb::Error> {
    let write = file.begin_write()?;
    {
        let mut table = write.open_table(COUNTS)?;
        for (key, saved) in changed {
            match saved {
                Some(saved) => drop(table.insert(key.0, saved.as_slice())?),
                None => drop(table.remove(key.0)?),
            }
        }
    }
    write.commit()?;
    Ok(())
}
