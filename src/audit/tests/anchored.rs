//! What somebody who can write to the folder may do to a whole log, or to its end, and what checkpoints that were kept
//! elsewhere tell of it.
use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{KEY, Key, PATIENCE, Place, calls, good, json, lines, verify::Report};

fn checkpoint(line: &str, log: &str) -> String {
    let line = json(line);
    format!(
        "2026-11-30T00:00:00Z stdout F {{\"kind\":\"checkpoint\",\"time\":\"t\",\"log\":\"{log}\",\"seq\":{},\"link\":{}}} \nother words\n",
        line["seq"], line["link"]
    )
}

/// What is kept of a log elsewhere.
struct Anchored {
    place: Place,
    anchor: PathBuf,
    log: String,
    /// Its lines, by file.
    lines: Vec<Vec<String>>,
}

impl Anchored {
    /// A log of two files of five lines, and checkpoints of these of them.
    fn with(checkpoints: &[(usize, usize)]) -> Self {
        let place = Place::with_calls(2, 4);
        let lines: Vec<_> = place.files().iter().map(|file| lines(file)).collect();
        let log = json(&lines[0][0])["log"].as_str().unwrap().to_owned();
        let anchor = place.0.path().join("anchor");
        let kept = checkpoints
            .iter()
            .map(|(file, line)| checkpoint(&lines[*file][*line], &log));
        fs::write(&anchor, kept.collect::<String>()).unwrap();
        Self {
            place,
            anchor,
            log,
            lines,
        }
    }

    fn keeps(&self, more: &str) {
        let kept = fs::read_to_string(&self.anchor).unwrap();
        fs::write(&self.anchor, kept + more).unwrap();
    }

    fn verify(&self) -> Report {
        self.verify_in(&[self.place.folder()])
    }

    fn verify_in(&self, files: &[PathBuf]) -> Report {
        let key = Key::new(KEY.as_bytes());
        super::verify::verify(files, Some(&key), Some(&self.anchor)).unwrap()
    }

    fn cut(&self, file: usize, to: usize) {
        let text = self.lines[file][..to].join("\n") + "\n";
        fs::write(&self.place.files()[file], text).unwrap();
    }

    /// Wipes the folder.
    fn wipe(&self) {
        for file in self.place.files() {
            fs::remove_file(file).unwrap();
        }
    }
}

#[track_caller]
fn finds(report: &Report, file: &Path, line: u64, what: &str) {
    let found = report.findings.iter();
    let mut found = found.filter(|f| f.file == file && f.line == line && f.what.contains(what));
    assert!(found.next().is_some(), "{what}: {report}");
}

#[test]
fn a_whole_log_has_all_its_checkpoints() {
    let kept = Anchored::with(&[(0, 2), (0, 2), (1, 0), (1, 3)]);
    let report = kept.verify();
    good(&report);
    assert_eq!(report.anchors, 3);
}

#[test]
fn a_log_that_was_wiped_whole_is_missing() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    kept.wipe();
    let report = kept.verify();
    finds(&report, &kept.anchor, 3, "is in none of the files");
    finds(&report, &kept.anchor, 3, "got to line 9");
    assert!(report.findings[1].what.contains(&kept.log));
}

#[test]
fn a_log_that_was_replaced_by_a_fresh_one_is_missing_and_the_other_is_said() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    kept.wipe();
    let audit = kept.place.start();
    calls(&audit, 0..20);
    assert!(audit.close(PATIENCE));
    good(&kept.place.verify());
    let report = kept.verify();
    assert_eq!(report.findings.len(), 1, "{report}");
    finds(&report, &kept.anchor, 3, "is in none of the files");
    assert!(
        report.notes[0].contains("no checkpoint is of log"),
        "{report}"
    );
}

#[test]
fn a_log_that_nobody_has_kept_a_checkpoint_of_is_said_and_no_error() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    let other = Place::with_calls(1, 2);
    let report = kept.verify_in(&[kept.place.folder(), other.folder()]);
    good(&report);
    assert_eq!(report.spans.len(), 2);
    assert_eq!(report.calls, 10);
    assert!(
        report.notes[0].contains("no checkpoint is of log"),
        "{report}"
    );
    // But a file with no checkpoint at all shows nothing.
    fs::write(&kept.anchor, "other words\n").unwrap();
    finds(&kept.verify(), &kept.anchor, 1, "there is no checkpoint");
}

#[test]
fn a_cut_after_the_last_checkpoint_is_not_shown_by_anything() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    kept.cut(1, 4);
    good(&kept.verify());
}

#[test]
fn a_cut_before_the_last_checkpoint_is_found_at_the_end() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    kept.cut(1, 3);
    good(&kept.place.verify());
    let report = kept.verify();
    assert_eq!(report.findings.len(), 1, "{report}");
    let (last, cut) = (kept.place.files()[1].clone(), "lines 9 to 9 are missing");
    finds(&report, &last, 3, cut);
    fs::remove_file(last).unwrap();
    let first = kept.place.files()[0].clone();
    finds(&kept.verify(), &first, 5, "lines 6 to 9 are missing");

    // And where the log went on from there, by the key itself.
    let audit = kept.place.start();
    calls(&audit, 10..14);
    assert!(audit.close(PATIENCE));
    good(&kept.place.verify());
    let report = kept.verify();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.findings[0].what.contains("a checkpoint tells of"));
}

#[test]
fn a_line_that_is_gone_is_missed_by_its_checkpoint() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    let mut left = kept.lines[0].clone();
    left.remove(2);
    fs::write(&kept.place.files()[0], left.join("\n") + "\n").unwrap();
    let report = kept.verify();
    finds(
        &report,
        &kept.place.files()[0],
        3,
        "lines 3 to 3 are missing",
    );
    finds(&report, &kept.anchor, 1, "line 3 of log");
}

#[test]
fn a_log_that_was_written_anew_cannot_hide_behind_its_later_checkpoints() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    // Cut, and gone on with by the gateway itself, whose checkpoints are kept like those before.
    fs::remove_file(&kept.place.files()[1]).unwrap();
    let audit = kept.place.start();
    calls(&audit, 10..14);
    assert!(audit.close(PATIENCE));
    let anew = lines(&kept.place.files()[1]);
    kept.keeps(&checkpoint(&anew[3], &kept.log));
    kept.keeps(&checkpoint(&anew[4], &kept.log));
    let report = kept.verify();
    finds(
        &report,
        &kept.anchor,
        5,
        "another line 9 of the log than line 3",
    );
    finds(
        &report,
        &kept.place.files()[1],
        4,
        "not the record that a checkpoint",
    );
}

#[test]
fn checkpoints_of_lines_that_were_moved_away_are_said() {
    let kept = Anchored::with(&[(0, 2), (1, 3)]);
    let moved = kept.place.0.path().join("audit-old.jsonl");
    let first = kept.place.files()[0].clone();
    fs::rename(first, &moved).unwrap();
    let report = kept.verify();
    good(&report);
    assert_eq!(report.notes.len(), 2, "{report}");
    assert!(report.notes[1].contains("1 checkpoints"), "{report}");
    // With them, from another folder, it is whole.
    let report = kept.verify_in(&[kept.place.folder(), moved]);
    good(&report);
    assert_eq!((report.notes.len(), report.anchors), (0, 2), "{report}");
}
