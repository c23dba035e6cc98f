//! Every way in which somebody without the key may leave a log, and what `verify` says of it.
use std::fs;

use super::{KEY, Place, good, lines};

/// What is found when the lines of one file of a log are changed.
#[track_caller]
fn finds(
    place: &Place,
    file: usize,
    change: impl FnOnce(&mut Vec<String>),
    expected: &[(u64, &str)],
) {
    let file = place.files()[file].clone();
    let text = fs::read_to_string(&file).unwrap();
    let mut lines = lines(&file);
    change(&mut lines);
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let report = place.verify();
    fs::write(&file, text).unwrap();
    good(&place.verify());
    let found: Vec<_> = report.findings.iter().map(|f| (f.line, &*f.what)).collect();
    assert_eq!(found.len(), expected.len(), "{report}");
    for (found, (line, what)) in found.iter().zip(expected) {
        assert!(
            found.0 == *line && found.1.contains(what),
            "{found:?}: {what}"
        );
    }
}

const CHANGED: &str = "was changed";

#[test]
fn a_changed_line_is_found_where_it_is() {
    let place = Place::with_calls(2, 8);
    for line in 1..9 {
        let at = line as u64 + 1;
        let other_rule = |lines: &mut Vec<String>| {
            let rule = lines[line].replace("\"rule\":\"", "\"rule\":\"1");
            assert_ne!(rule, lines[line]);
            lines[line] = rule;
        };
        finds(&place, 0, other_rule, &[(at, CHANGED)]);
        let other_link = |lines: &mut Vec<String>| {
            let digit = lines[line].len() - 3;
            let was = &lines[line][digit..=digit];
            let is = if was == "0" { "1" } else { "0" };
            lines[line].replace_range(digit..=digit, is);
        };
        // The next line was not written after this link; at the end of the file, the next file was not.
        let next = if line == 8 { 1 } else { at + 1 };
        let after = if line == 8 {
            "goes on from another line"
        } else {
            CHANGED
        };
        finds(&place, 0, other_link, &[(at, CHANGED), (next, after)]);
    }
    let space = |lines: &mut Vec<String>| lines[3] = lines[3].replacen(',', ", ", 1);
    finds(&place, 0, space, &[(4, CHANGED)]);
    let head =
        |lines: &mut Vec<String>| lines[0] = lines[0].replacen("\"time\":\"2", "\"time\":\"1", 1);
    finds(&place, 1, head, &[(1, CHANGED)]);
}

#[test]
fn lines_that_are_gone_are_found_where_they_were() {
    let place = Place::with_calls(2, 8);
    let one = |lines: &mut Vec<String>| drop(lines.remove(4));
    finds(&place, 0, one, &[(5, "lines 5 to 5 are missing")]);
    let some = |lines: &mut Vec<String>| drop(lines.drain(2..6));
    finds(&place, 1, some, &[(3, "lines 12 to 15 are missing")]);
    let renumbered = |lines: &mut Vec<String>| {
        lines.remove(7);
        lines[7] = lines[7].replacen("\"seq\":9", "\"seq\":8", 1);
    };
    // The next file goes on from the line that is renumbered, by its own number.
    finds(
        &place,
        0,
        renumbered,
        &[(8, CHANGED), (1, "lines 9 to 9 are missing")],
    );
    // The end of a file that is not the last one, at a line's end and within a line.
    finds(
        &place,
        0,
        |lines| lines.truncate(6),
        &[(1, "lines 7 to 9 are missing")],
    );
    finds(
        &place,
        0,
        |lines| lines.truncate(1),
        &[(1, "lines 2 to 9 are missing")],
    );
    let head = |lines: &mut Vec<String>| drop(lines.remove(0));
    let begins = "does not begin as one of a log does";
    finds(
        &place,
        1,
        head,
        &[(1, begins), (1, "lines 10 to 10 are missing")],
    );
}

#[test]
fn a_file_that_is_cut_within_a_line_is_told_from_one_that_a_crash_tore() {
    let place = Place::with_calls(2, 4);
    let file = place.files()[0].clone();
    let text = fs::read(&file).unwrap();
    for cut in [1, 10, 90] {
        fs::write(&file, &text[..text.len() - cut]).unwrap();
        let report = place.verify();
        assert_eq!(report.findings.len(), 2, "{report}");
        let at = &report.findings[0];
        assert!(
            at.line == 5 && at.file == file && at.what.contains("not by a crash"),
            "{at}"
        );
        assert!(
            report.findings[1].what.contains("lines 5 to 5 are missing"),
            "{report}"
        );
    }
}

#[test]
fn lines_that_moved_were_repeated_or_put_in_are_found() {
    let place = Place::with_calls(1, 9);
    let moved = "stands after";
    let gap = "are missing before it";
    finds(
        &place,
        0,
        |lines| lines.swap(4, 5),
        &[(5, gap), (6, moved), (7, gap)],
    );
    let repeated = |lines: &mut Vec<String>| lines.insert(5, lines[4].clone());
    finds(&place, 0, repeated, &[(6, moved)]);
    let foreign = |lines: &mut Vec<String>| lines.insert(5, "{\"seq\":6}".to_owned());
    finds(&place, 0, foreign, &[(6, "no record"), (7, moved)]);
    let empty = |lines: &mut Vec<String>| lines.insert(5, String::new());
    finds(&place, 0, empty, &[(6, "no record"), (7, moved)]);
    // Nothing can be said of a line whose neighbour is gone, and that is said.
    let broken = |lines: &mut Vec<String>| lines[5].truncate(20);
    finds(
        &place,
        0,
        broken,
        &[(6, "no record"), (7, "cannot be verified")],
    );
}

#[test]
fn lines_of_another_log_are_found_though_the_key_is_the_same() {
    let place = Place::with_calls(1, 9);
    let other = Place::with_calls(1, 9);
    let theirs = lines(&other.files()[0]);
    let one = |lines: &mut Vec<String>| lines[4].clone_from(&theirs[4]);
    finds(&place, 0, one, &[(5, CHANGED), (6, CHANGED)]);
    let rest = |lines: &mut Vec<String>| {
        lines.truncate(4);
        lines.extend_from_slice(&theirs[4..]);
    };
    finds(&place, 0, rest, &[(5, CHANGED)]);

    let place = Place::with_calls(2, 9);
    let other = Place::with_calls(2, 9);
    let theirs = lines(&other.files()[1]);
    let file = |lines: &mut Vec<String>| *lines = theirs;
    finds(
        &place,
        1,
        file,
        &[(1, "of another log than a file beside it")],
    );
}

#[test]
fn a_whole_file_that_is_gone_is_found_but_at_an_end() {
    let place = Place::with_calls(3, 4);
    let files = place.files();
    let key = super::Key::new(KEY.as_bytes());
    let verify = |files: &[_]| super::verify::verify(files, Some(&key), None).unwrap();
    let report = verify(&[files[0].clone(), files[2].clone()]);
    assert_eq!(report.findings.len(), 1, "{report}");
    assert_eq!(report.findings[0].file, files[2]);
    assert!(
        report.findings[0]
            .what
            .contains("lines 6 to 10 are missing"),
        "{report}"
    );
    // Older files may be kept elsewhere.
    let report = verify(&files[1..]);
    good(&report);
    assert!(report.notes[0].contains("lines 1 to 5 of log"), "{report}");
    // In whatever order they are given.
    let mut turned = files.clone();
    turned.reverse();
    good(&verify(&turned));
    good(&verify(&[place.folder()]));
    // Once is enough.
    assert!(!verify(&[files[0].clone(), files[0].clone()]).is_good());
}

#[test]
fn another_key_verifies_nothing_and_none_says_so() {
    let place = Place::with_calls(1, 3);
    let report = place.verify_by("another key, which is just as long as it must be", None);
    assert_eq!(report.findings.len(), 4, "{report}");
    let report = super::verify::verify(&place.files(), None, None).unwrap();
    good(&report);
    assert!(report.notes[0].contains("no link was verified"));
}

#[test]
fn a_folder_without_a_log_is_not_a_good_one() {
    let place = Place::with_calls(1, 3);
    fs::remove_file(&place.files()[0]).unwrap();
    let report = super::verify::verify(&[place.folder()], None, None).unwrap();
    assert!(report.findings[0].what.contains("no file of a log"));
}
