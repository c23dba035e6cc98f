//! Puts a gateway under load, so that a compiler can see what it does most: `train BINARY [MILLISECONDS]`.
//!
//! BINARY is started before an agent of our own, on loopback, once for each binding of an agent. Clients of every
//! dialect send, 1 KB and 16 KB, alone and many at once, and stream, events in one go and one by one, each for a few
//! times so many milliseconds (250). Then it is told to stop, and has to end well. `deploy/build` uses it; nothing is
//! measured.
use std::{
    convert::Infallible,
    env,
    error::Error,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use a2a_gateway::a2a::{Binding, Dialect};
use bytes::Bytes;
use futures_util::{StreamExt as _, future::try_join_all, stream};
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http1,
    server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

#[path = "../benches/support/bodies.rs"]
mod bodies;

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Clients, at once, for how many times the time that is given, of what they do: the size of a message in bytes, and
/// of a stream the events and their distance. Events that come alone are few in a second, and what is done for each
/// of them has to count as much as what is done for one in a crowd.
const WORK: [(usize, u32, usize, Option<Events>); 5] = [
    (1, 2, 1024, None),
    (32, 2, 1024, None),
    (16, 2, 16 * 1024, None),
    (8, 1, 1024, Some(Events(1000, 0))),
    (32, 6, 1024, Some(Events(500, 1))),
];
const DIALECTS: [Dialect; 5] = [
    Dialect::J03,
    Dialect::R03P,
    Dialect::R03K,
    Dialect::J10,
    Dialect::R10,
];
/// Bytes of an event's data.
const EVENT: usize = 300;
/// The context and the task that stand in all bodies; each message gets its own.
const CONTEXT: &str = "ctx-1";
const TASK: &str = "run-e21fffe8d536";
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many, and how many milliseconds lie between two; those without any between them are sent in one go.
#[derive(Clone, Copy)]
struct Events(usize, u64);

#[tokio::main]
async fn main() -> Done {
    let mut arguments = env::args().skip(1);
    let binary = arguments.next().ok_or("train BINARY [MILLISECONDS]")?;
    let each = arguments.next().map_or(Ok(250), |text| text.parse())?;
    let each = Duration::from_millis(each);
    for agent in [Dialect::R10, Dialect::J10] {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let at = listener.local_addr()?;
        let mut agents = JoinSet::new();
        agents.spawn(serve(listener, agent));
        let mut gateway = Gateway::start(&binary, at, agent.binding)?;
        for dialect in DIALECTS {
            for (clients, times, size, events) in WORK {
                let client = || client(gateway.at, dialect, size, events, each * times);
                let made: usize = try_join_all((0..clients).map(|_| client()))
                    .await?
                    .iter()
                    .sum();
                println!(
                    "{} {} {clients} clients, {size} bytes: {made} calls",
                    agent.name(),
                    dialect.name()
                );
            }
        }
        gateway.stop().await?;
    }
    Ok(())
}

/// The gateway that is trained; it dies with this.
struct Gateway {
    process: Child,
    at: SocketAddr,
}

impl Gateway {
    fn start(binary: &str, agent: SocketAddr, binding: Binding) -> Done<Self> {
        let mut command = Command::new(binary);
        let backend = format!("http://{agent}");
        let binding = match binding {
            Binding::Rest => "rest",
            Binding::Rpc => "jsonrpc",
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
        command.args(["--backend", &backend, "--backend-binding", binding]);
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let log = BufReader::new(process.stderr.take().ok_or("no log")?);
        let (tell, told) = mpsc::sync_channel(1);
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listen=") {
                    let _it_was_given_up =
                        tell.try_send(rest.split(' ').next().unwrap_or(rest).parse());
                }
                eprintln!("{line}");
            }
        });
        let Ok(at) = told.recv_timeout(PATIENCE) else {
            process.kill()?;
            process.wait()?;
            return Err("the gateway does not say where it listens".into());
        };
        let at = at?;
        Ok(Self { process, at })
    }

    /// Asks it to stop, which makes it write what it has learned.
    async fn stop(&mut self) -> Done {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the gateway ended with {status}").into()),
                None => sleep(Duration::from_millis(20)).await,
            }
        }
        Err("the gateway does not stop".into())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// One connection, one call after the other; gives how many were made.
async fn client(
    to: SocketAddr,
    dialect: Dialect,
    size: usize,
    events: Option<Events>,
    each: Duration,
) -> Done<usize> {
    static CONTEXTS: AtomicUsize = AtomicUsize::new(0);
    let socket = TcpStream::connect(to).await?;
    socket.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let body = bodies::request(dialect, size);
    let (path, body) = match (dialect, events.is_some()) {
        (Dialect::J03, true) => ("/", body.replace("message/send", "message/stream")),
        (Dialect::J10, true) => ("/", body.replace("SendMessage", "SendStreamingMessage")),
        (Dialect::J03 | Dialect::J10, false) => ("/", body),
        (Dialect::R10, true) => ("/message:stream", body),
        (Dialect::R10, false) => ("/message:send", body),
        (_, true) => ("/v1/message:stream", body),
        (_, false) => ("/v1/message:send", body),
    };
    let work = events.map_or(String::new(), |Events(count, pause)| {
        format!("-{count}-{pause}")
    });
    let (since, mut made) = (Instant::now(), 0);
    while since.elapsed() < each {
        let context = format!("c{}{work}", CONTEXTS.fetch_add(1, Ordering::Relaxed));
        let mut request = Request::post(path)
            .header(header::HOST, "gateway.test")
            .header(header::CONTENT_TYPE, "application/json");
        if matches!(dialect, Dialect::J10 | Dialect::R10) {
            request = request.header("A2A-Version", "1.0");
        }
        let request = request.body(Full::<Bytes>::from(body.replace(CONTEXT, &context)))?;
        let call = async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let (status, said) = timeout(PATIENCE, call).await??;
        let said = String::from_utf8_lossy(&said);
        if !status.is_success() || !said.contains(&context) || said.contains("\"error\"") {
            return Err(format!("{}: {status} {said}", dialect.name()).into());
        }
        made += 1;
    }
    Ok(made)
}

/// The agent: its answers are as long as what it was asked, and a context says of which events a stream is.
async fn serve(listener: TcpListener, agent: Dialect) -> Done {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = service_fn(move |request| answer(agent, request));
        connections.spawn(async move {
            let served = server::conn::http1::Builder::new();
            let _cut = served.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(agent: Dialect, request: Request<Incoming>) -> Done<Response<Body>> {
    let body = request.into_body().collect().await?.to_bytes();
    let asked: Value = serde_json::from_slice(&body)?;
    let params = asked.get("params").unwrap_or(&asked);
    let context = params["message"]["contextId"].as_str().unwrap_or(CONTEXT);
    let own = |text: String| {
        text.replace(CONTEXT, context)
            .replace(TASK, &format!("run-{context}"))
    };
    let work: Vec<_> = context.split('-').collect();
    let response = Response::builder();
    let [_, count, pause] = work[..] else {
        let answer = own(bodies::answer(agent, body.len()));
        let response = response.header(header::CONTENT_TYPE, "application/json");
        return Ok(response.body(Body::new(Full::from(answer)))?);
    };
    let (count, pause): (usize, u64) = (count.parse()?, pause.parse()?);
    let event = Bytes::from(own(format!("data: {}\n\n", bodies::event(agent, EVENT))));
    let last = own(format!("data: {}\n\n", bodies::last_event(agent, EVENT)));
    let response = response.header(header::CONTENT_TYPE, "text/event-stream");
    let body = if pause == 0 {
        Body::new(Full::from([event.repeat(count - 1), last.into()].concat()))
    } else {
        let events = stream::repeat(event).take(count - 1);
        let events = events
            .chain(stream::iter([last.into()]))
            .then(move |event| async move {
                sleep(Duration::from_millis(pause)).await;
                Ok::<_, Infallible>(Frame::data(event))
            });
        Body::new(StreamBody::new(Box::pin(events)))
    };
    Ok(response.body(body)?)
}
