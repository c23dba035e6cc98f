//! The listener: which HTTP, which dialect, and whoever does not come to terms with it.
use std::{
    io::{Read, Write},
    net::TcpStream,
};

use tokio::time::Instant;

use super::house::House;
use crate::support::{PATIENCE, until, words::ALL};

#[test]
fn every_dialect_is_spoken_by_either_http() {
    let house = House::build("", "");
    let caller = house.stranger();
    for speak in ALL {
        let mut connected = caller.connect(house.addr()).unwrap();
        assert_eq!(connected.alpn().as_deref(), Some("http/1.1"));
        for _ in 0..2 {
            let (status, text) = connected.send(speak, "").unwrap();
            assert_eq!(status, 200, "{speak:?} {text}");
        }
        let (status, version, text) = caller.ask_http2(house.addr(), speak);
        assert_eq!((status, version), (200, http::Version::HTTP_2), "{text}");
        assert!(text.contains("t1"), "{text}");
    }
    let last = house.agent.all().pop().unwrap();
    assert_eq!(last.head.get("x-forwarded-proto"), Some("https"));
    assert_eq!(house.gateway.served().running.counts().handshakes(), 10);
}

#[test]
fn who_offers_nothing_gets_http_1_and_who_offers_another_nothing() {
    let house = House::build("", "");
    let mut connected = house
        .stranger()
        .offering(&[])
        .connect(house.addr())
        .unwrap();
    assert_eq!(connected.alpn(), None);
    let (status, text) = connected
        .ask("GET /.well-known/agent-card.json", "", "")
        .unwrap();
    assert!((200..600).contains(&status), "{text}");
    assert!(
        house
            .stranger()
            .offering(&["spdy"])
            .connect(house.addr())
            .is_err()
    );
}

#[test]
fn a_card_names_the_address_that_is_encrypted() {
    let (agent, log) = crate::support::agent::Agent::always(|asked| {
        assert!(
            asked
                .head
                .line
                .starts_with("GET /.well-known/agent-card.json"),
            "{}",
            asked.head.line
        );
        let card = r#"{"name":"a","description":"d","version":"1","supportedInterfaces":[{"url":"http://x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;
        crate::support::agent::answer(200, "content-type: application/json\r\n", card)
    });
    let clients = ", client_certificates: {mode: optional, ca_file: '{D}/ca.crt'}";
    let house = House::before(agent, log, clients, "auth: [client_certificates: {}]");
    let mut connected = house.stranger().connect(house.addr()).unwrap();
    let (status, text) = connected
        .ask(
            "GET /.well-known/agent-card.json",
            "a2a-version: 1.0\r\n",
            "",
        )
        .unwrap();
    assert_eq!(status, 200, "{text}");
    assert!(
        text.contains("https://localhost") && text.contains("mtlsSecurityScheme"),
        "{text}"
    );
}

#[test]
fn what_is_not_tls_gets_a_sane_end() {
    let house = House::build("", "");
    let counts = house.gateway.served().running.counts();
    let ends = |bytes: &[u8]| {
        let mut io = TcpStream::connect(house.addr()).unwrap();
        io.set_read_timeout(Some(PATIENCE)).unwrap();
        io.write_all(bytes).unwrap();
        let mut text = vec![];
        let ended = io.read_to_end(&mut text);
        (ended.is_ok(), String::from_utf8_lossy(&text).into_owned())
    };
    let (whole, told) = ends(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}");
    assert!(whole && told.starts_with("HTTP/1.1 400 "), "{told}");
    assert!(
        told.ends_with("\r\n\r\nthis port speaks TLS: begin with https:\n"),
        "{told}"
    );
    for garbage in [
        &b"\x00\x01\x02"[..],
        &[0xff; 9000],
        b"\x16\x03\x01\x40\x00zzzz",
        &[0x16; 64],
        b"\r\n\r\n",
    ] {
        let mut io = TcpStream::connect(house.addr()).unwrap();
        io.set_read_timeout(Some(PATIENCE)).unwrap();
        io.write_all(garbage).unwrap();
        io.shutdown(std::net::Shutdown::Write).unwrap();
        let _reset = io.read_to_end(&mut vec![]);
    }
    until("all have failed", || counts.handshakes_failed() == 6);
    until("all have gone", || counts.connections() == 0);
    assert_eq!(house.stranger().ask(house.addr(), ALL[0]).unwrap().0, 200);
    until("it was told", || {
        super::house::log().contains("did not come to terms with us on TLS")
    });
}

#[test]
fn half_a_handshake_and_silence_are_closed_in_time() {
    let house = House::build("", "limits: {header_time: 300ms, silence: 30s}");
    let hello = [
        0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03,
    ];
    for first in [&b""[..], &hello[..1], &hello[..5], &hello[..]] {
        let begun = Instant::now();
        let mut io = TcpStream::connect(house.addr()).unwrap();
        io.set_read_timeout(Some(PATIENCE)).unwrap();
        io.write_all(first).unwrap();
        let _reset = io.read_to_end(&mut vec![]);
        let took = begun.elapsed().as_millis();
        assert!((200..5000).contains(&took), "{took} ms after {first:?}");
    }
    // A byte now and then does not make it longer.
    let begun = Instant::now();
    let mut io = TcpStream::connect(house.addr()).unwrap();
    io.set_read_timeout(Some(std::time::Duration::from_millis(20)))
        .unwrap();
    let mut hello = hello.iter().cycle();
    let mut ended = false;
    while !ended {
        assert!(begun.elapsed() < PATIENCE, "slow handshakes go on");
        ended = io.write_all(&[*hello.next().unwrap()]).is_err()
            || !matches!(io.read(&mut [0; 64]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock);
    }
    // Half a request head, after a whole handshake.
    let begun = Instant::now();
    let mut connected = house.stranger().connect(house.addr()).unwrap();
    connected.write("POST / HTTP/1.1\r\nhost: ");
    assert!(connected.is_ended());
    assert!(begun.elapsed().as_secs() < 5);
    // One that has shaken hands has its own time to say something.
    let mut connected = house.stranger().connect(house.addr()).unwrap();
    connected.begin("GET /slow", "", "").unwrap();
    assert!(connected.head().is_ok());
}

#[test]
fn no_more_handshakes_than_there_is_room_for() {
    const MOST: usize = 1024;
    let house = House::build("", "");
    let counts = house.gateway.served().running.counts();
    let silent: Vec<TcpStream> = (0..MOST + 6)
        .map(|_| TcpStream::connect(house.addr()).unwrap())
        .collect();
    until("the oldest have gone", || counts.handshakes_failed() == 6);
    until("no others have", || counts.connections() == MOST);
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(oldest.read(&mut [0]), Ok(0) | Err(_)));
    // Who is honest is served all the same.
    assert_eq!(house.stranger().ask(house.addr(), ALL[3]).unwrap().0, 200);
}

#[test]
fn an_old_version_may_be_refused() {
    let house = House::build(", min_version: '1.3'", "");
    assert!(house.stranger().connect(house.addr()).is_ok());
    let old = house.old();
    assert!(old.connect(house.addr()).is_err());
    let house = House::build("", "");
    assert_eq!(house.old().ask(house.addr(), ALL[0]).unwrap().0, 200);
}
