//! Connections: used again, replaced, counted, shared.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use super::server::{Server, chunk};
use super::{Agent, Error, LONG, OK, Room, STREAM};
use super::{agent, agent_of, get, look, post, request, settings, whole};
use crate::agent::streams::STREAMS;

#[tokio::test]
async fn unary_calls_share_one_connection() {
    let server = Server::start(|mut peer| {
        while let Some(request) = peer.read_request() {
            assert!(request.starts_with("POST /v1/message:send?a=b HTTP/1.1\r\n"));
            assert!(request.contains(&format!("host: 127.0.0.1:{}\r\n", peer.port())));
            assert!(
                request.ends_with("content-length: 2\r\n\r\n{}"),
                "{request}"
            );
            peer.write(OK);
        }
    });
    let agent = agent(&server);
    for _ in 0..5 {
        assert_eq!(whole(post(&agent).await.unwrap()).await.unwrap(), "ok");
    }
    assert_eq!((server.accepted(), server.seen()), (1, 5));
}

#[tokio::test]
async fn a_stream_that_ended_gives_its_connection_back() {
    let server = Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(STREAM);
            for part in [b"one ".as_slice(), b"two ", b"three"] {
                peer.write(&chunk(part));
            }
            peer.write(b"0\r\n\r\n");
        }
    });
    let agent = agent(&server);
    for _ in 0..3 {
        let answer = whole(post(&agent).await.unwrap()).await.unwrap();
        assert_eq!(answer, "one two three");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced() {
    let (go, wait) = mpsc::channel();
    let (closed, was_closed) = mpsc::channel();
    let wait = Mutex::new(wait);
    let server = Server::start(move |mut peer| {
        peer.read_request();
        peer.write(OK);
        wait.lock().unwrap().recv().ok();
        drop(peer);
        closed.send(()).ok();
    });
    let agent = agent(&server);
    whole(post(&agent).await.unwrap()).await.unwrap();
    go.send(()).unwrap();
    was_closed.recv().unwrap();
    look().await;
    whole(post(&agent).await.unwrap()).await.unwrap();
    assert_eq!((server.accepted(), server.seen()), (2, 2));
}

#[tokio::test]
async fn bytes_after_the_answer_are_nobodys() {
    let server = Server::start(|mut peer| {
        peer.read_request();
        peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n");
        peer.wait_for_end();
    });
    let agent = agent(&server);
    for _ in 0..2 {
        assert_eq!(whole(post(&agent).await.unwrap()).await.unwrap(), "ok");
        look().await;
    }
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_full_room_is_overloaded_after_a_while() {
    let server = Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(STREAM);
            peer.write(&chunk(b"one"));
        }
    });
    let mut settings = settings(&server.url());
    settings.max_connections = 1;
    let agent = agent_of(&settings);
    let held = post(&agent).await.unwrap();
    tokio::time::pause();
    let start = Instant::now();
    let error = post(&agent).await.err().unwrap();
    assert_eq!(error, Error::Overloaded(settings.wait));
    assert!(!error.may_have_started());
    assert!(start.elapsed() >= settings.wait && start.elapsed() < settings.wait * 2);
    let error = agent
        .send(request(Method::POST), Duration::from_secs(1), false)
        .await
        .err();
    assert_eq!(error, Some(Error::Timeout { sent: false }));
    tokio::time::resume();
    drop(held);
    post(&agent).await.unwrap();
}

#[tokio::test]
async fn who_waits_gets_the_connection_that_comes_free() {
    let server = Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(OK);
        }
    });
    let mut settings = settings(&server.url());
    settings.max_connections = 1;
    let agent = agent_of(&settings);
    // Its head is here, its body not yet taken: the connection is busy.
    let held = agent
        .send(request(Method::POST), LONG, false)
        .await
        .unwrap();
    let (waiting, first) = tokio::join!(post(&agent), whole(held));
    first.unwrap();
    whole(waiting.unwrap()).await.unwrap();
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn one_workers_idle_connection_makes_room_for_another() {
    let (ended, end) = mpsc::channel();
    let server = Server::start(move |mut peer| {
        while peer.read_request().is_some() {
            peer.write(OK);
        }
        ended.send(()).ok();
    });
    let mut settings = settings(&server.url());
    settings.max_connections = 1;
    let room = Room::new(&settings);
    let one = Agent::new(&settings, room.clone()).unwrap();
    let two = Agent::new(&settings, room).unwrap();
    whole(post(&one).await.unwrap()).await.unwrap();
    whole(post(&two).await.unwrap()).await.unwrap();
    end.recv_timeout(LONG).unwrap();
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn sweeping_drops_what_was_idle_too_long() {
    let (ended, end) = mpsc::channel();
    let server = Server::start(move |mut peer| {
        while peer.read_request().is_some() {
            peer.write(OK);
        }
        ended.send(()).ok();
    });
    let agent = agent(&server);
    whole(post(&agent).await.unwrap()).await.unwrap();
    tokio::time::pause();
    agent.sweep();
    assert!(end.try_recv().is_err());
    tokio::time::advance(LONG).await;
    agent.sweep();
    end.recv_timeout(LONG).unwrap();
}

#[tokio::test]
async fn http2_by_prior_knowledge() {
    let server = Server::start_http2();
    let mut settings = settings(&server.url());
    settings.http2 = true;
    let agent = agent_of(&settings);
    let (one, two) = tokio::join!(post(&agent), post(&agent));
    let expected = format!(
        "POST http://127.0.0.1:{}/v1/message:send?a=b {{}}",
        server.port()
    );
    assert_eq!(whole(one.unwrap()).await.unwrap(), expected);
    assert_eq!(whole(two.unwrap()).await.unwrap(), expected);
    assert_eq!((server.accepted(), server.seen()), (1, 2));
    agent.sweep();
    whole(get(&agent).await.unwrap()).await.unwrap();
    assert_eq!((server.accepted(), server.seen()), (1, 3));
}

#[tokio::test]
async fn a_full_http2_connection_is_joined_by_another() {
    let server = Server::start_http2();
    let mut settings = settings(&server.url());
    settings.http2 = true;
    settings.max_connections = 2;
    let agent = agent_of(&settings);
    let mut held = Vec::new();
    for _ in 0..STREAMS {
        held.push(post(&agent).await.unwrap());
    }
    assert_eq!(server.accepted(), 1);
    held.push(post(&agent).await.unwrap());
    assert_eq!(server.accepted(), 2);
}

/// There the sockets are watched by another thread than the one that polls, so a wake may come at any moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_is_lost_on_several_threads() {
    let server = Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(STREAM);
            for _ in 0..5 {
                peer.write(&chunk(b"part"));
            }
            peer.write(b"0\r\n\r\n");
        }
    });
    let agent = agent(&server);
    let calls = (0..8).map(|_| async {
        for _ in 0..100 {
            let answer = whole(post(&agent).await.unwrap()).await.unwrap();
            assert_eq!(answer.len(), 20);
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!((server.accepted(), server.seen()), (8, 800));
}
