//! Answers as they come: in pieces, cut, compressed, too large, not HTTP at all.

use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http_body::Body as _;
use http_body_util::BodyExt;

use super::server::{Server, chunk};
use super::{Error, LIMIT, OK, STREAM, agent, post, whole};

#[tokio::test]
async fn chunks_that_came_together_are_drained_in_one_poll() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let server = Server::start(move |mut peer| {
        let wait = wait.lock().unwrap();
        peer.read_request();
        peer.write(STREAM);
        wait.recv().unwrap();
        let burst: Vec<u8> = (0..50).flat_map(|_| chunk(b"data: {}\n\n")).collect();
        peer.write(&burst);
        wait.recv().ok();
    });
    let mut body = post(&agent(&server)).await.unwrap().into_body();
    go.send(()).unwrap();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: {}\n\n");
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut drained = 1;
    while let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(&mut cx) {
        frame.unwrap().unwrap();
        drained += 1;
    }
    assert_eq!(drained, 50);
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "it woke itself");
}

#[tokio::test]
async fn a_body_that_stalls_times_out() {
    let server = Server::start(|mut peer| {
        peer.read_request();
        peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour");
        peer.wait_for_end();
    });
    let answer = post(&agent(&server)).await.unwrap();
    tokio::time::pause();
    let error = whole(answer).await.unwrap_err();
    assert_eq!(error, Error::Timeout { sent: true });
}

#[tokio::test]
async fn a_body_cut_in_the_middle_is_broken() {
    for answer in [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour".as_slice(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nfour",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ] {
        let server = Server::start(move |mut peer| {
            peer.read_request();
            peer.write(answer);
        });
        let error = whole(post(&agent(&server)).await.unwrap())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Broken { sent: true, .. }), "{error}");
    }
}

#[tokio::test]
async fn odd_heads_are_understood_or_refused() {
    async fn of(answer: Vec<u8>) -> Result<Bytes, Error> {
        let server = Server::start(move |mut peer| {
            peer.read_request();
            peer.write(&answer);
        });
        whole(post(&agent(&server)).await?).await
    }
    let informed = [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", OK].concat();
    assert_eq!(of(informed).await.unwrap(), "ok");
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec();
    assert_eq!(of(until_close).await.unwrap(), "to the end");
    let empty = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    assert_eq!(of(empty).await.unwrap(), "");
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    let error = of(switch.to_vec()).await.unwrap_err();
    assert!(matches!(error, Error::Broken { sent: true, .. }), "{error}");
    let error = of(b"SSH-2.0-x\r\n\r\n".to_vec()).await.unwrap_err();
    assert!(matches!(error, Error::Broken { sent: true, .. }), "{error}");
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(70_000));
    let error = of(long.into_bytes()).await.unwrap_err();
    assert_eq!(error, Error::TooLarge("response head"));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    let error = of(many.into_bytes()).await.unwrap_err();
    assert_eq!(error, Error::TooLarge("response head"));
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    for (head, part) in [
        (format!("content-length: {}", LIMIT + 1), vec![b'x'; 10]),
        (
            "transfer-encoding: chunked".to_owned(),
            chunk(&vec![b'x'; LIMIT + 1]),
        ),
    ] {
        let server = Server::start(move |mut peer| {
            peer.read_request();
            peer.write(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
            peer.write(&part);
            peer.wait_for_end();
        });
        let error = whole(post(&agent(&server)).await.unwrap())
            .await
            .unwrap_err();
        assert_eq!(error, Error::TooLarge("answer"));
    }
}

#[tokio::test]
async fn compressed_answers_unfold_up_to_the_limit() {
    async fn of(coding: &'static str, data: Vec<u8>) -> Result<Bytes, Error> {
        let server = Server::start(move |mut peer| {
            peer.read_request();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
                data.len()
            );
            peer.write(&[head.as_bytes(), &data].concat());
        });
        whole(post(&agent(&server)).await?).await
    }
    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }
    let text = b"{\"a\":1}".repeat(100);
    assert_eq!(of("gzip", gzip(&text)).await.unwrap(), text);
    assert_eq!(of("X-GZIP", gzip(&text)).await.unwrap(), text);
    assert_eq!(of("identity", text.clone()).await.unwrap(), text);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&text).unwrap();
    assert_eq!(of("deflate", zlib.finish().unwrap()).await.unwrap(), text);
    let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
    bare.write_all(&text).unwrap();
    assert_eq!(of("deflate", bare.finish().unwrap()).await.unwrap(), text);

    assert_eq!(
        of("gzip", gzip(&vec![0; LIMIT])).await.unwrap().len(),
        LIMIT
    );
    let bomb = gzip(&vec![0; 40_000_000]);
    assert!(bomb.len() < LIMIT);
    assert_eq!(of("gzip", bomb).await, Err(Error::TooLarge("answer")));
    let mut cut = gzip(&text);
    cut.truncate(cut.len() - 9);
    for (coding, data) in [
        ("gzip", cut),
        ("gzip", text.clone()),
        ("br", text.clone()),
        ("gzip, gzip", text),
    ] {
        let error = of(coding, data).await.unwrap_err();
        assert!(matches!(error, Error::Undecodable(_)), "{error}");
    }
}
