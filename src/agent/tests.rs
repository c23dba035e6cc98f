//! Exchanges over real sockets, with scripted agents that misbehave in every way that we know of.

mod answers;
mod pool;
mod secure;
mod server;
mod spread;

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::{Agent, Body, Error, Origin, Room, Settings};
use server::{Server, chunk};

const LONG: Duration = Duration::from_mins(1);
const LIMIT: usize = 64 * 1024;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn settings(url: &str) -> Settings {
    Settings::new(Origin::parse(url).unwrap().0)
}

fn agent_of(settings: &Settings) -> Agent {
    Agent::new(settings, Room::new(settings)).unwrap()
}

fn agent(server: &Server) -> Agent {
    agent_of(&settings(&server.url()))
}

fn request(method: Method) -> Request<Bytes> {
    let mut request = Request::new(Bytes::from_static(b"{}"));
    *request.method_mut() = method;
    *request.uri_mut() = "/v1/message:send?a=b".parse().unwrap();
    request
}

async fn post(agent: &Agent) -> Result<Response<Body>, Error> {
    agent.send(request(Method::POST), LONG, false).await
}

async fn get(agent: &Agent) -> Result<Response<Body>, Error> {
    agent.send(request(Method::GET), LONG, true).await
}

async fn whole(response: Response<Body>) -> Result<Bytes, Error> {
    let (head, body) = response.into_parts();
    body.collect(head.headers.get(CONTENT_ENCODING), LIMIT, LONG, |_| true)
        .await
}

/// Lets the runtime look at its sockets once.
async fn look() {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn our_framing_replaces_the_callers() {
    let server = Server::start(|mut peer| {
        while let Some(request) = peer.read_request() {
            assert!(!request.contains("chunked") && !request.contains("999"));
            assert!(request.contains("host: elsewhere\r\n"));
            assert!(request.contains("content-length: 0\r\n"));
            peer.write(OK);
        }
    });
    let mut request = request(Method::POST).map(|_| Bytes::new());
    for (name, value) in [
        ("content-length", "999"),
        ("transfer-encoding", "chunked"),
        ("host", "elsewhere"),
    ] {
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
    }
    let answer = agent(&server)
        .send(request, Duration::MAX, false)
        .await
        .unwrap();
    assert_eq!(whole(answer).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_request_that_was_read_is_never_sent_again() {
    let fresh = Server::start(|mut peer| {
        peer.read_request();
    });
    let error = post(&agent(&fresh)).await.err().unwrap();
    assert!(matches!(error, Error::Broken { sent: true, .. }), "{error}");
    assert!(error.may_have_started());
    assert_eq!((fresh.accepted(), fresh.seen()), (1, 1));

    let reused = Server::start(|mut peer| {
        peer.read_request();
        peer.write(OK);
        peer.read_request();
    });
    let agent = agent(&reused);
    whole(post(&agent).await.unwrap()).await.unwrap();
    let error = post(&agent).await.err().unwrap();
    assert!(matches!(error, Error::Broken { sent: true, .. }), "{error}");
    assert_eq!((reused.accepted(), reused.seen()), (1, 2));
}

#[tokio::test]
async fn what_may_be_sent_twice_is_sent_twice_at_most() {
    let once = Server::start(|mut peer| {
        peer.read_request();
        if peer.index() > 0 {
            peer.write(OK);
        }
    });
    whole(get(&agent(&once)).await.unwrap()).await.unwrap();
    assert_eq!((once.accepted(), once.seen()), (2, 2));

    let never = Server::start(|mut peer| {
        peer.read_request();
    });
    assert!(get(&agent(&never)).await.is_err());
    assert_eq!((never.accepted(), never.seen()), (2, 2));
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let (ended, end) = mpsc::channel();
    let server = Server::start(move |mut peer| {
        peer.read_request();
        peer.write(STREAM);
        peer.write(&chunk(b"one"));
        peer.wait_for_end();
        ended.send(()).unwrap();
    });
    let mut body = post(&agent(&server)).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    end.recv_timeout(LONG).unwrap();
}

#[tokio::test]
async fn giving_up_before_the_head_closes_the_connection() {
    let (told, mut tells) = tokio::sync::mpsc::channel(2);
    let server = Server::start(move |mut peer| {
        peer.read_request();
        told.blocking_send("read").unwrap();
        peer.wait_for_end();
        told.blocking_send("closed").unwrap();
    });
    let agent = agent(&server);
    tokio::select! {
        _ = post(&agent) => panic!("there is no answer"),
        told = tells.recv() => assert_eq!(told, Some("read")),
    }
    assert_eq!(tells.recv().await, Some("closed"));
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let agent = agent_of(&settings(&format!("http://127.0.0.1:{port}")));
    let error = post(&agent).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
    assert!(!error.may_have_started());
}

#[tokio::test]
async fn the_deadline_holds_until_the_head() {
    let server = Server::start(|mut peer| {
        peer.read_request();
        peer.write(OK);
        peer.read_request();
        peer.wait_for_end();
    });
    // The timer of the connection is set by the first exchange: it may be late or early for the second.
    for (first, second) in [(LONG * 2, LONG), (LONG, LONG * 2)] {
        let agent = agent(&server);
        let answer = agent.send(request(Method::POST), first, false).await;
        whole(answer.unwrap()).await.unwrap();
        tokio::time::pause();
        let start = Instant::now();
        let error = agent.send(request(Method::POST), second, false).await;
        assert_eq!(error.err(), Some(Error::Timeout { sent: true }));
        assert!(start.elapsed() >= second && start.elapsed() < second + LONG / 2);
        tokio::time::resume();
    }
}

#[test]
fn agents_and_bodies_may_move_between_threads() {
    fn sendable<T: Send>(_: &T) {}
    fn all<T: Send + Unpin>() {}
    let settings = settings("http://127.0.0.1:1");
    let agent = agent_of(&settings);
    sendable(&agent);
    sendable(&post(&agent));
    all::<Body>();
}
