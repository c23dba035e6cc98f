//! Who sends what: the scenarios of the explored model, and any others.
use super::{Kept, dice::Dice};
use crate::{config::OnBusy, state::slot::Asker};

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Blocking: the answer comes at rest.
    Send,
    /// Events, as they come.
    Stream,
    /// Not blocking: the answer names the task.
    NoWait,
    /// Blocking, and answered by a bare message.
    Bare,
}

/// Which task a message resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// None: one of its own begins.
    New,
    /// One of before the play, which waits for input.
    Old,
    /// That of an earlier message.
    Of(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) caller: usize,
    pub(super) gateway: usize,
    pub(super) task: Task,
    /// The message names its context.
    pub(super) context: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) kept: Kept,
    pub(super) specs: Vec<Spec>,
    pub(super) callers: [Asker; 2],
    pub(super) on_busy: OnBusy,
    /// The agent has `ListTasks`.
    pub(super) lists: bool,
    /// The agent shows a task to its owner only.
    pub(super) hides: bool,
    /// Tasks wait for authentication, and go on by themselves.
    pub(super) auth: bool,
    /// Messages are shown as late as may be.
    pub(super) slow: bool,
    pub(super) resets: usize,
    pub(super) deaths: usize,
    pub(super) steps: usize,
    /// How often each message may ask for its slot.
    pub(super) tries: usize,
    /// How often something befalls the store, or a way to it.
    pub(super) outages: usize,
    /// Gateways go on alone while the store is away.
    pub(super) local: bool,
}

const fn spec(kind: Kind, caller: usize, gateway: usize, task: Task) -> Spec {
    Spec {
        kind,
        caller,
        gateway,
        task,
        context: true,
    }
}

/// The explored model's scenarios, in its order.
#[rustfmt::skip]
fn scenarios() -> [Vec<Spec>; 9] {
    use Kind::{NoWait, Send, Stream};
    use Task::{New, Old};
    [
        vec![spec(Send, 0, 0, New), spec(Send, 0, 1, New)],
        vec![spec(Stream, 0, 0, New), spec(Send, 0, 1, New)],
        vec![spec(NoWait, 0, 0, New), spec(Send, 0, 1, New)],
        vec![spec(Stream, 0, 0, New), spec(Send, 1, 1, New)],
        vec![spec(NoWait, 0, 0, New), spec(Send, 1, 1, New), spec(Send, 0, 1, New)],
        vec![spec(Stream, 0, 0, Old), spec(Send, 0, 1, New)],
        vec![spec(NoWait, 0, 0, Old), spec(NoWait, 0, 1, Old)],
        vec![spec(NoWait, 0, 0, Old), spec(NoWait, 0, 1, Old), spec(Send, 0, 0, New)],
        vec![spec(NoWait, 0, 0, New), spec(Stream, 0, 1, New), spec(Send, 0, 0, New)],
    ]
}

impl Script {
    /// Every other seed plays a known scenario, the others any.
    pub(super) fn of(seed: u64, kept: Kept) -> Self {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let known = scenarios();
        let mut specs = known[dice.below(known.len())].clone();
        if seed % 2 == 1 {
            specs = (0..2 + dice.below(4)).map(|i| any(i, &mut dice)).collect();
        }
        if kept == Kept::Alone {
            specs.iter_mut().for_each(|s| s.gateway = 0);
        }
        let two = [Asker::known(1), Asker::known(2)];
        let callers = if dice.one_in(4) {
            [Asker::anonymous(1), Asker::anonymous(2)]
        } else {
            two
        };
        let mut script = Self {
            kept,
            specs,
            callers,
            on_busy: dice.of(&[OnBusy::Reject, OnBusy::Reject, OnBusy::Wait]),
            lists: !dice.one_in(5),
            hides: !dice.one_in(4),
            auth: dice.one_in(3),
            slow: dice.one_in(2),
            resets: dice.below(4),
            deaths: usize::from(kept != Kept::Alone) * dice.below(3),
            steps: 40 + dice.below(160),
            tries: 8,
            outages: 0,
            local: false,
        };
        if kept == Kept::Redis {
            // Without the store it is refused at once.
            script.tries = 24;
            script.outages = dice.below(8);
            script.local = dice.one_in(3);
        }
        script
    }
}

fn any(i: usize, dice: &mut Dice) -> Spec {
    use Kind::{Bare, NoWait, Send, Stream};
    let task = match dice.below(6) {
        0 => Task::Old,
        1 | 2 if i > 0 => Task::Of(dice.below(i)),
        _ => Task::New,
    };
    let kind = dice.of(&[Send, Send, Stream, Stream, NoWait, NoWait, Bare]);
    Spec {
        kind: if kind == Bare && task != Task::New {
            Send
        } else {
            kind
        },
        caller: dice.below(2),
        gateway: dice.below(2),
        task,
        context: task != Task::New || !dice.one_in(5),
    }
}
