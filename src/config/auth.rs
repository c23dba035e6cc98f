//! The sections about who is let in, and what the gateway shows the agent: `auth` and `backend.credentials`. As in
//! `sections`, the comments are also the descriptions in the JSON Schema. None of these holds a secret: they name the
//! files and variables that do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::HeaderName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::{BaseUrl, Config};

mod certificates;
mod keys;
mod realm;

pub use certificates::{Certificates, Pattern, trust_domain};
pub use keys::{Key, keys};
pub use realm::{Realm, realms};

/// One way to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Whoever calls, with what credential they like: the agent decides about it. The last way, if there are others.
    Passthrough,
    /// Whoever calls without a credential that another way looks at. The last way, if there are others.
    Anyone,
    /// Who has a key of the gateway's own.
    ApiKeys(ApiKeys),
    /// Who has a token of an issuer.
    Jwt(Box<Jwt>),
    /// Who has a certificate of an authority.
    ClientCertificates(Certificates),
}

impl Way {
    /// Whether who is let in by it is known to the gateway itself.
    pub(super) fn verifies(&self) -> bool {
        match self {
            Self::ApiKeys(_) | Self::Jwt(_) | Self::ClientCertificates(_) => true,
            Self::Passthrough | Self::Anyone => false,
        }
    }
}

/// Keys of the gateway's own, each with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiKeys {
    /// The file with the names and digests of all keys; read again when it changes.
    pub file: PathBuf,
    /// The fields of a request that may hold a key; in `authorization` it stands behind `Bearer`.
    pub headers: Vec<String>,
    /// Where its names and tenants belong: ways with one realm share their tenants. Without it they stand alone, and
    /// where other ways make sure of callers as well, the tenant `acme` is `keys|acme`. Each of several files needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
}

impl Default for ApiKeys {
    fn default() -> Self {
        Self {
            file: PathBuf::new(),
            headers: vec!["x-api-key".to_owned(), "authorization".to_owned()],
            realm: None,
        }
    }
}

/// Tokens of one issuer, behind `Bearer` in `authorization`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Jwt {
    /// Who issues them: what their `iss` says.
    pub issuer: String,
    /// Whom they are for: one of these is in their `aud`.
    pub audience: Vec<String>,
    /// How they may be signed. What a token says of itself does not widen this.
    pub algorithms: Vec<Algorithm>,
    /// Where the issuer's keys are fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The file with the issuer's keys, in place of `jwks_url`; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<PathBuf>,
    /// The claim that names the tenant; a token without it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Labels of the caller, each with the claim that it comes from.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Where its tenants belong: ways with one realm share them. Without it they stand alone, and where other ways make
    /// sure of callers as well, the tenant `acme` is `ISSUER|acme`: no issuer can name the tenants of another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
}

/// How a token may be signed: with the issuer's private key, never with a shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are those of RFC 7518 3.1")]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// What the gateway shows the agent; the caller's own credentials stay here then.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// A field with a secret.
    Header(SecretHeader),
    /// A token that is fetched for the gateway itself (OAuth 2.0 client credentials).
    Oauth2(Oauth2),
}

/// A field with a secret: all of its value is in the file or the variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretHeader {
    /// The field.
    pub name: String,
    /// The file with its value; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The environment variable with its value, in place of `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

impl Default for SecretHeader {
    fn default() -> Self {
        Self {
            name: "authorization".to_owned(),
            file: None,
            env: None,
        }
    }
}

/// Client credentials (RFC 6749 4.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Oauth2 {
    /// Where tokens are fetched.
    pub token_url: String,
    /// Who the gateway is there.
    pub client_id: String,
    /// The file with the secret of that; read for every token.
    pub client_secret_file: PathBuf,
    /// What the token is to be good for, words with spaces between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// The value of an environment variable that settings name. The mistake holds no value.
pub fn variable(name: &str) -> Result<String, String> {
    #[expect(clippy::disallowed_methods, reason = "this is `config`")]
    std::env::var(name).map_err(|_| format!("{name} is not set in the environment, or is no text"))
}

/// What each way says by itself, and what one says of another.
pub(super) fn check(config: &Config, tree: &mut Tree) {
    if config.auth.is_empty() {
        tree.wrong("auth", "expected at least one way, such as passthrough");
    }
    let last = config.auth.len().saturating_sub(1);
    for (index, way) in config.auth.iter().enumerate() {
        let key = format!("auth[{index}]");
        match way {
            Way::Passthrough | Way::Anyone if index < last => {
                tree.wrong(key, "lets everybody in: it must be the last way");
            }
            Way::Passthrough | Way::Anyone => {}
            Way::ApiKeys(keys) => api_keys(&format!("{key}.api_keys"), keys, tree),
            Way::Jwt(jwt) => {
                let same = |other: &&Way| matches!(other, Way::Jwt(o) if o.issuer == jwt.issuer);
                if config.auth[..index].iter().any(|w| same(&w)) {
                    tree.wrong(format!("{key}.jwt.issuer"), "stands in it twice");
                }
                self::jwt(&format!("{key}.jwt"), jwt, tree);
            }
            Way::ClientCertificates(said) => {
                let same = |other: &Way| matches!(other, Way::ClientCertificates(_));
                if config.auth[..index].iter().any(same) {
                    tree.wrong(key, "stands in it twice");
                    continue;
                }
                certificates::check(&format!("{key}.client_certificates"), said, tree);
            }
        }
    }
    realm::check(&config.auth, tree);
    let Some(credentials) = &config.backend.credentials else {
        return;
    };
    if config.auth.contains(&Way::Passthrough) {
        let says = "they would be shown for everybody, since passthrough lets all callers in: \
                    set auth to api_keys, jwt or client_certificates, or to anyone if that is meant";
        tree.wrong("backend.credentials", says);
    }
    let own = config.backend.url.as_ref();
    let own = own.map(|url| (url.scheme().to_string(), url.authority().to_string()));
    let routes = config.routes.iter().map(|route| &route.backend);
    let routes = routes.map(|to| (to.scheme.to_string(), to.authority.to_string()));
    let origins: std::collections::BTreeSet<_> = own.into_iter().chain(routes).collect();
    if origins.len() > 1 {
        let says =
            "they would be shown to every agent, and the routes lead to more than one origin";
        tree.wrong("backend.credentials", says);
    }
    match credentials {
        Credentials::Header(header) => {
            secret_header("backend.credentials.header", header, tree);
        }
        Credentials::Oauth2(oauth2) => client_credentials(oauth2, tree),
    }
}

/// What is no mistake, but may surprise.
pub(super) fn warning(config: &Config) -> Option<&'static str> {
    config.backend.credentials.as_ref()?;
    let own = config.backend.url.as_ref();
    let own = own.map(|url| (url.is_https(), url.authority().host()));
    let secure = |to: &super::Target| to.scheme == http::uri::Scheme::HTTPS;
    let routes = config.routes.iter().map(|route| &route.backend);
    let routes = routes.map(|to| (secure(to), to.authority.host()));
    let mut all = own.into_iter().chain(routes);
    all.any(|(secure, host)| !secure && !is_this_machine(host))
        .then_some(
            "backend.credentials: they go to the agent over plain http, readable on the way; give the agent https, or \
             see to it that the network between them is encrypted",
        )
}

fn api_keys(key: &str, said: &ApiKeys, tree: &mut Tree) {
    if said.file.as_os_str().is_empty() {
        tree.missing(key, "file", "expected the name of a file");
    }
    if said.headers.is_empty() {
        tree.wrong(format!("{key}.headers"), "expected at least one");
    }
    for (index, name) in said.headers.iter().enumerate() {
        field(&format!("{key}.headers[{index}]"), name, tree);
    }
}

fn jwt(key: &str, said: &Jwt, tree: &mut Tree) {
    if said.issuer.is_empty() {
        tree.missing(key, "issuer", "expected what a token's `iss` says");
    }
    if said.audience.is_empty() {
        tree.missing(key, "audience", "expected what a token's `aud` says");
    }
    if said.algorithms.is_empty() {
        tree.missing(key, "algorithms", "expected some, such as [ES256]");
    }
    match (&said.jwks_url, &said.jwks_file) {
        (Some(url), None) => https(&format!("{key}.jwks_url"), url, tree),
        (None, Some(file)) if !file.as_os_str().is_empty() => {}
        _ => tree.missing(key, "jwks_url", "expected either jwks_url or jwks_file"),
    }
    if said.tenant.as_ref().is_some_and(String::is_empty) {
        tree.wrong(format!("{key}.tenant"), "expected the name of a claim");
    }
}

pub(super) fn secret_header(key: &str, said: &SecretHeader, tree: &mut Tree) {
    field(&format!("{key}.name"), &said.name, tree);
    let given = |one: bool| usize::from(one);
    let file = said
        .file
        .as_ref()
        .is_some_and(|f| !f.as_os_str().is_empty());
    let env = said.env.as_ref().is_some_and(|e| !e.is_empty());
    if given(file) + given(env) != 1 {
        tree.missing(key, "file", "expected either file or env");
    }
}

fn client_credentials(said: &Oauth2, tree: &mut Tree) {
    const KEY: &str = "backend.credentials.oauth2";
    if said.token_url.is_empty() {
        tree.missing(KEY, "token_url", "expected an address");
    } else {
        https(&format!("{KEY}.token_url"), &said.token_url, tree);
    }
    if said.client_id.is_empty() {
        tree.missing(KEY, "client_id", "expected who the gateway is there");
    }
    if said.client_secret_file.as_os_str().is_empty() {
        tree.missing(KEY, "client_secret_file", "expected the name of a file");
    }
}

/// A field that a credential may stand in: none that HTTP itself or the gateway lives by.
fn field(key: &str, name: &str, tree: &mut Tree) {
    const TAKEN: [&str; 12] = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "accept",
        "te",
        "upgrade",
        "trailer",
        "keep-alive",
        "proxy-authorization",
        "a2a-version",
    ];
    let parsed = HeaderName::try_from(name).ok();
    if parsed.is_none_or(|name| TAKEN.contains(&name.as_str())) {
        tree.wrong(key, "expected the name of a field such as x-api-key");
    }
}

/// Keys and secrets go over an encrypted connection, or stay on this machine.
fn https(key: &str, text: &str, tree: &mut Tree) {
    match BaseUrl::parse(text) {
        Ok(url) if url.is_https() || is_loopback(&url) => {}
        Ok(_) => tree.wrong(key, "expected https, except on this machine itself"),
        Err(says) => tree.wrong(key, says),
    }
}

fn is_loopback(url: &BaseUrl) -> bool {
    is_this_machine(url.authority().host())
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
