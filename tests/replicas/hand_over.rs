//! A conversation that goes to and fro between two replicas: who has read a stream's last event sends the next message
//! through the other one, at once.
use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{
    ledger::Ledger,
    line::Line,
    stand::Replicas,
    work::{How, Message, State, Work},
};

/// How long each stream takes, in milliseconds.
const TAKES: u64 = 4;

/// How many were admitted, and how long each took from the last event of one stream to the agent.
pub async fn run(times: usize, replicas: &Replicas, ledger: &Ledger) -> Vec<Duration> {
    let mut lines = [Line::new(&replicas[0]), Line::new(&replicas[1])];
    for line in &mut lines {
        assert!(line.open().await.is_ok(), "both replicas are there");
    }
    let mut took = vec![];
    let mut last: Option<(Instant, Incoming)> = None;
    for n in 0..=times {
        let message = Message {
            id: format!("hand-over.{n}"),
            context: "hand-over".to_owned(),
            task: None,
            work: Work::new(How::Stream, TAKES),
        };
        ledger.wants(&message.context, &message.id);
        let response = lines[n % 2].post(&message).await;
        let Ok(response) = response else {
            ledger.tell(format!("hand-over {n} got no answer"));
            return took;
        };
        let (read, rest) = last.take().unzip();
        if let Some(rest) = rest {
            rest.collect().await.expect("its stream ends well");
        }
        let (head, mut body) = response.into_parts();
        if head.status != StatusCode::OK {
            let body = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes);
            ledger.tell(format!("hand-over {n} was refused: {body:?}"));
            continue;
        }
        if let (Some(read), Some(received)) = (read, ledger.received(&message.id)) {
            took.push(received.saturating_duration_since(read));
        }
        until_the_last_event(&mut body).await;
        last = Some((Instant::now(), body));
    }
    took
}

async fn until_the_last_event(body: &mut Incoming) {
    let end = State::Done.name().as_bytes();
    let mut text = vec![];
    while !text.windows(end.len()).any(|w| w == end) {
        let frame = body.frame().await.expect("its last event comes");
        let frame = frame.expect("its stream is not cut");
        text.extend_from_slice(frame.data_ref().expect("there are no trailers"));
    }
}
