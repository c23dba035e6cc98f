//! The real conversations against a simulated agent, its clients and the network between, in an order that a seed
//! chooses. The clock is paused and futures are polled by hand, so that a seed always gives the same play.
//!
//! What must hold: *at most one live message per conversation whose context was known when it was sent*, where a
//! message is live from when it goes out until its task is at rest; and once everything is at rest, the caller who
//! holds the slot gets it within `settle` and one question (`unknown_hold` where tasks cannot be listed, and a
//! lease where a gateway died); anybody does after `max_hold`.
//!
//! Over Redis nothing is exactly the same twice, since the server is another process; but time is the play's there,
//! too. Where it is away and gateways go on alone, each of them is held to the rule by itself.
//!
//! Not counted, as the rule says: work on a bare message whose reply was lost or whose lease lapsed, a slot freed
//! by `unknown_hold`, a task that waited for authentication and goes on by itself, a message whose context only its
//! reply names, what a dead gateway alone had put into a store that lost its data, and what a gateway admitted without
//! the store once it is merged: by a take, before which another's may have come.
use std::{ops::Range, rc::Rc};

mod agent;
mod dice;
mod play;
mod script;
mod steps;
mod world;

use play::Play;
use script::Script;
use world::World;

/// Where slots are kept, and by how many gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// In the one process: holders are values.
    Alone,
    /// Two gateways share them: they have leases, and one may die.
    Shared,
    /// Two gateways share a real server, each with its store task: it renews leases, and the server may be away,
    /// slow to answer, or come back empty.
    Redis,
}

/// Plays one seed; the error is what went wrong, after the steps that led there if they are to be told.
async fn play(seed: u64, kept: Kept, told: bool) -> Result<(), String> {
    let mut play = Play::new(Script::of(seed, kept), seed, told, None);
    let done = play.run().await;
    done.map_err(|wrong| format!("{}\n{wrong}", play.told()))
}

fn explore(seeds: Range<u64>, kept: Kept) {
    run(async {
        for seed in seeds {
            if play(seed, kept, false).await.is_err() {
                let wrong = play(seed, kept, true).await.unwrap_err();
                panic!("seed {seed}, {kept:?}: {wrong}");
            }
        }
    });
}

/// The same over Redis. A play that failed while the machine stood still is played again.
fn explore_redis(seeds: Range<u64>) {
    run(async {
        let world = Rc::new(World::new());
        let mut again = 0;
        for seed in seeds {
            loop {
                let script = Script::of(seed, Kept::Redis);
                let mut play = Play::new(script, seed, true, Some(&world));
                let Err(wrong) = play.run().await else { break };
                again += 1;
                let told = play.told();
                assert!(
                    play.stood_still() && again < 10,
                    "seed {seed}, Redis: {told}\n{wrong}"
                );
            }
        }
    });
}

fn run(plays: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(tokio::task::unconstrained(plays));
}

/// How many seeds are played: a hundred thousand in all by `cargo test --release`.
const SEEDS: u64 = if cfg!(debug_assertions) {
    3_000
} else {
    50_000
};

#[test]
fn one_message_at_a_time_in_one_process() {
    explore(0..SEEDS, Kept::Alone);
}

#[test]
fn one_message_at_a_time_over_two_gateways() {
    explore(0..SEEDS, Kept::Shared);
}

/// A play over Redis takes some milliseconds.
const REDIS_SEEDS: u64 = if cfg!(debug_assertions) { 200 } else { 3_000 };

#[test]
fn one_message_at_a_time_over_redis() {
    explore_redis(0..REDIS_SEEDS);
}

/// Each showed a fault once. 53,100: an answer by the store's clock was judged by ours. 56,649: a take whose answer was
/// lost, and the take-over after it, bore one token, so that settling the first freed the second. 29,256: a message that
/// went out while the store was away was forgotten at the merge, since another held its conversation there.
#[test]
fn plays_over_redis_that_went_wrong_once() {
    for seed in [29_256, 53_100, 56_649] {
        explore_redis(seed..seed + 1);
    }
}

/// By tests/soak/plays: some ten minutes, beside its other half.
#[test]
#[ignore = "takes ten minutes"]
fn soak_over_redis_first_half() {
    explore_redis(0..50_000);
}

#[test]
#[ignore = "takes ten minutes"]
fn soak_over_redis_second_half() {
    explore_redis(50_000..100_000);
}

/// For a seed that a failure has named: put it here.
#[test]
fn one_seed_is_played_again() {
    const SEED: u64 = 0;
    explore(SEED..SEED + 1, Kept::Alone);
    explore(SEED..SEED + 1, Kept::Shared);
    explore_redis(SEED..SEED + 1);
}
