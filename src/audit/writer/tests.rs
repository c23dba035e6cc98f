//! What a loss of power would find: the order in which the disk is asked to keep what was written. And a stdout that
//! nobody reads.
use std::{
    fs,
    io::{PipeReader, Read as _, pipe},
    os::fd::OwnedFd,
};

use tempfile::TempDir;

use super::*;

fn open(place: &TempDir, sync: bool) -> Writer {
    let key_file = place.path().join("key");
    fs::write(&key_file, [b'k'; 32]).unwrap();
    let outlets = Outlets {
        folder: Some(place.path().join("log")),
        key_file: key_file.clone(),
        stdout: false,
        otlp: None,
    };
    let times = Times {
        flush: Duration::from_millis(2),
        sync,
        rotate_size: 1024,
        rotate_time: Duration::from_hours(1),
        checkpoint: Duration::ZERO,
    };
    let key = Arc::new(Key::read(&key_file).unwrap());
    let null = File::options().write(true).open("/dev/null").unwrap();
    Writer::open(outlets, null, times, true, key, Arc::new(Queue::new(4))).unwrap()
}

/// One without a folder, whose stdout is a pipe.
fn piped(lines_too: bool) -> (Writer, PipeReader) {
    let (reader, stdout) = pipe().unwrap();
    let outlets = Outlets {
        folder: None,
        key_file: PathBuf::new(),
        stdout: lines_too,
        otlp: None,
    };
    let times = Times {
        flush: Duration::from_millis(2),
        sync: false,
        rotate_size: 1024,
        rotate_time: Duration::from_hours(1),
        checkpoint: Duration::from_mins(1),
    };
    let (key, queue) = (Key::new(&[b'k'; 32]), Queue::new(4));
    let stdout = File::from(OwnedFd::from(stdout));
    let writer = Writer::open(outlets, stdout, times, true, key.into(), queue.into());
    (writer.unwrap(), reader)
}

/// What is told until the writer's end, line by line.
fn told(mut reader: PipeReader) -> Vec<serde_json::Value> {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// More than any pipe holds.
const MANY: u64 = 10_000;

#[test]
fn a_stdout_that_nobody_reads_takes_no_checkpoint_and_stops_no_record() {
    let (mut writer, reader) = piped(false);
    for _ in 0..MANY {
        writer.missed(1);
        assert!(writer.write());
        writer.checkpoint();
    }
    let untold = writer.queue.untold();
    assert!((MANY / 2..MANY).contains(&untold), "{untold}");
    let queue = writer.queue.clone();
    let read = thread::spawn(|| told(reader));
    writer.end(true);
    let told = read.join().unwrap();
    assert_eq!(told.len() as u64 + queue.untold(), MANY + 1);
    assert!(told.iter().all(|line| line["kind"] == "checkpoint"));
}

#[test]
fn a_stdout_that_nobody_reads_is_told_of_where_records_go_there() {
    let (mut writer, reader) = piped(true);
    let mut lines = 1; // the first begins the log
    let error = loop {
        writer.missed(1);
        lines += 1;
        writer.stdout.push(&std::mem::take(&mut writer.lines));
        if let Err(error) = writer.try_to_write() {
            break error;
        }
    };
    assert!(error.to_string().contains("audit.stdout"), "{error}");
    writer.queue.closing();
    writer.missed(1);
    lines += 1;
    assert!(!writer.write(), "it does not wait for ever");
    // Nothing is lost once somebody reads.
    let read = thread::spawn(|| told(reader));
    assert!(writer.write());
    drop(writer);
    let told = read.join().unwrap();
    assert_eq!(told.len(), lines);
    let numbers = told.iter().map(|line| line["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=lines as u64));
}

fn files(place: &TempDir) -> usize {
    crate::audit::files_in(&place.path().join("log"))
        .unwrap()
        .len()
}

#[test]
fn no_file_is_begun_before_the_disk_has_the_one_before() {
    for sync in [false, true] {
        let place = TempDir::new().unwrap();
        let mut writer = open(&place, sync);
        writer.missed(1);
        assert!(writer.write());
        writer.begin_file(None).unwrap();
        assert_eq!((files(&place), writer.chain.seq), (2, 3));
        // It takes all that is written, and does not say that it keeps it.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let current = writer.files.as_mut().unwrap().current.as_mut().unwrap();
        current.outlet = Outlet::new(null);
        writer.missed(1);
        assert!(writer.write());
        let last = writer.chain.last;
        assert!(writer.begin_file(None).is_err(), "sync: {sync}");
        assert_eq!((files(&place), writer.chain.seq), (2, 4));
        assert_eq!(writer.chain.last, last, "the chain goes on where it was");
    }
}
