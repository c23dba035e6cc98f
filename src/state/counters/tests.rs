//! Counts as rules use them, with the time passed in.
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use proptest::prelude::*;

use super::{memory::Local, *};

const SECOND: Micros = 1_000_000;
const NOW: Micros = 1_700_000_000 * SECOND;

fn key(name: &str) -> Key {
    Key::of(&["test", name])
}

fn ask(rule: u8, name: &str, what: What) -> Ask {
    Ask {
        key: key(name),
        rule,
        stem: key(&rule.to_string()),
        by: By::NOBODY,
        chosen: false,
        what,
    }
}

fn rate(interval: Micros, burst: u64) -> What {
    What::Rate {
        interval,
        tolerance: interval * (burst - 1),
    }
}

fn window(until: Micros, limit: u64, cost: u64) -> What {
    What::Window { until, limit, cost }
}

const FOUR: What = What::AtOnce { limit: 4 };

fn roomy() -> Local {
    Local::new(1_000_000, 1_000_000)
}

#[test]
fn a_rate_has_its_burst_and_then_its_interval() {
    let counts = roomy();
    let calls = [ask(0, "a", rate(SECOND, 3))];
    for _ in 0..3 {
        counts.take(&calls, NOW).unwrap();
    }
    let refused = counts.take(&calls, NOW).unwrap_err();
    assert_eq!((refused.wait, refused.left), (SECOND, 0));
    let refused = counts.take(&calls, NOW + SECOND - 1).unwrap_err();
    assert_eq!(refused.wait, 1);
    counts.take(&calls, NOW + SECOND).unwrap();
    counts.take(&calls, NOW + SECOND).unwrap_err();
    // After a long rest it is a burst again, and no more.
    for _ in 0..3 {
        counts.take(&calls, NOW + 100 * SECOND).unwrap();
    }
    counts.take(&calls, NOW + 100 * SECOND).unwrap_err();
}

#[test]
fn a_clock_that_was_set_back_owes_no_more_than_a_burst() {
    let counts = roomy();
    let calls = [ask(0, "a", rate(SECOND, 3))];
    counts.take(&calls, NOW).unwrap();
    let before = NOW - 3600 * SECOND;
    counts.take(&calls, before).unwrap();
    let refused = counts.take(&calls, before).unwrap_err();
    assert_eq!(refused.wait, SECOND);
    counts.take(&calls, before + SECOND).unwrap();
}

#[test]
fn rules_are_taken_together_or_not_at_all() {
    let counts = roomy();
    let until = NOW + 60 * SECOND;
    let all = [
        ask(0, "rate", rate(SECOND, 100)),
        ask(1, "window", window(until, 100, 10)),
        ask(
            2,
            "rolling",
            What::Rolling {
                part: SECOND,
                limit: 100,
                cost: 10,
            },
        ),
        ask(3, "at once", FOUR),
        ask(4, "last", window(until, 2, 1)),
    ];
    counts.take(&all, NOW).unwrap();
    counts.take(&all, NOW).unwrap();
    for _ in 0..1000 {
        let refused = counts.take(&all, NOW).unwrap_err();
        assert_eq!((refused.which, refused.wait), (4, 60 * SECOND));
    }
    let used = |name: &str| {
        let levels = counts.list(100, NOW);
        levels.iter().find(|l| l.key == key(name)).unwrap().used
    };
    assert_eq!(used("rate"), 2 * SECOND);
    assert_eq!(
        (used("window"), used("rolling"), used("at once")),
        (20, 20, 2)
    );
}

#[test]
fn the_longest_wait_is_told() {
    let counts = roomy();
    let both = [
        ask(0, "soon", rate(SECOND, 1)),
        ask(1, "late", window(NOW + 3600 * SECOND, 1, 1)),
        ask(2, "now", rate(SECOND, 9)),
    ];
    counts.take(&both, NOW).unwrap();
    assert_eq!(counts.take(&both, NOW).unwrap_err().which, 1);
}

#[test]
fn what_is_given_back_is_there_again() {
    let counts = roomy();
    let until = NOW + 60 * SECOND;
    let all = [
        ask(0, "rate", rate(SECOND, 2)),
        ask(1, "window", window(until, 20, 10)),
        ask(
            2,
            "rolling",
            What::Rolling {
                part: SECOND,
                limit: 20,
                cost: 10,
            },
        ),
        ask(3, "at once", What::AtOnce { limit: 2 }),
    ];
    counts.take(&all, NOW).unwrap();
    for _ in 0..100 {
        let taken = counts.take(&all, NOW).unwrap();
        counts.take(&all, NOW).unwrap_err();
        counts.give_back(&taken, NOW);
    }
    let taken = counts.take(&all, NOW).unwrap();
    counts.take(&all, NOW).unwrap_err();
    // Nothing comes back into a window that began later.
    let next = [ask(1, "window", window(until + 60 * SECOND, 20, 20))];
    counts.take(&next, until + 1).unwrap();
    counts.give_back(&taken, NOW);
    counts.take(&next, until + 2).unwrap_err();
}

#[test]
fn a_window_turns_once_also_where_a_clock_is_late() {
    let counts = roomy();
    let at = |until, cost| [ask(0, "a", window(until, 3, cost))];
    let (first, second) = (NOW + 10, NOW + 20);
    counts.take(&at(first, 3), NOW).unwrap();
    let refused = counts.take(&at(first, 1), NOW + 9).unwrap_err();
    assert_eq!((refused.wait, refused.left), (1, 0));
    counts.take(&at(second, 1), NOW + 10).unwrap();
    // Another one still counts for the window that is over: it takes of the one that runs.
    counts.take(&at(first, 2), NOW + 9).unwrap();
    counts.take(&at(second, 1), NOW + 11).unwrap_err();
}

#[test]
fn what_is_charged_later_is_refused_only_when_nothing_is_left() {
    let counts = roomy();
    let until = NOW + 60 * SECOND;
    let open = [ask(0, "bytes", window(until, 100, 0))];
    let charge = |name: &str, what| {
        let wish = ask(0, name, what);
        counts.charge(&One::of(&wish, wish.key, wish.by), what, NOW);
    };
    counts.take(&open, NOW).unwrap();
    charge("bytes", window(until, 100, 99));
    counts.take(&open, NOW).unwrap();
    charge("bytes", window(until, 100, 5000));
    counts.take(&open, NOW).unwrap_err();
    // Also from nothing: it was swept in between.
    charge("swept", window(until, 100, 100));
    counts
        .take(&[ask(0, "swept", open[0].what)], NOW)
        .unwrap_err();
}

proptest! {
    /// Whatever the times: no span of the window's length holds more than the limit.
    #[test]
    fn a_rolling_window_holds_no_more_than_its_limit(
        steps in proptest::collection::vec((0..4_000_000_u64, 1..4_u64), 1..200),
    ) {
        let (part, limit) = (SECOND, 7);
        let counts = roomy();
        let mut now = NOW;
        let mut taken: Vec<(Micros, u64)> = vec![];
        for (passed, cost) in steps {
            now += passed;
            let one = [ask(0, "a", What::Rolling { part, limit, cost })];
            match counts.take(&one, now) {
                Ok(_) => taken.push((now, cost)),
                Err(refused) => {
                    prop_assert!(refused.wait > 0 && refused.wait <= 17 * part);
                    let later = counts.take(&one, now + refused.wait);
                    prop_assert!(later.is_ok(), "it may come when it was told to");
                    taken.push((now + refused.wait, cost));
                    now += refused.wait;
                }
            }
            let since = now - PARTS * part;
            let held: u64 = taken.iter().filter(|(at, _)| *at >= since).map(|(_, cost)| cost).sum();
            prop_assert!(held <= limit, "{held} within the window");
        }
    }
}

#[test]
fn many_at_once_take_just_what_there_is() {
    let counts = roomy();
    let (admitted, inside, most) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let until = NOW + 60 * SECOND;
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let all = [
                        ask(0, "rate", rate(SECOND, 5000)),
                        ask(1, "window", window(until, 1000, 1)),
                    ];
                    if counts.take(&all, NOW).is_ok() {
                        admitted.fetch_add(1, Relaxed);
                    }
                    let four = [ask(2, "at once", FOUR)];
                    if counts.take(&four, NOW).is_ok() {
                        most.fetch_max(inside.fetch_add(1, Relaxed) + 1, Relaxed);
                        thread::yield_now();
                        inside.fetch_sub(1, Relaxed);
                        counts.release(key("at once"));
                    }
                }
            });
        }
    });
    assert_eq!(admitted.load(Relaxed), 1000);
    assert!((1..=4).contains(&most.load(Relaxed)));
    let left = counts.take(&[ask(0, "rate", rate(SECOND, 5000))], NOW);
    left.unwrap(); // the 5,400 that the other rule refused took nothing
    for _ in 0..4 {
        counts.take(&[ask(2, "at once", FOUR)], NOW).unwrap();
    }
}

#[test]
fn a_million_keys_take_the_memory_that_is_said() {
    let counts = Local::new(1_000_000, 1_000_000);
    let key = |n: u32| Key::of(&["many", &n.to_string()]);
    let one = |n| Ask {
        key: key(n),
        ..ask(0, "", rate(SECOND, 1))
    };
    for n in 0..1_000_000 {
        counts.take(&[one(n)], NOW).unwrap();
    }
    assert_eq!(counts.held(), 1_000_000);
    let bytes = counts.bytes();
    assert!(bytes <= 80 * 1_000_000, "{bytes}");
    // What comes after is one count, and takes nothing from the others.
    counts.take(&[one(1_000_001)], NOW).unwrap();
    for n in 1_000_002..1_000_100 {
        counts.take(&[one(n)], NOW).unwrap_err();
    }
    counts.take(&[one(7)], NOW).unwrap_err();
    assert_eq!(counts.held(), 1_000_001);
    for _ in 0..64 {
        counts.tick(NOW + 2 * SECOND);
    }
    assert_eq!(counts.held(), 0);
    assert!(counts.bytes() < 1_000_000, "{}", counts.bytes());
}

#[test]
fn who_makes_up_keys_gains_nothing_and_harms_nobody() {
    let counts = Local::new(1_000, 10);
    let chosen = |by: u32, name: &str| Ask {
        key: Key::of(&["chosen", &by.to_string(), name]),
        by: By::known(by),
        chosen: true,
        ..ask(3, "", rate(SECOND, 1))
    };
    let admitted = (0..10_000)
        .filter(|n| counts.take(&[chosen(5, &n.to_string())], NOW).is_ok())
        .count();
    assert_eq!(admitted, 11); // its share, and the rest of its keys together
    assert_eq!(counts.held(), 11);
    counts.take(&[chosen(7, "1")], NOW).unwrap();
    counts.take(&[chosen(5, "3")], NOW).unwrap_err();
    // What is at rest leaves its place in the share.
    for _ in 0..64 {
        counts.tick(NOW + 2 * SECOND);
    }
    let later = NOW + 2 * SECOND;
    let admitted = (0..100)
        .filter(|n| counts.take(&[chosen(5, &n.to_string())], later).is_ok())
        .count();
    assert_eq!(admitted, 11);
}

/// What the peers of one network ask for under keys that they make up.
fn made_up(network: Option<u32>, name: &str, what: What) -> Ask {
    Ask {
        by: By::anybody(network),
        ..ask(3, name, what)
    }
}

#[test]
fn what_anybody_makes_up_leaves_half_of_the_places_to_who_is_known() {
    let counts = Local::new(1_000, 1_000);
    let hour = rate(3600 * SECOND, 1);
    let takes = |ask| counts.take(&[ask], NOW).is_ok();
    let made = (0..10_000).filter(|n| takes(made_up(None, &format!("made {n}"), hour)));
    assert_eq!(made.count(), 501); // half, and the others together
    // Who is known has the other half, and none of them is an other.
    let known = (0..499).filter(|n| takes(ask(3, &format!("known {n}"), hour)));
    assert_eq!(known.count(), 499);
    assert_eq!(counts.held(), 1_000);
    // Beyond, who is known shares one count with the known alone.
    assert!(takes(ask(3, "one more", hour)));
    assert!(!takes(ask(3, "and more", hour)));
}

#[test]
fn one_network_has_a_sixteenth_of_that_half() {
    let counts = Local::new(3_200, 3_200);
    let hour = rate(3600 * SECOND, 1);
    let takes = |ask| counts.take(&[ask], NOW).is_ok();
    let made = (0..5_000).filter(|n| takes(made_up(Some(7), &format!("a {n}"), hour)));
    assert_eq!(made.count(), 101);
    assert!(takes(made_up(Some(9), "another network", hour)));
    assert!(takes(made_up(None, "an address of IPv4", hour)));
    assert!(!takes(made_up(Some(7), "a 3", hour)));
}

#[test]
fn what_is_at_rest_goes_where_room_is_needed() {
    for by in [By::NOBODY, By::anybody(None), By::anybody(Some(7))] {
        let counts = Local::new(1_000, 1_000);
        let takes = |n: u64, now| {
            let wish = Ask {
                by,
                ..ask(3, &n.to_string(), rate(SECOND, 1))
            };
            counts.take(&[wish], now).is_ok()
        };
        let first = (0..2_000).filter(|n| takes(*n, NOW)).count();
        // Nothing is at rest, so that the next finds no room; a second later all is.
        assert!(!takes(5_000, NOW + SECOND / 2));
        let later = NOW + 2 * SECOND;
        let next = (10_000..12_000).filter(|n| takes(*n, later)).count();
        assert_eq!(next, first, "{by:?}");
    }
}

#[test]
fn the_others_of_two_rules_are_two_counts() {
    let counts = Local::new(1, 1);
    counts.take(&[ask(0, "first", FOUR)], NOW).unwrap();
    let until = NOW + 60 * SECOND;
    let quota = |rule, name: &str| counts.take(&[ask(rule, name, window(until, 1, 1))], NOW);
    quota(1, "a").unwrap();
    quota(1, "b").unwrap_err();
    quota(2, "c").unwrap();
    counts.take(&[ask(3, "d", FOUR)], NOW).unwrap();
}

#[test]
fn what_time_gave_back_does_not_come_back_twice() {
    let counts = roomy();
    let calls = [ask(0, "a", rate(SECOND, 2))];
    let early = counts.take(&calls, NOW).unwrap();
    // It has long been regrown when two others take all that there is.
    let late = NOW + 60 * SECOND;
    counts.take(&calls, late).unwrap();
    counts.take(&calls, late).unwrap();
    counts.give_back(&early, late);
    let refused = counts.take(&calls, late).unwrap_err();
    assert_eq!(refused.wait, SECOND);
    // What is half regrown gives back the other half.
    let counts = roomy();
    let early = counts.take(&calls, NOW).unwrap();
    counts.take(&calls, NOW + SECOND / 2).unwrap();
    counts.give_back(&early, NOW + SECOND / 2);
    counts.take(&calls, NOW + SECOND / 2).unwrap();
    let refused = counts.take(&calls, NOW + SECOND / 2).unwrap_err();
    assert_eq!(refused.wait, SECOND, "as if the first had never been");
}

proptest! {
    /// Whichever call is given back, and whenever: those that stay taken conform to the rate without it.
    #[test]
    fn a_rate_admits_no_more_for_what_is_given_back(
        steps in proptest::collection::vec(0..3_000_000_u64, 2..60),
        gives in any::<prop::sample::Index>(),
        which in any::<prop::sample::Index>(),
    ) {
        let gives = gives.index(steps.len());
        let counts = roomy();
        let burst = 4;
        let calls = [ask(0, "a", rate(SECOND, burst))];
        let mut now = NOW;
        let mut taken: Vec<Taken> = vec![];
        for (n, passed) in steps.into_iter().enumerate() {
            now += passed / 4;
            if n == gives && !taken.is_empty() {
                let gone = taken.remove(which.index(taken.len()));
                counts.give_back(&gone, now);
            } else if let Ok(one) = counts.take(&calls, now) {
                taken.push(one);
            }
            let mut word = 0;
            for one in &taken {
                word = gcra(word, one.at, SECOND, SECOND * (burst - 1)).expect("it conforms without those");
            }
        }
    }

    /// What is given back at once, in any order, leaves no trace.
    #[test]
    fn what_is_given_back_at_once_is_whole(order in Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let counts = roomy();
        let calls = [ask(0, "a", rate(SECOND, 4))];
        let taken: Vec<Taken> = (0..4).map(|_| counts.take(&calls, NOW).unwrap()).collect();
        for n in order {
            counts.give_back(&taken[n], NOW);
        }
        for _ in 0..4 {
            counts.take(&calls, NOW).unwrap();
        }
        prop_assert_eq!(counts.take(&calls, NOW).unwrap_err().wait, SECOND);
    }
}
