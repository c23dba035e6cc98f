//! Files that are read again when they change: keys, and secrets that somebody else renews. A thread looks, since a
//! file may lie where reading takes long; whoever needs what the file says takes what was read last.
//!
//! Contents are compared, not names or events: what Kubernetes mounts changes by a symbolic link in the folder. A change
//! counts once two looks have found the same, so that nobody is locked out by half a file; an empty one is half a file.
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

mod changing;

pub use changing::Changing;

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
    seen: parking_lot::Mutex<Seen>,
}

/// What was found so far.
struct Seen {
    /// Where it tells any later change.
    stamp: Option<Stamp>,
    /// What was taken, or refused.
    digest: blake3::Hash,
    /// A change that the next look is to find again.
    waits: Option<(Stamp, blake3::Hash)>,
    /// Whether it was said that the file cannot be read.
    said: bool,
}

/// What one look finds.
struct Found {
    stamp: Stamp,
    /// Whether its stamp tells any later change.
    old: bool,
    text: String,
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
        let found = read(path).map_err(|e| named(&e))?;
        let now = meant(&found.text).map_err(|e| named(&e))?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            meant: Box::new(meant),
            now: RwLock::new(Arc::new(now)),
            changes: watch::Sender::new(0),
            seen: parking_lot::Mutex::new(Seen {
                stamp: found.old.then_some(found.stamp),
                digest: blake3::hash(found.text.as_bytes()),
                waits: None,
                said: false,
            }),
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
    /// Reads the file again if it has changed, and takes what the look before has found as well. What makes no sense, or
    /// is empty, changes nothing, and is logged once.
    fn look(&self);

    /// Whether anybody still goes by it: what nobody does is not looked at any more.
    fn is_used(&self) -> bool {
        true
    }
}

impl<T: Send + Sync> Look for Watched<T> {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1 // one is the watch's own
    }

    fn look(&self) {
        let of = &*self.0;
        let seen = &mut *of.seen.lock();
        if seen.stamp.is_some() && stamp(&of.path).ok() == seen.stamp {
            return;
        }
        let file = of.path.display();
        let found = match read(&of.path) {
            Ok(found) => found,
            Err(error) => {
                (seen.stamp, seen.waits) = (None, None);
                if !std::mem::replace(&mut seen.said, true) {
                    tracing::warn!(
                        %file, %error,
                        "a file cannot be read again, and what it said before still holds; put it back, readable for \
                         the gateway"
                    );
                }
                return;
            }
        };
        seen.said = false;
        let digest = blake3::hash(found.text.as_bytes());
        if digest == seen.digest {
            (seen.stamp, seen.waits) = (found.old.then_some(found.stamp), None);
            return;
        }
        let waits = Some((found.stamp, digest));
        if seen.waits != waits {
            (seen.stamp, seen.waits) = (None, waits); // somebody may still be writing it
            return;
        }
        *seen = Seen {
            stamp: found.old.then_some(found.stamp),
            digest,
            waits: None,
            said: false,
        };
        let meant = if found.text.trim().is_empty() {
            Err("it is empty".to_owned())
        } else {
            (of.meant)(&found.text)
        };
        match meant {
            Ok(meant) => {
                *of.now.write() = Arc::new(meant);
                of.changes.send_modify(|count| *count += 1);
                tracing::info!(%file, "a file has changed and was read again");
            }
            Err(why) => tracing::error!(
                %file, %why,
                "a file has changed and makes no sense, and what it said before still holds; mend it, best by writing \
                 a whole one beside it and renaming that"
            ),
        }
    }
}

/// Looks at files, on one thread, as long as it lives and somebody goes by them.
#[derive(Clone, Default)]
pub struct Watch(Arc<Looks>);

#[derive(Default)]
struct Looks {
    files: Arc<parking_lot::Mutex<Files>>,
    /// Nothing is ever sent: its end is the message.
    lives: parking_lot::Mutex<Option<SyncSender<()>>>,
}

/// Those that are looked at.
type Files = Vec<Box<dyn Look>>;

impl Watch {
    /// Begins to look at these; without any there is nothing to do.
    pub fn start(files: Vec<Box<dyn Look>>) -> io::Result<Self> {
        let watch = Self::default();
        watch.add(files)?;
        Ok(watch)
    }

    /// Looks at these, too.
    pub fn add(&self, mut more: Vec<Box<dyn Look>>) -> io::Result<()> {
        if more.is_empty() {
            return Ok(());
        }
        let mut lives = self.0.lives.lock();
        if lives.is_none() {
            *lives = Some(look_on(self.0.files.clone())?);
        }
        self.0.files.lock().append(&mut more);
        Ok(())
    }

    /// How many it looks at.
    pub fn count(&self) -> usize {
        self.0.files.lock().len()
    }
}

fn look_on(files: Arc<parking_lot::Mutex<Files>>) -> io::Result<SyncSender<()>> {
    let (lives, ended) = sync_channel(0);
    thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                // Nobody waits for a slow file who adds another.
                let mut all = std::mem::take(&mut *files.lock());
                all.retain(|file| file.is_used());
                for file in &all {
                    file.look();
                }
                files.lock().append(&mut all);
            }
        })?;
    Ok(lives)
}

/// The file as it is, or as somebody leaves it half-written.
fn read(path: &Path) -> io::Result<Found> {
    // Who opens a pipe waits until somebody writes into it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file that can be read again"));
    }
    let file = File::open(path)?;
    let before = file.metadata()?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 16 MiB"));
    }
    let age = before.modified().ok();
    let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
    Ok(Found {
        stamp: Stamp::of(&before),
        old: age.is_some_and(|age| age > YOUNG),
        text,
    })
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
        for (text, now) in [("2", 2), ("x", 2), ("", 2), (" \n", 2), ("3", 3)] {
            fs::write(&path, text).unwrap();
            file.look();
            file.look();
            assert_eq!(*file.now(), now, "{text}");
        }
        fs::remove_file(&path).unwrap();
        file.look();
        file.look();
        assert_eq!(*file.now(), 3);
        fs::write(&path, "4").unwrap();
        file.look();
        file.look();
        assert_eq!(*file.now(), 4);
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn what_is_being_written_is_taken_when_two_looks_find_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        fs::write(&path, "1234").unwrap();
        let file = Watched::read(&path, number).unwrap();
        // Each part would make sense by itself.
        for part in ["", "1", "12", "123", "1235"] {
            fs::write(&path, part).unwrap();
            file.look();
            assert_eq!(*file.now(), 1234, "{part}");
        }
        file.look();
        assert_eq!(*file.now(), 1235);
        // A file of the same text that was written anew is not the same one.
        let beside = folder.path().join("beside");
        fs::write(&beside, "2").unwrap();
        fs::rename(&beside, &path).unwrap();
        file.look();
        fs::write(&beside, "2").unwrap();
        fs::rename(&beside, &path).unwrap();
        file.look();
        assert_eq!(*file.now(), 1235);
        file.look();
        assert_eq!(*file.now(), 2);
        // A change that was taken back is none.
        let changes = file.changes();
        fs::write(&path, "3").unwrap();
        file.look();
        fs::write(&path, "2").unwrap();
        for _ in 0..3 {
            file.look();
        }
        assert!(!changes.has_changed().unwrap());
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
        file.look();
        assert_eq!(*file.now(), 2);
    }

    #[test]
    fn nobody_waits_for_who_writes_into_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let refused = Watched::read(&path, |_| Ok(())).err().unwrap();
        assert!(refused.contains("no file"), "{refused}");
        assert!(Changing::new(path).look().unwrap().is_err());
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
