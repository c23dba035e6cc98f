//! Which files are of which log, in the order of the chain. A folder is of one gateway, and so of one log; but files
//! of several folders may be of one log, or of several.
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use super::{Report, named};
use crate::audit::files::{self, Known, LONGEST_LINE, number_of};

/// The files of one log.
pub(super) struct Log {
    /// As its files call it.
    pub(super) name: String,
    /// The oldest first.
    pub(super) files: Vec<PathBuf>,
}

/// However they were given. A folder stands for the files in it.
pub(super) fn all(given: &[PathBuf], report: &mut Report) -> io::Result<Vec<Log>> {
    let mut logs: BTreeMap<String, Vec<(u64, PathBuf)>> = BTreeMap::new();
    let mut folders: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut nameless = vec![];
    for file in files_of(given, report)? {
        let first = first_of(&file);
        let seq = first.as_ref().map(|first| first.seq);
        let seq = seq.or_else(|| number_of(&file)).unwrap_or(u64::MAX);
        let Some(log) = first.and_then(|first| first.log) else {
            nameless.push((seq, file));
            continue;
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        let beside = folders.entry(folder.to_owned());
        if *beside.or_insert_with(|| log.clone()) != log {
            report.find(file.clone(), 1, "is of another log than a file beside it");
        }
        logs.entry(log).or_default().push((seq, file));
    }
    // What does not say whose it is is taken for what is beside it, and looked at there.
    for (seq, file) in nameless {
        let log = file.parent().and_then(|folder| folders.get(folder));
        let log = log.cloned().unwrap_or_default();
        logs.entry(log).or_default().push((seq, file));
    }
    let in_order = logs.into_iter().map(|(name, mut files)| {
        files.sort();
        let files = files.into_iter().map(|(_, file)| file).collect();
        Log { name, files }
    });
    Ok(in_order.collect())
}

fn files_of(given: &[PathBuf], report: &mut Report) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![];
    for path in given {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let inside = files::all_in(path).map_err(|e| named(path, &e))?;
        if inside.is_empty() {
            report.find(path.clone(), 1, "there is no file of a log in it");
        }
        found.extend(inside.into_iter().map(|(_, file)| file));
    }
    found.sort_by_key(|file| number_of(file)); // which of two logs is the other one does not depend on who asks
    Ok(found)
}

/// What the first line says, if it is one.
fn first_of(file: &Path) -> Option<Known> {
    let mut line = vec![];
    let mut reader = BufReader::new(File::open(file).ok()?).take(LONGEST_LINE as u64);
    reader.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
