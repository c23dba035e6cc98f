//! Makes a connection: name, TCP, TLS, under one deadline.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{BadSettings, Error};
use super::names::{Lookup, Ways};
use super::{Settings, after};

const H1: &[u8] = b"http/1.1";
const H2: &[u8] = b"h2";

/// Knows how to reach the agent.
pub(super) struct Dialer {
    tls: Option<(TlsConnector, ServerName<'static>)>,
    lookup: Lookup,
    http2: bool,
    connect: Duration,
}

impl Dialer {
    pub(super) fn new(settings: &Settings) -> Result<Self, BadSettings> {
        let origin = &settings.origin;
        let tls = if origin.secure() {
            let name = ServerName::try_from(origin.host().to_owned())
                .map_err(|error| BadSettings::Tls(error.to_string()))?;
            let config = config(settings.ca_file.as_deref(), settings.http2)?;
            Some((TlsConnector::from(Arc::new(config)), name))
        } else {
            None
        };
        Ok(Self {
            tls,
            lookup: settings.lookup.clone(),
            http2: settings.http2,
            connect: settings.connect,
        })
    }

    /// Connects, within the settings' patience and not beyond `deadline`.
    pub(super) async fn dial(&self, ways: &Ways, deadline: Instant) -> Result<Wire, Error> {
        let patience = after(self.connect);
        let until = patience.min(deadline);
        match tokio::time::timeout_at(until, self.connect(ways, until)).await {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(error)) => Err(Error::Unreachable(error.to_string())),
            Err(_) if deadline < patience => Err(Error::Timeout { sent: false }),
            Err(_) => Err(Error::Unreachable(format!(
                "no connection within {:?}",
                self.connect
            ))),
        }
    }

    async fn connect(&self, ways: &Ways, until: Instant) -> io::Result<Wire> {
        let tcp = self.reach(ways, until).await?;
        // A request leaves in one write, and an answer is waited for: holding back small packets only delays.
        tcp.set_nodelay(true)?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Wire::Plain(tcp));
        };
        let tls = connector.connect(name.clone(), tcp).await?;
        if self.http2 && tls.get_ref().1.alpn_protocol() != Some(H2) {
            return Err(io::Error::other("the agent does not offer HTTP/2"));
        }
        Ok(Wire::Tls(Box::new(tls)))
    }

    /// Tries all addresses of the machine, each with its share of the time left: one that swallows packets must
    /// not use up the others' time.
    async fn reach(&self, ways: &Ways, until: Instant) -> io::Result<TcpStream> {
        let addresses: SmallVec<[SocketAddr; 2]> = match ways {
            Ways::Known(addresses) => addresses.clone(),
            Ways::Name(place) => {
                let found = self.lookup.resolve(&place.host, place.port);
                found.await?.into()
            }
        };
        let mut failure = io::Error::other("the name has no address");
        for (tried, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = until.saturating_duration_since(Instant::now()) / left;
            failure = match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => io::Error::new(error.kind(), format!("{address}: {error}")),
                Err(_) => io::Error::other(format!("{address}: no answer within {share:?}")),
            };
        }
        Err(failure)
    }
}

fn config(ca_file: Option<&Path>, http2: bool) -> Result<ClientConfig, BadSettings> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BadSettings::Tls(error.to_string()))?
        .with_root_certificates(roots(ca_file)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![if http2 { H2.to_vec() } else { H1.to_vec() }];
    Ok(config)
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, BadSettings> {
    let mut roots = RootCertStore::empty();
    // Systems carry odd old certificates; what cannot be read of them is left out.
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(file) = ca_file {
        let bad = |reason: String| BadSettings::Roots(format!("{}: {reason}", file.display()));
        let before = roots.len();
        for certificate in
            CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?
        {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| bad(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(bad("holds no certificate".to_owned()));
        }
    }
    if roots.is_empty() {
        let reasons: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
        return Err(BadSettings::Roots(format!(
            "the system has none: {}",
            reasons.join("; ")
        )));
    }
    Ok(roots)
}

/// A stream of bytes to the agent.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            Self::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Tls(tls) => tls.is_write_vectored(),
        }
    }
}
