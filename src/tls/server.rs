//! What the listener shows its clients, and what it asks of them.
use std::{fmt, path::PathBuf, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    crypto::aws_lc_rs::Ticketer,
    pki_types::{CertificateDer, CertificateRevocationListDer},
    server::{
        NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier, danger::ClientCertVerifier,
    },
    sign::SingleCertAndKey,
    version::{TLS12, TLS13},
};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::{
    Certificate, Expiry, H1, H2, Pair,
    files::{Looked, Made},
    provider,
};
use crate::watch::{Look, Watched};

/// How to speak TLS with clients.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the gateway shows.
    pub own: Pair,
    /// Whether TLS 1.2 is refused.
    pub only_13: bool,
    /// What clients show, if they are asked at all.
    pub clients: Option<ClientCertificates>,
}

/// What clients show.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    /// Whether there is no connection without a certificate.
    pub required: bool,
    /// Who vouches for them.
    pub ca_file: PathBuf,
    /// What was revoked.
    pub crl_files: Vec<PathBuf>,
}

/// TLS with clients. Cloning it is cheap.
#[derive(Clone)]
pub struct Server(Made<Now>);

/// As the files say it now.
pub(super) struct Now {
    config: Arc<ServerConfig>,
    /// Who says whether a client's certificate is good.
    pub(super) verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// Which of all that there were.
    pub(super) time: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    /// Reads all files, which must be good the first time.
    pub fn read(settings: &Settings) -> Result<Self, String> {
        let mut files = Looked::new("tls");
        let keys = ["tls.cert_file", "tls.key_file"];
        let pair = files.pair(keys[0].to_owned(), keys, &settings.own, provider())?;
        let clients = settings.clients.as_ref();
        let verifier = clients.map(|c| verifier(c, &mut files)).transpose()?;
        let versions = if settings.only_13 { ONLY_13 } else { BOTH };
        let ticketer = Ticketer::new().map_err(|why| format!("tls: {why}"))?;
        let made = Made::of(files, move |time| {
            let verifier = verifier.as_ref().map(|make| make()).transpose()?;
            let config = config(pair()?.into(), verifier.clone(), versions, &ticketer)?;
            Ok(Now {
                config: config.into(),
                verifier,
                time,
            })
        })?;
        Ok(Self(made))
    }

    /// Looks at the files, once in a while.
    pub fn files(&self) -> Box<dyn Look> {
        Box::new(self.0.clone())
    }

    /// When the certificate ends that is shown, and those of who vouches for clients.
    pub fn ends(&self) -> Arc<[Expiry]> {
        self.0.ends()
    }

    /// For the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.now().config.clone())
    }

    /// Who is at the other end, once the handshake is done.
    pub fn shown(&self, by: &ServerConnection) -> Option<Arc<Certificate>> {
        let chain = by.peer_certificates()?;
        let chain = chain.iter().map(|der| der.clone().into_owned()).collect();
        Certificate::of(chain, self.clone()).map(Arc::new)
    }

    pub(super) fn now(&self) -> Arc<Now> {
        self.0.now()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}

static ONLY_13: &[&SupportedProtocolVersion] = &[&TLS13];
static BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

fn config(
    own: SingleCertAndKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    versions: &[&'static SupportedProtocolVersion],
    ticketer: &Arc<dyn ProducesTickets>,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .map_err(|why| format!("tls: {why}"))?;
    let asks = verifier.is_some();
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(own));
    config.alpn_protocols = vec![H2.to_vec(), H1.to_vec()];
    if asks {
        // A session that goes on shows no certificate again: one that was revoked since would still be let in.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        config.ticketer = ticketer.clone();
    }
    Ok(config)
}

type Verifier = Arc<dyn ClientCertVerifier>;

/// Once a list is at hand, each certificate below an authority must be one that a list speaks of: of one whose issuer
/// has no list here, nobody knows whether it was revoked, and it is refused. A list holds until there is a newer one.
fn verifier(
    of: &ClientCertificates,
    files: &mut Looked,
) -> Result<impl Fn() -> Result<Verifier, String> + Send + Sync + use<>, String> {
    let setting = "tls.client_certificates.ca_file";
    let roots = files.authorities(setting, &of.ca_file)?;
    files.tells(setting.to_owned(), roots.clone());
    let mut lists: Vec<Watched<Vec<CertificateRevocationListDer<'static>>>> = vec![];
    for (index, path) in of.crl_files.iter().enumerate() {
        let key = format!("tls.client_certificates.crl_files[{index}]");
        lists.push(files.lists(&key, path)?);
    }
    let required = of.required;
    Ok(move || {
        let lists = lists.iter().flat_map(|l| (*l.now()).clone());
        let builder =
            WebPkiClientVerifier::builder_with_provider(store(&roots.now())?.into(), provider())
                .with_crls(lists);
        let builder = if required {
            builder
        } else {
            builder.allow_unauthenticated()
        };
        let built = builder.build();
        built.map_err(|why| format!("tls.client_certificates: {why}"))
    })
}

pub(super) fn store(of: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for der in of {
        store.add(der.clone()).map_err(|why| why.to_string())?;
    }
    Ok(store)
}
