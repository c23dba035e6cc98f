//! What waits too long is closed, and nothing else.

use std::io::Error;
use std::time::Duration;

use ::http::Request;
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, timeout};
use tokio_util::sync::CancellationToken;

use super::support::{Answer, Endless, Fun, get, serve, text};
use crate::server::{Peer, Service, Settings};

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Two sweeps late at most, and never early.
fn assert_after(since: Instant, seconds: u64) {
    let (took, limit) = (since.elapsed(), Duration::from_secs(seconds));
    assert!(
        took >= limit && took <= limit + Duration::from_secs(3),
        "{took:?}"
    );
}

fn hello() -> impl Service + Sync {
    Fun::new(async |_| text("hello"))
}

#[tokio::test(start_paused = true)]
async fn silence_is_closed() {
    let server = serve(Settings::default(), hello());
    let start = Instant::now();
    let mut client = server.connect().await;
    assert_eq!(client.rest().await, "");
    assert_after(start, 30);
}

#[tokio::test(start_paused = true)]
async fn silence_between_calls_is_closed() {
    let server = serve(Settings::default(), hello());
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.send(GET).await;
        client.read_to("hello").await;
        advance(Duration::from_secs(25)).await;
    }
    client.send(GET).await;
    client.read_to("hello").await;
    let start = Instant::now();
    assert_eq!(client.rest().await, "");
    assert_after(start, 30);
}

#[tokio::test(start_paused = true)]
async fn half_a_head_is_closed() {
    let header = Duration::from_secs(40);
    let server = serve(
        Settings {
            header,
            ..Settings::default()
        },
        hello(),
    );
    let start = Instant::now();
    let mut client = server.connect().await;
    // Bytes that drip in do not help.
    client.send("GET / HTTP/1.1\r\nx: ").await;
    for _ in 0..7 {
        advance(Duration::from_secs(5)).await;
        client.send("x").await;
    }
    assert_eq!(client.rest().await, "");
    assert_after(start, 40);
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_not_silence() {
    let slow = async |_: Request<_>| {
        tokio::time::sleep(Duration::from_mins(10)).await;
        text("hello")
    };
    let server = serve(Settings::default(), Fun::new(slow));
    let mut client = server.connect().await;
    client.send(GET).await;
    client.read_to("hello").await;

    // Long enough for pings and their answers.
    let mut send = server.connect_http2(65_535).await;
    assert!(send.send_request(get("/")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_http2_is_told_to_go() {
    let server = serve(Settings::default(), hello());
    let mut send = server.connect_http2(65_535).await;
    let answer = send.send_request(get("/")).await.unwrap();
    answer.into_body().collect().await.unwrap();
    let start = Instant::now();
    // Ready as long as the connection is there; the client ends when told to go and nothing runs.
    while send.ready().await.is_ok() {
        advance(Duration::from_millis(100)).await;
    }
    assert_after(start, 30);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_loses_its_answer() {
    let gone = CancellationToken::new();
    let seen = gone.clone();
    let endless = move |_| std::future::ready(Endless::answer(16 * 1024, seen.clone()));
    let server = serve(Settings::default(), Fun::new(endless));
    let mut client = server.connect().await;
    client.send(GET).await;
    let start = Instant::now();
    gone.cancelled().await;
    assert_after(start, 60);
    assert!(timeout(Duration::from_secs(1), client.rest()).await.is_ok());
    assert_eq!(server.shared.counts.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_closed() {
    let gone = CancellationToken::new();
    let seen = gone.clone();
    let endless = move |_| std::future::ready(Endless::answer(16 * 1024, seen.clone()));
    let server = serve(Settings::default(), Fun::new(endless));
    let mut client = server.connect().await;
    client.send(GET).await;
    let mut buf = vec![0; 64 * 1024];
    for _ in 0..20 {
        advance(Duration::from_secs(40)).await;
        // Enough that the kernel tells the server about the room.
        client.0.read_exact(&mut buf).await.unwrap();
        assert!(!gone.is_cancelled());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_window_stays_shut_is_reset_alone() {
    for window in [0, 1024] {
        let gone = CancellationToken::new();
        let seen = gone.clone();
        let answer = move |request: Request<_>| {
            std::future::ready(match request.uri().path() {
                "/endless" => Endless::answer(16 * 1024, seen.clone()),
                _ => text(""),
            })
        };
        let server = serve(Settings::default(), Fun::new(answer));
        let mut send = server.connect_http2(window).await;
        let start = Instant::now();
        let unread = send.send_request(get("/endless")).await.unwrap();
        while !gone.is_cancelled() {
            // The neighbours go on.
            assert!(send.send_request(get("/")).await.is_ok());
            advance(Duration::from_secs(1)).await;
        }
        assert_after(start, 60);
        assert!(send.send_request(get("/")).await.is_ok());
        assert!(unread.into_body().collect().await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn http2_that_reads_nothing_at_all_is_cut() {
    let gone = CancellationToken::new();
    let seen = gone.clone();
    let endless = move |_| std::future::ready(Endless::answer(16 * 1024, seen.clone()));
    let server = serve(Settings::default(), Fun::new(endless));
    let mut client = server.connect().await;
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let settings: &[u8] = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff";
    // Room for all of it on the connection, too.
    let window: &[u8] = b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";
    // GET http://a/, by the static table (method, scheme, path) and one literal (authority).
    let headers: &[u8] = b"\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x01a";
    for frame in [settings, window, headers] {
        tokio::io::AsyncWriteExt::write_all(&mut client.0, frame)
            .await
            .unwrap();
    }
    let start = Instant::now();
    gone.cancelled().await;
    // The keep-alive ping may find out before the sweep does.
    assert!(
        start.elapsed() <= Duration::from_secs(63),
        "{:?}",
        start.elapsed()
    );
}

#[derive(Clone)]
struct Ticking(mpsc::Sender<()>);

impl Service for Ticking {
    type Body = UnsyncBoxBody<Bytes, Error>;

    fn call(
        &self,
        _: Request<Incoming>,
        _: Peer,
    ) -> impl Future<Output = Answer> + Send + 'static + use<> {
        std::future::ready(text(""))
    }

    fn tick(&self) {
        let _ = self.0.try_send(());
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_ticks_with_the_sweep() {
    let (tick, mut ticks) = mpsc::channel(1);
    let start = Instant::now();
    let server = serve(Settings::default(), Ticking(tick));
    for _ in 0..5 {
        ticks.recv().await.unwrap();
    }
    assert_eq!(start.elapsed().as_secs(), 4);
    assert!(server.drained().await.clean());
}
