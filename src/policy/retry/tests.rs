use tokio::time;

use super::*;
use crate::{
    a2a::{
        answer::{Named, Seen},
        shape::State,
    },
    config,
    state::{
        Store,
        memory::{self, Memory},
        slot::Times,
    },
};

const WINDOW: Duration = Duration::from_mins(10);
const LONGEST: Duration = Duration::from_mins(2);
const SAYS: [u8; 16] = [1; 16];
const SAYS_OTHER: [u8; 16] = [2; 16];

/// Two gateways with one store.
fn two() -> (Retries, Retries) {
    let memory = Memory::new(memory::Settings {
        times: Times {
            lease: None,
            settle: Duration::from_secs(5),
            max_hold: Duration::from_hours(1),
        },
        slots: 10,
        tasks: 10,
        bindings: 10,
        binding_ttl: WINDOW,
        messages: 1000,
        message_ttl: WINDOW,
        owners: crate::state::owner::Settings::default(),
    });
    let conversations = Conversations::new(
        config::Conversation::default(),
        Store::Memory(memory.into()),
    );
    let settings = Settings {
        on: true,
        window: WINDOW,
        longest: LONGEST,
        conflict: false,
    };
    let one = Retries::new(settings, conversations.clone());
    (one, Retries::new(settings, conversations))
}

fn message(id: &str) -> Message<'_> {
    Message {
        asker: Asker::known(7),
        scope: "http://agent",
        agent: None,
        tenant: None,
        id,
    }
}

async fn new(at: &Retries, says: [u8; 16]) -> Box<First> {
    match at.meet(message("m"), says, false).await {
        Ok(Known::New(first)) => first,
        Ok(Known::Again(again)) => panic!("{again:?}"),
        Err(fault) => panic!("{fault}"),
    }
}

/// The answer of a message that was sent before, in few words.
async fn again(at: &Retries, says: [u8; 16], streams: bool) -> String {
    match at.meet(message("m"), says, streams).await {
        Ok(Known::New(_)) => "new".to_owned(),
        Ok(Known::Again(Again::Said(said))) => String::from_utf8_lossy(&said.text).into_owned(),
        Ok(Known::Again(Again::Task(task))) => format!("task {task}"),
        Ok(Known::Again(Again::Look(task))) => format!("look {task}"),
        Ok(Known::Again(Again::Subscribe(task))) => format!("subscribe {task}"),
        Err(fault) => fault.kind.wire().reason.to_owned(),
    }
}

fn task(state: State) -> Seen {
    Seen {
        state: Some(state),
        task: true,
        named: Named {
            task: Some("t".into()),
            context: None,
        },
        ..Seen::default()
    }
}

fn bare() -> Seen {
    Seen {
        message: true,
        ..Seen::default()
    }
}

fn broken() -> Fault {
    Fault::new(Kind::BackendBroken, "it broke off")
}

#[tokio::test(start_paused = true)]
async fn what_became_of_it_answers_here_and_elsewhere() {
    let none = HeaderMap::new();
    for (end, send, stream) in [
        ("rest", "task t", "task t"),
        ("left", "task t", "look t"),
        ("lost", "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"),
        ("dropped", "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"),
        ("broke off", "task t", "look t"),
        ("refused", "new", "new"),
        ("unsent", "new", "new"),
    ] {
        let (here, there) = two();
        let mut first = new(&here, SAYS).await;
        if end != "unsent" {
            first.goes_out();
        }
        match end {
            "rest" => first.answered(&task(State::Terminal), &none, &Bytes::new()),
            "left" => first.answered(&task(State::Running), &none, &Bytes::new()),
            "lost" => first.failed(&broken(), true),
            "refused" => first.failed(&Fault::params("no"), true),
            "broke off" => {
                first.seen(&task(State::Running), b"");
                first.failed(&broken(), true);
            }
            _ => {}
        }
        drop(first);
        for at in [&here, &there] {
            assert_eq!(again(at, SAYS, false).await, send, "{end}");
            assert_eq!(again(at, SAYS, true).await, stream, "{end}");
        }
        let other = again(&here, SAYS_OTHER, false).await;
        let wanted = if send == "new" {
            send
        } else {
            "DUPLICATE_MESSAGE"
        };
        assert_eq!(other, wanted, "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_message_is_kept_where_it_came_in() {
    let (here, there) = two();
    let mut first = new(&here, SAYS).await;
    first.goes_out();
    first.answered(&bare(), &HeaderMap::new(), &Bytes::from_static(b"hi"));
    drop(first);
    assert_eq!(again(&here, SAYS, true).await, "hi");
    assert_eq!(again(&there, SAYS, true).await, "DUPLICATE_MESSAGE");
    time::advance(WINDOW).await;
    here.tick();
    assert_eq!(here.0.small.lock().len(), 0);
    assert_eq!(again(&here, SAYS, false).await, "new");
}

#[tokio::test(start_paused = true)]
async fn the_window_counts_from_the_last_news() {
    let (here, _) = two();
    let mut first = new(&here, SAYS).await;
    first.goes_out();
    time::advance(WINDOW / 2).await;
    first.answered(&task(State::Terminal), &HeaderMap::new(), &Bytes::new());
    drop(first);
    time::advance(WINDOW * 2 / 3).await;
    assert_eq!(again(&here, SAYS, false).await, "task t");
    time::advance(WINDOW / 3).await;
    assert_eq!(again(&here, SAYS, false).await, "new");
}

#[tokio::test(start_paused = true)]
async fn what_runs_elsewhere_is_busy_however_long_it_takes() {
    let (here, there) = two();
    let mut first = new(&here, SAYS).await;
    first.goes_out();
    for _ in 0..2 {
        assert_eq!(again(&there, SAYS, true).await, "CONVERSATION_BUSY");
        assert_eq!(again(&there, SAYS, false).await, "CONVERSATION_BUSY");
        time::advance(LONGEST * 2).await;
    }
    first.seen(&task(State::Running), b"");
    assert_eq!(again(&there, SAYS, true).await, "look t");
    assert_eq!(again(&there, SAYS, false).await, "CONVERSATION_BUSY");
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_left_when_it_died_is_not_sent_again() {
    for (named, send, stream) in [
        (None, "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"),
        (Some("t"), "task t", "look t"),
    ] {
        let (_, there) = two();
        let record = Record {
            task: named.map(Into::into),
            ..Record::new(1, Key(SAYS))
        };
        let store = there.0.conversations.store();
        store.retry_is(message("m").key(), record.lapsed());
        assert_eq!(again(&there, SAYS, false).await, send);
        assert_eq!(again(&there, SAYS, true).await, stream);
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_here_is_waited_for() {
    let none = HeaderMap::new();
    for (end, send, stream) in [
        ("rest", "said", "said"),
        ("left", "said", "subscribe t"),
        ("bare", "said", "said"),
        ("event", "task t", "subscribe t"),
        ("bare event", "said", "said"),
        ("lost", "BACKEND_BROKEN", "BACKEND_BROKEN"),
        ("dropped", "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"),
        ("refused", "INVALID_PARAMS", "INVALID_PARAMS"),
        ("silent", "BACKEND_TIMEOUT", "BACKEND_TIMEOUT"),
    ] {
        let (here, _) = two();
        let mut first = Some(new(&here, SAYS).await);
        let out = first.as_mut().unwrap();
        out.goes_out();
        let said = Bytes::from_static(b"said");
        let both = async { tokio::join!(again(&here, SAYS, false), again(&here, SAYS, true)) };
        let news = async {
            tokio::task::yield_now().await;
            let out = first.as_mut().unwrap();
            match end {
                "rest" => out.answered(&task(State::Terminal), &none, &said),
                "left" => out.answered(&task(State::Running), &none, &said),
                "bare" => out.answered(&bare(), &none, &said),
                "event" => out.seen(&task(State::Running), b""),
                "bare event" => out.seen(&bare(), b"said"),
                "lost" => out.failed(&broken(), true),
                "refused" => out.failed(&Fault::params("no"), true),
                "dropped" => first = None,
                _ => {}
            }
        };
        let (found, ()) = tokio::join!(both, news);
        assert_eq!(found, (send.to_owned(), stream.to_owned()), "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_not_sent_leaves_its_place_to_who_waits() {
    let (here, _) = two();
    let first = new(&here, SAYS).await;
    let gone = async {
        tokio::task::yield_now().await;
        drop(first);
    };
    let (found, ()) = tokio::join!(again(&here, SAYS, false), gone);
    assert_eq!(found, "new");
    assert!(here.0.flights.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_whose_caller_left_while_the_store_was_asked_is_forgotten() {
    let (here, there) = two();
    let key = message("m").key();
    let Ok(first) = here.fly(key, Key(SAYS)) else {
        panic!("it runs already");
    };
    let store = here.0.conversations.store();
    let begun = store.begin_retry(key, first.record()).await;
    assert_eq!(begun, Ok(Begun::New));
    assert_eq!(again(&there, SAYS, false).await, "CONVERSATION_BUSY");
    drop(first);
    assert_eq!(again(&there, SAYS, false).await, "new");
}

#[tokio::test(start_paused = true)]
async fn another_addressee_or_caller_is_another_message() {
    let (here, _) = two();
    let _first = new(&here, SAYS).await;
    for other in [
        Message {
            asker: Asker::known(8),
            ..message("m")
        },
        Message {
            scope: "http://other",
            ..message("m")
        },
        Message {
            agent: Some("a"),
            ..message("m")
        },
        Message {
            tenant: Some("a"),
            ..message("m")
        },
        message("n"),
    ] {
        let known = here.meet(other, SAYS, false).await;
        assert!(matches!(known, Ok(Known::New(_))), "{other:?}");
    }
}

#[test]
fn the_oldest_small_answers_go() {
    let mut small = Small::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let until = time::Instant::now() + WINDOW;
    let said = |size| Said {
        fields: HeaderMap::new(),
        text: vec![b'x'; size].into(),
    };
    let key = |i: usize| Key::of(&[&i.to_string()]);
    for i in 0..1000 {
        small.put(key(i), &said(64 * 1024), until);
    }
    assert!(small.len() < 256, "{}", small.len());
    assert!(small.get(key(0)).is_none() && small.get(key(999)).is_some());
    small.put(key(1000), &said(64 * 1024 + 1), until);
    assert!(small.get(key(1000)).is_none());
}
