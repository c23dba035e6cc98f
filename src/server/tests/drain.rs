//! Leaving: what may end does, what does not is told to, then cut.

use std::sync::Mutex;
use std::time::Duration;

use ::http::Response;
use http_body_util::BodyExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::support::{Fed, Fun, followers, get, serve, serve_with, text};
use crate::server::{Outcome, Service, Settings};

type Feed = mpsc::Sender<Result<&'static str, std::io::Error>>;

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Answers once, with what is sent.
fn fed() -> (Feed, impl Service + Sync) {
    let (feed, body) = mpsc::channel(4);
    let body = Mutex::new(Some(body));
    let once = Fun::new(move |_| {
        let body = body.lock().unwrap().take().unwrap();
        std::future::ready(Response::new(Fed(body).boxed_unsync()))
    });
    (feed, once)
}

fn hello() -> impl Service + Sync {
    Fun::new(async |_| text("hello"))
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_a_stream_end() {
    let (feed, once) = fed();
    let server = serve(Settings::default(), once);
    let mut client = server.connect().await;
    let mut idle = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("one")).await.unwrap();
    client.read_to("one\r\n").await;

    let start = Instant::now();
    server.shared.draining.cancel();
    assert_eq!(idle.rest().await, "");
    feed.send(Ok("two")).await.unwrap();
    client.read_to("two\r\n").await;
    drop(feed);
    assert_eq!(client.rest().await, "0\r\n\r\n");
    assert!(server.worker.await.unwrap().clean());
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn who_comes_late_is_answered_once_and_sent_away() {
    let (feed, body) = mpsc::channel(4);
    let body = Mutex::new(Some(body));
    let server = serve(
        Settings::default(),
        Fun::new(move |_| {
            let body = body.lock().unwrap().take();
            std::future::ready(body.map_or_else(
                || text("hello"),
                |body| Response::new(Fed(body).boxed_unsync()),
            ))
        }),
    );
    let mut client = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("one")).await.unwrap();
    client.read_to("one\r\n").await;
    let start = Instant::now();
    server.shared.draining.cancel();
    server.shared.refused().await;

    let mut late = server.connect().await;
    late.send(GET).await;
    let answer = late.rest().await;
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    // One who says nothing is not waited for, nor is one who begins late and does not end.
    let mut silent = server.connect().await;
    assert_eq!(silent.rest().await, "");
    assert!(start.elapsed() < Duration::from_secs(3));
    let mut half = server.connect().await;
    half.send("GET / HT").await;
    let mut http2 = server.connect_http2(65_535).await;
    let answer = http2.send_request(get("/")).await.unwrap();
    assert_eq!(answer.headers().get("connection"), None);
    answer.into_body().collect().await.unwrap();
    http2.ready().await.unwrap_err(); // it was told to go away

    drop(feed);
    client.rest().await;
    assert!(server.worker.await.unwrap().clean());
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn calls_are_taken_during_the_delay() {
    let settings = Settings {
        drain_delay: Duration::from_secs(5),
        ..Settings::default()
    };
    let server = serve(settings, hello());
    let mut client = server.connect().await;
    let (start, refusing) = (Instant::now(), server.shared.refusing.clone());
    server.shared.draining.cancel();
    for _ in 0..2 {
        client.send(GET).await;
        let answer = client.read_to("hello").await;
        assert!(!answer.contains("connection: close"), "{answer}");
        let mut other = server.connect().await;
        other.send(GET).await;
        other.read_to("hello").await;
        tokio::time::advance(Duration::from_secs(2)).await;
    }
    assert!(!refusing.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(client.rest().await, "");
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(server.worker.await.unwrap().clean());
    assert!(refusing.load(std::sync::atomic::Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_cut_as_well() {
    let settings = Settings {
        drain_delay: Duration::from_secs(5),
        ..Settings::default()
    };
    let server = serve(settings, hello());
    let start = Instant::now();
    server.shared.draining.cancel();
    server.shared.cut.cancel();
    assert!(server.worker.await.unwrap().clean());
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn settings_change_for_connections_to_come() {
    let server = serve(Settings::default(), hello());
    let handle = crate::server::Handle::of(&server.shared);
    let mut first = server.connect().await;
    first.send(GET).await;
    first.read_to("hello").await;
    handle.tune(&Settings {
        silence: Duration::from_secs(4),
        max_connections: 2,
        ..Settings::default()
    });
    let start = Instant::now();
    let mut second = server.connect().await;
    second.send(GET).await;
    second.read_to("hello").await;
    assert_eq!(server.connect().await.rest().await, "", "one too many");
    assert_eq!(second.rest().await, "");
    let silent = start.elapsed();
    assert!((4..8).contains(&silent.as_secs()), "{silent:?}");
    assert_eq!(first.rest().await, "", "the sweep goes by them for all");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_an_http2_stream_end() {
    let (feed, once) = fed();
    let server = serve(Settings::default(), once);
    let mut send = server.connect_http2(65_535).await;
    let answer = send.send_request(get("/")).await.unwrap();
    server.shared.draining.cancel();
    feed.send(Ok("one")).await.unwrap();
    drop(feed);
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "one"
    );
    assert!(server.worker.await.unwrap().clean());
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_told_to_stop_after_the_grace() {
    let (feed, once) = fed();
    let server = serve(Settings::default(), once);
    let mut client = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("one")).await.unwrap();
    client.read_to("one\r\n").await;

    let (start, stop) = (Instant::now(), server.shared.stop.clone());
    server.shared.draining.cancel();
    stop.cancelled().await;
    assert_eq!(start.elapsed().as_secs(), 30);
    feed.send(Ok("goodbye")).await.unwrap();
    drop(feed);
    client.read_to("goodbye\r\n0\r\n\r\n").await;
    assert!(server.worker.await.unwrap().clean());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_stop_is_cut() {
    let (feed, once) = fed();
    let server = serve(Settings::default(), once);
    let mut client = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("one")).await.unwrap();
    client.read_to("one\r\n").await;
    let start = Instant::now();
    let outcome = server.drained().await;
    assert_eq!(
        outcome,
        Outcome {
            connections: 1,
            ..Outcome::default()
        }
    );
    assert_eq!(start.elapsed().as_secs(), 31);
}

#[tokio::test(start_paused = true)]
async fn a_second_word_cuts_at_once() {
    let (feed, once) = fed();
    let server = serve(Settings::default(), once);
    let mut client = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("one")).await.unwrap();
    client.read_to("one\r\n").await;
    let start = Instant::now();
    server.shared.cut.cancel();
    assert_eq!(server.drained().await.connections, 1);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_outlive_its_client() {
    let ours = followers(1_024);
    let (begun, mut calls) = mpsc::channel(1);
    let (finish, finished) = oneshot::channel::<()>();
    let done = CancellationToken::new();
    let parts = Mutex::new(Some((finished, done.clone())));
    let leaving = ours.clone();
    let leave = move |_| {
        let (finished, done) = parts.lock().unwrap().take().unwrap();
        let work = Box::pin(async move {
            finished.await.unwrap();
            done.cancel();
        });
        let mut leave = Leaving(Some(work), leaving.clone());
        let begun = begun.clone();
        async move {
            begun.send(()).await.unwrap();
            leave.0.as_mut().unwrap().await;
            text("")
        }
    };
    let server = serve_with(Settings::default(), ours.clone(), Fun::new(leave));
    let mut client = server.connect().await;
    client.send(GET).await;
    calls.recv().await.unwrap();
    drop(client);
    // The connection closes first; its call is a follower then.
    while ours.is_empty() {
        tokio::task::yield_now().await;
    }
    server.shared.draining.cancel();
    assert_eq!(ours.len(), 1);
    assert!(!server.worker.is_finished());
    finish.send(()).unwrap();
    assert!(server.worker.await.unwrap().clean());
    assert!(done.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn followers_are_bounded() {
    let ours = followers(2);
    let forever = || Box::pin(std::future::pending());
    assert!(ours.follow(forever()) && ours.follow(forever()));
    assert!(!ours.follow(forever()));
    let server = serve_with(Settings::default(), ours, Fun::new(async |_| text("")));
    assert_eq!(server.drained().await.followers, 2);
}

#[test]
fn nobody_follows_without_a_runtime() {
    assert!(!followers(1).follow(Box::pin(std::future::ready(()))));
}

/// A future that goes on when dropped, as a call does that waits for its agent.
struct Leaving(
    Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    crate::server::Followers,
);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            self.1.follow(work);
        }
    }
}
