//! The section about TLS with clients, and where to listen. As in `sections`, the comments are also the descriptions in
//! the JSON Schema.
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::Way;
use super::tree::Tree;
use super::units::Time;
use super::{Backend, BaseUrl, Config};

/// Where to listen: an address, or a socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a socket.
    Unix(PathBuf),
}

impl Listen {
    /// Whether only this machine itself gets there.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(path) = text.strip_prefix(UNIX) else {
            let address = text.parse().map(Self::Tcp);
            return address.map_err(|_| {
                "expected an address and a port, such as 127.0.0.1:8080 or [::]:8080, or unix:/path/of/socket"
            });
        };
        socket(path).map(Self::Unix)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// What the path of a socket is written behind.
pub(super) const UNIX: &str = "unix:";
/// A socket's path is no longer in any system, with what is put behind it while it is made.
const LONGEST: usize = 90;

pub(super) fn socket(path: &str) -> Result<PathBuf, &'static str> {
    if !path.starts_with('/') || path.ends_with('/') || path.len() > LONGEST {
        return Err("expected unix: and a path from / on, of at most 90 bytes");
    }
    Ok(path.into())
}

/// The address of an agent behind a socket stands for its `Host`; nobody connects to it.
pub(super) fn behind_socket() -> Option<BaseUrl> {
    BaseUrl::parse("http://localhost").ok()
}

/// How clients connect by TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// The certificate that the gateway shows, and those between it and its authority, as PEM; read again when it changes.
    pub cert_file: PathBuf,
    /// Its private key, as PEM; read again when it changes.
    pub key_file: PathBuf,
    /// The oldest version that is spoken.
    pub min_version: MinVersion,
    /// What clients show.
    pub client_certificates: ClientCertificates,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    #[serde(rename = "1.2")]
    V12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V13,
}

/// What clients show.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientCertificates {
    /// Whether they are asked for a certificate, and may do without.
    pub mode: Asks,
    /// The authorities that vouch for them, as PEM; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Lists of revoked certificates, as PEM; read again when they change. With any, whose issuer has none is refused.
    pub crl_files: Vec<PathBuf>,
    /// How old a connection becomes before it is told to go: a new one shows its certificate anew.
    #[serde(with = "Time")]
    pub max_connection_age: Duration,
}

impl Default for ClientCertificates {
    fn default() -> Self {
        Self {
            mode: Asks::default(),
            ca_file: None,
            crl_files: Vec::new(),
            max_connection_age: Duration::from_hours(1),
        }
    }
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Asks {
    /// They are not.
    #[default]
    Off,
    /// They are, and may do without; a bad one is refused.
    Optional,
    /// Without one there is no connection.
    Required,
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// What belongs together, and what of it makes no sense.
pub(super) fn check(config: &Config, tree: &mut Tree) {
    const CLIENTS: &str = "tls.client_certificates";
    if let Some(tls) = &config.tls {
        for (key, path) in [("cert_file", &tls.cert_file), ("key_file", &tls.key_file)] {
            if is_empty(path) {
                tree.missing("tls", key, "expected the name of a file");
            }
        }
        if matches!(config.listen, Listen::Unix(_)) {
            tree.wrong("tls", "there is none over a Unix socket");
        }
        let clients = &tls.client_certificates;
        let off = clients.mode == Asks::Off;
        match &clients.ca_file {
            None if !off => {
                tree.missing(CLIENTS, "ca_file", "who vouches for them? expected a file");
            }
            Some(path) if is_empty(path) => {
                tree.wrong(format!("{CLIENTS}.ca_file"), "expected the name of a file");
            }
            None | Some(_) => {}
        }
        if off && (clients.ca_file.is_some() || !clients.crl_files.is_empty()) {
            let says = "clients are not asked for any: expected optional or required";
            tree.missing(CLIENTS, "mode", says);
        }
        if clients.crl_files.iter().any(|path| is_empty(path)) {
            tree.wrong(format!("{CLIENTS}.crl_files"), "expected names of files");
        }
        if clients.max_connection_age < Duration::from_secs(1) {
            tree.wrong(
                format!("{CLIENTS}.max_connection_age"),
                "expected at least 1s",
            );
        }
    }
    let asked = config.tls.as_ref().map(|tls| tls.client_certificates.mode);
    let by_certificate = |way: &Way| matches!(way, Way::ClientCertificates(_));
    if let Some(index) = config.auth.iter().position(by_certificate)
        && asked.is_none_or(|mode| mode == Asks::Off)
    {
        let says = "nobody is asked for a certificate: set tls.client_certificates.mode";
        tree.wrong(format!("auth[{index}].client_certificates"), says);
    }
    backend(config, tree);
}

fn backend(config: &Config, tree: &mut Tree) {
    let backend = &config.backend;
    for (key, path, other) in [
        (
            "client_cert_file",
            &backend.client_cert_file,
            "client_key_file",
        ),
        (
            "client_key_file",
            &backend.client_key_file,
            "client_cert_file",
        ),
    ] {
        let both = backend.client_cert_file.is_some() && backend.client_key_file.is_some();
        if path.as_ref().is_some_and(|path| is_empty(path)) {
            tree.wrong(format!("backend.{key}"), "expected the name of a file");
        } else if path.is_some() && !both {
            let says = format!("goes together with {other}");
            tree.wrong(format!("backend.{key}"), says);
        }
    }
    if !backend.system_roots && backend.ca_file.is_none() {
        let says = "nobody would be trusted: set ca_file";
        tree.wrong("backend.system_roots", says);
    }
    let origins = origins(config);
    if let Some(name) = &backend.server_name {
        if rustls::pki_types::ServerName::try_from(name.as_str()).is_err() {
            tree.wrong("backend.server_name", "expected the name of a host");
        } else if origins.len() > 1 {
            let says =
                "it would be asked of every agent, and the routes lead to more than one origin";
            tree.wrong("backend.server_name", says);
        }
    }
    let own = behind_socket().map(|url| url.authority().to_string());
    let routes = config.routes.iter().map(|route| &route.backend);
    if backend.socket.is_some()
        && routes
            .into_iter()
            .any(|to| Some(to.authority.to_string()) == own)
    {
        let says = "localhost stands for the agent behind the socket: write 127.0.0.1 in routes";
        tree.wrong("backend.url", says);
    }
}

/// Where agents are, each once.
fn origins(config: &Config) -> std::collections::BTreeSet<(String, String)> {
    let own = config.backend.url.as_ref();
    let own = own.map(|url| (url.scheme().to_string(), url.authority().to_string()));
    let routes = config.routes.iter().map(|route| &route.backend);
    let routes = routes.map(|to| (to.scheme.to_string(), to.authority.to_string()));
    own.into_iter().chain(routes).collect()
}

impl Backend {
    /// What an agent is reached under, for people.
    pub fn place(&self) -> Option<String> {
        match &self.socket {
            Some(path) => Some(format!("{UNIX}{}", path.display())),
            None => self.url.as_ref().map(ToString::to_string),
        }
    }
}
