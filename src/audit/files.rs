//! The files of a log: `audit-` and the number of the first line, so that their names sort as the chain goes. A file
//! is never written again once another was begun: not by a rotation, and not by a restart, which begins one too. So a
//! line that a crash tore stays as it is, and the file that follows says how much of it is there.
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    chain::{self, Key, Link, NO_LINK},
    shown,
};

/// No line of ours is longer.
pub(super) const LONGEST_LINE: usize = 1024 * 1024;
/// What an operator's group may read.
const MODE: u32 = 0o640;

/// A folder of files that is ours alone.
pub(super) struct Folder {
    path: PathBuf,
    /// Held for as long as we write there.
    _lock: File,
}

/// Where a log ends.
pub(super) struct Tail {
    pub(super) seq: u64,
    pub(super) link: Link,
    /// The name of the chain.
    pub(super) log: String,
    /// The name of the file.
    pub(super) file: String,
    /// Bytes after the last whole line.
    pub(super) torn: u64,
}

/// What is read of a line again. What a line lacks is not there.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Known {
    pub(super) seq: u64,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) log: Option<String>,
    #[serde(default)]
    pub(super) after: Option<String>,
    #[serde(default)]
    pub(super) torn: u64,
    #[serde(default)]
    pub(super) calls: u64,
}

impl Known {
    /// The link that a file begins after.
    pub(super) fn after(&self) -> Option<Link> {
        match &self.after {
            Some(after) => chain::unhex(after.as_bytes()),
            None => Some(NO_LINK),
        }
    }
}

/// The files in a folder by the number of their first line.
pub(super) fn all_in(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut all = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(seq) = number_of(&path) {
            all.push((seq, path));
        }
    }
    all.sort();
    Ok(all)
}

/// The number of a file's first line, as its name says.
pub(super) fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    number.parse().ok()
}

impl Folder {
    /// Takes a folder, which is made if need be. The key must lie elsewhere: who can write here must not have it.
    pub(super) fn take(path: &Path, key_file: &Path) -> Result<Self, String> {
        let fail = |why: String| format!("{} {why}", shown(path));
        let failed = |e: io::Error| fail(format!("cannot be written to: {e}"));
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(path);
        made.map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let inside = key_file
            .canonicalize()
            .is_ok_and(|key| key.starts_with(&path));
        if inside {
            return Err(fail(
                "holds audit.key_file, which must lie elsewhere".to_owned(),
            ));
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(MODE);
        let lock = options.open(path.join("audit.lock")).map_err(failed)?;
        lock.try_lock()
            .map_err(|_| fail("is written to by another gateway".to_owned()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Where the log ends that is in it, if there is one.
    pub(super) fn tail(&self, key: &Key) -> Result<Option<Tail>, String> {
        let all = all_in(&self.path).map_err(|e| format!("{}: {e}", shown(&self.path)))?;
        let Some((_, path)) = all.last() else {
            return Ok(None);
        };
        let tail = tail_of(path, key).map_err(|e| format!("{}: {e}", shown(path)))?;
        let tail = tail.ok_or_else(|| {
            format!(
                "the end of {} does not verify with audit.key_file; look at it with `a2a-gateway audit verify`, and \
                 give the gateway another folder or move the files away",
                shown(path)
            )
        })?;
        Ok(Some(tail))
    }

    /// Begins a file with its first line. A crash leaves either a file with that line or none.
    pub(super) fn begin(&self, seq: u64, line: &[u8]) -> io::Result<(File, String)> {
        let name = format!("audit-{seq:016}.jsonl");
        let (path, new) = (self.path.join(&name), self.path.join("audit.new"));
        if path.exists() {
            let says = format!("{name} is there already");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, says));
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(MODE);
        let mut file = options.open(&new)?;
        let folder = File::open(&self.path)?;
        let synced = folder.sync_all();
        file.write_all(line)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        // It is begun now: who goes on with the one before would fork the log.
        if let Err(error) = synced.and_then(|()| folder.sync_all()) {
            tracing::error!(%error, "the audit log's folder cannot be synced; after a loss of power look for {name}");
        }
        Ok((file, name))
    }
}

/// The end of a file; `None` if its last line is none of ours.
fn tail_of(path: &Path, key: &Key) -> io::Result<Option<Tail>> {
    let mut file = File::open(path)?;
    file.sync_all()?; // the next file is begun after what is here
    let length = file.metadata()?.len();
    let mut first = vec![];
    let start = io::Read::by_ref(&mut file).take(LONGEST_LINE as u64);
    io::BufReader::new(start).read_until(b'\n', &mut first)?;
    let start = length.saturating_sub(2 * LONGEST_LINE as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut last = vec![];
    file.read_to_end(&mut last)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(read_tail(&first, &last, key, &name))
}

fn read_tail(first: &[u8], last: &[u8], key: &Key, name: &str) -> Option<Tail> {
    let head: Known = serde_json::from_slice(first.split(|b| *b == b'\n').next()?).ok()?;
    let whole = memchr::memrchr(b'\n', last)?;
    let torn = last.len() - whole - 1;
    let mut lines = last[..whole].rsplit(|b| *b == b'\n');
    let end = lines.next()?;
    let before = match lines.next() {
        Some(before) => chain::split(before)?.1, // of one that begins before our window, its end is enough
        None => head.after()?,
    };
    let (text, link) = chain::split(end)?;
    let known: Known = serde_json::from_slice(end).ok()?;
    (head.kind == "file" && key.verifies(&before, text, &link)).then(|| Tail {
        seq: known.seq,
        link,
        log: head.log.unwrap_or_default(),
        file: name.to_owned(),
        torn: torn as u64,
    })
}
