//! Makes a connection: name, TCP, TLS, under one deadline.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use super::error::{BadSettings, Error};
use super::names::{Lookup, Ways};
use super::{Settings, after};
use crate::tls::{self, Client, H2, Roots};

/// Knows how to reach the agent.
pub(super) struct Dialer {
    tls: Option<(Client, ServerName<'static>)>,
    lookup: Lookup,
    socket: Option<PathBuf>,
    http2: bool,
    connect: Duration,
}

impl Dialer {
    pub(super) fn new(settings: &Settings) -> Result<Self, BadSettings> {
        let origin = &settings.origin;
        let tls = if origin.secure() {
            let name = settings.server_name.as_deref().unwrap_or(origin.host());
            let name = ServerName::try_from(name.to_owned())
                .map_err(|error| BadSettings::Tls(error.to_string()))?;
            let client = match &settings.tls {
                Some(client) => client.clone(),
                None => Client::read("backend", &Roots::default()).map_err(BadSettings::Tls)?,
            };
            Some((client, name))
        } else {
            None
        };
        Ok(Self {
            tls,
            lookup: settings.lookup.clone(),
            socket: settings.socket.clone(),
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
            Ok(Err(error)) => Err(Error::Unreachable(match tls::advice(&error) {
                Some(advice) => format!("{error}; {advice}"),
                None => error.to_string(),
            })),
            Err(_) if deadline < patience => Err(Error::Timeout { sent: false }),
            Err(_) => Err(Error::Unreachable(format!(
                "no connection within {:?}",
                self.connect
            ))),
        }
    }

    async fn connect(&self, ways: &Ways, until: Instant) -> io::Result<Wire> {
        if let Some(path) = &self.socket {
            let named = |error: io::Error| {
                let says = format!("unix:{}: {error}", path.display());
                io::Error::new(error.kind(), says)
            };
            return UnixStream::connect(path)
                .await
                .map(Wire::Unix)
                .map_err(named);
        }
        let tcp = self.reach(ways, until).await?;
        // A request leaves in one write, and an answer is waited for: holding back small packets only delays.
        tcp.set_nodelay(true)?;
        let Some((client, name)) = &self.tls else {
            return Ok(Wire::Plain(tcp));
        };
        let connector = client.connector(self.http2);
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

/// A stream of bytes to the agent.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
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
            Self::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
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
            Self::Unix(unix) => Pin::new(unix).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Self::Unix(unix) => Pin::new(unix).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            Self::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
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
            Self::Unix(unix) => Pin::new(unix).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Tls(tls) => tls.is_write_vectored(),
            Self::Unix(unix) => unix.is_write_vectored(),
        }
    }
}
