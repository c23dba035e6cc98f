//! The same over TLS, against a certificate made for the test.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::read_request;
use super::{Error, OK, agent_of, post, settings, whole};
use crate::tls::{Client, Roots};

/// Listens for TLS with a certificate for `localhost`; gives its port and the certificate in PEM.
fn start(alpn: &'static [u8]) -> (u16, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![alpn.to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, tcp.unwrap()));
            // A client that does not trust us breaks the handshake off; then there is no request.
            while read_request(&mut stream).is_some() {
                stream.get_mut().write_all(OK).unwrap();
            }
        }
    });
    (port, cert.pem())
}

fn file(pem: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    (folder, path)
}

fn trusting(path: PathBuf) -> Result<Client, String> {
    Client::read(
        "backend",
        &Roots {
            ca_file: Some(path),
            ..Roots::default()
        },
    )
}

#[tokio::test]
async fn a_trusted_agent_is_reached_by_tls() {
    let (port, pem) = start(b"http/1.1");
    let (_folder, path) = file(&pem);
    let mut settings = settings(&format!("https://localhost:{port}"));
    settings.tls = trusting(path).ok();
    let agent = agent_of(&settings);
    // The listener serves one connection at a time, so the second call must come over the first's.
    for _ in 0..2 {
        assert_eq!(whole(post(&agent).await.unwrap()).await.unwrap(), "ok");
    }
}

#[tokio::test]
async fn an_agent_that_is_not_trusted_gets_nothing() {
    let (port, pem) = start(b"http/1.1");
    let (_folder, path) = file(&pem);
    let (_, other) = start(b"http/1.1");
    let (_other_folder, other) = file(&other);
    // Another's certificate, and a name that the certificate does not have.
    for (host, ca_file) in [("localhost", other), ("127.0.0.1", path)] {
        let mut settings = settings(&format!("https://{host}:{port}"));
        settings.tls = trusting(ca_file).ok();
        let error = post(&agent_of(&settings)).await.err().unwrap();
        assert!(matches!(error, Error::Unreachable(_)), "{error}");
        assert!(!error.may_have_started());
    }
}

#[tokio::test]
async fn http2_must_be_agreed_on() {
    let (port, pem) = start(b"http/1.1");
    let (_folder, path) = file(&pem);
    let mut settings = settings(&format!("https://localhost:{port}"));
    settings.tls = trusting(path).ok();
    settings.http2 = true;
    let error = post(&agent_of(&settings)).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
}

#[test]
fn a_file_without_certificates_is_a_mistake() {
    for pem in [
        "",
        "nothing",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let (_folder, path) = file(pem);
        assert!(trusting(path).is_err());
    }
}
