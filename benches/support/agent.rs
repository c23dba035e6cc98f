//! An agent that always says what it was given to say, on a thread of its own.
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, thread};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Collected, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, runtime::Builder, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Answers a message.
pub(crate) type Answer = dyn Fn(&[u8]) -> Bytes + Send + Sync;

/// What it says.
pub(crate) struct Words {
    /// To a message.
    pub(crate) answer: Box<Answer>,
    /// To a message whose answer is to be streamed.
    pub(crate) events: Bytes,
}

/// Starts it.
pub(crate) fn start(
    words: Words,
    stop: CancellationToken,
) -> io::Result<(thread::JoinHandle<()>, SocketAddr)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let at = listener.local_addr()?;
    let words = Arc::new(words);
    let serve = async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let words = words.clone();
            let service = service_fn(move |request| answer(words.clone(), request));
            connections.spawn(async move {
                let socket = TokioIo::new(socket);
                let served = hyper::server::conn::http1::Builder::new();
                let _cut = served.serve_connection(socket, service).await;
            });
        }
    };
    let work = move || {
        runtime.block_on(stop.run_until_cancelled_owned(serve));
    };
    let thread = thread::Builder::new()
        .name("agent".to_owned())
        .spawn(work)?;
    Ok((thread, at))
}

async fn answer(
    words: Arc<Words>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let stream = request.uri().path().ends_with(":stream");
    let message = request.into_body().collect().await;
    let (kind, body) = if stream {
        ("text/event-stream", words.events.clone())
    } else {
        let message = message.map(Collected::to_bytes).unwrap_or_default();
        ("application/json", (words.answer)(&message))
    };
    let mut response = Response::new(Full::new(body));
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
