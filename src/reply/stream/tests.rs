//! Streams driven directly, on a paused clock: what is waited for and for how long.
use std::{collections::VecDeque, future::poll_fn, task::Waker, time::Duration};

use http_body::Frame;
use tokio_util::sync::CancellationToken;

mod ends;
mod left;

use super::*;
use crate::{
    a2a::{Dialect, rpc},
    budget::Budget,
};

const WORKING: &str =
    r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
const ASKS: &str = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
const DONE: &str =
    r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
const TASK: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;

/// What an agent does next.
#[derive(Clone)]
enum Does {
    Says(String),
    Breaks,
    Ends,
}

/// An agent that does what the test says, when it says so.
#[derive(Default)]
struct Script {
    next: VecDeque<Does>,
    waker: Option<Waker>,
}

impl Body for Script {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        match self.next.pop_front() {
            Some(Does::Says(text)) => Poll::Ready(Some(Ok(Frame::data(text.into())))),
            Some(Does::Breaks) => Poll::Ready(Some(Err("reset".to_owned()))),
            Some(Does::Ends) => Poll::Ready(None),
            None => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn speech() -> Speech {
    Speech {
        from: Dialect::R10,
        options: Arc::default(),
        final_grace: Duration::from_millis(250),
        keep_alive: Duration::from_secs(15),
        idle: Duration::from_hours(1),
        event: 64 * 1024,
    }
}

struct Rig {
    stream: Stream<Script>,
    budget: Budget,
    stop: CancellationToken,
}

impl Rig {
    fn with(dialect: Dialect, speech: Speech) -> Self {
        let mut to = ReplyTo::new(dialect);
        to.op = Some(Op::Stream);
        to.id = rpc::Id::NULL;
        let budget = Budget::new(1 << 20);
        let stop = CancellationToken::new();
        let ending = stop.clone().cancelled_owned();
        let stream = Stream::new(
            Script::default(),
            to,
            Arc::new(speech),
            budget.hold(),
            ending,
        );
        Self {
            stream,
            budget,
            stop,
        }
    }

    fn new(dialect: Dialect) -> Self {
        Self::with(dialect, speech())
    }

    fn says(&mut self, text: impl Into<String>) -> &mut Self {
        self.does(Does::Says(text.into()))
    }

    fn event(&mut self, data: &str) -> &mut Self {
        self.says(format!("data: {data}\n\n"))
    }

    fn does(&mut self, does: Does) -> &mut Self {
        self.stream.agent.next.push_back(does);
        self
    }

    /// The next frame; the clock moves on by itself when there is nothing else to do.
    async fn frame(&mut self) -> Option<String> {
        let frame = poll_fn(|cx| self.stream.poll(cx)).await?;
        Some(String::from_utf8(frame.into()).unwrap())
    }

    /// What is there now.
    async fn now(&mut self) -> Poll<Option<String>> {
        poll_fn(|cx| Poll::Ready(self.stream.poll(cx)))
            .await
            .map(|f| f.map(|f| String::from_utf8(f.into()).unwrap()))
    }

    async fn rest(&mut self) -> String {
        let mut all = String::new();
        while let Some(frame) = self.frame().await {
            all.push_str(&frame);
        }
        all
    }
}

fn finals(text: &str) -> Vec<&str> {
    let ends = text.split("\n\n").filter(|e| !e.is_empty());
    ends.map(|e| {
        if e.contains(r#""error""#) {
            "error"
        } else if e.contains(r#""final":true"#) {
            "true"
        } else if e.contains(r#""final":false"#) {
            "false"
        } else {
            "none"
        }
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn one_event_leaves_at_once_and_alone() {
    for dialect in [Dialect::J03, Dialect::R03P, Dialect::J10, Dialect::R10] {
        let mut rig = Rig::new(dialect);
        assert_eq!(rig.now().await, Poll::Pending);
        for event in [TASK, WORKING, DONE] {
            rig.event(event);
            let Poll::Ready(Some(text)) = rig.now().await else {
                panic!("nothing came");
            };
            assert_eq!(text.matches("data: ").count(), 1, "{text}");
            assert!(text.ends_with("\n\n"), "{text}");
            assert_eq!(rig.now().await, Poll::Pending);
        }
        rig.does(Does::Ends);
        assert_eq!(rig.now().await, Poll::Ready(None));
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_arrived_together_share_a_frame() {
    let mut rig = Rig::new(Dialect::R10);
    rig.event(TASK).event(WORKING).event(DONE);
    let wanted = format!("data: {TASK}\n\ndata: {WORKING}\n\ndata: {DONE}\n\n");
    assert_eq!(rig.now().await, Poll::Ready(Some(wanted)));
}

#[tokio::test(start_paused = true)]
async fn a_frame_does_not_grow_without_end() {
    let mut rig = Rig::new(Dialect::R10);
    let long = TASK.replace(r#""id":"t""#, &format!(r#""id":"{}""#, "t".repeat(20_000)));
    rig.event(&long).event(&long).event(&long);
    let frame = rig.frame().await.unwrap();
    assert_eq!(frame.matches("data: ").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn line_ends_and_lines_are_made_one() {
    let mut rig = Rig::new(Dialect::J10);
    rig.says("data: {\r\ndata:  \"task\": {\"id\":\"t\",\r\n")
        .says("data: \"contextId\":\"c\",\r\ndata: \"status\":{\"state\":\"TASK_STATE_WORKING\"}}}\r\n\r\n")
        .does(Does::Ends);
    assert_eq!(
        rig.rest().await,
        "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{  \"task\": {\"id\":\"t\", \"contextId\":\"c\", \"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n"
    );
}

#[tokio::test(start_paused = true)]
async fn comments_and_ids_pass_and_retry_does_not() {
    let mut rig = Rig::new(Dialect::R10);
    rig.says(": ping\n\n");
    assert_eq!(rig.now().await, Poll::Ready(Some(": ping\n\n".to_owned())));
    rig.says(format!("retry: 5\nid: 7\nevent: message\ndata: {DONE}\n\n"))
        .says("event: done\ndata: [DONE]\n\n")
        .does(Does::Ends);
    assert_eq!(rig.rest().await, format!("id: 7\ndata: {DONE}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_gets_a_comment() {
    let mut rig = Rig::new(Dialect::J03);
    let start = Instant::now();
    for n in 1..=3 {
        assert_eq!(rig.frame().await.unwrap(), ": keep-alive\n\n");
        assert_eq!(start.elapsed().as_secs(), 15 * n);
    }
    let mut quiet = Rig::with(
        Dialect::J03,
        Speech {
            keep_alive: Duration::ZERO,
            idle: Duration::from_mins(1),
            ..speech()
        },
    );
    assert_eq!(finals(&quiet.frame().await.unwrap()), ["error"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_is_given_up() {
    for dialect in [Dialect::J03, Dialect::R03P, Dialect::J10, Dialect::R10] {
        let mut rig = Rig::new(dialect);
        rig.event(TASK);
        let start = Instant::now();
        let text = rig.rest().await;
        assert_eq!(start.elapsed(), Duration::from_hours(1));
        assert_eq!(text.matches(": keep-alive").count(), 239);
        assert_eq!(text.matches("BACKEND_TIMEOUT").count(), 1);
        assert!(text.ends_with("\n\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_agent_s_comments_count_as_life() {
    let mut rig = Rig::new(Dialect::J03);
    let start = Instant::now();
    for _ in 0..3 {
        while start.elapsed() < Duration::from_mins(59) {
            rig.frame().await.unwrap();
        }
        rig.says(": ping\n\n");
        while rig.frame().await.unwrap() != ": ping\n\n" {}
    }
    let rest = rig.rest().await;
    assert!(start.elapsed() > Duration::from_mins(118), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_state_is_final_at_once() {
    for dialect in [Dialect::J03, Dialect::R03P] {
        let mut rig = Rig::new(dialect);
        rig.event(DONE);
        let Poll::Ready(Some(text)) = rig.now().await else {
            panic!("it was held");
        };
        assert_eq!(finals(&text), ["true"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_state_waits_for_what_comes() {
    // The next event says that it was not the last, and comes after it.
    let mut rig = Rig::new(Dialect::J03);
    rig.event(ASKS);
    assert_eq!(rig.now().await, Poll::Pending);
    rig.event(DONE);
    assert_eq!(finals(&rig.frame().await.unwrap()), ["false", "true"]);

    // So does an end, the other way.
    let mut rig = Rig::new(Dialect::J03);
    rig.event(ASKS);
    assert_eq!(rig.now().await, Poll::Pending);
    rig.does(Does::Ends);
    assert_eq!(finals(&rig.rest().await), ["true"]);

    // An event whose blank line is missing is an event all the same.
    let mut rig = Rig::new(Dialect::J03);
    rig.event(ASKS)
        .says(format!("data: {DONE}"))
        .does(Does::Ends);
    assert_eq!(finals(&rig.rest().await), ["false", "true"]);

    // Grace is short.
    let mut rig = Rig::new(Dialect::J03);
    let start = Instant::now();
    rig.event(ASKS);
    assert_eq!(finals(&rig.frame().await.unwrap()), ["false"]);
    assert_eq!(start.elapsed(), Duration::from_millis(250));

    // A break says nothing of the end.
    let mut rig = Rig::new(Dialect::J03);
    rig.event(ASKS).does(Does::Breaks);
    assert_eq!(finals(&rig.rest().await), ["false", "error"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_state_is_not_held_without_grace_nor_in_v10() {
    let never = Speech {
        final_grace: Duration::ZERO,
        ..speech()
    };
    let mut rig = Rig::with(Dialect::J03, never);
    rig.event(ASKS);
    let Poll::Ready(Some(text)) = rig.now().await else {
        panic!("it was held");
    };
    assert_eq!(finals(&text), ["false"]);
    let mut rig = Rig::new(Dialect::J10);
    rig.event(ASKS);
    assert!(rig.now().await.is_ready());
}

#[tokio::test(start_paused = true)]
async fn what_large_events_hold_is_counted_and_given_back() {
    let roomy = Speech {
        event: 2 << 20,
        ..speech()
    };
    let mut rig = Rig::with(Dialect::R10, roomy);
    let long = |size| TASK.replace(r#""id":"t""#, &format!(r#""id":"{}""#, "t".repeat(size)));
    let event = long(300_000);
    rig.says(format!("data: {event}"));
    assert_eq!(rig.now().await, Poll::Pending);
    assert!(rig.budget.used() >= 300_000, "{}", rig.budget.used());
    rig.says("\n\n");
    let frame = poll_fn(|cx| rig.stream.poll(cx)).await.unwrap();
    assert!(rig.budget.used() >= 300_000);
    rig.event(WORKING);
    rig.frame().await.unwrap();
    assert_eq!(rig.budget.used(), frame.len(), "only what is being written");
    drop(frame);
    assert_eq!(rig.budget.used(), 0);
    rig.says(format!("data: {}", long((1 << 20) + 1)));
    let text = rig.rest().await;
    assert!(text.contains("no memory is left"), "{text}");
    drop(rig.stream);
    assert_eq!(rig.budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_waits_until_the_store_knows_what_it_shows() {
    let mut rig = Rig::new(Dialect::J10);
    let (store, told) = tokio::sync::oneshot::channel();
    rig.stream.settling = Some(Box::pin(async { told.await.is_ok() }));
    assert!(rig.event(DONE).now().await.is_pending());
    store.send(()).unwrap();
    assert!(rig.frame().await.unwrap().contains("COMPLETED"));
}

#[tokio::test(start_paused = true)]
async fn a_settlement_of_a_held_back_event_is_no_frame_of_its_own() {
    let mut rig = Rig::new(Dialect::J03);
    rig.stream.settling = Some(Box::pin(std::future::ready(true)));
    assert!(rig.event(ASKS).now().await.is_pending());
    assert!(rig.now().await.is_pending());
    assert_eq!(finals(&rig.frame().await.unwrap()), ["false"]); // after its grace
}

fn ask(answer: Result<&'static str, Kind>) -> AskTask {
    Box::pin(async move {
        tokio::task::yield_now().await;
        answer
            .map(Bytes::from)
            .map_err(|kind| Fault::new(kind, "no"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_subscription_may_begin_with_the_task() {
    const WHOLE: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#;
    let mut rig = Rig::new(Dialect::R10);
    rig.stream = rig.stream.task_first(ask(Ok(WHOLE)));
    rig.event(WORKING).event(DONE).does(Does::Ends);
    let wanted = format!("data: {TASK}\n\ndata: {WORKING}\n\ndata: {DONE}\n\n");
    assert_eq!(rig.rest().await, wanted);

    // One that begins so by itself is not given another.
    let mut rig = Rig::new(Dialect::R10);
    rig.stream = rig.stream.task_first(ask(Ok(WHOLE)));
    rig.event(TASK).event(WORKING).does(Does::Ends);
    assert_eq!(
        rig.rest().await,
        format!("data: {TASK}\n\ndata: {WORKING}\n\n")
    );

    // Without it the stream goes on, held events in their order.
    let mut rig = Rig::new(Dialect::J03);
    rig.stream = rig.stream.task_first(ask(Err(Kind::BackendTimeout)));
    rig.event(ASKS).event(DONE).does(Does::Ends);
    assert_eq!(finals(&rig.rest().await), ["false", "true"]);
    let mut rig = Rig::new(Dialect::J03);
    rig.stream = rig.stream.task_first(ask(Ok(WHOLE)));
    rig.event(ASKS).does(Does::Ends);
    assert_eq!(finals(&rig.rest().await), ["none", "true"]);
}
