//! TLS, both sides: what the listener shows its clients and asks of them, and what the gateway shows an agent and asks
//! of it. Certificates, keys, authorities and lists of what was revoked are read again when their files change; new
//! connections then go by the new ones. One provider of cryptography is named everywhere, so that none is taken by chance.
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

mod advice;
mod certificate;
mod client;
mod expiry;
mod files;
mod server;
#[cfg(test)]
mod tests;

pub use advice::{advice, refusal};
pub use certificate::Certificate;
pub use client::{Client, Roots};
pub use expiry::Expiry;
pub use server::{ClientCertificates, Server, Settings};

/// HTTP/2, as ALPN names it.
pub const H2: &[u8] = b"h2";
/// HTTP/1.1, as ALPN names it.
pub const H1: &[u8] = b"http/1.1";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Files with a certificate and the private key that belongs to it, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, and those between it and its authority.
    pub cert_file: std::path::PathBuf,
    /// The key.
    pub key_file: std::path::PathBuf,
}
