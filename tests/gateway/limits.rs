//! Bounds: on bodies, on what all of them hold, and on clients that do not read.
use std::io::{ErrorKind, Write};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpSocket;

use crate::support::{
    PATIENCE,
    agent::{Agent, Call},
    client::Client,
    gateway::Gateway,
    words::{self, ALL, J03, J10, R03P, R10, TASK},
};

fn filled(bytes: usize) -> String {
    format!(
        r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{}"}}]}}}}"#,
        "x".repeat(bytes)
    )
}

#[test]
fn a_body_is_bounded_also_without_a_length() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {body: 64KiB}");
    let chunked = |line: &str| {
        let mut client = gateway.client();
        client.wire.write(format!(
            "{line} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n11000\r\n{}",
            "x".repeat(0x11000)
        ));
        client.answer()
    };
    for (speak, status) in [(R10, 413), (R03P, 413), (J10, 200), (J03, 200)] {
        let answer = chunked(speak.send().0);
        assert_eq!(answer.status(), status);
        let code = if speak == R10 { 413 } else { -32600 };
        assert_eq!(speak.code(&answer.json()), code);
    }
    assert!(agent.is_left_alone());
}

#[test]
fn a_slow_body_is_given_up() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {body_time: 50ms}");
    for speak in ALL {
        let mut client = gateway.client();
        let (line, _) = speak.send();
        client.wire.write(format!(
            "{line} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{{"
        ));
        let answer = client.answer();
        assert_eq!(answer.status(), 408, "{speak:?}");
        client.wire.closed();
    }
    assert!(agent.is_left_alone());
}

#[test]
fn documents_are_bounded_in_depth_and_members() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let deep = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{}{}}}]}}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let members = (0..80_000).fold(String::new(), |all, n| all + &format!(r#""k{n}":1,"#));
    let wide =
        format!(r#"{{"message":{{{members}"messageId":"m","role":"ROLE_USER","parts":[]}}}}"#);
    let start = tokio::time::Instant::now();
    for body in [deep, wide] {
        let answer = gateway.ask("POST /message:send", "", &body);
        assert_eq!(answer.status(), 400, "{answer:?}");
        let call =
            format!(r#"{{"jsonrpc":"2.0","id":"q1","method":"SendMessage","params":{body}}}"#);
        let answer = gateway.ask("POST /", "", &call).json();
        assert!(
            answer["error"]["code"].as_i64().unwrap() < -32599,
            "{answer}"
        );
    }
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert!(agent.is_left_alone());

    // Free-form objects are not opened, so that they may be as wide as they like.
    let free = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{{{members}"z":1}}}}]}}}}"#
    );
    let mut client = gateway.client();
    client.send("POST /message:send", "", &free);
    let call = agent.next();
    assert!(call.asked.body.contains(r#""k79999":1,"z":1"#));
    call.json(&words::result(&words::wrapped()));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn what_all_bodies_hold_is_bounded_and_given_back() {
    const ONE: usize = 1 << 20;
    let agent = Agent::start();
    let limits = "limits: {buffered: 8MiB, body: 8MiB, response: 8MiB, event: 8MiB}";
    let gateway = Gateway::with(agent.addr, "", limits);
    let body = filled(ONE);
    let mut calls = vec![];
    let mut refused = 0;
    let mut clients: Vec<Client> = vec![];
    // A hundred megabytes, one body after the other, none of them answered.
    for _ in 0..100 {
        let mut client = gateway.client();
        client.send("POST /message:send", "", &body);
        let asked = calls.len() + 1;
        let answered = client.wire.io.try_clone().unwrap();
        answered.set_nonblocking(true).unwrap();
        while agent.seen() < asked && answered.peek(&mut [0]).is_err() {
            std::thread::yield_now();
        }
        answered.set_nonblocking(false).unwrap();
        if agent.seen() == asked {
            calls.push(agent.next());
            clients.push(client);
            continue;
        }
        let answer = client.answer();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.head.get("retry-after"), Some("1"));
        refused += 1;
    }
    assert_eq!((calls.len(), refused), (7, 93));
    let used = gateway.served().budget.used();
    assert!((7 * ONE..8 * ONE).contains(&used), "{used}");
    for call in calls {
        call.json(&words::result(&words::wrapped()));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status(), 200);
    }
    until_nothing_is_held(&gateway);
}

fn until_nothing_is_held(gateway: &Gateway) {
    let start = tokio::time::Instant::now();
    while gateway.served().budget.used() > 0 {
        assert!(
            start.elapsed() < PATIENCE,
            "{} bytes are held",
            gateway.served().budget.used()
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_large_answer_is_counted_until_it_is_written() {
    const SIZE: usize = 4 << 20;
    let agent = Agent::start();
    let limits = "limits: {buffered: 6MiB, body: 6MiB, response: 6MiB, event: 6MiB}";
    let gateway = Gateway::with(agent.addr, "", limits);
    let long = words::result(&format!(
        r#"{{"id":"{}","contextId":"c","status":{{"state":"TASK_STATE_WORKING"}}}}"#,
        "t".repeat(SIZE)
    ));
    let mut slow = narrow(&gateway);
    slow.send("GET /tasks/t1", "", "");
    agent.next().json(&long);
    slow.head();
    // It is not read, so that it stays.
    let mut second = gateway.client();
    second.send("GET /tasks/t1", "", "");
    let mut call = agent.next();
    call.write(crate::support::agent::answer(200, "", &long));
    drop(call);
    let answer = second.answer();
    assert_eq!(answer.status(), 503, "{}", answer.body.len());
    drop(slow);
    until_nothing_is_held(&gateway);
}

/// A client whose kernel takes little on its own.
fn narrow(gateway: &Gateway) -> Client {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let io = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        socket.connect(gateway.addr).await.unwrap()
    });
    let io = io.into_std().unwrap();
    io.set_nonblocking(false).unwrap();
    Client::over(io)
}

/// Writes events until the gateway closes; how many bytes it took.
fn flood(mut call: Call) -> usize {
    let event = words::result(&format!(
        r#"{{"task":{{"id":"{}","contextId":"c","status":{{"state":"TASK_STATE_WORKING"}}}}}}"#,
        "t".repeat(16 * 1024)
    ));
    let chunk = crate::support::agent::chunk(format!("data: {event}\n\n"));
    call.begin();
    let mut taken = 0;
    loop {
        match call.wire.io.write_all(&chunk) {
            Ok(()) => taken += chunk.len(),
            // Held back for long, but never closed.
            Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("{e} after {taken} bytes"),
            Err(_) => return taken,
        }
        assert!(taken < 200 << 20, "the agent is never held back");
    }
}

/// What the kernel's buffers may take on both sides, and a few of ours.
const FEW: usize = 12 << 20;

#[test]
fn a_client_that_does_not_read_holds_the_agent_back_and_is_closed() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {write_stall: 300ms}");
    for speak in ALL {
        let mut client = narrow(&gateway);
        let (line, body) = speak.stream();
        client.send(line, "", &body);
        let taken = flood(agent.next());
        assert!(taken < FEW, "{speak:?}: {taken}");
        drop(client);
    }
    until_nothing_is_held(&gateway);
}

#[test]
fn an_http2_stream_that_is_not_read_holds_the_agent_back_and_is_reset() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "limits: {write_stall: 300ms}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (line, body) = R10.stream();
    let path = line.strip_prefix("POST ").unwrap();
    let uri = format!("http://{}{path}", gateway.addr);
    let addr = gateway.addr;
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let client = std::thread::spawn(move || {
        runtime.block_on(async {
            let io = tokio::net::TcpStream::connect(addr).await.unwrap();
            let (mut send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(io))
                .await
                .unwrap();
            let request = Request::post(uri).body(Full::<Bytes>::from(body)).unwrap();
            let mut connection = std::pin::pin!(connection);
            let response = tokio::select! {
                response = send.send_request(request) => response.unwrap(),
                ended = &mut connection => panic!("{ended:?}"),
            };
            // The connection lives on, its stream's window stays full.
            let waited = tokio::task::spawn_blocking(move || ended.recv());
            tokio::select! {
                _ = waited => {}
                ended = &mut connection => panic!("{ended:?}"),
            }
            drop(response);
        });
    });
    let taken = flood(agent.next());
    assert!(taken < FEW, "{taken}");
    // The connection is still good for others.
    end.send(()).unwrap();
    client.join().unwrap();
    until_nothing_is_held(&gateway);
    let mut next = gateway.client();
    next.send("GET /tasks/t1", "", "");
    agent.next().json(&words::result(TASK));
    assert_eq!(next.answer().status(), 200);
}
