//! What a loss of power would find: the order in which the disk is asked to keep what was written.
use std::fs;

use tempfile::TempDir;

use super::*;

fn open(place: &TempDir, sync: bool) -> Writer {
    let key_file = place.path().join("key");
    fs::write(&key_file, [b'k'; 32]).unwrap();
    let outlets = Outlets {
        folder: Some(place.path().join("log")),
        key_file: key_file.clone(),
        stdout: false,
    };
    let times = Times {
        flush: Duration::from_millis(2),
        sync,
        rotate_size: 1024,
        rotate_time: Duration::from_hours(1),
        checkpoint: Duration::ZERO,
    };
    let key = Arc::new(Key::read(&key_file).unwrap());
    Writer::open(&outlets, times, true, key, Arc::new(Queue::new(4))).unwrap()
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
