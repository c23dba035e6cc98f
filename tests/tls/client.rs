//! Clients that speak TLS: one of HTTP/1.1 that sees every byte, and one of HTTP/2.
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::pki::Issued;
use crate::support::{PATIENCE, words::Speak};

/// A client, not yet connected.
#[derive(Clone)]
pub(super) struct Caller {
    config: ClientConfig,
}

pub(super) struct Connected {
    io: StreamOwned<ClientConnection, TcpStream>,
    seen: Vec<u8>,
}

pub(super) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

pub(super) fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    all.collect::<Result<_, _>>().unwrap()
}

pub(super) fn roots(pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for der in chain(pem) {
        roots.add(der).unwrap();
    }
    roots
}

impl Caller {
    /// Trusts this authority, and shows a certificate or none.
    pub(super) fn new(authority: &str, shows: Option<&Issued>) -> Self {
        Self::speaking(rustls::DEFAULT_VERSIONS, authority, shows)
    }

    fn speaking(
        versions: &[&'static rustls::SupportedProtocolVersion],
        authority: &str,
        shows: Option<&Issued>,
    ) -> Self {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots(authority));
        let mut config = match shows {
            None => builder.with_no_client_auth(),
            Some(issued) => {
                let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
                let key = provider().key_provider.load_private_key(key).unwrap();
                // Not checked here: a thief has the certificate without its key.
                let both = CertifiedKey::new(chain(&issued.cert), key);
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(both)))
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { config }
    }

    /// Knows no TLS 1.3.
    pub(super) fn old(authority: &str, shows: Option<&Issued>) -> Self {
        Self::speaking(&[&rustls::version::TLS12], authority, shows)
    }

    pub(super) fn offering(mut self, protocols: &[&str]) -> Self {
        self.config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        self
    }

    /// Begins every connection from the start.
    pub(super) fn forgetting(mut self) -> Self {
        self.config.resumption = rustls::client::Resumption::disabled();
        self
    }

    /// After the handshake, and the first word of the server after it where there is one.
    pub(super) fn connect(&self, to: SocketAddr) -> io::Result<Connected> {
        let tcp = TcpStream::connect(to)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(self.config.clone()), name);
        let mut io = StreamOwned::new(tls.map_err(io::Error::other)?, tcp);
        while io.conn.is_handshaking() {
            io.conn.complete_io(&mut io.sock)?;
        }
        Ok(Connected { io, seen: vec![] })
    }

    /// One call on a connection of its own.
    pub(super) fn ask(&self, to: SocketAddr, speak: Speak) -> io::Result<(u16, String)> {
        self.connect(to)?.send(speak, "")
    }

    /// One call by HTTP/2; the version of the answer as well.
    pub(super) fn ask_http2(&self, to: SocketAddr, speak: Speak) -> (u16, http::Version, String) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let config = Arc::new(self.clone().offering(&["h2", "http/1.1"]).config);
        runtime.unwrap().block_on(async move {
            let tcp = tokio::net::TcpStream::connect(to).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let io = tokio_rustls::TlsConnector::from(config)
                .connect(name, tcp)
                .await
                .unwrap();
            assert_eq!(io.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(io))
                    .await
                    .unwrap();
            let local = tokio::task::LocalSet::new();
            local.spawn_local(connection);
            local
                .run_until(async move {
                    let (line, body) = speak.send();
                    let (method, path) = line.split_once(' ').unwrap();
                    let request = http::Request::builder()
                        .method(method)
                        .uri(format!("https://localhost{path}"))
                        .header("content-type", "application/json")
                        .header("a2a-version", version(speak))
                        .body(Full::new(Bytes::from(body)));
                    let answer = sender.send_request(request.unwrap()).await.unwrap();
                    let (head, body) = answer.into_parts();
                    let text = body.collect().await.unwrap().to_bytes();
                    (
                        head.status.as_u16(),
                        head.version,
                        String::from_utf8(text.to_vec()).unwrap(),
                    )
                })
                .await
        })
    }
}

pub(super) fn version(speak: Speak) -> &'static str {
    if speak.is_old() { "0.3" } else { "1.0" }
}

impl Connected {
    pub(super) fn alpn(&self) -> Option<String> {
        let protocol = self.io.conn.alpn_protocol();
        protocol.map(|p| String::from_utf8(p.to_vec()).unwrap())
    }

    /// The number of the certificate that the server has shown.
    pub(super) fn serial(&self) -> u64 {
        let shown = self.io.conn.peer_certificates().unwrap();
        serial(&shown[0])
    }

    pub(super) fn send(&mut self, speak: Speak, fields: &str) -> io::Result<(u16, String)> {
        let (line, body) = speak.send();
        self.ask(
            line,
            &format!(
                "content-type: application/json\r\na2a-version: {}\r\n{fields}",
                version(speak)
            ),
            &body,
        )
    }

    pub(super) fn ask(
        &mut self,
        line: &str,
        fields: &str,
        body: &str,
    ) -> io::Result<(u16, String)> {
        self.begin(line, fields, body)?;
        let head = self.head()?;
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "));
        let length: usize = length
            .unwrap_or_else(|| panic!("no length: {head}"))
            .parse()
            .unwrap();
        while self.seen.len() < length {
            self.more()?;
        }
        let body = self.seen.drain(..length).collect();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, head + "\n" + &String::from_utf8(body).unwrap()))
    }

    /// Sends a request.
    pub(super) fn begin(&mut self, line: &str, fields: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {length}\r\n\r\n{body}"
        );
        self.io.write_all(text.as_bytes())?;
        self.io.flush()
    }

    pub(super) fn write(&mut self, text: &str) {
        self.io.write_all(text.as_bytes()).unwrap();
        self.io.flush().unwrap();
    }

    pub(super) fn head(&mut self) -> io::Result<String> {
        self.until("\r\n\r\n")
            .map(|head| head.replace("\r\n", "\n"))
    }

    /// What comes, up to these bytes.
    pub(super) fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            let found = self
                .seen
                .windows(end.len())
                .position(|w| w == end.as_bytes());
            if let Some(at) = found {
                let text = self.seen.drain(..at + end.len()).collect();
                return Ok(String::from_utf8(text).unwrap());
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match self.io.read(&mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.seen.extend_from_slice(&bytes[..n]);
                Ok(())
            }
        }
    }

    /// Whether the server ends the connection, however.
    pub(super) fn is_ended(&mut self) -> bool {
        loop {
            match self.more() {
                Ok(()) => {}
                Err(error) => {
                    return !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    );
                }
            }
        }
    }
}

pub(super) fn serial(of: &CertificateDer<'_>) -> u64 {
    let cert = webpki::EndEntityCert::try_from(of).unwrap();
    cert.serial()
        .iter()
        .fold(0, |n, byte| n << 8 | u64::from(*byte))
}
