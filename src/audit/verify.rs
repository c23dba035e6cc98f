//! Reading a log again: is each line the one that was written, and are they all there?
//!
//! A changed line fails by itself, and the lines after it go on from the link that it states, so that each is told
//! where it stands. What only the end could show, that lines were cut off it, needs checkpoints kept elsewhere.
use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    chain::{self, Key, Link},
    files::{self, Known, LONGEST_LINE, number_of},
    shown,
};

/// So many findings are told one by one.
const MOST_FINDINGS: usize = 100;
/// Checkpoints may stand in a log among other lines.
const CHECKPOINT: &str = "{\"kind\":\"checkpoint\"";

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is not wrong and worth knowing.
    pub notes: Vec<String>,
    /// Findings beyond those told.
    pub more: usize,
    /// Whole lines.
    pub lines: u64,
    /// Records of calls among them.
    pub calls: u64,
    /// Calls that have no record, as the log itself says.
    pub missed: u64,
    /// The numbers of the first line and the last.
    pub span: Option<(u64, u64)>,
    /// Checkpoints that were compared.
    pub anchors: usize,
}

/// Something that is wrong at a line.
#[derive(Debug)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: line {}: {}",
            self.file.display(),
            self.line,
            self.what
        )
    }
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.more > 0 {
            writeln!(f, "and {} more", self.more)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let (first, last) = self.span.unwrap_or_default();
        let (lines, calls) = (self.lines, self.calls);
        write!(f, "lines {first} to {last}: {lines} lines, {calls} calls, ")?;
        match self.findings.len() + self.more {
            0 => write!(f, "nothing wrong"),
            1 => write!(f, "1 finding"),
            many => write!(f, "{many} findings"),
        }
    }
}

/// How far a chain had got, as somebody else kept it.
#[derive(Deserialize)]
struct Anchor {
    log: String,
    seq: u64,
    link: String,
}

/// Verifies the files of one log. Without the key only numbers and forms can be looked at.
pub fn verify(files: &[PathBuf], key: Option<&Key>, anchor: Option<&Path>) -> io::Result<Report> {
    let mut walk = Walk {
        key,
        anchors: anchor.map(anchors).transpose()?,
        ..Walk::default()
    };
    for file in in_order(files)? {
        let opened = File::open(&file).map_err(|e| named(&file, &e))?;
        walk.file(&file, opened).map_err(|e| named(&file, &e))?;
    }
    walk.end();
    Ok(walk.report)
}

fn named(file: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", shown(file)))
}

/// By the numbers of their first lines, however they were given. A folder stands for the files of a log in it.
fn in_order(given: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let first = |file: &PathBuf| {
        let mut line = vec![];
        let mut reader = BufReader::new(File::open(file).ok()?).take(LONGEST_LINE as u64);
        reader.read_until(b'\n', &mut line).ok()?;
        Some(serde_json::from_slice::<Known>(&line).ok()?.seq)
    };
    let mut files = vec![];
    for path in given {
        if path.is_dir() {
            let inside = files::all_in(path).map_err(|e| named(path, &e))?;
            files.extend(inside.into_iter().map(|(_, file)| file));
        } else {
            files.push(path.clone());
        }
    }
    files.sort_by_cached_key(|file| first(file).or_else(|| number_of(file)).unwrap_or(u64::MAX));
    Ok(files)
}

/// The checkpoints in a file that may hold other lines, each perhaps behind what a collector writes before it.
fn anchors(file: &Path) -> io::Result<Vec<Anchor>> {
    let mut found = vec![];
    let reader = BufReader::new(File::open(file).map_err(|e| named(file, &e))?);
    for line in reader.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let Some(at) = line.find(CHECKPOINT) else {
            continue;
        };
        let mut read = serde_json::Deserializer::from_str(&line[at..]).into_iter();
        if let Some(Ok(anchor)) = read.next() {
            found.push(anchor);
        }
    }
    Ok(found)
}

#[derive(Default)]
struct Walk<'k> {
    key: Option<&'k Key>,
    anchors: Option<Vec<Anchor>>,
    /// Those of this log, by number.
    of_log: HashMap<u64, Option<Link>>,
    log: Option<String>,
    /// The number of the line before, and its link where that is known.
    before: Option<(u64, Option<Link>)>,
    /// The end of the file before that is no whole line: where, and of how many bytes.
    torn: Option<(PathBuf, u64, u64)>,
    /// The last line that was read.
    at: (PathBuf, u64),
    report: Report,
}

impl Walk<'_> {
    fn file(&mut self, path: &Path, file: File) -> io::Result<()> {
        let mut reader = BufReader::new(file);
        let mut line = vec![];
        let mut number = 0;
        loop {
            line.clear();
            let bounded = &mut reader.by_ref().take(LONGEST_LINE as u64);
            bounded.read_until(b'\n', &mut line)?;
            if line.is_empty() {
                break;
            }
            number += 1;
            self.at = (path.to_owned(), number);
            if line.last() == Some(&b'\n') {
                line.pop();
                self.line(&line, number == 1);
            } else if line.len() == LONGEST_LINE {
                self.find("is longer than any record; the rest of the file was not read");
                self.before = None;
                return Ok(());
            } else if number == 1 {
                self.find("is no first line of a file");
                self.before = None;
            } else {
                self.torn = Some((path.to_owned(), number, line.len() as u64));
            }
        }
        if number == 0 {
            self.at = (path.to_owned(), 1);
            self.find("the file is empty");
        }
        Ok(())
    }

    fn line(&mut self, whole: &[u8], first: bool) {
        self.report.lines += 1;
        let read = chain::split(whole).zip(serde_json::from_slice::<Known>(whole).ok());
        let Some(((text, link), known)) = read else {
            self.find("is no record: it was changed or put in");
            self.before = self.before.map(|(seq, _)| (seq + 1, None));
            return;
        };
        let head = known.kind == "file";
        if first {
            self.begins(&known, head);
        }
        match &*known.kind {
            "call" => self.report.calls += 1,
            "missed" => self.report.missed += known.calls,
            _ => {}
        }
        let stated = if head { known.after() } else { None };
        self.place(&known, text, &link, stated);
        if let Some(anchored) = self.of_log.remove(&known.seq) {
            self.report.anchors += 1;
            if anchored != Some(link) {
                self.find("is not the record that a checkpoint tells of");
            }
        }
        self.before = Some((known.seq, Some(link)));
        let (from, to) = self.report.span.unwrap_or((known.seq, known.seq));
        self.report.span = Some((from.min(known.seq), to.max(known.seq)));
    }

    /// The first line of a file.
    fn begins(&mut self, known: &Known, head: bool) {
        let torn = self.torn.take();
        if !head {
            self.find("the file does not begin as one of a log does");
        }
        let bytes = torn.as_ref().map_or(0, |(.., bytes)| *bytes);
        if let Some((file, line, _)) = torn
            && known.torn != bytes
        {
            let what = "is cut, and not by a crash: the file after it does not tell of it";
            self.find_at(file, line, what.to_owned());
        } else if known.torn != bytes {
            let says = known.torn;
            self.find(format!(
                "tells of {says} bytes that a crash left before it, which are gone"
            ));
        } else if bytes > 0 {
            let at = shown(&self.at.0);
            self.note(format!(
                "{at} goes on after a line that a crash tore, and that was of no finished write"
            ));
        }
        if self.log.is_none() {
            self.is_of(known);
        } else if head && self.log != known.log {
            self.find("the file is of another log");
        }
    }

    /// The log that is verified is this one.
    fn is_of(&mut self, known: &Known) {
        self.log.clone_from(&known.log);
        if known.seq > 1 {
            let seq = known.seq;
            self.note(format!("lines 1 to {} are not in these files", seq - 1));
        }
        let Some(anchors) = &self.anchors else { return };
        let ours = anchors.iter().filter(|a| Some(&a.log) == self.log.as_ref());
        let by_number = ours.map(|a| (a.seq, chain::unhex(a.link.as_bytes())));
        self.of_log = by_number.collect();
        if self.of_log.is_empty() {
            self.find("no checkpoint is of this log");
        }
    }

    /// Whether a line stands where it was written, as it was written.
    fn place(&mut self, known: &Known, text: &[u8], link: &Link, stated: Option<Link>) {
        let seq = known.seq;
        let fits = self.before.is_none_or(|(before, _)| before + 1 == seq);
        if let Some((before, _)) = self.before
            && !fits
        {
            if seq > before {
                let gap = (before + 1, seq - 1);
                self.find(format!(
                    "lines {} to {} are missing before it",
                    gap.0, gap.1
                ));
            } else {
                self.find(format!(
                    "line {seq} of the log stands after line {before}: it was moved or repeated"
                ));
            }
        }
        let before = self.before.filter(|_| fits).and_then(|(_, link)| link);
        if let (Some(stated), Some(before)) = (stated, before)
            && stated != before
        {
            self.find("goes on from another line than the one before it");
        }
        let Some(key) = self.key else { return };
        match stated.or(before) {
            Some(before) if key.verifies(&before, text, link) => {}
            Some(_) => self.find("was changed: its link is not right"),
            None if fits => self.find("cannot be verified, since the line before it is not known"),
            None => {} // told above
        }
    }

    fn end(&mut self) {
        if let Some((file, line, bytes)) = self.torn.take() {
            let at = shown(&file);
            self.note(format!(
                "{at}: line {line}: the log ends in {bytes} bytes of a line that is not whole: it was being written \
                 when the gateway crashed, or was cut there"
            ));
        }
        if self.key.is_none() {
            self.note("without --key no link was verified".to_owned());
        }
        if self.report.missed > 0 {
            let missed = self.report.missed;
            self.note(format!(
                "the log itself tells of {missed} calls without a record"
            ));
        }
        let (first, last) = self.report.span.unwrap_or_default();
        let told = self.of_log.keys().copied().max().unwrap_or_default();
        if told > last {
            self.find(format!(
                "lines {} to {told} are missing at the end: a checkpoint tells of them",
                last + 1
            ));
        }
        let early = self.of_log.keys().filter(|seq| **seq < first).count();
        if early > 0 {
            self.note(format!(
                "{early} checkpoints are of lines before these files"
            ));
        }
    }

    fn find(&mut self, what: impl Into<String>) {
        let (file, line) = self.at.clone();
        self.find_at(file, line, what.into());
    }

    fn find_at(&mut self, file: PathBuf, line: u64, what: String) {
        if self.report.findings.len() < MOST_FINDINGS {
            self.report.findings.push(Finding { file, line, what });
        } else {
            self.report.more += 1;
        }
    }

    fn note(&mut self, note: String) {
        self.report.notes.push(note);
    }
}
