//! The script does what `slot.rs` does: random operations and time, side by side.
use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use proptest::prelude::*;

use super::{
    super::script::{Op, QUIET, Reply, Slots, Told, Wants},
    server::RedisServer,
};
use crate::state::slot::{Asker, End, Entry, Holder, Mark, Millis, Phase, Times};

const TIMES: Times = Times {
    lease: Some(Duration::from_secs(30)),
    settle: Duration::from_secs(5),
    max_hold: Duration::from_mins(10),
};

/// A step of a case. Marks are the last one seen, of this holder or a generation beside it.
#[derive(Clone, Debug)]
enum Step {
    Shift(u64),
    Take(u64, Option<&'static str>),
    TakeOver(usize, i32, u64, Option<&'static str>),
    Free(usize, i32),
    GoesOn(usize, i32),
    Name(u64, &'static str),
    Renew(u64),
    Settle(u64, End),
    Look,
}

fn task() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("t1"),
        Just("t2"),
        Just("\u{e9}\n\"/\\ \u{1f600}\u{0}"),
        Just("")
    ]
}

fn token() -> impl Strategy<Value = u64> {
    // The largest must not lose its last bits on the way.
    prop_oneof![Just(1_u64), Just(u64::MAX), Just(u64::MAX - 1)]
}

fn step() -> impl Strategy<Value = Step> {
    let some = || proptest::option::of(task());
    let beside = || prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(-1)];
    let ends = prop_oneof![
        Just(End::Free),
        Just(End::Unknown),
        some().prop_map(|t| End::Held(t.map(Into::into))),
    ];
    let shifts = prop_oneof![
        0..2_000_u64,
        4_000..7_000_u64,
        29_000..31_000_u64,
        595_000..605_000_u64
    ];
    prop_oneof![
        4 => shifts.prop_map(Step::Shift),
        4 => (token(), some()).prop_map(|(t, task)| Step::Take(t, task)),
        3 => (0..3_usize, beside(), token(), some()).prop_map(|(n, b, t, task)| Step::TakeOver(n, b, t, task)),
        2 => (0..3_usize, beside()).prop_map(|(n, b)| Step::Free(n, b)),
        3 => (0..3_usize, beside()).prop_map(|(n, b)| Step::GoesOn(n, b)),
        3 => (token(), task()).prop_map(|(t, task)| Step::Name(t, task)),
        3 => token().prop_map(Step::Renew),
        4 => (token(), ends).prop_map(|(t, end)| Step::Settle(t, end)),
        2 => Just(Step::Look),
    ]
}

fn mark(entry: &Entry, nth: usize, beside: i32) -> Mark {
    let holders = &entry.holders;
    let seen = holders.get(nth % holders.len().max(1)).map(Holder::mark);
    let seen = seen.unwrap_or(Mark {
        token: 1,
        generation: 0,
    });
    let generation = seen.generation.saturating_add_signed(beside);
    Mark { generation, ..seen }
}

fn wants(token: u64, task: Option<&str>) -> Wants {
    Wants {
        token,
        asker: Asker::anonymous(token ^ 7),
        task: task.map(Into::into),
    }
}

/// What the script is asked; `None` only moves the clock.
fn op(step: &Step, entry: &Entry) -> Option<Op> {
    Some(match step.clone() {
        Step::Shift(_) => return None,
        Step::Take(t, task) => Op::Take(None, wants(t, task)),
        Step::TakeOver(n, b, t, task) => Op::Take(Some(mark(entry, n, b)), wants(t, task)),
        Step::Free(n, b) => Op::Free(mark(entry, n, b)),
        Step::GoesOn(n, b) => Op::GoesOn(mark(entry, n, b)),
        Step::Name(t, task) => Op::Name(t, task.into()),
        Step::Renew(t) => Op::Renew(t),
        Step::Settle(t, end) => Op::Settle(t, end),
        Step::Look => Op::Look,
    })
}

/// The same by `slot.rs`; `None` where that says nothing.
fn by_slot(entry: &mut Entry, op: &Op, now: Millis) -> Option<bool> {
    let times = &TIMES;
    Some(match op {
        Op::Take(None, of) => entry.take(&of.as_newcomer(), now, times),
        Op::Take(Some(seen), of) => entry.take_over(*seen, &of.as_newcomer(), now, times),
        Op::Free(seen) => entry.free(*seen, now, times),
        Op::GoesOn(seen) => {
            entry.goes_on(*seen, now, times);
            return None;
        }
        Op::Name(token, task) => entry.name(*token, task, now, times),
        Op::Renew(token) => entry.renew(*token, now, times),
        Op::Settle(token, end) => entry.settle(*token, end, now, times),
        Op::Look => {
            entry.lapse(now, times);
            !entry.is_free()
        }
        Op::Restore(..) | Op::Release => unreachable!("not of slot.rs"),
    })
}

#[test]
fn the_script_is_the_slot_in_the_store() {
    let server = RedisServer::start();
    let connection = RefCell::new(server.connection());
    let slots = Slots::new(TIMES);
    let ask = |key: &str, op: &Op, shift: u64| -> Reply {
        let call = slots.call(key, "{a2a:00}epoch", op, shift);
        call.invoke(&mut *connection.borrow_mut()).unwrap()
    };
    let begun = ask("none", &Op::Look, 0).epoch;
    let case = RefCell::new(0);
    proptest!(ProptestConfig::with_cases(400), |(steps in proptest::collection::vec(step(), 1..40))| {
        *case.borrow_mut() += 1;
        let key = format!("s:{}", case.borrow());
        let mut shift = 2 * u64::try_from(QUIET.as_millis()).unwrap();
        let mut entry = Entry::default();
        for step in &steps {
            if let Step::Shift(by) = step {
                shift += by;
            }
            let Some(op) = op(step, &entry) else { continue };
            let reply = ask(&key, &op, shift);
            prop_assert_eq!(reply.epoch, begun);
            if let Some(said) = by_slot(&mut entry, &op, reply.now) {
                let said = if said { Told::Yes } else { Told::No };
                prop_assert_eq!(reply.told, said, "{:?}", op);
            }
            prop_assert_eq!(&reply.entry, &entry, "{:?}", op);
            // What is kept is what was told; a lease may have lapsed in between.
            let kept = ask(&key, &Op::Look, shift);
            entry.lapse(kept.now, &TIMES);
            prop_assert_eq!(&kept.entry, &entry, "kept after {:?}", op);
        }
    });
}

#[test]
fn a_restored_holder_is_not_the_one_that_was_seen() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let slots = Slots::new(TIMES);
    let shift = Cell::new(60_000);
    let mut ask = |op: &Op| -> Reply {
        let call = slots.call("s", "epoch", op, shift.get());
        call.invoke(&mut connection).unwrap()
    };
    let mut holder = Holder {
        token: u64::MAX,
        generation: 1007,
        phase: Phase::Held,
        task: Some("t".into()),
        resumes: true,
        asker: Asker::known(9),
        taken: 0,
        settled: 0,
        lease: 0,
        until: 0,
    };
    let reply = ask(&Op::Restore(holder.clone(), 1500, false));
    assert_eq!(reply.told, Told::Yes);
    let back = &reply.entry.holders[0];
    assert_eq!((back.phase, back.generation), (Phase::Held, 1008));
    assert_eq!(back.taken, reply.now - 1500);
    assert_eq!(back.settled, reply.now + 5000);
    assert!(back.resumes);
    // It is there, and stays as it is.
    let again = ask(&Op::Restore(holder.clone(), 1500, false));
    assert_eq!(again.entry, reply.entry);
    // While the store is quiet, another that was put back joins it.
    holder.token = 2;
    holder.phase = Phase::InFlight;
    let other = ask(&Op::Restore(holder.clone(), 0, false));
    assert_eq!((other.told, other.entry.holders.len()), (Told::Yes, 2));
    // Afterwards, only a message that was out before may.
    shift.set(70_000);
    holder.token = 3;
    let other = ask(&Op::Restore(holder.clone(), 0, false));
    assert_eq!((other.told, other.entry.holders.len()), (Told::No, 2));
    let other = ask(&Op::Restore(holder, 0, true));
    assert_eq!((other.told, other.entry.holders.len()), (Told::Yes, 3));
    assert_eq!(ask(&Op::Release).told, Told::Yes);
    assert_eq!(ask(&Op::Release).told, Told::No);
}

#[test]
fn a_store_that_lost_its_data_is_quiet_first() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let slots = Slots::new(TIMES);
    let mut ask = |op: &Op, shift: u64| -> Reply {
        let call = slots.call("s", "epoch", op, shift);
        call.invoke(&mut connection).unwrap()
    };
    let take = Op::Take(None, wants(1, None));
    assert_eq!(ask(&take, 0).told, Told::Quiet);
    // What ends meanwhile is heard, though nobody knows of it any more.
    let free = Op::Settle(2, End::Free);
    assert_eq!(ask(&free, 4000).told, Told::No);
    assert_eq!(ask(&take, 4000).told, Told::Quiet);
    assert_eq!(ask(&take, 5000).told, Told::Yes);
    // A clock far behind: the epoch begins anew instead of never ending.
    let before = ask(&take, 3_600_000).epoch;
    redis::cmd("SET")
        .arg("epoch")
        .arg(before + 3_600_000)
        .exec(&mut connection)
        .unwrap();
    let mut ask = |op: &Op, shift: u64| -> Reply {
        let call = slots.call("s", "epoch", op, shift);
        call.invoke(&mut connection).unwrap()
    };
    assert!(ask(&Op::Look, 0).epoch <= before + 20_000);
}

#[test]
fn who_comes_back_later_into_a_store_that_lost_its_data_is_not_lost() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let slots = Slots::new(TIMES);
    let mut restore = |token: u64, further: bool, shift: u64| -> Reply {
        let mut entry = Entry::default();
        entry.take(&wants(token, None).as_newcomer(), 0, &TIMES);
        let op = Op::Restore(entry.holders.remove(0), 0, further);
        let call = slots.call("s", "epoch", &op, shift);
        call.invoke(&mut connection).unwrap()
    };
    // A message whose conversation only its reply named is back before the one that had the slot.
    assert_eq!(restore(1, true, 0).told, Told::Yes);
    let both = restore(2, false, 1_000);
    assert_eq!((both.told, both.entry.holders.len()), (Told::Yes, 2));
    assert_eq!(restore(3, false, 6_000).told, Told::No);
}
