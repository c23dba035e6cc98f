//! Where the agent is: scheme, host and port, read once from a URL.

use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};

use super::error::BadSettings;

/// Scheme, host and port. Made by [`Origin::parse`] only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    secure: bool,
    host: String,
    port: u16,
    authority: Authority,
    host_header: HeaderValue,
}

impl Origin {
    /// Reads an `http` or `https` URL; gives also its path, without a trailing slash, to put before each
    /// request's. User info, query and fragment are refused: none of them would reach the agent.
    pub fn parse(url: &str) -> Result<(Self, String), BadSettings> {
        let bad = |reason: &str| BadSettings::Url {
            url: url.to_owned(),
            reason: reason.to_owned(),
        };
        // `Uri` drops a fragment without a word.
        if url.contains('#') {
            return Err(bad("a fragment is not allowed"));
        }
        let uri: Uri = url.parse().map_err(|_| bad("not a URL"))?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(bad("the scheme must be http or https")),
            None => return Err(bad("a scheme is needed: http:// or https://")),
        };
        let given = uri.authority().ok_or_else(|| bad("a host is needed"))?;
        if given.as_str().contains('@') {
            // The URL holds a password: it is not repeated.
            return Err(BadSettings::Url {
                url: "the URL".to_owned(),
                reason: "user info is not allowed".to_owned(),
            });
        }
        if uri.query().is_some() {
            return Err(bad("a query is not allowed"));
        }
        if given.host().is_empty() {
            return Err(bad("a host is needed"));
        }
        let usual = if secure { 443 } else { 80 };
        let port = match given.as_str()[given.host().len()..].strip_prefix(':') {
            None => usual,
            Some(_) => given
                .port_u16()
                .filter(|port| *port != 0)
                .ok_or_else(|| bad("the port is not a number from 1 to 65535"))?,
        };
        let authority: Authority = if port == usual {
            given.host().parse()
        } else {
            format!("{}:{port}", given.host()).parse()
        }
        .map_err(|_| bad("the host cannot be read"))?;
        let origin = Self {
            secure,
            host: given.host().trim_matches(['[', ']']).to_owned(),
            port,
            host_header: HeaderValue::from_str(authority.as_str())
                .map_err(|_| bad("the host cannot be read"))?,
            authority,
        };
        Ok((origin, uri.path().trim_end_matches('/').to_owned()))
    }

    /// Whether it is reached with TLS.
    pub fn secure(&self) -> bool {
        self.secure
    }

    /// Name or address, the latter without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also when the URL does not name it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as a URL has them; the usual port is left out.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn scheme(&self) -> Scheme {
        if self.secure {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        }
    }

    pub(super) fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_an_origin_and_a_prefix() {
        for (url, secure, host, port, authority, prefix) in [
            ("http://a.example", false, "a.example", 80, "a.example", ""),
            (
                "https://a.example:443/",
                true,
                "a.example",
                443,
                "a.example",
                "",
            ),
            (
                "http://[::1]:8080/x/y/",
                false,
                "::1",
                8080,
                "[::1]:8080",
                "/x/y",
            ),
            (
                "https://10.0.0.1:80/a",
                true,
                "10.0.0.1",
                80,
                "10.0.0.1:80",
                "/a",
            ),
        ] {
            let (origin, path) = Origin::parse(url).unwrap();
            assert_eq!(origin.secure(), secure, "{url}");
            assert_eq!(origin.host(), host, "{url}");
            assert_eq!(origin.port(), port, "{url}");
            assert_eq!(origin.authority().as_str(), authority, "{url}");
            assert_eq!(path, prefix, "{url}");
        }
    }

    #[test]
    fn what_could_not_be_honoured_is_refused() {
        for url in [
            "",
            "a.example",
            "/path",
            "ftp://a.example",
            "http://",
            "http://a.example/?q=1",
            "http://a.example/#part",
            "http://a.example:99999",
            "http://a.example:0",
            "http://a.example:",
            "http://a b",
        ] {
            assert!(Origin::parse(url).is_err(), "{url}");
        }
        let error = Origin::parse("http://user:secret@a.example").unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
