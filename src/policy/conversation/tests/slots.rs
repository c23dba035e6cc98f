//! What a permit settles, by what is known when it ends; and a client's own look at a task.
use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use tokio::time::{Instant, advance};

use super::rules::times;
use crate::{
    a2a::{
        Fault, Kind,
        answer::{Named, Seen},
        shape::State,
    },
    config::{self, OnBusy},
    policy::conversation::{Conversations, Evidence, Question, Slot, Wanted, slot_key},
    state::{
        Store,
        memory::{self, Memory},
        slot::{Asker, Holder, Phase, Times},
    },
};

pub(super) const OWNER: Asker = Asker::known(1);

pub(super) fn conversations(on_busy: OnBusy, lease: Option<Duration>) -> Conversations {
    let settings = config::Conversation {
        on_busy,
        max_waiting: 2,
        ..config::Conversation::default()
    };
    let memory = Memory::new(memory::Settings {
        times: Times { lease, ..times() },
        slots: 10,
        tasks: 1_000,
        bindings: 1_000,
        binding_ttl: Duration::from_secs(1),
        messages: 1_000,
        message_ttl: Duration::from_mins(10),
        owners: crate::state::owner::Settings::default(),
    });
    Conversations::new(settings, Store::Memory(Arc::new(memory)))
}

pub(super) fn wanted(task: Option<&str>) -> Wanted {
    Wanted {
        scope: "agent".into(),
        context: Some("talk".into()),
        task: task.map(Into::into),
        asker: OWNER,
        agent: None,
        bytes: 1,
    }
}

async fn nothing(_: Question) -> Evidence {
    Evidence::Nothing
}

pub(super) async fn admitted(of: &Conversations, task: Option<&str>) -> Slot {
    of.admit(wanted(task), nothing).await.unwrap()
}

async fn out(of: &Conversations, task: Option<&str>) -> Slot {
    let mut permit = admitted(of, task).await;
    permit.goes_out().unwrap();
    permit
}

pub(super) async fn holders(of: &Conversations) -> Vec<Holder> {
    let looked = of.store().look(slot_key("agent", "talk")).await;
    looked.map_or(vec![], |(entry, _)| entry.holders.into_vec())
}

pub(super) async fn held(of: &Conversations) -> Option<(Phase, Option<Box<str>>)> {
    let holders = holders(of).await;
    assert!(holders.len() < 2);
    holders.into_iter().next().map(|h| (h.phase, h.task))
}

pub(super) fn seen(state: Option<State>) -> Seen {
    Seen {
        state,
        task: true,
        named: Named {
            task: Some("t".into()),
            context: Some("talk".into()),
        },
        ..Seen::default()
    }
}

fn reject() -> Conversations {
    conversations(OnBusy::Reject, None)
}

const UNKNOWN: Option<(Phase, Option<Box<str>>)> = Some((Phase::Unknown, None));

fn held_by_task() -> Option<(Phase, Option<Box<str>>)> {
    Some((Phase::Held, Some("t".into())))
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_frees() {
    let of = reject();
    drop(admitted(&of, Some("t")).await);
    assert_eq!(held(&of).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_out_holds_when_it_is_dropped() {
    let of = reject();
    drop(out(&of, None).await);
    assert_eq!(held(&of).await, UNKNOWN);
    let of = reject();
    drop(out(&of, Some("t")).await);
    assert_eq!(held(&of).await, held_by_task());
}

#[tokio::test(start_paused = true)]
async fn rest_and_bare_messages_free() {
    for seen in [
        seen(Some(State::Terminal)),
        seen(Some(State::Interrupted)),
        Seen {
            message: true,
            ..Seen::default()
        },
    ] {
        let of = reject();
        out(&of, None).await.seen(&seen).done().await;
        assert_eq!(held(&of).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_message_says_nothing_of_a_task_that_was_told() {
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Running))).done().await;
    let bare = Seen {
        message: true,
        ..Seen::default()
    };
    permit.seen(&bare).done().await;
    drop(permit);
    assert_eq!(held(&of).await, held_by_task());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_goes_on_is_held() {
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Running))).done().await;
    permit.left().done().await;
    drop(permit);
    assert_eq!(held(&of).await, held_by_task());
}

#[tokio::test(start_paused = true)]
async fn a_fault_frees_only_if_nothing_can_have_begun() {
    let (no, unknown) = (Kind::InvalidParams, Kind::BackendTimeout);
    let of = reject();
    let failed = async |permit: &mut Slot, kind| {
        permit.failed(&Fault::new(kind, ""), true).done().await;
    };
    failed(&mut out(&of, Some("t")).await, no).await;
    assert_eq!(held(&of).await, None);
    failed(&mut out(&of, None).await, unknown).await;
    assert_eq!(held(&of).await, UNKNOWN);
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Running))).done().await;
    failed(&mut permit, no).await;
    assert_eq!(held(&of).await, held_by_task(), "its task was told of");
}

#[tokio::test(start_paused = true)]
async fn a_permit_settles_once() {
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Terminal))).done().await;
    let next = out(&of, None).await;
    permit.left().done().await;
    drop(permit);
    assert!(matches!(held(&of).await, Some((Phase::InFlight, None))));
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_not_sent_on_a_short_lease() {
    let of = conversations(OnBusy::Reject, Some(Duration::from_secs(30)));
    let mut permit = admitted(&of, None).await;
    advance(Duration::from_secs(25) + Duration::from_millis(1)).await;
    assert!(permit.goes_out().is_err());
    drop(permit);
    assert_eq!(held(&of).await, None);
}

#[tokio::test(start_paused = true)]
async fn work_that_goes_on_by_itself_has_its_slot_again() {
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Interrupted))).done().await;
    permit.seen(&seen(Some(State::Running))).done().await;
    assert_eq!(held(&of).await.unwrap().0, Phase::InFlight);
    drop(permit);
    assert_eq!(held(&of).await, held_by_task());
}

#[tokio::test(start_paused = true)]
async fn a_context_that_only_the_reply_names_is_held_from_then_on() {
    let of = reject();
    let open = Wanted {
        context: None,
        ..wanted(None)
    };
    let mut permit = of.admit(open, nothing).await.unwrap();
    permit.goes_out().unwrap();
    let other = out(&of, None).await;
    permit.seen(&seen(Some(State::Running))).done().await;
    assert_eq!(holders(&of).await.len(), 2);
    drop(other);
    permit.seen(&seen(Some(State::Terminal))).done().await;
    assert_eq!(held(&of).await, UNKNOWN);
    assert_eq!(of.context_of("agent", "t").await.as_deref(), Some("talk"));
}

#[tokio::test(start_paused = true)]
async fn a_clients_look_frees_a_held_slot() {
    let of = reject();
    let mut permit = out(&of, None).await;
    permit.seen(&seen(Some(State::Running))).done().await;
    assert!(of.watch("agent", "t", false).await.is_none(), "in flight");
    drop(permit);
    let watch = of.watch("agent", "t", false).await.unwrap();
    watch.seen(&seen(Some(State::Running))).done().await;
    assert_eq!(held(&of).await, held_by_task());
    watch.seen(&seen(Some(State::Interrupted))).done().await;
    assert_eq!(held(&of).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_clients_look_from_before_the_next_message_frees_nothing() {
    let of = reject();
    of.learn("agent", "t", "talk");
    drop(out(&of, Some("t")).await);
    let watch = of.watch("agent", "t", false).await.unwrap();
    let terminal = async |_| Evidence::Terminal;
    let mut next = of.admit(wanted(Some("t")), terminal).await.unwrap();
    next.goes_out().unwrap();
    drop(next);
    watch.seen(&seen(Some(State::Terminal))).done().await;
    assert_eq!(held(&of).await, held_by_task());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_state_that_may_be_of_the_past_frees_nothing() {
    let of = reject();
    of.learn("agent", "t", "talk");
    drop(out(&of, Some("t")).await);
    let early = of.watch("agent", "t", false).await.unwrap();
    early.seen(&seen(Some(State::Interrupted))).done().await;
    advance(Duration::from_secs(5)).await;
    let replay = of.watch("agent", "t", true).await.unwrap();
    replay.seen(&seen(Some(State::Interrupted))).done().await;
    assert_eq!(held(&of).await, held_by_task());
    let late = of.watch("agent", "t", false).await.unwrap();
    late.seen(&seen(Some(State::Interrupted))).done().await;
    assert_eq!(held(&of).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_message_in_flight_is_not_asked_about() {
    let of = reject();
    let permit = out(&of, None).await;
    let never = async |_| unreachable!("nobody asks of what is in flight");
    let fault = of.admit(wanted(None), never).await.err().unwrap();
    assert!(matches!(fault.kind, Kind::ConversationBusy { .. }));
    drop(permit);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_a_change_admits_nobody() {
    let of = reject();
    drop(out(&of, Some("t")).await);
    let asked = async |_| {
        let mark = holders(&of).await[0].mark();
        of.store()
            .free(slot_key("agent", "talk"), mark)
            .done()
            .await;
        std::mem::forget(out(&of, None).await);
        Evidence::Terminal
    };
    assert!(of.admit(wanted(None), asked).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn newcomers_share_an_answer_for_a_quarter_second() {
    let of = reject();
    drop(out(&of, Some("t")).await);
    let asked = Rc::new(RefCell::new(vec![]));
    let ask = async |_| {
        asked.borrow_mut().push(Instant::now());
        Evidence::Running("t".into())
    };
    let (a, b, c) = (
        of.admit(wanted(None), ask),
        of.admit(wanted(None), ask),
        of.admit(wanted(None), ask),
    );
    let (a, b) = tokio::join!(a, b);
    assert!(a.is_err() && b.is_err() && c.await.is_err());
    let asked = asked.borrow();
    assert_eq!(asked.len(), 2);
    assert!(asked[1] - asked[0] >= Duration::from_millis(250));
}

/// The answer is from before `settle` had passed, though who shares it came after.
#[tokio::test(start_paused = true)]
async fn a_shared_answer_is_as_old_as_its_question() {
    let of = reject();
    drop(out(&of, None).await);
    advance(Duration::from_millis(4_600)).await;
    let none = async |_| Evidence::NoTask;
    let (early, late) = tokio::join!(of.admit(wanted(None), none), async {
        advance(Duration::from_millis(160)).await;
        of.admit(wanted(None), async |_| Evidence::Running("t".into()))
            .await
    });
    assert!(early.is_err(), "it may not be shown yet");
    assert!(late.is_err(), "asked now, the agent shows it");
}

/// It may be that of another message, which waited for authentication and went on by itself.
#[tokio::test(start_paused = true)]
async fn a_task_from_a_list_does_not_stand_for_a_lost_message() {
    let of = reject();
    drop(out(&of, None).await);
    let running = async |_| Evidence::Running("other".into());
    assert!(of.admit(wanted(None), running).await.is_err());
    advance(Duration::from_millis(250)).await;
    let rests = async |question| match question {
        Question::Task(_) => Evidence::Terminal,
        Question::Tasks(_) => Evidence::NoTask,
    };
    assert!(
        of.admit(wanted(None), rests).await.is_err(),
        "not shown yet"
    );
    advance(Duration::from_secs(5)).await;
    assert!(of.admit(wanted(None), rests).await.is_ok());
}
