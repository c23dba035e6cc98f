//! Streams whose clients have left, and which are read on.
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An agent that says something once a minute, and never ends.
struct Babbles(tokio::time::Interval);

impl Body for Babbles {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        let _now = ready!(self.0.poll_tick(cx));
        let event = format!("data: {WORKING}\n\n");
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

/// A stream whose client has left, and how it is read on.
fn left<B>(agent: B, whole: bool) -> Option<Work>
where
    B: Body<Data = Bytes, Error: Display> + Unpin + Send + 'static,
{
    let work = Arc::new(Mutex::new(None));
    let place = work.clone();
    let onward = Onward {
        follow: Arc::new(move |work| place.lock().replace(work).is_none()),
        whole,
        within: Duration::from_hours(3),
    };
    let to = ReplyTo::new(Dialect::R10);
    let hold = Budget::new(1 << 20).hold();
    let stop = CancellationToken::new().cancelled_owned();
    let mut stream = Stream::new(agent, to, Arc::new(speech()), hold, stop);
    stream.owes(Permit::default(), onward);
    Box::new(stream).left();
    work.lock().take()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_falls_silent_is_followed_for_so_long() {
    let agent = Babbles(tokio::time::interval(Duration::from_mins(1)));
    let start = Instant::now();
    left(agent, true).unwrap().await;
    assert_eq!(start.elapsed(), Duration::from_hours(3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_not_followed_beyond() {
    let mut agent = Script::default();
    agent
        .next
        .push_back(Does::Says(format!("data: {DONE}\n\n")));
    agent.next.push_back(Does::Ends);
    let start = Instant::now();
    left(agent, true).unwrap().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_owes_nothing_is_closed() {
    assert!(left(Script::default(), false).is_none());
}
