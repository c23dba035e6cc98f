//! What the gateway asks of an agent, and what it shows there.
use std::{fmt, path::PathBuf, sync::Arc};

use rustls::{ClientConfig, RootCertStore, sign::SingleCertAndKey};
use tokio_rustls::TlsConnector;

use super::{
    Expiry, H1, H2, Pair,
    files::{Looked, Made},
    provider,
};
use crate::watch::Look;

/// Whom to trust, and what to show.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Whether those count that the system trusts.
    pub system: bool,
    /// More authorities to trust.
    pub ca_file: Option<PathBuf>,
    /// What the gateway shows who asks for it.
    pub own: Option<Pair>,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            system: true,
            ca_file: None,
            own: None,
        }
    }
}

/// TLS with agents and issuers. Cloning it is cheap; only a clone of it equals it.
#[derive(Clone, PartialEq)]
pub struct Client(Made<Both>);

/// For each HTTP.
struct Both {
    h1: Arc<ClientConfig>,
    h2: Arc<ClientConfig>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// Reads all files, which must be good the first time, and once what the system trusts.
    ///
    /// Messages about them begin with `section`, the settings that name them.
    pub fn read(section: &'static str, settings: &Roots) -> Result<Self, String> {
        let mut files = Looked::new(section);
        let system = system(settings)?;
        let more = settings.ca_file.as_deref();
        let more = more.map(|path| files.authorities("ca_file", path));
        let more = more.transpose()?;
        let own = settings.own.as_ref();
        let own = own.map(|pair| {
            let keys = ["client_cert_file", "client_key_file"];
            let setting = format!("{section}.client_cert_file");
            files.pair(setting, keys, pair, provider())
        });
        let own = own.transpose()?;
        let made = Made::of(files, move |_| {
            let mut roots = system.clone();
            for der in more.iter().flat_map(|more| (*more.now()).clone()) {
                roots.add(der).map_err(|why| why.to_string())?;
            }
            let own = own.as_ref().map(|make| make()).transpose()?;
            let builder = ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .map_err(|why| why.to_string())?
                .with_root_certificates(roots);
            let mut h1 = match own {
                Some(own) => {
                    builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
                }
                None => builder.with_no_client_auth(),
            };
            h1.alpn_protocols = vec![H1.to_vec()];
            let mut h2 = h1.clone();
            h2.alpn_protocols = vec![H2.to_vec()];
            Ok(Both {
                h1: h1.into(),
                h2: h2.into(),
            })
        })?;
        Ok(Self(made))
    }

    /// Looks at the files, once in a while.
    pub fn files(&self) -> Box<dyn Look> {
        Box::new(self.0.clone())
    }

    /// When the certificate ends that is shown, if there is one.
    pub fn ends(&self) -> Arc<[Expiry]> {
        self.0.ends()
    }

    /// For the next connection.
    pub fn connector(&self, http2: bool) -> TlsConnector {
        let now = self.0.now();
        TlsConnector::from(if http2 { &now.h2 } else { &now.h1 }.clone())
    }
}

/// Systems carry odd old certificates; what cannot be read of them is left out.
fn system(settings: &Roots) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if !settings.system {
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() && settings.ca_file.is_none() {
        let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(format!("the system trusts nobody: {}", why.join("; ")));
    }
    Ok(roots)
}
