//! The protocol's header fields: version and extensions under both names, content types; and what a proxy must
//! not pass on (RFC 9110 7.6.1).
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    fault::{Fault, Kind},
    rest,
    shape::Version,
};

/// The version of a request (v1.0 3.6).
pub const VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// Extensions in v1.0.
pub const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
/// Extensions in v0.3.
pub const X_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");

/// The version that a request says it is, if it says any: by header, or by query as v1.0 3.6.1 allows. Empty
/// says nothing. `also` are further minors taken as 1.0.
pub fn version(
    headers: &HeaderMap,
    query: Option<&str>,
    also: &[String],
) -> Result<Option<Version>, Fault> {
    let mut said = None;
    for value in headers.get_all(VERSION) {
        let text = value
            .to_str()
            .map_err(|_| unsupported("that is not text"))?;
        agree(&mut said, text, also)?;
    }
    if let Some(query) = query {
        for (key, value) in rest::pairs(query) {
            if key.eq_ignore_ascii_case("A2A-Version") {
                agree(&mut said, &value, also)?;
            }
        }
    }
    Ok(said)
}

fn agree(said: &mut Option<Version>, text: &str, also: &[String]) -> Result<(), Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let short = || text.chars().take(32).collect::<String>();
    let version = parse(text, also).ok_or_else(|| unsupported(&short()))?;
    if said.is_some_and(|s| s != version) {
        return Err(unsupported("two different ones at once"));
    }
    *said = Some(version);
    Ok(())
}

/// Major.Minor decide; a patch number does not count (v1.0 3.6).
fn parse(text: &str, also: &[String]) -> Option<Version> {
    match text {
        "0.3" => return Some(Version::V03), // what nearly all say
        "1.0" => return Some(Version::V10),
        _ => {}
    }
    let mut numbers = text.split('.');
    let mut number = || numbers.next().map(whole);
    let (major, minor, patch) = (number()??, number(), number());
    if numbers.next().is_some() || minor == Some(None) || patch == Some(None) {
        return None;
    }
    match (major, minor.flatten()) {
        ("0", Some("3")) => Some(Version::V03),
        ("1", None | Some("0")) => Some(Version::V10),
        ("1", Some(minor)) => {
            let listed = also.iter().any(|a| a.strip_prefix("1.") == Some(minor));
            listed.then_some(Version::V10)
        }
        _ => None,
    }
}

fn whole(text: &str) -> Option<&str> {
    let plain = !text.is_empty() && text.len() < 6 && text.bytes().all(|c| c.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    (plain && canonical).then_some(text)
}

/// The fault for a version that is not served.
pub fn unsupported(what: &str) -> Fault {
    Fault::new(
        Kind::VersionNotSupported,
        format!("A2A version {what} is not supported here; 0.3 and 1.0 are"),
    )
    .with("supportedVersions", "0.3, 1.0")
}

/// Refuses a header that contradicts the method or path, which decide (decision 1).
pub fn check(said: Option<Version>, is: Version) -> Result<(), Fault> {
    match said {
        Some(said) if said != is => Err(unsupported(&format!(
            "{} on a method or path of {}",
            said.name(),
            is.name()
        ))),
        _ => Ok(()),
    }
}

/// Whether a client is the JavaScript SDK, which encodes `fileWithBytes` of v0.3 REST once where Python and
/// Java do so twice. Asked only where the request itself has no bytes to tell it by; a browser is JavaScript too.
pub fn is_javascript(headers: &HeaderMap) -> bool {
    const RUNTIMES: [&str; 5] = ["node", "undici", "Deno/", "Bun/", "Mozilla/"];
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.and_then(|a| a.to_str().ok()).unwrap_or_default();
    RUNTIMES.iter().any(|r| agent.starts_with(r))
}

/// Whether a request's body may be read as JSON by its header; bodies without one are.
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let kind = media_type(value);
    kind.is_empty()
        || kind.eq_ignore_ascii_case("application/json")
        || kind.eq_ignore_ascii_case("application/a2a+json")
}

/// The media type without its parameters.
pub fn media_type(value: &HeaderValue) -> &str {
    let text = value.to_str().unwrap_or("?");
    text.split(';').next().unwrap_or(text).trim()
}

/// Takes the extensions of both names out, merged: first those of the version's own name, each once.
pub fn take_extensions(headers: &mut HeaderMap, version: Version) -> Option<HeaderValue> {
    if !headers.contains_key(EXTENSIONS) && !headers.contains_key(X_EXTENSIONS) {
        return None;
    }
    let order = match version {
        Version::V03 => [X_EXTENSIONS, EXTENSIONS],
        Version::V10 => [EXTENSIONS, X_EXTENSIONS],
    };
    let mut all: Vec<&str> = vec![];
    for name in &order {
        for value in headers.get_all(name) {
            let items = value.to_str().unwrap_or_default().split(',').map(str::trim);
            for item in items.filter(|i| !i.is_empty()) {
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
    }
    let merged = HeaderValue::from_str(&all.join(", ")).ok();
    headers.remove(EXTENSIONS);
    headers.remove(X_EXTENSIONS);
    merged.filter(|m| !m.is_empty())
}

/// Puts extensions into an answer under the names that its reader knows.
pub fn put_extensions(headers: &mut HeaderMap, value: HeaderValue, version: Version) {
    if version == Version::V03 {
        headers.insert(X_EXTENSIONS, value.clone());
    }
    headers.insert(EXTENSIONS, value);
}

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Whether a field concerns one connection only.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::TE
            | header::TRAILER
    ) || *name == KEEP_ALIVE
        || *name == PROXY_CONNECTION
}

/// Removes what `Connection` names, which is for one connection only as well.
pub fn strip_named(headers: &mut HeaderMap) {
    if !headers.contains_key(header::CONNECTION) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: &str) -> Result<Option<Version>, Kind> {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, value.parse().unwrap());
        version(&headers, None, &["1.1".to_owned()]).map_err(|f| f.kind)
    }

    #[test]
    fn versions_are_compared_by_major_and_minor() {
        for text in ["1.0", "1", "1.0.0", "1.0.17", " 1.0 ", "1.1", "1.1.2"] {
            assert_eq!(said(text), Ok(Some(Version::V10)), "{text}");
        }
        for text in ["0.3", "0.3.0"] {
            assert_eq!(said(text), Ok(Some(Version::V03)), "{text}");
        }
        assert_eq!(said(""), Ok(None));
        for text in [
            "0.5", "0.2", "2.0", "1.2", "1.00", "10.0", "1.05", "1.0-rc", "1.0.0.0", "v1", "0",
            "1.",
        ] {
            assert_eq!(said(text), Err(Kind::VersionNotSupported), "{text}");
        }
    }

    #[test]
    fn a_client_is_javascript_by_its_runtime() {
        let of = |agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            is_javascript(&headers)
        };
        assert!(of("node") && of("undici") && of("Mozilla/5.0 (X11)"));
        assert!(!of("python-httpx/0.28.1") && !of("Java-http-client/17"));
        assert!(!is_javascript(&HeaderMap::new()));
    }

    #[test]
    fn header_and_query_must_agree() {
        let mut headers = HeaderMap::new();
        let read = |h: &HeaderMap, q| version(h, Some(q), &[]).ok();
        assert_eq!(
            read(&headers, "a2a-version=1.0&x=1"),
            Some(Some(Version::V10))
        );
        headers.insert(VERSION, HeaderValue::from_static("0.3"));
        assert_eq!(read(&headers, "A2A-Version=0.3"), Some(Some(Version::V03)));
        assert_eq!(read(&headers, "A2A-Version=1.0"), None);
    }

    #[test]
    fn extensions_are_merged_under_the_reader_s_name() {
        let mut headers = HeaderMap::new();
        headers.append(EXTENSIONS, "b, c".parse().unwrap());
        headers.append(X_EXTENSIONS, "a".parse().unwrap());
        headers.append(X_EXTENSIONS, "b,a".parse().unwrap());
        let merged = take_extensions(&mut headers, Version::V03).unwrap();
        assert_eq!(merged, "a, b, c");
        assert!(headers.is_empty());
        put_extensions(&mut headers, merged, Version::V03);
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn what_connection_names_is_removed() {
        let mut headers = HeaderMap::new();
        headers.append("connection", "keep-alive, X-Debug".parse().unwrap());
        headers.append("x-debug", "1".parse().unwrap());
        headers.append("te", "trailers".parse().unwrap());
        headers.append("x-kept", "1".parse().unwrap());
        strip_named(&mut headers);
        let left = headers.keys().filter(|name| !is_hop_by_hop(name));
        assert_eq!(left.map(HeaderName::as_str).collect::<Vec<_>>(), ["x-kept"]);
    }
}
