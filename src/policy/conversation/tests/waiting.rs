//! Messages that wait for their conversation: in order, in bounds, and woken when something changes.
use std::{cell::RefCell, rc::Rc, time::Duration};

use tokio::time::{Instant, advance};

use super::slots::{OWNER, admitted, conversations, held, holders, seen, wanted};
use crate::{
    a2a::{Kind, shape::State},
    config::OnBusy,
    policy::conversation::{Conversations, Evidence, Question, queue::Queue, slot_key},
    state::slot::{End, Newcomer},
};

fn wait() -> Conversations {
    conversations(OnBusy::Wait, None)
}

async fn nothing(_: Question) -> Evidence {
    Evidence::Nothing
}

#[tokio::test(start_paused = true)]
async fn messages_are_admitted_in_the_order_in_which_they_came() {
    let of = wait();
    let first = admitted(&of, None).await;
    let order = Rc::new(RefCell::new(vec![]));
    let come = async |n: usize| {
        let permit = of.admit(wanted(None), nothing).await.unwrap();
        order.borrow_mut().push(n);
        advance(Duration::from_secs(1)).await;
        drop(permit);
    };
    tokio::join!(come(1), come(2), async {
        advance(Duration::from_secs(1)).await;
        drop(first);
    });
    assert_eq!(*order.borrow(), [1, 2]);
    assert_eq!(held(&of).await, None);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait() {
    let of = wait();
    let first = admitted(&of, None).await;
    let come = || of.admit(wanted(None), nothing);
    let (a, b, c) = tokio::join!(come(), come(), come());
    let kinds = [a, b, c].map(|done| done.err().unwrap().kind);
    assert!(matches!(kinds[0], Kind::ConversationBusy { .. }));
    assert!(matches!(kinds[1], Kind::ConversationBusy { .. }));
    assert_eq!(kinds[2], Kind::Overloaded);
    drop(first);
}

#[test]
fn a_place_is_given_back() {
    let queue = Queue::new(1, 10);
    let key = slot_key("agent", "talk");
    let mut place = queue.place(key);
    assert!(place.enter(11).is_err());
    assert!(place.enter(10).is_ok() && place.enter(10).is_ok());
    assert!(queue.place(key).enter(0).is_err());
    drop(place);
    assert!(queue.place(key).enter(0).is_ok());
    assert!(!queue.place(key).others());
}

#[tokio::test(start_paused = true)]
async fn who_waits_asks_once_the_message_before_it_is_left() {
    let of = wait();
    let mut first = admitted(&of, Some("t")).await;
    first.goes_out().unwrap();
    let began = Instant::now();
    let terminal = async |_| Evidence::Terminal;
    let (next, ()) = tokio::join!(of.admit(wanted(None), terminal), async {
        advance(Duration::from_millis(500)).await;
        advance(Duration::from_millis(500)).await;
        drop(first); // Held: nothing came free
    });
    assert!(next.is_ok());
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn who_waits_asks_about_each_holder() {
    let of = wait();
    let key = slot_key("agent", "talk");
    for (token, task) in [(1, "t"), (2, "u")] {
        let newcomer = Newcomer {
            token,
            asker: OWNER,
            task: Some(task),
        };
        of.store().join(key, &newcomer);
        of.store().settle(key, token, End::Held(None)).done().await;
    }
    assert_eq!(holders(&of).await.len(), 2);
    let began = Instant::now();
    let next = of.admit(wanted(None), async |_| Evidence::Terminal).await;
    assert!(next.is_ok());
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_by_the_answer() {
    let of = wait();
    let mut first = admitted(&of, None).await;
    first.goes_out().unwrap();
    let began = Instant::now();
    let (next, ()) = tokio::join!(of.admit(wanted(None), nothing), async {
        advance(Duration::from_secs(3)).await;
        first.seen(&seen(Some(State::Terminal))).done().await;
    });
    assert!(next.is_ok());
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}
