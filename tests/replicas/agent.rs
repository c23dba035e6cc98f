//! A v1.0 REST agent that does what messages say, and goes on when the connection that a message came by has gone.
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    dice::Dice,
    ledger::Ledger,
    work::{How, Message, State},
};

/// How long it may take to show what it has received; less than `conversation.settle` by far.
const SHOWS_WITHIN: u64 = 100;
/// Events of a stream before its last one.
const EVENTS: u32 = 4;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Starts one, in this runtime.
pub async fn start(ledger: Arc<Ledger>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            io.set_nodelay(true).unwrap();
            let ledger = ledger.clone();
            let service = service_fn(move |request| answer(ledger.clone(), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(io), service);
            tokio::spawn(connection); // it fails when a gateway is killed
        }
    });
    addr
}

async fn answer(
    ledger: Arc<Ledger>,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let caller = head.headers.get(header::AUTHORIZATION);
    let caller = caller.and_then(|c| c.to_str().ok()?.strip_prefix("Bearer "));
    let caller = caller.unwrap_or_default();
    let path = head.uri.path();
    if head.method == Method::POST {
        let body = body.collect().await?.to_bytes();
        let message = Message::read(&body).expect("the message is as its sender wrote it");
        return Ok(take(ledger, message).await);
    }
    let told = if path == "/tasks" {
        let query = head.uri.query().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let context = pairs.find(|(name, _)| *name == "contextId");
        let context = context.map(|(_, context)| context).unwrap_or_default();
        Some(list(&ledger, caller, context))
    } else {
        // Each conversation has one caller, who has its name.
        let id = path.strip_prefix("/tasks/").unwrap_or_default();
        ledger.task(caller, id).map(|state| task(id, caller, state))
    };
    Ok(told.map_or_else(not_found, |told| document(StatusCode::OK, &told)))
}

/// The message is live from here on, whatever becomes of who waits.
async fn take(ledger: Arc<Ledger>, message: Message) -> Response<Body> {
    let began = Instant::now();
    let shows_after = Dice::of(&message.id).below(SHOWS_WITHIN);
    ledger.receives(&message, Duration::from_millis(shows_after));
    match message.work.how {
        How::Word | How::Send => {
            let (to, ended) = oneshot::channel();
            tokio::spawn(async move {
                sleep_until(began + message.work.takes).await;
                ledger.ends(&message);
                let _nobody_waits = to.send(said(&message));
            });
            let told = ended.await.expect("the work comes to its end");
            document(StatusCode::OK, &told)
        }
        How::AtOnce => {
            let told = json!({"task": task(&message.task(), &message.context, State::Works)});
            tokio::spawn(async move {
                sleep_until(began + message.work.takes).await;
                ledger.ends(&message);
            });
            document(StatusCode::OK, &told)
        }
        How::Stream => {
            let (to, events) = mpsc::channel(EVENTS as usize + 2);
            tokio::spawn(works(ledger, message, began, to));
            streamed(events)
        }
    }
}

async fn works(ledger: Arc<Ledger>, message: Message, began: Instant, to: mpsc::Sender<Value>) {
    let (id, context) = (message.task(), &message.context);
    let _nobody_reads = to.try_send(json!({"task": task(&id, context, State::Works)}));
    let takes = message.work.takes;
    for n in 1..=EVENTS {
        sleep_until(began + takes * n / (EVENTS + 1)).await;
        let _nobody_reads = to.try_send(update(&id, context, State::Works));
    }
    sleep_until(began + takes).await;
    ledger.ends(&message);
    let _nobody_reads = to.try_send(update(&id, context, message.work.end()));
}

/// The answer of work that is done.
fn said(message: &Message) -> Value {
    let Message { id, context, .. } = message;
    if message.work.how == How::Word {
        let parts = json!([{"text": "so be it"}]);
        let id = format!("answer-to-{id}");
        return json!({"message":
            {"messageId": id, "contextId": context, "role": "ROLE_AGENT", "parts": parts}});
    }
    json!({"task": task(&message.task(), context, message.work.end())})
}

fn task(id: &str, context: &str, state: State) -> Value {
    json!({"id": id, "contextId": context, "status": {"state": state.name()}})
}

fn update(id: &str, context: &str, state: State) -> Value {
    let status = json!({"state": state.name()});
    json!({"statusUpdate": {"taskId": id, "contextId": context, "status": status}})
}

fn list(ledger: &Ledger, caller: &str, context: &str) -> Value {
    let tasks = if caller == context {
        ledger.tasks(context)
    } else {
        vec![]
    };
    let size = tasks.len();
    let tasks = tasks.iter().map(|(id, state)| task(id, context, *state));
    let tasks: Vec<_> = tasks.collect();
    json!({"tasks": tasks, "nextPageToken": "", "pageSize": 100, "totalSize": size})
}

fn not_found() -> Response<Body> {
    let info = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org", "metadata": {},
    }]);
    let error = json!({"code": 404, "status": "NOT_FOUND", "message": "no", "details": info});
    document(StatusCode::NOT_FOUND, &json!({"error": error}))
}

fn document(status: StatusCode, told: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(told.to_string()));
    let response = Response::builder().status(status);
    let response = response.header(header::CONTENT_TYPE, "application/json");
    response.body(body.boxed_unsync()).unwrap()
}

fn streamed(events: mpsc::Receiver<Value>) -> Response<Body> {
    let frames = stream::unfold(events, |mut events| async {
        let event = events.recv().await?;
        let frame = Frame::data(Bytes::from(format!("data: {event}\n\n")));
        Some((Ok(frame), events))
    });
    let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
    response
        .body(StreamBody::new(frames).boxed_unsync())
        .unwrap()
}
