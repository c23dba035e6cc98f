//! Whole logs: written through the door that calls use, and read again as they were or as somebody left them.
use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{verify::Report, *};
use crate::a2a::{Fault, Kind};

mod anchored;
mod tampering;

const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 4711);
const PATIENCE: Duration = Duration::from_mins(1);
const KEY: &str = "a key of the test, which is in no line of the log";

/// A folder for a log, and the key beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::write(place.key_file(), KEY).unwrap();
        place
    }

    fn key_file(&self) -> PathBuf {
        self.0.path().join("key")
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("log")
    }

    fn settings(&self) -> config::Audit {
        config::Audit {
            folder: Some(self.folder()),
            key_file: Some(self.key_file()),
            flush: Duration::from_millis(2),
            checkpoint: Duration::ZERO,
            ..config::Audit::default()
        }
    }

    fn start(&self) -> Audit {
        Audit::start(&self.settings(), &config::Telemetry::default()).unwrap()
    }

    /// A log of so many calls, in files of so many.
    fn with_calls(files: usize, each: usize) -> Self {
        let place = Self::new();
        for file in 0..files {
            let audit = place.start(); // each start begins a file
            calls(&audit, (file * each)..(file * each + each));
            assert!(audit.close(PATIENCE));
        }
        place
    }

    fn files(&self) -> Vec<PathBuf> {
        files_in(&self.folder()).unwrap()
    }

    fn verify(&self) -> Report {
        self.verify_by(KEY, None)
    }

    fn verify_by(&self, key: &str, anchor: Option<&Path>) -> Report {
        let key = Key::new(key.as_bytes());
        verify::verify(&self.files(), Some(&key), anchor).unwrap()
    }
}

/// Calls that each have a number as their rule.
fn calls(audit: &Audit, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let waiting = loop {
            match audit.begin(PEER, None) {
                Ok(waiting) => break waiting,
                Err(_) => thread::yield_now(),
            }
        };
        waiting.record().rule(number.to_string());
    }
}

#[track_caller]
fn good(report: &Report) {
    assert!(report.is_good(), "{report}");
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_hundred_thousand_calls_at_once_are_all_in_the_log() {
    let place = Place::new();
    let settings = config::Audit {
        rotate_size: 4 * 1024 * 1024,
        queue: 10_000,
        ..place.settings()
    };
    let audit = Audit::start(&settings, &config::Telemetry::default()).unwrap();
    thread::scope(|scope| {
        for part in 0..4 {
            let audit = &audit;
            scope.spawn(move || calls(audit, part * 25_000..(part + 1) * 25_000));
        }
    });
    assert!(audit.close(PATIENCE));
    let report = place.verify();
    good(&report);
    let files = place.files();
    assert!(files.len() > 5, "{files:?}");
    assert_eq!(
        report.lines,
        100_000 + files.len() as u64 + report_of_missed(&files)
    );
    assert_eq!(report.calls, 100_000);
    let mut seen: Vec<usize> = vec![];
    for line in files.iter().flat_map(|file| lines(file)) {
        // Not by serde_json: that would take longer than all the rest.
        if let Some((_, rest)) = line.split_once("\"rule\":\"") {
            seen.push(rest.split_once('"').unwrap().0.parse().unwrap());
        }
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..100_000), "each of them once");
}

/// The queue may have been full for a while.
fn report_of_missed(files: &[PathBuf]) -> u64 {
    let all = files.iter().flat_map(|file| lines(file));
    let missed = |line: &String| line.contains("\"kind\":\"missed\"");
    all.filter(missed).count() as u64
}

#[test]
fn a_record_is_written_when_the_last_of_it_is_dropped() {
    let place = Place::new();
    let audit = place.start();
    let waiting = audit.begin(PEER, None).ok().unwrap();
    let elsewhere = waiting.record().clone();
    drop(waiting);
    elsewhere.failed(&Fault::new(
        Kind::BackendBroken,
        "words that are in no record",
    ));
    drop(elsewhere);
    assert!(audit.close(PATIENCE));
    let all = lines(&place.files()[0]);
    let call = json(&all[1]);
    assert_eq!(call["seq"], 2);
    assert_eq!(call["kind"], "call");
    assert_eq!(call["peer"], "192.0.2.7:4711");
    assert_eq!(call["fault"], "BACKEND_BROKEN");
    assert_eq!(call["decision"], "none");
    assert_eq!(call["left"], true);
    assert_eq!(all.len(), 2);
    assert!(!all[1].contains("words"));
}

#[test]
fn off_it_records_nothing_and_asks_for_nothing() {
    let audit = Audit::start(&config::Audit::default(), &config::Telemetry::default()).unwrap();
    let waiting = audit.begin(PEER, None).ok().unwrap();
    assert!(!waiting.record().is_on());
    assert!(audit.close(Duration::ZERO));
}

#[test]
fn without_a_place_a_call_is_refused_or_served_without_a_record() {
    for (on_full, served) in [(OnFull::Refuse, false), (OnFull::Drop, true)] {
        let place = Place::new();
        let settings = config::Audit {
            queue: 2,
            on_full,
            ..place.settings()
        };
        let audit = Audit::start(&settings, &config::Telemetry::default()).unwrap();
        let begin = || audit.begin(PEER, None);
        let (first, second) = (begin().ok().unwrap(), begin().ok().unwrap());
        for _ in 0..3 {
            match begin() {
                Ok(waiting) => assert!(served && !waiting.record().is_on()),
                Err(full) => assert!(!served && full == Full::Queue),
            }
        }
        drop((first, second));
        // Their places are free again, once they are written.
        let by = tokio::time::Instant::now() + PATIENCE;
        while !begin().is_ok_and(|waiting| waiting.record().is_on()) {
            assert!(tokio::time::Instant::now() < by, "no place comes free");
            thread::yield_now();
        }
        assert!(audit.close(PATIENCE));
        let report = place.verify();
        good(&report);
        assert_eq!(report.calls, 3);
        assert!(report.missed >= 3, "{report}");
        let all = lines(&place.files()[0]);
        let missed = all
            .iter()
            .map(|line| json(line))
            .find(|l| l["kind"] == "missed");
        assert_eq!(missed.unwrap()["served"], served);
    }
}

#[test]
fn a_peer_has_its_share_of_the_places_and_no_more() {
    let place = Place::new();
    let settings = config::Audit {
        queue: 8,
        ..place.settings()
    };
    let audit = Audit::start(&settings, &config::Telemetry::default()).unwrap();
    let begin = |from: &str| {
        let ip: IpAddr = from.parse().unwrap();
        audit.begin((ip, 1).into(), Some(ip))
    };
    let slow: Vec<_> = ["192.0.2.7", "::ffff:192.0.2.7"].map(begin).into();
    assert!(slow.iter().all(Result::is_ok));
    assert_eq!(begin("192.0.2.7").err(), Some(Full::Share));
    let other: Vec<_> = ["2001:db8::1", "2001:db8::2"].map(begin).into();
    assert!(other.iter().all(Result::is_ok), "others have their own");
    assert_eq!(
        begin("2001:db8::3").err(),
        Some(Full::Share),
        "a /64 is one"
    );
    let proxy: Vec<_> = (0..4).map(|_| audit.begin(PEER, None)).collect();
    assert!(proxy.iter().all(Result::is_ok), "many are behind a proxy");
    assert_eq!(begin("2001:db8:1::1").err(), Some(Full::Queue));
    let usage = audit.usage().unwrap();
    assert_eq!((usage.places, usage.taken), (8, 8));
    assert_eq!((usage.without_place, usage.beyond_share), (1, 2));
    drop((slow, other, proxy));
    let by = tokio::time::Instant::now() + PATIENCE;
    while audit.usage().unwrap().taken > 0 {
        assert!(tokio::time::Instant::now() < by, "no place comes free");
        thread::yield_now();
    }
    let again: Vec<_> = ["192.0.2.7", "192.0.2.7"].map(begin).into();
    assert!(again.iter().all(Result::is_ok), "its share is free again");
    drop(again);
    assert!(audit.close(PATIENCE));
    let report = place.verify();
    good(&report);
    assert_eq!((report.calls, report.missed), (10, 3));
}

#[test]
fn files_follow_each_other_by_size_and_by_age() {
    let place = Place::new();
    let by_size = config::Audit {
        rotate_size: 3_000,
        ..place.settings()
    };
    let by_age = config::Audit {
        rotate_time: Duration::ZERO, // each record finds its file old
        ..place.settings()
    };
    for settings in [by_size, by_age] {
        let before = place.files_or_none().len();
        let audit = Audit::start(&settings, &config::Telemetry::default()).unwrap();
        calls(&audit, 0..50);
        assert!(audit.close(PATIENCE));
        let files = place.files();
        assert!(files.len() > before + 4, "{files:?}");
        let report = place.verify();
        good(&report);
        for pair in files.windows(2) {
            let last = json(lines(&pair[0]).last().unwrap());
            let first = json(&lines(&pair[1])[0]);
            assert_eq!(first["after"], last["link"]);
            assert_eq!(
                first["seq"].as_u64(),
                last["seq"].as_u64().map(|seq| seq + 1)
            );
            let name = pair[0].file_name().unwrap().to_str();
            assert_eq!(first["previous"].as_str(), name);
        }
    }
    let sizes = place
        .files()
        .into_iter()
        .map(|file| fs::metadata(file).unwrap().len());
    assert!(sizes.max().unwrap() < 3_000 + 1_000);
}

impl Place {
    fn files_or_none(&self) -> Vec<PathBuf> {
        files_in(&self.folder()).unwrap_or_default()
    }
}

#[test]
fn a_log_goes_on_after_a_restart_and_after_a_line_that_a_crash_tore() {
    let place = Place::with_calls(1, 3);
    let file = place.files()[0].clone();
    let whole = fs::read(&file).unwrap();
    let half = fs::read_to_string(&file).unwrap();
    let half = half.lines().last().unwrap()[..40].to_owned();
    fs::write(&file, [&whole, half.as_bytes()].concat()).unwrap();
    let report = place.verify();
    good(&report);
    let note = &report.notes[0];
    assert!(
        note.contains("line 5") && note.contains("40 bytes"),
        "{note}"
    );

    let audit = place.start();
    calls(&audit, 3..6);
    assert!(audit.close(PATIENCE));
    let report = place.verify();
    good(&report);
    assert_eq!(report.calls, 6);
    assert_eq!((report.spans[0].first, report.spans[0].last), (1, 8));
    assert_eq!(json(&lines(&place.files()[1])[0])["torn"], 40);
    assert!(
        fs::read(&file).unwrap().ends_with(half.as_bytes()),
        "it is left as it was"
    );

    // Who cuts more off that line, or another one, is found.
    for left in [39, 0] {
        fs::write(&file, [&whole, &half.as_bytes()[..left]].concat()).unwrap();
        assert!(!place.verify().is_good(), "{left}");
    }
}

#[test]
fn no_log_goes_on_after_an_end_that_is_not_its_own() {
    let place = Place::with_calls(1, 3);
    let file = place.files()[0].clone();
    let text = fs::read_to_string(&file).unwrap();
    let changed = text.replace("\"rule\":\"2\"", "\"rule\":\"3\"");
    let cut_within = text.trim_end().rsplit_once(',').unwrap().0.to_owned() + "\n";
    for bad in [changed, cut_within, String::new(), "{}\n".to_owned()] {
        fs::write(&file, &bad).unwrap();
        let failed = Audit::start(&place.settings(), &config::Telemetry::default())
            .err()
            .unwrap()
            .to_string();
        assert!(failed.contains("does not verify"), "{failed}");
        assert!(!failed.contains(KEY));
    }
    fs::write(&file, &text).unwrap();
    fs::write(place.key_file(), KEY.to_uppercase()).unwrap();
    assert!(
        Audit::start(&place.settings(), &config::Telemetry::default()).is_err(),
        "another key"
    );
    fs::write(place.key_file(), KEY).unwrap();
    good(&place.verify());
    assert!(place.start().close(PATIENCE));
}

#[test]
fn a_folder_is_of_one_gateway_and_without_the_key() {
    let place = Place::new();
    let audit = place.start();
    let failed = |settings: &config::Audit| {
        Audit::start(settings, &config::Telemetry::default())
            .err()
            .unwrap()
            .to_string()
    };
    let says = failed(&place.settings());
    assert!(says.contains("by another gateway"), "{says}");
    assert!(audit.close(PATIENCE));
    assert!(place.start().close(PATIENCE), "it is free again");

    let inside = place.folder().join("key");
    fs::write(&inside, KEY).unwrap();
    let around = place.0.path().join("log/../log/key");
    for key_file in [inside, around] {
        let settings = config::Audit {
            key_file: Some(key_file),
            ..place.settings()
        };
        let says = failed(&settings);
        assert!(says.contains("must lie elsewhere"), "{says}");
    }
    fs::write(place.key_file(), "short").unwrap();
    let says = failed(&place.settings());
    assert!(
        says.contains("fewer than 32") && !says.contains("short "),
        "{says}"
    );
    fs::remove_file(place.key_file()).unwrap();
    assert!(failed(&place.settings()).starts_with("audit.key_file: "));
}

#[test]
fn a_log_that_cannot_begin_its_next_file_goes_on_with_this_one() {
    let place = Place::new();
    let settings = config::Audit {
        rotate_size: 2_000,
        ..place.settings()
    };
    let audit = Audit::start(&settings, &config::Telemetry::default()).unwrap();
    // In the way of the next file, whatever its number.
    fs::create_dir(place.folder().join("audit.new")).unwrap();
    calls(&audit, 0..50);
    assert!(audit.close(PATIENCE));
    assert_eq!(place.files().len(), 1);
    let report = place.verify();
    good(&report);
    assert_eq!(report.calls, 50);
}
