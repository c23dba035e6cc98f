//! Certificates of clients: off, optional, required; of whom, until when, and revoked meanwhile.
use super::{
    client::Caller,
    house::House,
    pki::{Authority, Issued},
};
use crate::support::{
    agent::{Agent, Log},
    until,
    words::{J10, R10, WORKING, result},
};

const NAME: &str = "spiffe://example.org/ns/shop/sa/cart";
const WAY: &str = "auth: [client_certificates: {}]";

fn asked(mode: &str) -> String {
    format!(
        ", client_certificates: {{mode: {mode}, ca_file: '{{D}}/ca.crt', crl_files: ['{{D}}/crl.pem']}}"
    )
}

/// The status of a call, or nothing where there is no connection.
fn told(house: &House, by: &Caller) -> Option<u16> {
    by.ask(house.addr(), J10).ok().map(|(status, _)| status)
}

#[test]
fn who_is_not_asked_shows_nothing() {
    let house = House::build("", "");
    let shown = house.vouches.issue(&[NAME]);
    assert_eq!(told(&house, &house.showing(&shown)), Some(200));
    assert_eq!(told(&house, &house.stranger()), Some(200));
}

#[test]
fn bad_certificates_are_refused_whether_required_or_not() {
    for (mode, stranger) in [("optional", Some(200)), ("required", None)] {
        let house = House::build(&asked(mode), "");
        assert_eq!(told(&house, &house.stranger()), stranger, "{mode}");
        let good = house.vouches.issue(&[NAME]);
        assert_eq!(told(&house, &house.showing(&good)), Some(200), "{mode}");
        let late = house.vouches.issue_until(&[NAME], 2021);
        let other = Authority::new("people").issue(&[NAME]);
        let stolen = Issued {
            key: other.key.clone(),
            ..good.clone()
        };
        for (what, bad) in [("expired", late), ("of another", other), ("stolen", stolen)] {
            assert_eq!(told(&house, &house.showing(&bad)), None, "{mode}: {what}");
        }
    }
}

#[test]
fn what_is_revoked_is_refused_also_on_old_connections_and_streams_end() {
    let agent = Agent::start();
    let house = House::before(agent.addr, Log::default(), &asked("required"), WAY);
    let (bad, good) = (
        house.vouches.issue(&[NAME]),
        house.vouches.issue(&["a.example"]),
    );
    let mut old = house.showing(&bad).connect(house.addr()).unwrap();
    let mut stream = house.showing(&bad).connect(house.addr()).unwrap();
    let mut spared = house.showing(&good).connect(house.addr()).unwrap();
    for by in [&mut stream, &mut spared] {
        let (line, body) = R10.stream();
        by.begin(
            line,
            "content-type: application/json\r\na2a-version: 1.0\r\n",
            &body,
        )
        .unwrap();
        let mut call = agent.next();
        call.begin();
        call.event(&result(WORKING));
        by.until("WORKING").unwrap();
        std::mem::forget(call); // it goes on
    }
    house.put(
        &house.own,
        &house.vouches.pem(),
        &house.vouches.list(&[bad.serial]),
    );
    until("new connections are refused", || {
        house
            .showing(&bad)
            .connect(house.addr())
            .is_err_and(|_| true)
            || house.showing(&bad).ask(house.addr(), R10).is_err()
    });
    let (line, body) = R10.send();
    let fields = "content-type: application/json\r\na2a-version: 1.0\r\n";
    let (status, text) = old.ask(line, fields, &body).unwrap();
    assert_eq!(status, 401, "{text}");
    assert!(
        text.contains("www-authenticate: ClientCertificate realm=\"a2a-gateway\"\n"),
        "{text}"
    );
    assert!(
        stream.is_ended(),
        "a stream goes on by a certificate that was revoked"
    );
    assert!(super::house::log().contains("a client's certificate is no longer good"));
    // The other one is not disturbed, and whoever comes anew with it is let in.
    spared.begin("GET /x", "", "").unwrap();
    house.showing(&good).connect(house.addr()).unwrap();
}

#[test]
fn another_authority_takes_the_place_of_the_first() {
    let clients = ", client_certificates: {mode: required, ca_file: '{D}/ca.crt'}";
    let house = House::build(clients, "");
    let other = Authority::new("others");
    let (old, new) = (house.vouches.issue(&[NAME]), other.issue(&[NAME]));
    assert_eq!(told(&house, &house.showing(&old)), Some(200));
    assert_eq!(told(&house, &house.showing(&new)), None);
    house.put(&house.own, "nonsense", "");
    until("it was told", || {
        super::house::log().contains("holds no certificate as PEM")
    });
    assert_eq!(
        told(&house, &house.showing(&old)),
        Some(200),
        "nonsense changes nothing"
    );
    house.put(&house.own, &other.pem(), "");
    until("the new one counts", || {
        told(&house, &house.showing(&new)) == Some(200)
    });
    assert_eq!(told(&house, &house.showing(&old)), None);
}

#[test]
fn an_issuer_without_a_list_is_not_trusted_where_there_are_lists() {
    let house = House::build(&asked("required"), "");
    let second = Authority::new("second");
    let both = house.vouches.pem() + &second.pem();
    house.put(&house.own, &both, &house.vouches.list(&[]));
    let first = house.vouches.issue(&[NAME]);
    let second_shows = second.issue(&[NAME]);
    until("both are read", || {
        told(&house, &house.showing(&first)) == Some(200)
            && super::house::log().contains("new certificates hold")
    });
    assert_eq!(told(&house, &house.showing(&second_shows)), None);
    house.put(
        &house.own,
        &both,
        &(house.vouches.list(&[]) + &second.list(&[])),
    );
    until("its list is read", || {
        told(&house, &house.showing(&second_shows)) == Some(200)
    });
}

#[test]
fn an_old_connection_is_told_to_go() {
    let clients =
        ", client_certificates: {mode: optional, ca_file: '{D}/ca.crt', max_connection_age: 1s}";
    let house = House::build(clients, "");
    let mut connected = house.stranger().connect(house.addr()).unwrap();
    assert_eq!(connected.send(J10, "").unwrap().0, 200);
    assert!(connected.is_ended());
    let house = House::build("", "");
    let counts = house.gateway.served().running.counts();
    let _kept = house.stranger().connect(house.addr()).unwrap();
    until("it is known", || counts.handshakes() == 1);
}
