//! What goes over the wire.

use std::io::Error;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use ::http::{Method, Request, Response, StatusCode, Version};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use tokio::sync::mpsc;

use super::support::{Fed, Fun, get, serve, text};
use crate::server::{Settings, start};

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn one_connection_answers_many_calls() {
    let server = serve(Settings::default(), Fun::new(async |_| text("hello")));
    let mut client = server.connect().await;
    for _ in 0..100 {
        client.send(GET).await;
        let answer = client.read_to("hello").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-length: 5\r\n"), "{answer}");
    }
    // Two at once are answered in order.
    client.send(&GET.repeat(2)).await;
    client.read_to("hello").await;
    client.read_to("hello").await;
    assert_eq!(server.shared.counts.accepted(), 1);
    assert_eq!(server.shared.counts.connections(), 1);
    assert!(server.drained().await.clean());
}

#[tokio::test(start_paused = true)]
async fn a_head_may_come_in_pieces() {
    let server = serve(Settings::default(), Fun::new(async |_| text("hello")));
    // The first letters are those of the HTTP/2 preface.
    let mut client = server.connect().await;
    for piece in ["P", "R", "OPFIND / HTT", "P/1.1\r\nhost", ": a\r\n", "\r\n"] {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    client.read_to("hello").await;
}

#[tokio::test(start_paused = true)]
async fn http2_is_known_by_its_preface() {
    let server = serve(
        Settings::default(),
        Fun::new(async |request: Request<_>| {
            assert_eq!(request.version(), Version::HTTP_2);
            text(request.uri().path())
        }),
    );
    let mut send = server.connect_http2(65_535).await;
    let calls = ["/one", "/two", "/three"].map(|path| send.send_request(get(path)));
    for (call, path) in calls.into_iter().zip(["/one", "/two", "/three"]) {
        let answer = call.await.unwrap();
        assert_eq!(answer.headers()["content-length"], path.len().to_string());
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), path);
    }
    assert!(server.drained().await.clean());
}

#[tokio::test(start_paused = true)]
async fn http2_may_be_off() {
    let off = Settings {
        http2: false,
        ..Settings::default()
    };
    let server = serve(off, Fun::new(async |_| text("hello")));
    let mut client = server.connect().await;
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!client.rest().await.contains("200"));
}

#[tokio::test(start_paused = true)]
async fn answers_to_head_have_no_body() {
    let server = serve(Settings::default(), Fun::new(async |_| text("hello")));
    let mut client = server.connect().await;
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client
        .send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await;
    let both = client.rest().await;
    assert_eq!(both.matches("content-length: 5\r\n").count(), 2, "{both}");
    assert_eq!(both.matches("hello").count(), 1, "{both}");

    let mut send = server.connect_http2(65_535).await;
    let mut request = get("/");
    *request.method_mut() = Method::HEAD;
    let answer = send.send_request(request).await.unwrap();
    assert_eq!(answer.headers()["content-length"], "5");
    assert!(
        answer
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn two_lengths_close_the_connection() {
    let read = async |request: Request<hyper::body::Incoming>| {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        text(str::from_utf8(&body).unwrap())
    };
    let server = serve(Settings::default(), Fun::new(read));
    for fields in [
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
    ] {
        let mut client = server.connect().await;
        client
            .send(&format!(
                "POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n{GET}"
            ))
            .await;
        let answer = client.rest().await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_heads_are_refused() {
    let server = serve(Settings::default(), Fun::new(async |_| text("hello")));
    let long = format!(
        "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "x".repeat(64 * 1024)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nhost: a\r\n{}\r\n",
        "x: y\r\n".repeat(100)
    );
    for (head, status) in [
        (long.as_str(), "431"),
        (many.as_str(), "431"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let mut client = server.connect().await;
        client.send(head).await;
        let answer = client.rest().await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_cuts_the_answer() {
    let (feed, body) = mpsc::channel(4);
    let body = Mutex::new(Some(body));
    let once = move |_| {
        let body = body
            .lock()
            .unwrap()
            .take()
            .map(|body| Fed(body).boxed_unsync());
        async move { Response::new(body.unwrap()) }
    };
    let server = serve(Settings::default(), Fun::new(once));
    let mut client = server.connect().await;
    client.send(GET).await;
    feed.send(Ok("half")).await.unwrap();
    client.read_to("\r\n\r\n4\r\nhalf\r\n").await;
    feed.send(Err(Error::other("the agent went")))
        .await
        .unwrap();
    assert_eq!(client.rest().await, "");
}

#[tokio::test(start_paused = true)]
async fn an_error_resets_the_stream() {
    let half = async |request: Request<_>| {
        if request.uri().path() == "/whole" {
            return text("whole");
        }
        let (feed, body) = mpsc::channel(2);
        feed.send(Ok("half")).await.unwrap();
        feed.send(Err(Error::other("the agent went")))
            .await
            .unwrap();
        Response::new(Fed(body).boxed_unsync())
    };
    let server = serve(Settings::default(), Fun::new(half));
    let mut send = server.connect_http2(65_535).await;
    // The reset may overtake the head.
    let half = async {
        let answer = send.send_request(get("/half")).await?;
        answer.into_body().collect().await
    };
    assert!(half.await.is_err());
    let answer = send.send_request(get("/whole")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn too_many_connections_are_closed_at_once() {
    let few = Settings {
        max_connections: 2,
        ..Settings::default()
    };
    let server = serve(few, Fun::new(async |_| text("hello")));
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for client in [&mut first, &mut second] {
        client.send(GET).await;
        client.read_to("hello").await;
    }
    assert_eq!(server.connect().await.rest().await, "");
    assert_eq!(server.shared.counts.refused(), 1);
    // A place is free again when its connection has ended.
    first
        .send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await;
    first.rest().await;
    let mut third = server.connect().await;
    third.send(GET).await;
    third.read_to("hello").await;
    assert_eq!(server.shared.counts.refused.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_drops_its_call() {
    let gone = tokio_util::sync::CancellationToken::new();
    let seen = gone.clone();
    let server = serve(
        Settings::default(),
        Fun::new(move |_| {
            let gone = seen.clone().drop_guard();
            async move {
                let _gone = gone;
                std::future::pending().await
            }
        }),
    );
    let mut client = server.connect().await;
    client.send(GET).await;
    drop(client);
    gone.cancelled().await;
}

#[tokio::test]
async fn threads_share_one_listener() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&made);
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let settings = Settings {
        listen,
        workers: 3,
        ..Settings::default()
    };
    let running = start(settings, move |worker| {
        seen.lock().unwrap().push(worker.index);
        Fun::new(async |_| text("hello"))
    })
    .unwrap();
    let taken = Settings {
        listen: running.local_addr.into(),
        ..Settings::default()
    };
    assert!(start(taken, |_| Fun::new(async |_| text(""))).is_err());
    let io = tokio::net::TcpStream::connect(running.local_addr)
        .await
        .unwrap();
    let io = hyper_util::rt::TokioIo::new(io);
    let (mut send, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let ask = async {
        let request = Request::new(Empty::<Bytes>::new());
        let answer = send.send_request(request).await.unwrap();
        assert_eq!(
            answer.into_body().collect().await.unwrap().to_bytes(),
            "hello"
        );
        // Idle now; the drain closes it.
        running.drain();
    };
    let (ended, ()) = tokio::join!(connection, ask);
    ended.unwrap();
    assert!(running.wait().clean());
    let mut made = made.lock().unwrap().clone();
    made.sort_unstable();
    assert_eq!(made, [0, 1, 2]);
}

#[test]
fn a_worker_that_panics_ends_the_server() {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let settings = Settings {
        listen,
        workers: 2,
        ..Settings::default()
    };
    let running = start(settings, |worker| {
        assert_eq!(worker.index, 0, "only the first can be made");
        Fun::new(async |_| text("hello"))
    })
    .unwrap();
    assert_eq!(running.wait().workers, 1);
}
