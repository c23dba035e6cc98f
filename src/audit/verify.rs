//! Reading a log again: is each line the one that was written, and are they all there?
//!
//! A changed line fails by itself, and the lines after it go on from the link that it states, so that each is told
//! where it stands. What only the end could show, that lines were cut off it or that all of it is gone, needs
//! checkpoints kept elsewhere.
use std::{
    fmt,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

mod anchors;
mod logs;

use anchors::{Anchors, Kept};
use logs::Log;

use super::{
    chain::{self, Key, Link},
    files::{Known, LONGEST_LINE},
    shown,
};

/// So many findings are told one by one.
const MOST_FINDINGS: usize = 100;

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
    /// Each log that was found.
    pub spans: Vec<Span>,
    /// Checkpoints that were compared.
    pub anchors: usize,
}

/// What there is of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub log: String,
    /// The number of the first line.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
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

    fn find(&mut self, file: PathBuf, line: u64, what: impl Into<String>) {
        if self.findings.len() < MOST_FINDINGS {
            let what = what.into();
            self.findings.push(Finding { file, line, what });
        } else {
            self.more += 1;
        }
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
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
        for Span { log, first, last } in &self.spans {
            writeln!(f, "log {log}: lines {first} to {last}")?;
        }
        let (lines, calls) = (self.lines, self.calls);
        write!(f, "{lines} lines, {calls} calls, ")?;
        match self.findings.len() + self.more {
            0 => write!(f, "nothing wrong"),
            1 => write!(f, "1 finding"),
            many => write!(f, "{many} findings"),
        }
    }
}

/// Verifies the files of logs. Without the key only numbers and forms can be looked at.
pub fn verify(files: &[PathBuf], key: Option<&Key>, anchor: Option<&Path>) -> io::Result<Report> {
    let mut report = Report::default();
    let anchors = anchor.map(|file| Anchors::read(file, &mut report));
    let mut anchors = anchors.transpose()?;
    for log in logs::all(files, &mut report)? {
        let kept = anchors.as_mut().map(|anchors| anchors.of(&log.name));
        if kept.as_ref().is_some_and(Option::is_none) {
            report.note(format!("no checkpoint is of log {}", log.name));
        }
        let file = anchors.as_ref().map(|anchors| &*anchors.file);
        let kept = kept.flatten().unwrap_or_default();
        let mut walk = Walk::new(key, &log, kept, file, &mut report);
        for file in &log.files {
            let opened = File::open(file).map_err(|e| named(file, &e))?;
            walk.file(file, opened).map_err(|e| named(file, &e))?;
        }
        walk.end();
    }
    if let Some(anchors) = anchors {
        anchors.end(&mut report);
    }
    if key.is_none() {
        report.note("without --key no link was verified".to_owned());
    }
    if report.missed > 0 {
        let missed = report.missed;
        report.note(format!(
            "the log itself tells of {missed} calls without a record"
        ));
    }
    Ok(report)
}

fn named(file: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", shown(file)))
}

/// Through the files of one log.
struct Walk<'w> {
    key: Option<&'w Key>,
    log: &'w Log,
    /// Checkpoints whose lines were not met yet, and where they stand.
    kept: Kept,
    kept_in: Option<&'w Path>,
    /// A file was begun.
    begun: bool,
    /// The number of the line before, and its link where that is known.
    before: Option<(u64, Option<Link>)>,
    /// The end of the file before that is no whole line: where, and of how many bytes.
    torn: Option<(PathBuf, u64, u64)>,
    /// The last line that was read.
    at: (PathBuf, u64),
    span: Option<(u64, u64)>,
    report: &'w mut Report,
}

impl<'w> Walk<'w> {
    fn new(
        key: Option<&'w Key>,
        log: &'w Log,
        kept: Kept,
        kept_in: Option<&'w Path>,
        report: &'w mut Report,
    ) -> Self {
        Self {
            key,
            log,
            kept,
            kept_in,
            begun: false,
            before: None,
            torn: None,
            at: (PathBuf::new(), 0),
            span: None,
            report,
        }
    }

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
        if let Some(told) = self.kept.remove(&known.seq) {
            self.report.anchors += 1;
            if told.links != [chain::hex(&link)] {
                self.find("is not the record that a checkpoint tells of");
            }
        }
        self.before = Some((known.seq, Some(link)));
        let (from, to) = self.span.unwrap_or((known.seq, known.seq));
        self.span = Some((from.min(known.seq), to.max(known.seq)));
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
            self.report.find(file, line, what);
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
        if !std::mem::replace(&mut self.begun, true) && known.seq > 1 {
            let before = known.seq - 1;
            self.note(format!(
                "lines 1 to {before} of log {} are not in these files",
                self.log.name
            ));
        }
        if head && known.log.as_ref() != Some(&self.log.name) {
            self.find("the file is of another log");
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
        let (first, last) = self.span.unwrap_or_default();
        if self.span.is_some() {
            let log = self.log.name.clone();
            self.report.spans.push(Span { log, first, last });
        }
        self.checkpoints_left(first, last);
    }

    /// Checkpoints whose lines are not there.
    fn checkpoints_left(&mut self, first: u64, last: u64) {
        let kept = std::mem::take(&mut self.kept);
        let told = kept.keys().copied().max().unwrap_or_default();
        if told > last {
            self.find(format!(
                "lines {} to {told} are missing at the end: a checkpoint tells of them",
                last + 1
            ));
        }
        let early = kept.range(..first).count();
        if early > 0 {
            self.note(format!(
                "{early} checkpoints of log {} are of lines before these files",
                self.log.name
            ));
        }
        let Some(file) = self.kept_in else { return };
        for (seq, told) in kept.range(first..=last.max(first)) {
            let what = format!(
                "line {seq} of log {}, which it tells of, is not there",
                self.log.name
            );
            self.report.find(file.to_owned(), told.line, what);
        }
    }

    fn find(&mut self, what: impl Into<String>) {
        let (file, line) = self.at.clone();
        self.report.find(file, line, what);
    }

    fn note(&mut self, note: String) {
        self.report.note(note);
    }
}
