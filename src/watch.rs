//! Files that are read again when they change: keys, and secrets that somebody else renews. A thread looks, since a
//! file may lie where reading takes long; whoever needs what the file says takes what was read last.
//!
//! Contents are compared, not names or events: what Kubernetes mounts changes by a symbolic link in the folder.
use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use parking_lot::RwLock;
use tokio::sync::watch;

/// How often each file is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// A file that was changed so shortly before it was read may have been changed again within the same tick of its clock.
const YOUNG: Duration = Duration::from_secs(2);
/// A longer file is some other file.
const LONGEST: u64 = 16 * 1024 * 1024;

/// What a file says, as it was last read well.
pub struct Watched<T>(Arc<Inner<T>>);

type Meant<T> = dyn Fn(&str) -> Result<T, String> + Send + Sync;

struct Inner<T> {
    path: PathBuf,
    meant: Box<Meant<T>>,
    now: RwLock<Arc<T>>,
    changes: watch::Sender<u64>,
    stamp: parking_lot::Mutex<(Option<Stamp>, blake3::Hash)>,
}

/// By what a file that was not touched is known.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    node: u64,
    length: u64,
    changed: (i64, i64),
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Watched<T> {
    /// Reads the file at `path`, which must be readable and make sense the first time.
    pub fn read(
        path: &Path,
        meant: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let (stamp, text) = read(path).map_err(|e| named(&e))?;
        let now = meant(&text).map_err(|e| named(&e))?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            meant: Box::new(meant),
            now: RwLock::new(Arc::new(now)),
            changes: watch::Sender::new(0),
            stamp: parking_lot::Mutex::new((stamp, blake3::hash(text.as_bytes()))),
        })))
    }

    /// What it says.
    pub fn now(&self) -> Arc<T> {
        self.0.now.read().clone()
    }

    /// Hears of every change from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// Something that looks at its file.
pub trait Look: Send {
    /// Reads the file again if it has changed. What makes no sense changes nothing, and is logged once.
    fn look(&self);
}

impl<T: Send + Sync> Look for Watched<T> {
    fn look(&self) {
        let of = &*self.0;
        let mut seen = of.stamp.lock();
        if seen.0.is_some() && stamp(&of.path).ok() == seen.0 {
            return;
        }
        let file = of.path.display();
        let (stamp, text) = match read(&of.path) {
            Ok(read) => read,
            Err(error) => {
                if seen.0.take().is_some() {
                    tracing::warn!(%file, %error, "a file cannot be read again; what it said before still holds");
                }
                return;
            }
        };
        seen.0 = stamp;
        let digest = blake3::hash(text.as_bytes());
        if digest == seen.1 {
            return;
        }
        seen.1 = digest;
        match (of.meant)(&text) {
            Ok(meant) => {
                *of.now.write() = Arc::new(meant);
                of.changes.send_modify(|count| *count += 1);
                tracing::info!(%file, "a file has changed and was read again");
            }
            Err(why) => {
                tracing::error!(%file, %why, "a file has changed and makes no sense; what it said before still holds");
            }
        }
    }
}

/// Looks at files as long as it lives.
#[derive(Clone)]
pub struct Watch {
    /// Nothing is ever sent: its end is the message.
    _lives: Option<SyncSender<()>>,
}

impl Watch {
    /// Begins to look at these; without any there is nothing to do.
    pub fn start(files: Vec<Box<dyn Look>>) -> io::Result<Self> {
        if files.is_empty() {
            return Ok(Self { _lives: None });
        }
        let (lives, ended) = sync_channel(0);
        thread::Builder::new()
            .name("files".to_owned())
            .spawn(move || {
                while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    for file in &files {
                        file.look();
                    }
                }
            })?;
        Ok(Self {
            _lives: Some(lives),
        })
    }
}

/// The text, and its stamp where that tells any later change.
fn read(path: &Path) -> io::Result<(Option<Stamp>, String)> {
    let file = File::open(path)?;
    let before = file.metadata()?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 16 MiB"));
    }
    let age = before.modified().ok();
    let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
    let old = age.is_some_and(|age| age > YOUNG);
    Ok((old.then(|| Stamp::of(&before)), text))
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    path.metadata().map(|now| Stamp::of(&now))
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            node: file.ino(),
            length: file.len(),
            changed: (file.mtime(), file.mtime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_| "no number".to_owned())
    }

    #[test]
    fn a_change_is_read_and_nonsense_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        fs::write(&path, "x").unwrap();
        assert!(Watched::read(&path, number).is_err());
        fs::write(&path, "1").unwrap();
        let file = Watched::read(&path, number).unwrap();
        let changes = file.changes();
        file.look();
        assert!(!changes.has_changed().unwrap());
        for (text, now) in [("2", 2), ("x", 2), ("3", 3)] {
            fs::write(&path, text).unwrap();
            file.look();
            assert_eq!(*file.now(), now, "{text}");
        }
        fs::remove_file(&path).unwrap();
        file.look();
        assert_eq!(*file.now(), 3);
        fs::write(&path, "4").unwrap();
        file.look();
        assert_eq!(*file.now(), 4);
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn another_target_of_a_link_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("a", "1"), ("b", "2")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("n"), text).unwrap();
            let old = SystemTime::now() - Duration::from_hours(1);
            let file = File::options().write(true).open(at(name).join("n"));
            file.unwrap().set_modified(old).unwrap();
        }
        symlink(at("a"), at("now")).unwrap();
        symlink(at("now").join("n"), at("n")).unwrap();
        let file = Watched::read(&at("n"), number).unwrap();
        file.look();
        assert_eq!(*file.now(), 1);
        symlink(at("b"), at("next")).unwrap();
        fs::rename(at("next"), at("now")).unwrap();
        file.look();
        assert_eq!(*file.now(), 2);
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        File::create(&path).unwrap().set_len(LONGEST + 1).unwrap();
        let refused = Watched::read(&path, |_| Ok(())).err().unwrap();
        assert!(refused.contains("16 MiB"), "{refused}");
    }
}
