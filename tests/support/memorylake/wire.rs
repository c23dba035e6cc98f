//! The double on the wire: HTTP/1.1 in, documents and streams of events out, with comments in a silent stream.
use std::{convert::Infallible, future::Future, net::TcpListener, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use super::{
    call::{self, Tongue},
    operation::{self, Reply},
    task::Task,
    tell,
    world::{Seen, World},
};

/// The largest body that is read.
const LARGEST: usize = 16 * 1024 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves until it is told to stop.
pub fn run(listener: TcpListener, world: Arc<World>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be made");
    listener.set_nonblocking(true).expect("a listener can wait");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.expect("a listener can be handed on");
        tokio::select! {
            _ = stopped => {}
            () = accept(&listener, world) => {}
        }
    });
}

/// Work goes on when nobody waits for it any more; the runtime's end ends it.
#[allow(
    clippy::disallowed_methods,
    reason = "a double has no server that could own the work"
)]
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

async fn accept(listener: &tokio::net::TcpListener, world: Arc<World>) {
    loop {
        let Ok((io, _)) = listener.accept().await else {
            continue;
        };
        let _it_only_takes_longer = io.set_nodelay(true);
        let world = Arc::clone(&world);
        let service = service_fn(move |request| {
            let world = Arc::clone(&world);
            async move { Ok::<_, Infallible>(answer(&world, request).await) }
        });
        spawn(async move {
            let served = http1::Builder::new().serve_connection(TokioIo::new(io), service);
            let _cut = served.await;
        });
    }
}

async fn answer(world: &Arc<World>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LARGEST).collect().await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, &Value::Null);
    };
    let body = body.to_bytes();
    let call = call::read(&head.method, head.uri.path(), &body);
    let place = world.see(Seen {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        fields: fields(&head.headers),
        body: String::from_utf8_lossy(&body).into_owned(),
        call: call.as_ref().ok().map(|call| (call.tongue, call.op)),
        status: None,
    });
    let authorization = head.headers.get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let response = match call {
        Err((tongue, id, why)) => {
            let (status, body) = why.tell(tongue, &id);
            plain(status, &body)
        }
        Ok(call) => match operation::perform(world, &call, authorization).await {
            Ok(Reply::Document(body)) => plain(StatusCode::OK, &body),
            Ok(Reply::Stream(task, first)) => {
                let reader = Reader::new(task, first, call.tongue, call.id);
                events(reader, world.rules.keep_alive)
            }
            Err(why) => {
                let (status, body) = why.tell(call.tongue, &call.id);
                plain(status, &body)
            }
        },
    };
    let status = response.status().as_u16();
    world.answered(place, status);
    response
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let all = headers.iter();
    all.map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

fn plain(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(body.to_string())));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Who reads a task's events, and how far.
struct Reader {
    task: Arc<Task>,
    count: watch::Receiver<usize>,
    first: Option<Value>,
    at: usize,
    is_over: bool,
    tongue: Tongue,
    id: Value,
}

impl Reader {
    fn new(task: Arc<Task>, first: Option<Value>, tongue: Tongue, id: Value) -> Self {
        let count = task.follow();
        Self {
            task,
            count,
            first,
            at: 0,
            is_over: false,
            tongue,
            id,
        }
    }

    /// The events that are there, each as its own frame of text; waits for one.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(self.frame(&first));
        }
        loop {
            if self.is_over {
                return None;
            }
            self.count.mark_unchanged();
            let (new, over) = self.task.events(self.at);
            self.at += new.len();
            self.is_over = over;
            if !new.is_empty() {
                return Some(new.iter().map(|event| self.frame(event)).collect());
            }
            if !over {
                let _it_lives = self.count.changed().await;
            }
        }
    }

    fn frame(&self, event: &Value) -> String {
        let told = tell::event(self.tongue, &self.id, event);
        format!("data: {told}\n\n")
    }
}

fn events(reader: Reader, keep_alive: std::time::Duration) -> Response<Body> {
    let frames = stream::unfold(reader, move |mut reader| async move {
        let text = match timeout(keep_alive, reader.next()).await {
            Ok(text) => text?,
            Err(_silence) => ": keep-alive\n\n".to_owned(),
        };
        let frame = Frame::data(Bytes::from(text));
        Some((Ok::<_, Infallible>(frame), reader))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    let kind = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
