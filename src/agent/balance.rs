//! Which address gets a call. Of two that are picked by chance the less loaded one: that spreads nearly as well as
//! looking at all of them, and those who decide at the same moment do not all decide for the same. What belongs to a
//! conversation goes where its name leads (rendezvous hashing): every gateway finds the same address by itself, and when
//! one goes away, only what was there moves.

use super::breaker::Stand;

/// Answers that take less than this, in seconds, are alike: else the first idle address that is a little faster would
/// get all the calls that come one by one.
const ALIKE: f64 = 0.01;

/// An address, as far as the choice is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// What its name hashes to.
    pub(super) name: u64,
    pub(super) stand: Stand,
    /// It failed this call already.
    pub(super) tried: bool,
    /// Calls under way.
    pub(super) busy: usize,
    /// How long an answer takes lately, in seconds, if that is known.
    pub(super) time: Option<f64>,
}

/// What the call would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Any address.
    Any,
    /// The one that this key leads to.
    Key(u64),
    /// This one, where its conversation is, or else where the key leads.
    Place(usize, u64),
}

/// The address to call. One whose breaker is open is chosen only where no other is left, and one that failed this
/// call never again: `None` says that there is none.
pub(super) fn choose(views: &[View], wish: Wish, dice: &mut Dice) -> Option<usize> {
    let left = |view: &View| !view.tried;
    let good = |view: &View| left(view) && view.stand != Stand::Out;
    if views.iter().any(good) {
        among(views, good, wish, dice)
    } else {
        among(views, left, wish, dice)
    }
}

fn among(
    views: &[View],
    fits: impl Fn(&View) -> bool + Copy,
    wish: Wish,
    dice: &mut Dice,
) -> Option<usize> {
    match wish {
        Wish::Place(at, _) if views.get(at).is_some_and(fits) => Some(at),
        Wish::Place(_, key) | Wish::Key(key) => rendezvous(views, fits, key),
        Wish::Any => lighter(views, fits, dice),
    }
}

fn rendezvous(views: &[View], fits: impl Fn(&View) -> bool, key: u64) -> Option<usize> {
    let all = views.iter().enumerate().filter(|(_, view)| fits(view));
    all.max_by_key(|(_, view)| mix(key ^ mix(view.name)))
        .map(|(at, _)| at)
}

fn lighter(views: &[View], fits: impl Fn(&View) -> bool + Copy, dice: &mut Dice) -> Option<usize> {
    let count = views.iter().filter(|view| fits(view)).count();
    let nth = |n: usize| {
        let mut all = views.iter().enumerate().filter(|(_, view)| fits(view));
        all.nth(n).map(|(at, _)| at)
    };
    if count < 2 {
        return nth(0);
    }
    let first = dice.below(count);
    let second = (first + 1 + dice.below(count - 1)) % count;
    let (first, second) = (nth(first)?, nth(second)?);
    Some(if is_lighter(&views[second], &views[first]) {
        second
    } else {
        first
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a load is compared, not counted"
)]
fn is_lighter(one: &View, other: &View) -> bool {
    match (one.time, other.time) {
        (Some(a), Some(b)) => {
            a.max(ALIKE) * ((one.busy + 1) as f64) < b.max(ALIKE) * ((other.busy + 1) as f64)
        }
        // Nothing is known of one of them yet: it is to have its chance.
        _ => one.busy < other.busy,
    }
}

/// What a name or an id hashes to: the same at every gateway, of whatever version.
pub(super) fn hash(kind: &str, text: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(kind.as_bytes())
        .update(b"\0")
        .update(text.as_bytes());
    let digest = hasher.finalize();
    let first = digest.as_bytes().first_chunk().copied();
    u64::from_le_bytes(first.unwrap_or_default())
}

/// The finisher of splitmix64: every bit of what goes in tells in every bit of what comes out.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Chance that is good enough to spread calls by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn view(name: u64) -> View {
        View {
            name: hash("address", &name.to_string()),
            stand: Stand::Closed,
            tried: false,
            busy: 0,
            time: None,
        }
    }

    fn any_view() -> impl Strategy<Value = View> {
        let stand = prop_oneof![Just(Stand::Closed), Just(Stand::Due), Just(Stand::Out)];
        let time = proptest::option::of(0.0_f64..10.0);
        (any::<u64>(), stand, any::<bool>(), 0_usize..100, time).prop_map(
            |(name, stand, tried, busy, time)| View {
                name,
                stand,
                tried,
                busy,
                time,
            },
        )
    }

    fn any_wish() -> impl Strategy<Value = Wish> {
        prop_oneof![
            Just(Wish::Any),
            any::<u64>().prop_map(Wish::Key),
            (0_usize..12, any::<u64>()).prop_map(|(at, key)| Wish::Place(at, key)),
        ]
    }

    proptest! {
        #[test]
        fn none_that_is_out_while_another_is_not(
            views in proptest::collection::vec(any_view(), 0..10),
            wish in any_wish(),
            seed in any::<u64>(),
        ) {
            let chosen = choose(&views, wish, &mut Dice(seed));
            prop_assert_eq!(chosen.is_some(), views.iter().any(|view| !view.tried));
            if let Some(at) = chosen {
                prop_assert!(!views[at].tried);
                let better = |v: &View| !v.tried && v.stand != Stand::Out;
                prop_assert!(views[at].stand != Stand::Out || !views.iter().any(better));
            }
        }

        /// When one address goes, only the keys that led to it lead elsewhere; when it is back, so are they.
        #[test]
        fn only_what_was_there_moves(
            count in 2_u64..12,
            gone in any::<proptest::sample::Index>(),
            keys in proptest::collection::vec(any::<u64>(), 1..50),
        ) {
            let all: Vec<View> = (0..count).map(view).collect();
            let gone = gone.index(all.len());
            let mut fewer = all.clone();
            fewer[gone].stand = Stand::Out;
            let dice = &mut Dice(1);
            for key in keys {
                let before = choose(&all, Wish::Key(key), dice).unwrap();
                let after = choose(&fewer, Wish::Key(key), dice).unwrap();
                prop_assert_ne!(after, gone);
                prop_assert!(before == after || before == gone);
                let order: Vec<View> = all.iter().rev().copied().collect();
                let other = choose(&order, Wish::Key(key), dice).unwrap();
                prop_assert_eq!(all.len() - 1 - other, before, "the order does not matter");
            }
        }

        #[test]
        fn a_place_is_kept_while_it_is_good(at in 0_usize..5, key in any::<u64>()) {
            let mut all: Vec<View> = (0..5).map(view).collect();
            let dice = &mut Dice(1);
            prop_assert_eq!(choose(&all, Wish::Place(at, key), dice), Some(at));
            all[at].stand = Stand::Out;
            let other = choose(&all, Wish::Place(at, key), dice);
            prop_assert_eq!(other, choose(&all, Wish::Key(key), dice));
            prop_assert_ne!(other, Some(at));
        }
    }

    #[test]
    fn keys_are_spread_evenly() {
        let all: Vec<View> = (0..4).map(view).collect();
        let mut found = [0_u32; 4];
        for id in 0..4000 {
            let key = hash("context", &format!("context-{id}"));
            found[choose(&all, Wish::Key(key), &mut Dice(0)).unwrap()] += 1;
        }
        assert!(found.iter().all(|n| (850..1150).contains(n)), "{found:?}");
    }

    #[test]
    fn the_lighter_of_two_is_taken() {
        let mut all: Vec<View> = (0..3).map(view).collect();
        (all[0].busy, all[1].busy, all[2].busy) = (9, 0, 5);
        let mut dice = Dice(7);
        let mut found = [0_u32; 3];
        for _ in 0..300 {
            found[choose(&all, Wish::Any, &mut dice).unwrap()] += 1;
        }
        // The heaviest never wins, the lightest whenever it is looked at: two times of three.
        assert_eq!(found[0], 0);
        assert!((150..250).contains(&found[1]), "{found:?}");
        for (view, time) in all.iter_mut().zip([0.1, 10.0, 0.3]) {
            view.time = Some(time);
        }
        let chosen: Vec<_> = (0..300)
            .filter_map(|_| choose(&all, Wish::Any, &mut dice))
            .collect();
        assert!(
            !chosen.contains(&1),
            "ten times as slow is slower than ten times as busy"
        );
    }
}
