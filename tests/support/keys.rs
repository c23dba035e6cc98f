//! Keys of callers, and the files that settings name.
use std::io::Write;

use aws_lc_rs::digest::{SHA256, digest};
use tempfile::NamedTempFile;

/// A file with this in it.
pub fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

pub fn overwrite(file: &NamedTempFile, text: &str) {
    std::fs::write(file.path(), text).unwrap();
}

/// A key as its file has it.
pub fn item(name: &str, key: &str, more: &str) -> String {
    let digest = digest(&SHA256, key.as_bytes());
    let digest: [u8; 32] = digest.as_ref().try_into().unwrap();
    let hex = blake3::Hash::from_bytes(digest).to_hex();
    format!("- {{name: {name}, digest: 'sha256:{hex}', {more}}}\n")
}

/// The way in by these keys.
pub fn keys_way(file: &NamedTempFile) -> String {
    format!("{{api_keys: {{file: '{}'}}}}", file.path().display())
}

/// What the agent is shown: the value of `authorization` is in this file.
pub fn credentials(file: &NamedTempFile) -> String {
    let path = file.path().display();
    format!("credentials: {{header: {{file: '{path}'}}}}")
}

pub fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

pub fn api_key(key: &str) -> String {
    format!("x-api-key: {key}\r\n")
}
