//! Runs the checks of the fuzz targets on every input that is kept: seeds, and what once went wrong.
use std::{ffi::OsStr, fs, panic, path::PathBuf};

#[path = "fuzz/checks.rs"]
mod checks;

fn replay(target: &str, check: fn(&[u8])) {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.extend(["tests", "fuzz", "corpus", target]);
    let files = fs::read_dir(&folder).expect("every target has a corpus");
    let (mut count, mut failed) = (0, vec![]);
    for file in files {
        let path = file.expect("a corpus is a flat folder").path();
        let bytes = fs::read(&path).expect("a corpus holds plain files");
        if panic::catch_unwind(|| check(&bytes)).is_err() {
            failed.push(path.file_name().map(OsStr::to_owned));
        }
        count += 1;
    }
    assert!(failed.is_empty(), "{target}: {failed:?}");
    assert!(count >= 10, "{target} has {count} inputs only");
}

#[test]
fn bodies() {
    replay("body", checks::body);
}

#[test]
fn streams() {
    replay("sse", checks::sse);
}

#[test]
fn heads() {
    replay("head", checks::head);
}

#[test]
fn texts() {
    replay("json", checks::json);
}
