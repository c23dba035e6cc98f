//! The address of an agent or of ourselves: a scheme, a host and a path, and nothing that could be
//! lost, leaked or misread when a path is laid below it.

use std::fmt;

use http::Uri;
use http::uri::{Authority, Scheme};

/// `http://host:port/path` without credentials, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    path: String,
}

impl BaseUrl {
    /// Reads an address; the mistake never repeats it, since it may hold a secret.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, authority, path) = split(text)?;
        if path.contains(['{', '}']) {
            return Err("parameters in braces are for routes only");
        }
        let dots = |segment: &str| matches!(segment, "." | "..");
        if path.split('/').any(dots) {
            return Err("the path must not contain `.` or `..` segments");
        }
        // A URL written by the rules has only these (RFC 3986 3.3); percent-encoding is kept as it is.
        let mut rest = path.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            rest = match (byte, after) {
                (b'%', [a, b, after @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                    after
                }
                (b'/', after) => after,
                (byte, after) if is_plain(*byte) => after,
                _ => return Err("the path holds a character that must be percent-encoded"),
            };
        }
        let path = path.to_owned();
        Ok(Self {
            scheme,
            authority,
            path,
        })
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// The host, with the port where it was given.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The port, given or implied.
    pub fn port(&self) -> u16 {
        let implied = if self.is_https() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(implied)
    }

    /// The path as written: empty, or from its first slash on.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of something below this address; `suffix` begins with a slash or is empty.
    pub fn path_below(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.path.trim_end_matches('/'))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

/// Scheme, authority and path of an address; the path is not looked at.
pub(super) fn split(text: &str) -> Result<(Scheme, Authority, &str), &'static str> {
    const FORM: &str = "expected an address such as https://host/path";
    let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
    let scheme = match scheme {
        "http" => Scheme::HTTP,
        "https" => Scheme::HTTPS,
        _ => return Err("expected an address that begins with http:// or https://"),
    };
    if rest.contains(['?', '#']) {
        return Err("an address must not have a query or a fragment");
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("an address must not hold credentials");
    }
    if authority.contains(['{', '}']) {
        return Err("parameters may stand in the path only");
    }
    // The whole is what knows whether a host is one.
    let whole: Uri = format!("http://{authority}/").parse().map_err(|_| FORM)?;
    let authority = whole.authority().ok_or(FORM)?.clone();
    if authority.host().is_empty() {
        return Err(FORM);
    }
    let after_host = &authority.as_str()[authority.host().len()..];
    if !after_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("the port must be a number from 1 to 65535");
    }
    Ok((scheme, authority, path))
}

/// Whether a byte may stand in a path segment as itself (RFC 3986 `pchar`).
pub(super) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_as_written() {
        for text in [
            "http://localhost",
            "https://agent.example/",
            "http://10.0.0.1:9999/a2a",
            "http://[::1]:8080/rpc/",
            "https://agent.example/a%20b/@v1:x",
        ] {
            let url = BaseUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), text);
        }
        let url = BaseUrl::parse("https://agent.example/rpc/").expect("valid");
        assert_eq!(url.path_below("/v1/card"), "/rpc/v1/card");
        assert_eq!((url.port(), url.is_https()), (443, true));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "localhost:8080",
            "ftp://host/",
            "HTTP:/host",
            "http://",
            "http:///path",
            "http://:80/",
            "http://host:/",
            "http://host:0/",
            "http://host:99999/",
            "http://user:secret@host/",
            "http://host/?q",
            "http://host?q",
            "http://host/#f",
            "http://host/a/../b",
            "http://host/./b",
            "http://host/a b",
            "http://host/%zz",
            "http://host/%2",
            "http://host/\u{e4}",
            "http://ho st/",
            "http://host/{id}",
            "http://{host}/",
            "http://host\\x/",
        ] {
            let says = BaseUrl::parse(text).expect_err(text);
            assert!(!says.contains("secret"), "{says}");
        }
    }
}
