//! Certificates that are renewed while calls run.
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use super::house::{House, OWN, log};
use crate::support::{until, words::ALL};

const TIMES: usize = 50;

#[test]
fn no_call_fails_while_certificates_are_swapped_under_load() {
    let house = House::build("", "");
    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let seen = Mutex::new(BTreeSet::new());
    let last = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for worker in 0..3 {
            let (house, over, calls, seen) = (&house, &over, &calls, &seen);
            scope.spawn(move || {
                let mut caller = house.stranger();
                if worker > 0 {
                    // A session that goes on is not shown a certificate again.
                    caller = caller.forgetting();
                }
                let mut kept = caller.connect(house.addr()).unwrap();
                while !over.load(SeqCst) {
                    // One connection after the other, and one that stays over all of it.
                    let mut fresh = caller.connect(house.addr()).unwrap();
                    if worker > 0 {
                        seen.lock().unwrap().insert(fresh.serial());
                    }
                    for connected in [&mut fresh, &mut kept] {
                        let speak = ALL[calls.fetch_add(1, SeqCst) % ALL.len()];
                        let (status, text) = connected.send(speak, "").unwrap();
                        assert_eq!(status, 200, "{worker} {text}");
                    }
                }
            });
        }
        for _ in 0..TIMES {
            let own = house.authority.issue(&OWN);
            last.store(usize::try_from(own.serial).unwrap(), SeqCst);
            house.put(&own, &house.vouches.pem(), "");
            let before = calls.load(SeqCst);
            until("calls go on", || calls.load(SeqCst) > before + 20);
        }
        let last = last.load(SeqCst) as u64;
        until("the last one is shown", || {
            seen.lock().unwrap().contains(&last)
        });
        over.store(true, SeqCst);
    });
    let seen = seen.into_inner().unwrap();
    assert!(
        seen.contains(&house.own.serial) && seen.len() > 1,
        "{seen:?}"
    );
    assert_eq!(
        house.gateway.served().running.counts().handshakes_failed(),
        0
    );
}

#[test]
fn a_key_that_does_not_fit_changes_nothing_and_is_told() {
    let house = House::build("", "");
    let (one, two) = (house.authority.issue(&OWN), house.authority.issue(&OWN));
    let shown = || {
        house
            .stranger()
            .forgetting()
            .connect(house.addr())
            .unwrap()
            .serial()
    };
    house.files.put(&[
        ("tls.crt", &one.cert),
        ("tls.key", &two.key),
        ("ca.crt", ""),
        ("crl.pem", ""),
    ]);
    until("it was told", || {
        log().contains("files have changed and do not fit together")
    });
    assert_eq!(shown(), house.own.serial);
    assert!(!log().contains("PRIVATE KEY"));
    // The other half comes later.
    house.files.put(&[
        ("tls.crt", &two.cert),
        ("tls.key", &two.key),
        ("ca.crt", ""),
        ("crl.pem", ""),
    ]);
    until("both are taken", || shown() == two.serial);
}
