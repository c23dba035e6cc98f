//! Any bytes as a request's head: a line with method and address, then header fields, one a line.
use a2a_gateway::a2a::{
    Dialect, Version,
    detect::{self, Target},
    headers,
    reply::ReplyTo,
    rest::{self, Found, Place},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

use super::{accepts, must_be_told, plain, requests};

/// Bodies for whatever the head asks for.
const BODIES: [&str; 3] = [
    "",
    r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hi"}]}}"#,
];

pub(super) fn any(bytes: &[u8]) {
    let mut lines = bytes.split(|b| *b == b'\n');
    let first = lines.next().unwrap_or_default();
    let mut words = first.splitn(2, |b| *b == b' ');
    let method = words.next().and_then(|m| Method::from_bytes(m).ok());
    let method = method.unwrap_or_default();
    let address = words.next().unwrap_or_default();
    let mut fields = HeaderMap::new();
    for line in lines {
        let mut pair = line.splitn(2, |b| *b == b':');
        let name = pair.next().and_then(|n| HeaderName::from_bytes(n).ok());
        let value = pair.next().unwrap_or_default().trim_ascii();
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            fields.append(name, value);
        }
    }
    let uri = Uri::try_from(address).ok();
    let query = uri.as_ref().and_then(Uri::query);
    let said = of_fields(&fields, query);
    extensions_and_hops(fields);
    if let Ok(text) = std::str::from_utf8(address) {
        path(&method, text, None, said); // as no HTTP library would let it through
    }
    if let Some(uri) = &uri {
        path(&method, uri.path(), query, said);
    }
}

fn of_fields(fields: &HeaderMap, query: Option<&str>) -> Option<Version> {
    headers::is_json(fields);
    for also in [vec![], vec!["1.1".to_owned()]] {
        if let Err(fault) = headers::version(fields, query, &also) {
            must_be_told(&ReplyTo::new(Dialect::J03), &fault);
        }
    }
    let said = headers::version(fields, query, &[]).ok().flatten();
    for version in [Version::V03, Version::V10] {
        let agrees = said.is_none_or(|s| s == version);
        assert_eq!(headers::check(said, version).is_ok(), agrees);
    }
    said
}

fn extensions_and_hops(mut fields: HeaderMap) {
    for version in [Version::V03, Version::V10] {
        let mut copy = fields.clone();
        if let Some(merged) = headers::take_extensions(&mut copy, version) {
            assert!(!copy.contains_key(headers::EXTENSIONS));
            assert!(!copy.contains_key(headers::X_EXTENSIONS));
            headers::put_extensions(&mut copy, merged.clone(), version);
            let again = headers::take_extensions(&mut copy, version);
            assert_eq!(again, Some(merged), "merged twice is merged once");
        }
    }
    let before = fields.clone();
    headers::strip_named(&mut fields);
    let named = before.get_all(header::CONNECTION).iter();
    for name in named.filter_map(|v| v.to_str().ok()?.trim().parse::<HeaderName>().ok()) {
        let gone = headers::is_hop_by_hop(&name) || !fields.contains_key(&name);
        assert!(gone, "{name} is still there");
    }
}

fn path(method: &Method, path: &str, query: Option<&str>, said: Option<Version>) {
    for snake in [false, true] {
        match detect::target(method, path, &accepts(snake)) {
            Ok(Target::Rest(found)) => operation(method, &found, query, said),
            Ok(Target::Rpc | Target::Card) => {}
            Err(fault) => must_be_told(&ReplyTo::new(detect::likely(path, said)), &fault),
        }
    }
}

fn operation(method: &Method, found: &Found, query: Option<&str>, said: Option<Version>) {
    let place = Place {
        op: found.op,
        version: found.version,
        id: found.id.as_deref().map(Into::into),
        config: found.config.as_deref().map(Into::into),
        tenant: found.tenant.as_deref().map(Into::into),
        slash: false,
    };
    if let Ok(path) = place.path() {
        let again = rest::find(method, &path).ok();
        assert_eq!(again.as_ref(), Some(found), "written as {path}");
    }
    for body in BODIES {
        let body = Bytes::from_static(body.as_bytes());
        requests::rest(found, query, said, &body, &plain());
    }
}
