//! One connection: find out which HTTP it is, serve its calls, end when told to.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::io::Watched;
use super::served::Served;
use super::state::{InFlight, State, Stream, Swept};
use super::{Peer, Service, Settings};

/// What a connection, or an HTTP/2 stream, may hold of an answer that its peer has not taken; and the room for a head.
const BUFFER: usize = 64 * 1024;
/// What hyper allows by itself, without the cost of a setting.
const DEFAULT_HEADERS: usize = 100;
/// HTTP/2 streams open at once on a connection.
const STREAMS: u32 = 128;
/// Bytes of request bodies that may wait to be read, on one HTTP/2 stream and on all of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes in an HTTP/2 request head, as HTTP/2 counts them.
const HEADER_LIST: u32 = 32 * 1024;
/// Streams that a peer may reset before they were looked at, and that we may for its mistakes; more ends the
/// connection (rapid reset).
const RESETS: usize = 20;
/// A peer that went without a word is found by asking, and gone when it does not answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// How connections are served; each worker has one.
#[derive(Debug)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: bool,
    /// Counts connections and HTTP/2 streams.
    pub(super) tracker: TaskTracker,
}

impl Protocols {
    pub(super) fn new(settings: &Settings, tracker: TaskTracker) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .half_close(false)
            .keep_alive(true)
            .pipeline_flush(false)
            // The sweep does it, without a timer for each head.
            .header_read_timeout(None)
            .max_buf_size(settings.max_head.max(BUFFER))
            .max_header_size(settings.max_head);
        if settings.max_headers != DEFAULT_HEADERS {
            http1.max_headers(settings.max_headers);
        }
        Self {
            http1,
            http2: settings.http2,
            tracker,
        }
    }

    fn http2(&self, state: &Arc<State>) -> http2::Builder<Streams> {
        let mut http2 = http2::Builder::new(Streams {
            state: Arc::clone(state),
            tracker: self.tracker.clone(),
        });
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_LIST)
            .max_pending_accept_reset_streams(RESETS)
            .max_send_buf_size(BUFFER)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG);
        http2
    }
}

/// Serves the connection until its peer ends it, it was told to leave and has no more calls, or it is cut. Whether it
/// speaks HTTP/2 is known by TLS, or found out.
pub(super) async fn serve<I, S>(
    io: I,
    http2: Option<bool>,
    peer: Peer,
    service: S,
    protocols: Arc<Protocols>,
    state: Arc<State>,
    refusing: Arc<AtomicBool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let mut io = Watched::new(io, Arc::clone(&state));
    let http2 = if let Some(known) = http2 {
        known
    } else if protocols.http2 {
        let Some(Ok(preface)) = poll_fn(|cx| poll_start(&mut io, &state, cx)).await else {
            return;
        };
        preface
    } else {
        false
    };
    let addr = peer.addr;
    let service = answer(service, peer, Arc::clone(&state), refusing, http2);
    let io = TokioIo::new(io);
    let ended = if http2 {
        state.speaks_http2();
        let connection = protocols.http2(&state).serve_connection(io, service);
        Guarded::new(connection, state).await
    } else {
        let connection = protocols.http1.serve_connection(io, service);
        Guarded::new(connection, state).await
    };
    if let Err(error) = ended {
        tracing::debug!(%addr, %error, "connection ended early");
    }
}

/// Which HTTP the peer speaks; none when the connection must end before that is known.
fn poll_start<I: AsyncRead + Unpin>(
    io: &mut Watched<I>,
    state: &State,
    cx: &mut Context<'_>,
) -> Poll<Option<std::io::Result<bool>>> {
    state.listen(cx.waker());
    if state.is_cut() {
        return Poll::Ready(None);
    }
    match io.poll_preface(cx) {
        Poll::Ready(preface) => Poll::Ready(Some(preface)),
        Poll::Pending if state.is_leaving() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    }
}

/// Our service as hyper wants it, with calls counted.
fn answer<S: Service>(
    service: S,
    peer: Peer,
    state: Arc<State>,
    refusing: Arc<AtomicBool>,
    http2: bool,
) -> impl HttpService<
    Incoming,
    ResBody = Served<S::Body>,
    Error = Infallible,
    Future: Future<Output = Result<Response<Served<S::Body>>, Infallible>> + Send + 'static,
> {
    service_fn(move |request: Request<Incoming>| {
        let call = InFlight::begin(&state);
        let stream = http2.then(|| Stream::begin(&state));
        // hyper leaves the body out for HTTP/1 only.
        let bare = http2 && request.method() == Method::HEAD;
        // What begins now is refused, and its peer is to look for another server.
        let leaves = refusing.load(Relaxed);
        if leaves && http2 {
            state.leave();
        }
        Answering {
            reply: service.call(request, peer.clone()),
            counted: Some((call, stream)),
            bare,
            closes: leaves && !http2,
        }
    })
}

pin_project! {
    /// A call until its head is there. By hand: an async block would hold the service's future twice.
    struct Answering<F> {
        #[pin]
        reply: F,
        counted: Option<(InFlight, Option<Arc<Stream>>)>,
        bare: bool,
        closes: bool,
    }
}

impl<F: Future<Output = Response<B>>, B: Body> Future for Answering<F> {
    type Output = Result<Response<Served<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.reply.poll(cx));
        let Some((call, stream)) = this.counted.take() else {
            return Poll::Pending; // never polled after its end
        };
        if *this.bare {
            set_length(&mut response);
        }
        if *this.closes {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        let served = |body| Served::new(body, call, stream, *this.bare);
        Poll::Ready(Ok(response.map(served)))
    }
}

/// Says how long the body would have been, which hyper does only for one it sends.
fn set_length<B: Body>(response: &mut Response<B>) {
    if let Some(length) = response.body().size_hint().exact() {
        let fields = response.headers_mut().entry(header::CONTENT_LENGTH);
        fields.or_insert_with(|| HeaderValue::from(length));
    }
}

/// A connection of hyper's that can be asked to end.
trait Leave: Future<Output = hyper::Result<()>> {
    fn leave(self: Pin<&mut Self>);
}

impl<I, S> Leave for http1::Connection<I, S>
where
    S: HttpService<Incoming, Error = Infallible>,
    S::ResBody: Body<Error = std::io::Error> + 'static,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    Self: Future<Output = hyper::Result<()>>,
{
    fn leave(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S> Leave for http2::Connection<I, S, Streams>
where
    S: HttpService<Incoming, Error = Infallible>,
    S::Future: Send + 'static,
    S::ResBody: Body<Data: Send, Error = std::io::Error> + Send + 'static,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    Self: Future<Output = hyper::Result<()>>,
{
    fn leave(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

pin_project! {
    /// A connection that looks at its state each time it runs. Ending early drops all calls in it.
    struct Guarded<C> {
        #[pin]
        connection: C,
        state: Arc<State>,
        told: bool,
    }
}

impl<C> Guarded<C> {
    fn new(connection: C, state: Arc<State>) -> Self {
        Self {
            connection,
            state,
            told: false,
        }
    }
}

impl<C: Leave> Future for Guarded<C> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        this.state.listen(cx.waker());
        if this.state.is_cut() {
            return Poll::Ready(Ok(()));
        }
        // First what has come in: a request that arrived before the word to leave is answered.
        if let Poll::Ready(ended) = this.connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if *this.told || !this.state.is_leaving() {
            return Poll::Pending;
        }
        *this.told = true;
        this.connection.as_mut().leave();
        this.connection.poll(cx)
    }
}

/// Runs the streams of one HTTP/2 connection.
#[derive(Clone, Debug)]
struct Streams {
    state: Arc<State>,
    tracker: TaskTracker,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        let Some(swept) = Swept::enter(&self.state) else {
            self.tracker.spawn(task);
            return;
        };
        self.tracker.spawn(Cuttable { task, swept });
    }
}

pin_project! {
    /// A stream that ends when it is cut, which resets it and drops the call in it.
    struct Cuttable<F> {
        #[pin]
        task: F,
        swept: Swept,
    }
}

impl<F: Future> Future for Cuttable<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.swept.is_cut(cx.waker()) {
            return Poll::Ready(None);
        }
        this.task.poll(cx).map(Some)
    }
}
