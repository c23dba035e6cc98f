//! One process, and a few owners who want more than there is.
use std::time::Duration;

use super::*;

fn key(name: &str) -> Key {
    Key::of(&[name])
}

fn owners(most: usize, share: usize) -> Owners {
    Owners::new(Settings {
        most,
        share,
        ttl: Duration::from_mins(1),
    })
}

impl Owners {
    /// As somebody sees it who has nothing.
    fn owner(&self, what: Key) -> Option<Key> {
        self.owners(&[what], key("nobody"))[0]
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_who_claims_it_has_it() {
    let owners = owners(1000, 100);
    let (ann, bob, task) = (key("ann"), key("bob"), key("task"));
    assert_eq!(owners.owner(task), None);
    assert_eq!(owners.claim(task, ann, 1), Claimed::New);
    assert_eq!(owners.claim(task, ann, 2), Claimed::Own);
    assert_eq!(owners.claim(task, bob, 3), Claimed::Others);
    assert!(!owners.claim_surely(task, bob));
    assert_eq!(owners.owner(task), Some(ann));
    assert_eq!(owners.secret([1; 32]), owners.secret([2; 32]));
}

#[tokio::test(start_paused = true)]
async fn what_its_owner_does_not_use_is_nobody_s() {
    let owners = owners(1000, 100);
    let (ann, bob, task) = (key("ann"), key("bob"), key("task"));
    assert_eq!(owners.claim(task, ann, 1), Claimed::New);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(*owners.owners(&[task], ann), [Some(ann)], "it is used");
    }
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(25)).await;
        assert_eq!(*owners.owners(&[task], bob), [Some(ann)]);
        assert_eq!(owners.claim(task, bob, 2), Claimed::Others);
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(owners.owner(task), None, "a stranger's looks keep nothing");
    assert_eq!(owners.claim(task, bob, 3), Claimed::New);
}

#[tokio::test(start_paused = true)]
async fn who_makes_many_pushes_out_its_own_alone() {
    let owners = owners(1000, 100);
    let (ann, bob) = (key("ann"), key("bob"));
    for n in 0..50 {
        let claimed = owners.claim(key(&format!("ann-{n}")), ann, n);
        assert_eq!(claimed, Claimed::New);
    }
    for n in 0..10_000 {
        let claimed = owners.claim(key(&format!("bob-{n}")), bob, n);
        assert_eq!(claimed, Claimed::New);
        assert!(owners.claim_surely(key(&format!("bob-task-{n}")), bob));
    }
    for n in 0..50 {
        assert_eq!(owners.owner(key(&format!("ann-{n}"))), Some(ann), "{n}");
    }
    assert_eq!(owners.table.lock().len(), 150);
    assert_eq!(owners.owner(key("bob-9999")), Some(bob));
    assert_eq!(owners.owner(key("bob-0")), None, "its oldest is forgotten");
}

#[tokio::test(start_paused = true)]
async fn its_own_oldest_is_what_it_has_not_used_for_longest() {
    let owners = owners(1000, 3);
    let ann = key("ann");
    for what in ["one", "two", "three"] {
        owners.claim(key(what), ann, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    owners.owners(&[key("one")], ann);
    owners.claim(key("four"), ann, 1);
    let left = ["one", "two", "three", "four"].map(|what| owners.owner(key(what)).is_some());
    assert_eq!(left, [true, false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn where_all_is_full_the_newcomer_is_refused_and_nobody_forgotten() {
    let owners = owners(100, 50);
    for n in 0..100 {
        let who = key(if n < 50 { "ann" } else { "bob" });
        assert_eq!(owners.claim(key(&n.to_string()), who, n), Claimed::New);
    }
    let cid = key("cid");
    assert!(!owners.has_room(cid));
    assert_eq!(owners.claim(key("new"), cid, 1), Claimed::Full);
    for n in 0..100 {
        assert!(owners.owner(key(&n.to_string())).is_some(), "{n}");
    }
    // Who has its share gives of its own.
    assert!(owners.has_room(key("ann")));
    assert_eq!(owners.claim(key("more"), key("ann"), 1), Claimed::New);
    // What exists already is remembered, and bounded all the same.
    for n in 0..1000 {
        assert!(owners.claim_surely(key(&format!("cid-{n}")), cid));
    }
    assert_eq!(owners.table.lock().len(), 101);
    // What nobody uses makes room.
    tokio::time::advance(Duration::from_mins(2)).await;
    assert!(owners.has_room(cid));
    owners.tick();
    let table = owners.table.lock();
    assert_eq!((table.len(), table.held(cid)), (0, 0));
    assert!(table.iter().next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_new_claim_is_taken_back_unless_somebody_relies_on_it() {
    let owners = owners(1000, 100);
    let (ann, bob, context) = (key("ann"), key("bob"), key("context"));
    assert_eq!(owners.claim(context, ann, 1), Claimed::New);
    owners.unclaim(context, bob, 1);
    owners.unclaim(context, ann, 2);
    assert_eq!(owners.owner(context), Some(ann));
    owners.unclaim(context, ann, 1);
    assert_eq!(owners.owner(context), None);
    assert_eq!(owners.claim(context, ann, 3), Claimed::New);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(owners.claim(context, ann, 4), Claimed::Own);
    owners.unclaim(context, ann, 3);
    assert_eq!(owners.owner(context), Some(ann));
}

#[tokio::test(start_paused = true)]
async fn what_is_saved_is_restored_with_its_age() {
    let before = owners(1000, 100);
    let (ann, bob) = (key("ann"), key("bob"));
    before.saves();
    before.claim(key("old"), ann, 1);
    tokio::time::advance(Duration::from_secs(40)).await;
    before.claim(key("new"), bob, 1);
    before.claim(key("gone"), bob, 2);
    before.unclaim(key("gone"), bob, 2);
    let saved = before.changed(1_000_000_000).of;
    assert_eq!(saved.len(), 3);
    assert!(before.changed(1_000_000_000).of.is_empty());
    before.change_again(vec![key("new")]);
    assert_eq!(before.changed(1_000_000_000).of.len(), 1);

    let after = owners(1000, 100);
    for (what, text) in saved {
        match text {
            Some(text) => assert!(after.restore(what, &text, 1_010_000_000)),
            None => assert_eq!(what, key("gone")),
        }
    }
    assert_eq!(after.owner(key("old")), Some(ann));
    assert_eq!(after.owner(key("new")), Some(bob));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(after.owner(key("old")), None, "it was old already");
    assert_eq!(after.owner(key("new")), Some(bob));
    assert!(!after.restore(key("odd"), b"odd", 0));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_saved_does_not_grow_with_what_is_gone() {
    let owners = owners(10, 10);
    let ann = key("ann");
    owners.saves();
    for n in 0..100 {
        let what = key(&n.to_string());
        owners.claim(what, ann, n);
        if n > 0 {
            owners.unclaim(what, ann, n);
        }
        let changed = owners.changed(0);
        assert!(changed.of.len() <= 20, "{n}: {}", changed.of.len());
        if changed.all {
            assert_eq!(changed.of.len(), 1, "what there is");
            owners.change_all();
        } else {
            owners.change_again(changed.of.into_iter().map(|(key, _)| key).collect());
        }
    }
    assert!(owners.changed(0).all);
    assert!(owners.changed(0).of.is_empty(), "it is saved");
}

/// The same, as plainly as it can be told: a list, the newest last.
#[derive(Default)]
struct Plain(Vec<(Key, Key)>);

impl Plain {
    fn put(&mut self, what: Key, by: Key) {
        self.0.retain(|(known, _)| *known != what);
        self.0.push((what, by));
    }

    fn forget_oldest(&mut self, owner: Key) {
        if let Some(at) = self.0.iter().position(|(_, by)| *by == owner) {
            self.0.remove(at);
        }
    }
}

proptest::proptest! {
    #[test]
    fn a_table_is_a_list_in_the_order_of_use(
        steps in proptest::collection::vec((0..4_u8, 0..12_u8, 0..3_u8), 0..200),
    ) {
        let (mut table, mut plain) = (Table::default(), Plain::default());
        for (now, (step, what, by)) in (0..).zip(steps) {
            let (what, by) = (key(&what.to_string()), key(&by.to_string()));
            match step {
                0 | 1 => {
                    table.put(Owned { what, by, used: now, name: None });
                    plain.put(what, by);
                }
                2 => {
                    table.forget(what);
                    plain.0.retain(|(known, _)| *known != what);
                }
                _ => {
                    let had = plain.0.len();
                    plain.forget_oldest(by);
                    proptest::prop_assert_eq!(table.forget_oldest(by), plain.0.len() < had);
                }
            }
            let oldest = table.oldest().map(|owned| (owned.what, owned.by));
            proptest::prop_assert_eq!(oldest, plain.0.first().copied());
            proptest::prop_assert_eq!(table.len(), plain.0.len());
            let held = plain.0.iter().filter(|(_, of)| *of == by).count();
            proptest::prop_assert_eq!(table.held(by), held);
        }
    }
}

#[test]
fn what_was_restored_in_no_order_goes_in_the_order_of_use() {
    let mut table = Table::default();
    let ann = key("ann");
    for used in [5, 1, 4, 2, 3] {
        let what = key(&used.to_string());
        table.restore(Owned {
            what,
            by: ann,
            used,
            name: None,
        });
    }
    for used in 1..=5 {
        let oldest = table.oldest().map(|owned| owned.used);
        assert_eq!(oldest, Some(used));
        assert!(table.forget_oldest(ann));
    }
    assert!(!table.forget_oldest(ann));
}

#[test]
fn a_clock_that_is_a_little_behind_does_not_disturb_the_order() {
    let mut table = Table::default();
    let ann = key("ann");
    for (what, used) in [("a", 100), ("b", 101), ("c", 100)] {
        table.put(Owned {
            what: key(what),
            by: ann,
            used,
            name: None,
        });
    }
    assert_eq!(table.look(key("c")).map(|owned| owned.used), Some(101));
    for what in ["a", "b", "c"] {
        let oldest = table.oldest().map(|owned| owned.what);
        assert_eq!(oldest, Some(key(what)));
        assert!(table.forget_oldest(ann));
    }
}
