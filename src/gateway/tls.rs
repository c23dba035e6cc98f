//! TLS with agents, and with issuers of keys and tokens: those are trusted alike, but are not shown the certificate that
//! the gateway has for agents. Nothing is read where nobody needs it: a small image may have no authorities.
use super::making::BadSetup;
use crate::{
    agent::BadSettings,
    config::{Config, Credentials, Way},
    tls::{Client, Pair, Roots},
    watch::Look,
};

/// What all workers share.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) of_agents: Option<Client>,
    pub(super) of_issuers: Option<Client>,
}

impl Tls {
    /// Reads what is needed; `files` gets what is to be looked at from now on.
    pub(super) fn new(config: &Config, files: &mut Vec<Box<dyn Look>>) -> Result<Self, BadSetup> {
        let backend = &config.backend;
        let own = backend.client_cert_file.clone();
        let own = own.zip(backend.client_key_file.clone());
        let own = own.map(|(cert_file, key_file)| Pair {
            cert_file,
            key_file,
        });
        let mut read = |own| {
            let client = Client::read(
                "backend",
                &Roots {
                    system: backend.system_roots,
                    ca_file: backend.ca_file.clone(),
                    own,
                },
            );
            let client = client.map_err(|why| BadSettings::Tls(format!("backend.{why}")))?;
            files.push(client.files());
            Ok::<_, BadSetup>(client)
        };
        let of_agents = agents(config).then(|| read(own.clone())).transpose()?;
        let of_issuers = match &of_agents {
            _ if !issuers(config) => None,
            Some(client) if own.is_none() => Some(client.clone()),
            Some(_) | None => Some(read(None)?),
        };
        Ok(Self {
            of_agents,
            of_issuers,
        })
    }
}

impl Tls {
    /// Whether both settings make the same of it.
    pub(super) fn same(one: &Config, other: &Config) -> bool {
        let of = |config: &Config| {
            let backend = &config.backend;
            (
                backend.system_roots,
                backend.ca_file.clone(),
                backend.client_cert_file.clone(),
                backend.client_key_file.clone(),
                agents(config),
                issuers(config),
            )
        };
        of(one) == of(other)
    }
}

/// Whether an agent is reached by TLS.
fn agents(config: &Config) -> bool {
    let https = |to: &crate::config::Target| to.scheme == http::uri::Scheme::HTTPS;
    config
        .backend
        .url
        .as_ref()
        .is_some_and(crate::config::BaseUrl::is_https)
        || config.routes.iter().any(|route| https(&route.backend))
}

/// Whether an issuer is.
fn issuers(config: &Config) -> bool {
    let keys = config.auth.iter().filter_map(|way| match way {
        Way::Jwt(jwt) => jwt.jwks_url.as_deref(),
        Way::Passthrough | Way::Anyone | Way::ApiKeys(_) | Way::ClientCertificates(_) => None,
    });
    let tokens = match &config.backend.credentials {
        Some(Credentials::Oauth2(said)) => Some(&*said.token_url),
        Some(Credentials::Header(_)) | None => None,
    };
    keys.chain(tokens).any(|url| url.starts_with("https:"))
}
