//! A server in the test's own runtime, services made of a closure, and a raw client.

use std::io::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Request, Response};
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::server::{Followers, Outcome, Peer, Service, Settings, Shared, followers, worker};

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Error>>;

/// A service that is a function.
pub(super) struct Fun<F>(Arc<F>);

impl<F> Fun<F> {
    pub(super) fn new(answer: F) -> Self {
        Self(Arc::new(answer))
    }
}

impl<F> Clone for Fun<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F, R> Service for Fun<F>
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    type Body = UnsyncBoxBody<Bytes, Error>;

    fn call(
        &self,
        request: Request<Incoming>,
        _: Peer,
    ) -> impl Future<Output = Answer> + Send + 'static + use<F, R> {
        (self.0)(request)
    }
}

/// An answer with a text.
pub(super) fn text(text: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes()));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

/// A server on a free port.
pub(super) struct Server {
    pub(super) addr: SocketAddr,
    pub(super) shared: Arc<Shared>,
    pub(super) worker: JoinHandle<Outcome>,
}

/// One worker, with 1,024 followers at most.
pub(super) fn serve<S: Service + Sync>(settings: Settings, service: S) -> Server {
    serve_with(settings, followers(1_024), service)
}

pub(super) fn followers(limit: usize) -> Followers {
    Followers::new(&followers::Room::new(limit))
}

#[expect(
    clippy::disallowed_methods,
    reason = "here the test's own runtime is the worker"
)]
pub(super) fn serve_with<S: Service + Sync>(
    mut settings: Settings,
    followers: Followers,
    service: S,
) -> Server {
    let socket = TcpSocket::new_v4().unwrap();
    // Small, so that a peer that does not read is felt soon.
    socket.set_send_buffer_size(16 * 1024).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener = socket.listen(64).unwrap().into_std().unwrap();
    let addr = listener.local_addr().unwrap();
    settings.workers = 1;
    let shared = Shared::new(settings);
    let run = worker::run(listener.into(), service, Arc::clone(&shared), followers);
    let worker = tokio::spawn(async { run.await.unwrap() });
    Server {
        addr,
        shared,
        worker,
    }
}

impl Server {
    /// A raw connection with a small receive buffer.
    pub(super) async fn connect(&self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let io = socket.connect(self.addr).await.unwrap();
        io.set_nodelay(true).unwrap();
        Client(io)
    }

    /// An HTTP/2 connection whose streams have a window of `window` bytes.
    #[expect(
        clippy::disallowed_methods,
        reason = "the client's connection needs a task"
    )]
    pub(super) async fn connect_http2(&self, window: u32) -> SendRequest<Empty<Bytes>> {
        let io = TcpStream::connect(self.addr).await.unwrap();
        // A byte that the kernel holds back arrives in real time, which the paused clock has long left behind.
        io.set_nodelay(true).unwrap();
        let io = TokioIo::new(io);
        let (send, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(io)
            .await
            .unwrap();
        tokio::spawn(connection);
        send
    }

    pub(super) async fn drained(self) -> Outcome {
        self.shared.draining.cancel();
        self.worker.await.unwrap()
    }
}

pub(super) fn get(path: &str) -> Request<Empty<Bytes>> {
    let uri = format!("http://a{path}");
    Request::get(uri).body(Empty::new()).unwrap()
}

/// A client that writes bytes and reads bytes.
pub(super) struct Client(pub(super) TcpStream);

impl Client {
    pub(super) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until what came ends with `end`.
    pub(super) async fn read_to(&mut self, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let byte = self.0.read_u8().await;
            text.push(
                byte.unwrap_or_else(|e| panic!("{e} after {}", String::from_utf8_lossy(&text))),
            );
        }
        String::from_utf8(text).unwrap()
    }

    /// Reads until the server closes.
    pub(super) async fn rest(&mut self) -> String {
        let mut text = Vec::new();
        // A reset is an end, too.
        let _ = self.0.read_to_end(&mut text).await;
        String::from_utf8(text).unwrap()
    }
}

/// A body without end, and the news of its end.
pub(super) struct Endless {
    chunk: Bytes,
    _gone: DropGuard,
}

impl Endless {
    pub(super) fn answer(chunk: usize, gone: CancellationToken) -> Answer {
        let body = Self {
            chunk: vec![b'.'; chunk].into(),
            _gone: gone.drop_guard(),
        };
        Response::new(body.boxed_unsync())
    }
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}

/// A body that gives what it is sent.
pub(super) struct Fed(pub(super) tokio::sync::mpsc::Receiver<Result<&'static str, Error>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let next = self.0.poll_recv(cx);
        next.map(|next| {
            next.map(|text| text.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))))
        })
    }
}
