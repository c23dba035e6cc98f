//! A round trip over loopback through the gateway, against the same straight to the agent.
//!
//! Read each figure as a multiple of `straight` in the same run. Client, gateway and agent share the machine's
//! cores here, and one call is under way at a time, so that this shows latency; what a core can carry is another
//! question, which needs a load generator on another one.
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, thread, time::Duration};

use a2a_gateway::{
    a2a::Dialect,
    config::{Config, Overrides},
    run,
};
use bytes::Bytes;
use criterion::{Criterion, Throughput};
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::Mutex,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

#[path = "support/bodies.rs"]
mod bodies;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of the stream.
const EVENTS: usize = 1000;
const KILOBYTE: usize = 1024;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let stop = CancellationToken::new();
    let (agent, at) = agent(stop.clone()).expect("a thread and a port for the agent");
    let served = run::start(settings(at)).expect("the gateway starts");
    let gateway = served.running.local_addr;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the client");
    for (group, stream) in [("unary", false), ("stream", true)] {
        let mut group = criterion.benchmark_group(group);
        if stream {
            group.throughput(Throughput::Elements(EVENTS as u64));
        }
        for (name, to, dialect) in [
            ("straight", at, Dialect::R10),
            ("R10", gateway, Dialect::R10),
            ("J03", gateway, Dialect::J03),
            ("R03P", gateway, Dialect::R03P),
        ] {
            let connection = runtime.block_on(connect(&runtime, to));
            let connection = Mutex::new(connection.expect("a connection"));
            let (path, body) = request(dialect, stream);
            group.bench_function(name, |b| {
                b.to_async(&runtime)
                    .iter(|| round_trip(&connection, path, &body));
            });
        }
        group.finish();
    }
    criterion.final_summary();
    served.running.drain();
    served.running.wait();
    stop.cancel();
    agent.join().expect("the agent ends well");
}

fn settings(agent: SocketAddr) -> Config {
    let overrides = Overrides {
        backend: Some(format!("http://{agent}")),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        binding: Some(a2a_gateway::config::Binding::Rest),
        ..Overrides::default()
    };
    Config::parse("workers: 1", overrides).expect("good settings")
}

fn request(dialect: Dialect, stream: bool) -> (&'static str, Bytes) {
    let mut body = bodies::request(dialect, KILOBYTE);
    if stream {
        body = body.replace("message/send", "message/stream");
    }
    let path = match (dialect == Dialect::J03, dialect == Dialect::R10, stream) {
        (true, ..) => "/",
        (_, true, false) => "/message:send",
        (_, true, true) => "/message:stream",
        (_, _, false) => "/v1/message:send",
        (_, _, true) => "/v1/message:stream",
    };
    (path, body.into())
}

type Connection = SendRequest<Full<Bytes>>;

async fn connect(runtime: &Runtime, to: SocketAddr) -> io::Result<Connection> {
    let socket = TcpStream::connect(to).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .map_err(io::Error::other)?;
    runtime.spawn(connection);
    Ok(sender)
}

async fn round_trip(connection: &Mutex<Connection>, path: &str, body: &Bytes) -> usize {
    let request = Request::post(path)
        .header(header::HOST, "gateway.test")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body.clone()))
        .expect("a good request");
    let mut connection = connection.lock().await;
    connection.ready().await.expect("the connection stays open");
    let response = connection.send_request(request).await.expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    let mut length = 0;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.expect("the body arrives whole");
        length += frame.data_ref().map_or(0, Bytes::len);
    }
    assert!(length > KILOBYTE / 2, "the answer is too short");
    length
}

/// An agent that always says the same, on a thread of its own.
fn agent(stop: CancellationToken) -> io::Result<(thread::JoinHandle<()>, SocketAddr)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let at = listener.local_addr()?;
    let event = format!("data: {}\n\n", bodies::event(Dialect::R10, 400));
    let last = format!("data: {}\n\n", bodies::last_event(Dialect::R10, 400));
    let words = Arc::new(Words {
        answer: bodies::answer(Dialect::R10, KILOBYTE).into(),
        events: (event.repeat(EVENTS - 1) + &last).into(), // at rest: the next message is let in
    });
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

struct Words {
    answer: Bytes,
    events: Bytes,
}

async fn answer(
    words: Arc<Words>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let stream = request.uri().path().ends_with(":stream");
    let _read = request.into_body().collect().await;
    let (kind, body) = if stream {
        ("text/event-stream", words.events.clone())
    } else {
        ("application/json", words.answer.clone())
    };
    let mut response = Response::new(Full::new(body));
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
