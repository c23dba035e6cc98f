//! HTTP itself: both versions on one port, odd requests, and header fields on their way through.
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use a2a_gateway::config::{Binding, Config, Overrides};

use crate::support::{
    agent::{Agent, answer},
    gateway::Gateway,
    words::{self, ALL, J03, J10, R03P, R10, TASK},
};

#[test]
fn both_versions_of_http_are_spoken_on_one_port() {
    let (addr, log) = Agent::always(|_| answer(200, "", words::result(TASK)));
    let gateway = Gateway::before(addr);
    assert_eq!(gateway.ask("GET /tasks/t1", "", "").body, TASK);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (status, text) = runtime.block_on(async {
        let io = tokio::net::TcpStream::connect(gateway.addr).await.unwrap();
        let (mut send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(io))
            .await
            .unwrap();
        let request = Request::get("http://two.example:82/tasks/t1")
            .body(Full::<Bytes>::default())
            .unwrap();
        let asked = async {
            let response = send.send_request(request).await.unwrap();
            let status = response.status().as_u16();
            (
                status,
                response.into_body().collect().await.unwrap().to_bytes(),
            )
        };
        tokio::select! {
            asked = asked => asked,
            ended = connection => panic!("{ended:?}"),
        }
    });
    assert_eq!((status, &*text), (200, TASK.as_bytes()));
    // HTTP/2 says the host in its target.
    let head = &log.all()[1].head;
    assert_eq!(head.get("x-forwarded-host"), Some("two.example:82"));
}

#[test]
fn a_request_names_one_host() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for speak in ALL {
        let (line, body) = speak.send();
        let two = gateway.ask(line, "host: a\r\nhost: b\r\n", &body);
        assert_eq!(two.status(), 400, "{speak:?}");
        let mut client = gateway.client();
        let text = format!("{line} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}");
        client.wire.write(text);
        assert_eq!(client.answer().status(), 400, "{speak:?}");
    }
    assert!(agent.is_left_alone());
}

#[test]
fn a_target_may_be_absolute() {
    let (addr, log) = Agent::always(|_| answer(200, "", words::result(TASK)));
    let gateway = Gateway::before(addr);
    let answer = gateway.ask("GET http://else.example/tasks/t1", "", "");
    assert_eq!(answer.status(), 200);
    let head = &log.all()[0].head;
    assert_eq!(head.get("host"), Some(addr.to_string().as_str()));
    assert_eq!(head.get("x-forwarded-host"), Some("else.example"));
}

#[test]
fn two_lengths_make_one_request_at_most() {
    let (addr, log) = Agent::always(|_| answer(200, "", words::result(&words::wrapped())));
    let gateway = Gateway::before(addr);
    let (_, body) = J10.send();
    let smuggled = "GET /tasks/smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for lengths in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "content-length: 4\r\ncontent-length: 5\r\n",
        "transfer-encoding: x, chunked\r\ncontent-length: 4\r\n",
    ] {
        let mut client = gateway.client();
        client.wire.write(format!(
            "POST / HTTP/1.1\r\nhost: a\r\n{lengths}connection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n{smuggled}",
            body.len()
        ));
        let all = String::from_utf8(client.wire.rest()).unwrap();
        assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{lengths}: {all}");
    }
    for asked in log.all() {
        assert!(asked.body.contains("SendMessage"), "{asked:?}");
        assert_eq!(asked.head.all("content-length").len(), 1);
        assert_eq!(asked.head.get("transfer-encoding"), None);
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_asked_for() {
    let (addr, _) = Agent::always(|_| answer(200, "", words::result(&words::wrapped())));
    let gateway = Gateway::with(addr, "", "limits: {body: 1KiB}");
    let begin = |line: &str, length: usize| {
        let mut client = gateway.client();
        client.wire.write(format!(
            "{line} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        ));
        client
    };
    for (speak, status) in [(R10, 413), (R03P, 413), (J10, 200), (J03, 200)] {
        let (line, body) = speak.send();
        let answer = begin(line, 1025).answer();
        assert_eq!(answer.status(), status);
        if speak.is_rpc() {
            assert_eq!(answer.json()["error"]["code"], -32600);
        }
        let mut client = begin(line, body.len());
        assert_eq!(client.head().status(), 100);
        client.wire.write(body);
        assert_eq!(client.answer().status(), 200, "{speak:?}");
    }
}

#[test]
fn bodies_are_plain_json() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for (speak, status, code) in [
        (R10, 400, 400),
        (R03P, 415, -32005),
        (J10, 200, -32005),
        (J03, 200, -32005),
    ] {
        let (line, body) = speak.send();
        for fields in [
            "content-encoding: gzip\r\n",
            "content-type: text/plain\r\n",
            "content-type: application/x-www-form-urlencoded\r\n",
            "content-type: multipart/form-data\r\n",
        ] {
            let answer = gateway.ask(line, fields, &body);
            assert_eq!(answer.status(), status, "{speak:?} {fields}");
            assert_eq!(speak.code(&answer.json()), code);
        }
    }
    assert!(agent.is_left_alone());
}

#[test]
fn fields_pass_but_for_those_of_the_connection() {
    let (addr, log) = Agent::always(|_| {
        answer(
            200,
            "connection: x-mine\r\nx-mine: 1\r\nkeep-alive: timeout=5\r\nserver: agent\r\nx-kept: a\r\nx-kept: b\r\nset-cookie: c=1\r\na2a-extensions: e1\r\na2a-version: 9\r\nlocation: http://inner/\r\n",
            words::result(TASK),
        )
    });
    let gateway = Gateway::before(addr);
    let fields = "connection: keep-alive, x-secret\r\nx-secret: 1\r\nte: trailers\r\nproxy-connection: x\r\nupgrade: websocket\r\nauthorization: Bearer x\r\ncookie: a=b\r\nx-api-key: k\r\ntraceparent: tp\r\nlast-event-id: 4\r\nx-forwarded-for: 9.9.9.9\r\nx-forwarded-host: evil\r\nforwarded: for=evil\r\norigin: http://page\r\nif-none-match: \"x\"\r\nrange: bytes=0-1\r\nx-a2a-extensions: one, two\r\na2a-extensions: two, three\r\na2a-gateway-report: none\r\n";
    for (speak, extensions, back) in [
        (R10, "two, three, one", ["e1"].as_slice()),
        (R03P, "one, two, three", &["e1"]),
    ] {
        let (line, body) = speak.get();
        let answer = gateway.ask(line, fields, &body);
        let up = log.all().pop().unwrap().head;
        for name in [
            "x-secret",
            "te",
            "upgrade",
            "proxy-connection",
            "forwarded",
            "origin",
            "if-none-match",
            "range",
            "x-a2a-extensions",
            "a2a-gateway-report",
            "connection",
            "keep-alive",
        ] {
            assert_eq!(up.get(name), None, "{name}");
        }
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("x-api-key", "k"),
            ("traceparent", "tp"),
            ("last-event-id", "4"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "gateway.test"),
            ("a2a-version", "1.0"),
            ("a2a-extensions", extensions),
            ("accept-encoding", "identity"),
        ] {
            assert_eq!(up.all(name), [value], "{name}");
        }
        let down = answer.head;
        assert_eq!(down.all("x-kept"), ["a", "b"]);
        assert_eq!(down.get("set-cookie"), Some("c=1"));
        for name in ["x-mine", "keep-alive", "server", "location"] {
            assert_eq!(down.get(name), None, "{name}");
        }
        assert_eq!(down.all("a2a-extensions"), back);
        assert_eq!(down.get("x-a2a-extensions").is_some(), speak.is_old());
        assert_eq!(down.all("a2a-version").len(), 1);
    }
}

#[test]
fn a_trusted_proxy_s_word_is_passed_on() {
    let (addr, log) = Agent::always(|_| answer(200, "", words::result(TASK)));
    let gateway = Gateway::with(addr, "", "http: {trusted_proxies: [127.0.0.1/32]}");
    let fields = "x-forwarded-for: 9.9.9.9\r\nx-forwarded-host: front.example\r\nx-forwarded-proto: https\r\nforwarded: for=9.9.9.9\r\n";
    gateway.ask("GET /tasks/t1", fields, "");
    let up = log.all().pop().unwrap().head;
    assert_eq!(up.all("x-forwarded-for"), ["9.9.9.9, 127.0.0.1"]);
    assert_eq!(up.all("x-forwarded-host"), ["front.example"]);
    assert_eq!(up.all("x-forwarded-proto"), ["https"]);
    assert_eq!(up.all("forwarded"), ["for=9.9.9.9"]);
}

#[test]
fn verbs_that_read_nothing() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    let mut client = gateway.client();
    client.send("HEAD /tasks/t1", "", "");
    assert_eq!(client.head().status(), 405);
    assert_eq!(gateway.ask("GET /", "", "").status(), 405);
    assert_eq!(gateway.ask("PUT /tasks/t1", "", "").status(), 405);
    assert_eq!(gateway.ask("GET /nothing", "", "").status(), 404);
    let options = gateway.ask("OPTIONS *", "", "");
    assert_eq!(options.status(), 204);
    let allowed = options.head.get("allow").unwrap();
    assert!(allowed.contains("POST"), "{allowed}");
    assert!(agent.is_left_alone());
}

#[test]
fn pages_of_listed_sites_may_call() {
    let (addr, _) = Agent::always(|_| {
        answer(
            200,
            "access-control-allow-origin: *\r\n",
            words::result(TASK),
        )
    });
    let closed = Gateway::before(addr);
    let origin = "origin: https://page.example\r\n";
    let preflight = format!(
        "{origin}access-control-request-method: POST\r\naccess-control-request-headers: a2a-version\r\n"
    );
    let allow = "access-control-allow-origin";
    for (line, fields) in [("OPTIONS /", preflight.as_str()), ("GET /tasks/t1", origin)] {
        let answer = closed.ask(line, fields, "");
        assert_eq!(answer.head.get(allow), None);
        assert_eq!(answer.head.get("vary"), None);
    }
    let open = Gateway::with(
        addr,
        "",
        "http: {cors: {origins: ['https://page.example']}}",
    );
    let answer = open.ask("OPTIONS /", &preflight, "");
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.head.all(allow), ["https://page.example"]);
    let headers = answer.head.get("access-control-allow-headers");
    assert_eq!(headers, Some("a2a-version"));
    assert_eq!(answer.head.get("access-control-max-age"), Some("600"));
    for (line, status) in [("GET /tasks/t1", 200), ("GET /nothing", 404)] {
        let answer = open.ask(line, origin, "");
        assert_eq!(answer.status(), status);
        assert_eq!(answer.head.all(allow), ["https://page.example"]);
        assert_eq!(answer.head.all("vary"), ["Origin"]);
        let other = open.ask(line, "origin: https://else.example\r\n", "");
        assert_eq!(other.head.get(allow), None);
        assert_eq!(other.head.all("vary"), ["Origin"]);
    }
    let any = Gateway::with(addr, "", "http: {cors: {origins: '*'}}");
    assert_eq!(any.ask("GET /tasks/t1", origin, "").head.all(allow), ["*"]);
}

#[test]
fn a_version_that_is_not_served_is_refused() {
    let agent = Agent::start();
    let gateway = Gateway::before(agent.addr);
    for (line, body) in [J03.get(), J10.get()] {
        let answer = gateway.ask(line, "a2a-version: 2.0\r\n", &body);
        assert_eq!(answer.json()["error"]["code"], -32009);
    }
    let answer = gateway.ask("GET /tasks/t1?A2A-Version=0.3", "", "");
    assert_eq!(answer.status(), 400);
    assert!(agent.is_left_alone());
}

#[test]
fn the_files_of_settings_start_a_gateway() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut started = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let agent = Agent::start();
        let overrides = Overrides {
            backend: Some(format!("http://{}/rpc", agent.addr)),
            listen: "127.0.0.1:0".parse().ok(),
            admin: "127.0.0.1:0".parse().ok(),
            binding: Some(Binding::Jsonrpc), // whatever the file has: it is one agent for all
            workers: Some(1),
            ..Overrides::default()
        };
        let config = Config::load(Some(&path), overrides).unwrap_or_else(|e| panic!("{e}"));
        let gateway = Gateway::run(config);
        let mut client = gateway.client();
        let (line, body) = J10.send();
        client.send(line, "", &body);
        let call = agent.next();
        assert!(call.asked.is("POST /rpc "), "{}", path.display());
        call.json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200, "{}", path.display());
        assert_eq!(gateway.ask_admin("GET /livez", "").status(), 200);
        started += 1;
    }
    assert!(started >= 4, "{started} files");
}
