//! Errors of the agent, in every dialect: the class stays, HTML and addresses do not pass.
use std::{io::Write, net::TcpListener};

use crate::support::{
    agent::{Agent, answer},
    client::Answer,
    gateway::Gateway,
    words::{self, ALL, J10, R10, Speak},
};

/// How a fault is told: JSON-RPC code, then the statuses of v1.0 REST, v0.3 REST, and around JSON-RPC.
type Told = (i64, u16, u16, u16);

fn check(speak: Speak, answer: &Answer, told: Told, case: &str) {
    let (code, v10, v03, around) = told;
    let status = match speak {
        words::J03 | words::J10 => around,
        words::R10 => v10,
        words::R03P | words::R03K => v03,
    };
    assert_eq!(answer.status(), status, "{case}, {speak:?}: {answer:?}");
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    let error = answer.json();
    let wanted = if speak == R10 { i64::from(v10) } else { code };
    assert_eq!(speak.code(&error), wanted, "{case}, {speak:?}: {error}");
    if speak.is_rpc() {
        assert_eq!(error["id"], "q1");
    }
}

fn keeps_to_itself(answer: &Answer, agent: std::net::SocketAddr) {
    let all = format!("{answer:?}");
    assert!(!all.contains("html"), "{all}");
    assert!(!all.contains(&agent.to_string()), "{all}");
    assert!(!all.contains(&format!(":{}", agent.port())), "{all}");
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// What an agent, or a proxy before it, may say instead of an answer.
fn no_answers(agent: std::net::SocketAddr) -> Vec<(&'static str, Vec<u8>, Told)> {
    let page = format!("<html>nginx at http://{agent}/ is sad</html>");
    let html = "content-type: text/html\r\n";
    let json = "content-type: application/json\r\n";
    let bad: Told = (-32006, 500, 502, 200);
    let long = format!("{{\"task\":\"{}\"}}", "x".repeat(70_000));
    let bomb = gzip(&long);
    vec![
        (
            "a proxy's page",
            answer(502, html, &page),
            (-32603, 502, 502, 200),
        ),
        (
            "another's",
            answer(500, html, &page),
            (-32603, 500, 500, 200),
        ),
        (
            "no such page",
            answer(404, html, &page),
            (-32603, 404, 404, 200),
        ),
        (
            "too slow for a proxy",
            answer(504, html, &page),
            (-32603, 504, 504, 200),
        ),
        (
            "overload",
            answer(503, html, &page),
            (-32603, 503, 503, 503),
        ),
        (
            "moved",
            answer(302, &format!("{html}location: http://{agent}/\r\n"), &page),
            bad,
        ),
        ("a page", answer(200, html, &page), bad),
        ("nothing", answer(200, json, ""), bad),
        ("not UTF-8", answer(200, json, b"{\"task\":\"\xff\"}"), bad),
        ("too long", answer(200, json, &long), bad),
        (
            "too long when unfolded",
            answer(200, &format!("{json}content-encoding: gzip\r\n"), &bomb),
            bad,
        ),
        (
            "an unknown coding",
            answer(200, &format!("{json}content-encoding: br\r\n"), "{}"),
            bad,
        ),
        (
            "half an answer",
            b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".to_vec(),
            (-32603, 502, 502, 200),
        ),
        (
            "no HTTP",
            b"hello\r\n\r\n".to_vec(),
            (-32603, 502, 502, 200),
        ),
        (
            "protocols switched",
            b"HTTP/1.1 101 Go\r\nupgrade: x\r\n\r\n".to_vec(),
            (-32603, 502, 502, 200),
        ),
    ]
}

#[test]
fn what_is_no_answer_is_told_in_every_dialect() {
    let agent = Agent::start();
    let cases = no_answers(agent.addr);
    let gateway = Gateway::with(agent.addr, "", "limits: {response: 64KiB}");
    for (case, bytes, told) in &cases {
        for speak in ALL {
            let (line, body) = speak.send();
            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            call.write(bytes);
            drop(call);
            let answer = client.answer();
            check(speak, &answer, *told, case);
            keeps_to_itself(&answer, agent.addr);
        }
    }
}

#[test]
fn a_compressed_answer_is_read_all_the_same() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let mut client = gateway.client();
    let (line, body) = R10.get();
    client.send(line, "accept-encoding: gzip\r\n", &body);
    let call = agent.next();
    assert_eq!(call.asked.head.get("accept-encoding"), Some("identity"));
    let text = gzip(&words::result(words::TASK));
    let fields = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    call.answer(200, fields, text);
    let answer = client.answer();
    assert_eq!(answer.head.get("content-encoding"), None);
    assert_eq!(answer.body, words::TASK);
}

#[test]
fn challenges_and_retry_times_pass() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        let ask = |status, fields: &str, text: &str| {
            let (line, body) = speak.send();
            let mut client = gateway.client();
            client.send(line, "", &body);
            agent.next().answer(status, fields, text);
            client.answer()
        };
        let fields = "www-authenticate: Bearer realm=\"a\"\r\nwww-authenticate: Basic\r\ncontent-type: text/html\r\n";
        let answer = ask(401, fields, "<html>");
        check(speak, &answer, (-32000, 401, 401, 401), "401");
        assert_eq!(
            answer.head.all("www-authenticate"),
            ["Bearer realm=\"a\"", "Basic"]
        );
        let answer = ask(429, "retry-after: 7\r\n", "slow down");
        check(speak, &answer, (-32000, 429, 429, 429), "429");
        assert_eq!(answer.head.get("retry-after"), Some("7"));
        let answer = ask(403, "", "");
        check(speak, &answer, (-32000, 403, 403, 403), "403");
    }
}

#[test]
fn json_about_access_passes_as_it_was_received() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let received = r#"{ "error" : "invalid_token", "code": 1e2 }"#;
    for speak in ALL {
        for (line, body) in [speak.send(), speak.stream()] {
            for status in [401, 403] {
                let mut client = gateway.client();
                client.send(line, "", &body);
                let fields = "content-type: application/json\r\nwww-authenticate: Bearer\r\n";
                agent.next().answer(status, fields, received);
                let answer = client.answer();
                assert_eq!(answer.status(), status, "{speak:?}");
                assert_eq!(answer.body, received);
                assert_eq!(answer.head.get("content-type"), Some("application/json"));
                assert_eq!(answer.head.get("www-authenticate"), Some("Bearer"));
            }
        }
    }
    // What only says that it is JSON is not.
    let mut client = gateway.client();
    let (line, body) = J10.send();
    client.send(line, "", &body);
    agent
        .next()
        .answer(401, "content-type: application/json\r\n", "<html>");
    let answer = client.answer();
    check(J10, &answer, (-32000, 401, 401, 401), "no JSON");
}

#[test]
fn an_agent_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let gateway = Gateway::before(addr);
    for speak in ALL {
        let (line, body) = speak.send();
        let answer = gateway.ask(line, "", &body);
        check(speak, &answer, (-32603, 502, 502, 200), "refused");
        keeps_to_itself(&answer, addr);
    }
}

#[test]
fn an_agent_that_says_nothing_is_too_slow() {
    let agent = Agent::start();
    let limits = "limits: {first_byte: 50ms, send: 50ms}";
    let gateway = Gateway::with(agent.addr, "", limits);
    for speak in ALL {
        for (line, body) in [speak.get(), speak.send()] {
            let mut client = gateway.client();
            client.send(line, "", &body);
            let mut call = agent.next();
            let answer = client.answer();
            check(speak, &answer, (-32603, 504, 504, 200), "silence");
            call.closed();
        }
    }
}

#[test]
fn an_agent_s_error_keeps_its_name() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}"#;
    for speak in ALL {
        let (line, body) = speak.get();
        let mut client = gateway.client();
        client.send(line, "", &body);
        agent.next().json(error);
        let answer = client.answer();
        check(speak, &answer, (-32001, 404, 404, 200), "not found");
        assert_eq!(speak.message_of(&answer.json()), "gone");
    }
}
