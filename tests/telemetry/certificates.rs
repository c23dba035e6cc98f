//! TLS, as it shows in numbers: when certificates end, and how clients come to terms with the gateway.
use std::net::SocketAddr;

use rcgen::date_time_ymd;

use crate::{
    pki::{Authority, Issued, Mounted},
    scrape::{ADMIN, Scrape, until_scraped},
    support::{client::Client, gateway::Gateway},
    tls_client::Caller,
};

const EXPIRY: &str = "a2a_gateway_certificate_expiry_seconds";
const HANDSHAKES: &str = "a2a_gateway_tls_handshakes_total";
const OWN: [&str; 2] = ["localhost", "127.0.0.1"];

/// What there is only with TLS.
pub(crate) const OF_TLS: [&str; 2] = [EXPIRY, HANDSHAKES];

struct House {
    gateway: Gateway,
    authority: Authority,
    files: Mounted,
}

impl House {
    /// A gateway with TLS on both sides, which shows a certificate that ends in this year.
    fn build(year: i32) -> Self {
        let (authority, vouches) = (Authority::new("house"), Authority::new("people"));
        let own = authority.issue_until(&OWN, year);
        let shown = authority.issue_until(&["gateway"], 2070);
        let ends_first = vouches.issue_until(&["another authority"], 2080);
        let files = Mounted::new(&[
            ("tls.crt", &own.cert),
            ("tls.key", &own.key),
            ("ca.crt", &(vouches.pem() + &ends_first.cert)),
            ("shown.crt", &shown.cert),
            ("shown.key", &shown.key),
        ]);
        let at = |name: &str| files.path(name).display().to_string();
        let gateway = Gateway::of(&format!(
            "workers: 1\n{ADMIN}tls: {{cert_file: '{}', key_file: '{}', client_certificates: {{mode: optional, ca_file: '{}'}}}}\n\
             backend: {{url: 'https://127.0.0.1:1', ca_file: '{}', client_cert_file: '{}', client_key_file: '{}'}}\n",
            at("tls.crt"),
            at("tls.key"),
            at("ca.crt"),
            at("ca.crt"),
            at("shown.crt"),
            at("shown.key"),
        ));
        Self {
            gateway,
            authority,
            files,
        }
    }

    /// Other contents of the files of its own certificate; all others go.
    fn put(&self, cert: &Issued, key: &Issued) {
        let files = [("tls.crt", &*cert.cert), ("tls.key", &key.key)];
        self.files.put(&files);
    }

    fn addr(&self) -> SocketAddr {
        self.gateway.addr
    }
}

/// The scrape of a gateway with TLS.
pub(crate) fn scraped() -> Scrape {
    Scrape::of(&House::build(2100).gateway)
}

#[expect(clippy::cast_precision_loss, reason = "it is exact")]
fn beginning_of(year: i32) -> f64 {
    date_time_ymd(year, 1, 1).unix_timestamp() as f64
}

fn ends(setting: &str) -> [(&str, &str); 1] {
    [("file", setting)]
}

#[test]
fn the_end_of_each_certificate_is_told_by_the_name_of_its_setting() {
    let house = House::build(2100);
    let scrape = Scrape::of(&house.gateway);
    let told = [
        ("tls.cert_file", 2100),
        ("tls.client_certificates.ca_file", 2080), // the first of the file
        ("backend.client_cert_file", 2070),
    ];
    for (setting, year) in told {
        let at = scrape.value(EXPIRY, &ends(setting));
        assert!((at - beginning_of(year)).abs() < 1e-9, "{setting}: {at}");
    }
    let all = scrape.series.iter().filter(|(name, ..)| name == EXPIRY);
    assert_eq!(all.count(), told.len());
}

#[test]
fn a_certificate_that_is_renewed_ends_later_once_it_is_shown() {
    let house = House::build(2060);
    let setting = ends("tls.cert_file");
    until_scraped(&house.gateway, EXPIRY, &setting, beginning_of(2060));
    let next = house.authority.issue_until(&OWN, 2061);
    house.put(&next, &next);
    until_scraped(&house.gateway, EXPIRY, &setting, beginning_of(2061));
    // One that does not fit its key is not shown, and the end of the one that is counts.
    let (last, other) = (
        house.authority.issue_until(&OWN, 2062),
        house.authority.issue_until(&OWN, 2063),
    );
    house.put(&last, &other);
    let mut caller = Caller::new(&house.authority.pem(), None);
    caller = caller.forgetting();
    for _ in 0..20 {
        let shown = caller.connect(house.addr()).unwrap().serial();
        assert_eq!(shown, next.serial);
        let scrape = Scrape::of(&house.gateway);
        let at = scrape.value(EXPIRY, &setting);
        assert!((at - beginning_of(2061)).abs() < 1e-9, "{at}");
    }
    house.put(&other, &other);
    until_scraped(&house.gateway, EXPIRY, &setting, beginning_of(2063));
    assert_eq!(caller.connect(house.addr()).unwrap().serial(), other.serial);
}

#[test]
fn handshakes_are_counted_by_what_came_of_them() {
    let house = House::build(2100);
    let (ok, failed) = ([("result", "ok")], [("result", "failed")]);
    let scrape = Scrape::of(&house.gateway);
    assert!(scrape.value(HANDSHAKES, &[]).abs() < 1e-9);
    let caller = Caller::new(&house.authority.pem(), None);
    let _kept = [(); 2].map(|()| caller.connect(house.addr()).unwrap());
    let scrape = until_scraped(&house.gateway, HANDSHAKES, &ok, 2.0);
    assert!(scrape.value(HANDSHAKES, &failed).abs() < 1e-9);
    // By somebody who does not encrypt, and by somebody who trusts others.
    let plain = Client::connect(house.addr()).ask("GET /", "", "");
    assert_eq!(plain.status(), 400);
    let other = Caller::new(&Authority::new("others").pem(), None);
    assert!(other.connect(house.addr()).is_err());
    let scrape = until_scraped(&house.gateway, HANDSHAKES, &failed, 2.0);
    assert!((scrape.value(HANDSHAKES, &ok) - 2.0).abs() < 1e-9);
}
