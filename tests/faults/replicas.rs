//! One of several addresses is dead, or comes and goes.
use crate::{
    proxy::Fault,
    scene::{Ended, Place, at_rest, gateway, is_up, send, status, until_up},
    support::{
        message::Message,
        words::{ALL, J10, R10},
    },
};

/// A breaker that a test can wait for.
const QUICK: &str = "breaker: {open: 100ms, longest: 200ms}";

fn once(places: &[&Place], id: &str) -> usize {
    places.iter().map(|place| place.proxy.sends_of(id)).sum()
}

#[test]
fn one_of_three_that_is_dead_costs_no_call() {
    let all = [Place::of("a"), Place::of("b"), Place::of("c")];
    let places: Vec<_> = all.iter().collect();
    let gateway = gateway(&places, QUICK, "");
    all[1].proxy.does(Fault::Refuse);
    // Which address gets a call is chance and how quick they are: however it falls, thirty are well, and in the end both
    // others are used and the dead one is known.
    let known = || {
        let used = |at: usize| all[at].messages().len() > 2;
        used(0) && used(2) && is_up(&gateway, &all[1]) == Some(false)
    };
    for round in 0.. {
        if round >= 30 && known() {
            break;
        }
        assert!(round < 5000, "the calls do not spread");
        let speak = ALL[round % ALL.len()];
        let id = format!("m-{round}");
        let message = if round % 2 == 0 {
            Message::send(&id)
        } else {
            Message::stream(&id)
        };
        assert_eq!(send(&gateway, speak, message), Ended::Well, "{round}");
        assert_eq!(once(&places, &id), 1, "{round}");
    }
    assert!(status(&gateway).retries > 0, "calls turned elsewhere");
    // It comes back by a trial, and is used again.
    all[1].proxy.does(Fault::None);
    for round in 0.. {
        let id = format!("n-{round}");
        assert_eq!(send(&gateway, J10, Message::send(&id)), Ended::Well);
        assert_eq!(once(&places, &id), 1);
        if !all[1].messages().is_empty() {
            break;
        }
        assert!(round < 5000, "it is never tried again");
    }
    until_up(&gateway, &all[1], true);
    at_rest(&gateway);
}

#[test]
fn all_dead_is_unreachable_and_the_first_that_is_back_is_found() {
    let all = [Place::of("a"), Place::of("b")];
    let places: Vec<_> = all.iter().collect();
    let gateway = gateway(&places, "breaker: {open: 60s}", "");
    for place in &all {
        place.proxy.does(Fault::Refuse);
    }
    let unreachable = Ended::Fault("BACKEND_UNREACHABLE".to_owned());
    for round in 0..10 {
        let id = format!("m-{round}");
        assert_eq!(send(&gateway, R10, Message::send(&id)), unreachable);
    }
    assert!(status(&gateway).is_down());
    // Its breaker stays open for long; but there is none that is better, so it is tried.
    all[0].proxy.does(Fault::None);
    assert_eq!(send(&gateway, R10, Message::send("back")), Ended::Well);
    until_up(&gateway, &all[0], true);
    at_rest(&gateway);
}

#[test]
fn what_may_have_begun_is_never_sent_elsewhere() {
    let all = [Place::of("a"), Place::of("b")];
    let places: Vec<_> = all.iter().collect();
    let gateway = gateway(&places, "breaker: {failures: 0, percent: 0}", "");
    for place in &all {
        place.proxy.does(Fault::ResetDown(10));
    }
    for round in 0..20 {
        let id = format!("m-{round}");
        let message = if round % 2 == 0 {
            Message::send(&id)
        } else {
            Message::stream(&id)
        };
        let broken = Ended::Fault("BACKEND_BROKEN".to_owned());
        assert_eq!(send(&gateway, J10, message), broken);
        assert_eq!(once(&places, &id), 1);
    }
    assert_eq!(status(&gateway).retries, 0);
    // A question is asked elsewhere: one of them is well again, and nobody is told of the other.
    all[0].proxy.does(Fault::None);
    for round in 0..10 {
        let (line, body) = J10.get();
        let answer = gateway.ask(line, &crate::scene::fields(J10), &body);
        assert!(answer.json().get("result").is_some(), "{round}: {answer:?}");
    }
    assert_eq!(all[0].questions(), 10);
    at_rest(&gateway);
}

#[test]
fn an_address_that_comes_and_goes_is_survived() {
    let all = [Place::of("a"), Place::of("b"), Place::of("c")];
    let places: Vec<_> = all.iter().collect();
    let gateway = gateway(&places, QUICK, "");
    let faults = [
        Fault::Refuse,
        Fault::None,
        Fault::ResetAtOnce,
        Fault::ResetDown(30),
        Fault::None,
    ];
    for round in 0..150 {
        if round % 5 == 0 {
            all[round % 2].proxy.does(faults[round / 5 % faults.len()]);
        }
        let (speak, id) = (ALL[round % ALL.len()], format!("m-{round}"));
        let message = if round % 2 == 0 {
            Message::send(&id)
        } else {
            Message::stream(&id)
        };
        let ended = send(&gateway, speak, message);
        assert!(once(&places, &id) <= 1, "{round}: {ended:?}");
        if ended == Ended::Well {
            assert_eq!(once(&places, &id), 1, "{round}");
        }
    }
    for place in &all {
        place.proxy.does(Fault::None);
    }
    for round in 0.. {
        let id = format!("n-{round}");
        assert_eq!(send(&gateway, J10, Message::send(&id)), Ended::Well);
        if !status(&gateway).addresses.iter().any(|address| !address.up) {
            break;
        }
        assert!(round < 5000, "{:?}", status(&gateway));
    }
    at_rest(&gateway);
}
