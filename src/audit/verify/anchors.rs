//! Checkpoints that somebody else kept: how far each log had got, and by which link. All of them are kept, and each must
//! be found in its log again.
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Report, named};

/// Checkpoints may stand in a file among other lines.
const CHECKPOINT: &str = "{\"kind\":\"checkpoint\"";

/// One as it stands there.
#[derive(Deserialize)]
struct Checkpoint {
    log: String,
    seq: u64,
    link: String,
}

/// What checkpoints tell of one line of a log.
pub(super) struct Told {
    /// One link, or several, which cannot be: the log went two ways.
    pub(super) links: Vec<String>,
    /// Where the first of them stands.
    pub(super) line: u64,
}

/// The checkpoints of one log by the number of the line that they tell of.
pub(super) type Kept = BTreeMap<u64, Told>;

/// All checkpoints in a file.
pub(super) struct Anchors {
    pub(super) file: PathBuf,
    logs: BTreeMap<String, Kept>,
}

impl Anchors {
    /// Reads a file that may hold other lines, each perhaps behind what a collector writes before it.
    pub(super) fn read(file: &Path, report: &mut Report) -> io::Result<Self> {
        let mut anchors = Self {
            file: file.to_owned(),
            logs: BTreeMap::new(),
        };
        let reader = BufReader::new(File::open(file).map_err(|e| named(file, &e))?);
        let (mut number, mut unread) = (0, 0);
        for line in reader.split(b'\n') {
            let line = line.map_err(|e| named(file, &e))?;
            number += 1;
            let line = String::from_utf8_lossy(&line);
            let Some(at) = line.find(CHECKPOINT) else {
                continue;
            };
            let mut read = serde_json::Deserializer::from_str(&line[at..]).into_iter();
            match read.next() {
                Some(Ok(checkpoint)) => anchors.keep(checkpoint, number, report),
                Some(Err(_)) | None => unread += 1,
            }
        }
        if unread > 0 {
            let says = format!("{unread} checkpoints could not be read");
            report.note(format!("{}: {says}", super::shown(file)));
        }
        if anchors.logs.is_empty() {
            report.find(file.to_owned(), 1, "there is no checkpoint in it");
        }
        Ok(anchors)
    }

    fn keep(&mut self, Checkpoint { log, seq, link }: Checkpoint, line: u64, report: &mut Report) {
        let told = Told {
            links: vec![],
            line,
        };
        let kept = self.logs.entry(log).or_default();
        let told = kept.entry(seq).or_insert(told);
        if told.links.contains(&link) {
            return; // told twice
        }
        if !told.links.is_empty() {
            let what = format!(
                "tells of another line {seq} of the log than line {} does: it was written anew from before there",
                told.line
            );
            report.find(self.file.clone(), line, what);
        }
        told.links.push(link);
    }

    /// Those of a log.
    pub(super) fn of(&mut self, log: &str) -> Option<Kept> {
        self.logs.remove(log)
    }

    /// Logs that nobody asked for are in no file.
    pub(super) fn end(self, report: &mut Report) {
        for (log, kept) in self.logs {
            let Some((seq, told)) = kept.last_key_value() else {
                continue;
            };
            let what = format!("log {log} is in none of the files, and it had got to line {seq}");
            report.find(self.file.clone(), told.line, what);
        }
    }
}
