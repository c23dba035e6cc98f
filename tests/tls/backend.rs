//! Agents by TLS: whom the gateway trusts, what it shows, and what it says when that fails.
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use parking_lot::RwLock;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use super::{
    client::{chain, provider, roots, serial},
    house::log,
    pki::{Authority, Issued, Mounted},
};
use crate::{
    program::{TOKEN, write},
    support::{
        agent::answer,
        gateway::Gateway,
        message::Refusal,
        until,
        words::{ALL, J10, R10, result, wrapped},
    },
};

/// An agent that answers over TLS, and notes who asks.
struct Agent {
    addr: SocketAddr,
    config: Arc<RwLock<Arc<ServerConfig>>>,
    /// The certificates shown, one for each call.
    shown: Arc<Mutex<Vec<Option<u64>>>>,
    /// Whether each connection serves one call.
    once: Arc<AtomicBool>,
    /// Connections that there were.
    connections: Arc<AtomicUsize>,
}

/// An agent that shows this, and wants a certificate of these.
fn config(
    shows: &Issued,
    wants: Option<&Authority>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap();
    let builder = match wants {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let roots = Arc::new(roots(&authority.pem()));
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots, provider())
                    .build()
                    .unwrap(),
            )
        }
    };
    let key = PrivateKeyDer::from_pem_slice(shows.key.as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(chain(&shows.cert), key).unwrap())
}

const ANY: &[&rustls::SupportedProtocolVersion] = rustls::ALL_VERSIONS;

impl Agent {
    fn start(by: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let agent = Self {
            addr: listener.local_addr().unwrap(),
            config: Arc::new(RwLock::new(by)),
            shown: Arc::default(),
            once: Arc::default(),
            connections: Arc::default(),
        };
        let (config, shown) = (agent.config.clone(), agent.shown.clone());
        let (all_once, connections) = (agent.once.clone(), agent.connections.clone());
        thread::spawn(move || {
            for tcp in listener.incoming() {
                let by = config.read().clone();
                let shown = shown.clone();
                let once = all_once.load(SeqCst);
                connections.fetch_add(1, SeqCst);
                thread::spawn(move || {
                    let tls = ServerConnection::new(by).unwrap();
                    let mut io = BufReader::new(StreamOwned::new(tls, tcp.unwrap()));
                    while let Some(()) = request(&mut io) {
                        let by = io.get_ref().conn.peer_certificates().map(|c| serial(&c[0]));
                        shown.lock().unwrap().push(by);
                        let text = answer(
                            200,
                            "content-type: application/json\r\n",
                            result(&wrapped()),
                        );
                        let io = io.get_mut();
                        if io.write_all(&text).is_err() {
                            break;
                        }
                        if once {
                            io.conn.send_close_notify();
                            let _gone = io.flush();
                            break;
                        }
                    }
                });
            }
        });
        agent
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}", self.addr.port())
    }

    fn last(&self) -> Option<u64> {
        *self.shown.lock().unwrap().last().unwrap()
    }
}

/// Reads one; none at the end.
pub(super) fn request(io: &mut impl BufRead) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if io.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
        if line == "\r\n" {
            io.read_exact(&mut vec![0; length]).ok()?;
            return Some(());
        }
    }
}

fn gateway(url: &str, more: &str) -> Gateway {
    Gateway::of(&format!(
        "workers: 1\nbackend: {{url: '{url}', idle: 1s, system_roots: false, {more}}}"
    ))
}

fn send(gateway: &Gateway, speak: crate::support::words::Speak) -> crate::support::client::Answer {
    let (line, body) = speak.send();
    let version = super::client::version(speak);
    gateway.ask(
        line,
        &format!("content-type: application/json\r\na2a-version: {version}\r\n"),
        &body,
    )
}

fn trust(mounted: &Mounted) -> String {
    format!("ca_file: '{}'", mounted.path("ca.crt").display())
}

fn shows(mounted: &Mounted) -> String {
    format!(
        "client_cert_file: '{}', client_key_file: '{}'",
        mounted.path("tls.crt").display(),
        mounted.path("tls.key").display()
    )
}

#[test]
fn an_agent_with_a_root_of_its_own_is_reached() {
    let authority = Authority::new("agents");
    let agent = Agent::start(config(&authority.issue(&["agent.internal"]), None, ANY));
    let files = Mounted::new(&[("ca.crt", &authority.pem())]);
    let named = gateway(
        &agent.url("127.0.0.1"),
        &format!("{}, server_name: agent.internal", trust(&files)),
    );
    for speak in ALL {
        assert_eq!(send(&named, speak).status(), 200, "{speak:?}");
    }
    assert_eq!(agent.last(), None);
}

#[test]
fn a_wrong_name_or_root_is_refused_and_the_log_says_what_to_do() {
    super::house::House::build("", ""); // it listens to the log
    let authority = Authority::new("agents");
    let agent = Agent::start(config(&authority.issue(&["agent.internal"]), None, ANY));
    let files = Mounted::new(&[("ca.crt", &authority.pem())]);
    let other = Mounted::new(&[("ca.crt", &Authority::new("agents").pem())]);
    for (gateway, advice) in [
        (
            gateway(&agent.url("localhost"), &trust(&files)),
            "set backend.server_name to a name",
        ),
        (
            gateway(
                &agent.url("localhost"),
                &format!("server_name: agent.internal, {}", trust(&other)),
            ),
            "backend.ca_file",
        ),
    ] {
        for speak in ALL {
            let refusal = Refusal::read(speak, &send(&gateway, speak));
            assert_eq!(refusal.reason, "BACKEND_UNREACHABLE", "{speak:?}");
        }
        until(advice, || log().contains(advice));
    }
    assert!(agent.shown.lock().unwrap().is_empty());
}

#[test]
fn an_agent_that_wants_a_certificate_gets_it_and_the_next_one() {
    let (authority, people) = (Authority::new("agents"), Authority::new("gateways"));
    for versions in [ANY, &[&rustls::version::TLS12]] {
        let agent = Agent::start(config(
            &authority.issue(&["localhost"]),
            Some(&people),
            versions,
        ));
        let first = people.issue(&["gateway.internal"]);
        let files = Mounted::new(&[
            ("ca.crt", &authority.pem()),
            ("tls.crt", &first.cert),
            ("tls.key", &first.key),
        ]);
        let gateway = gateway(
            &agent.url("localhost"),
            &format!("{}, {}", trust(&files), shows(&files)),
        );
        agent.once.store(true, SeqCst);
        assert_eq!(send(&gateway, J10).status(), 200);
        assert_eq!(agent.last(), Some(first.serial));
        let second = people.issue(&["gateway.internal"]);
        files.put(&[
            ("ca.crt", &authority.pem()),
            ("tls.crt", &second.cert),
            ("tls.key", &second.key),
        ]);
        until("the new one is shown", || {
            assert_eq!(send(&gateway, R10).status(), 200);
            agent.last() == Some(second.serial)
        });
    }
}

#[test]
fn an_authority_that_is_replaced_is_trusted_by_new_connections() {
    let (old, new) = (Authority::new("agents"), Authority::new("agents"));
    let agent = Agent::start(config(&new.issue(&["localhost"]), None, ANY));
    let files = Mounted::new(&[("ca.crt", &old.pem())]);
    let gateway = gateway(&agent.url("localhost"), &trust(&files));
    assert_eq!(send(&gateway, R10).status(), 502);
    files.put(&[("ca.crt", &new.pem())]);
    until("it is trusted", || send(&gateway, R10).status() == 200);
}

#[test]
fn connections_stay_over_a_reload_that_leaves_tls_alone() {
    let authority = Authority::new("agents");
    let agent = Agent::start(config(&authority.issue(&["127.0.0.1"]), None, ANY));
    let files = Mounted::new(&[("ca.crt", &authority.pem()), ("same.crt", &authority.pem())]);
    let folder = tempfile::tempdir().unwrap();
    let yaml = |trusts: &str, rest: &str| {
        let ca_file = files.path(trusts);
        format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nadmin_token_file: '{}'\nworkers: 1\n\
             backend: {{url: '{}', system_roots: false, ca_file: '{}'}}\n{rest}\n",
            folder.path().join("token").display(),
            agent.url("127.0.0.1"),
            ca_file.display()
        )
    };
    let file = write(folder.path(), &yaml("ca.crt", ""));
    let gateway = Gateway::from_file(&file);
    let reload = |yaml: &str| {
        write(folder.path(), yaml);
        let fields = format!("authorization: Bearer {TOKEN}\r\n");
        let answer = gateway.ask_admin("POST /v1/reload", &fields);
        assert_eq!(answer.status(), 200, "{}", answer.body);
    };
    let after = |connections| {
        assert_eq!(send(&gateway, R10).status(), 200);
        assert_eq!(agent.connections.load(SeqCst), connections);
    };
    after(1);
    for grace in 1..6 {
        reload(&yaml("ca.crt", &format!("drain: {{grace: {grace}s}}")));
        after(1);
    }
    // Other settings of TLS, even if they come to the same, are for other connections.
    reload(&yaml("same.crt", ""));
    after(2);
    reload(&yaml("same.crt", "dialects: {v03: false}"));
    after(2);
}

#[test]
fn an_agent_that_refuses_our_certificate_has_begun_nothing() {
    super::house::House::build("", "");
    let (authority, people) = (Authority::new("agents"), Authority::new("gateways"));
    let stranger = Authority::new("strangers").issue(&["gateway.internal"]);
    for versions in [ANY, &[&rustls::version::TLS12]] {
        let agent = Agent::start(config(
            &authority.issue(&["localhost"]),
            Some(&people),
            versions,
        ));
        let files = Mounted::new(&[
            ("ca.crt", &authority.pem()),
            ("tls.crt", &stranger.cert),
            ("tls.key", &stranger.key),
        ]);
        for more in [
            trust(&files),
            format!("{}, {}", trust(&files), shows(&files)),
        ] {
            let gateway = gateway(&agent.url("localhost"), &more);
            for speak in [J10, R10] {
                let refusal = Refusal::read(speak, &send(&gateway, speak));
                assert_eq!(refusal.reason, "BACKEND_UNREACHABLE", "{more}");
            }
        }
        assert!(agent.shown.lock().unwrap().is_empty());
    }
    until("it was told", || {
        log().contains("see backend.client_cert_file and backend.client_key_file")
    });
}
