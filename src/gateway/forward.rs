//! Header fields on their way through: what goes up to the agent, what comes down to the client, and what
//! earlier proxies said (RFC 9110 7.6, RFC 7239).
use std::{
    fmt::Write as _,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, header, uri::Authority};
use ipnet::IpNet;
use smallvec::SmallVec;

use super::Peer;
use crate::a2a::{Version, headers};

const X_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// Asks for losses to be told.
pub(super) const REPORT: HeaderName = HeaderName::from_static("a2a-gateway-report");
/// Tells them.
pub(super) const LOSSES: HeaderName = HeaderName::from_static("a2a-gateway-losses");

/// Fields of a request that concern the client's own connection, body or cache, or are ours to write. Those that are
/// always written, over what was there, need not be dropped: `Accept`, `Accept-Encoding`, `Content-Type`.
fn is_ours(name: &HeaderName) -> bool {
    headers::is_hop_by_hop(name)
        || matches!(
            *name,
            header::HOST
                | header::CONTENT_LENGTH
                | header::CONTENT_ENCODING
                | header::EXPECT
                | header::RANGE
                | header::IF_MATCH
                | header::IF_NONE_MATCH
                | header::IF_MODIFIED_SINCE
                | header::IF_UNMODIFIED_SINCE
                | header::IF_RANGE
                | header::ORIGIN
                | header::ACCESS_CONTROL_REQUEST_METHOD
                | header::ACCESS_CONTROL_REQUEST_HEADERS
        )
        || *name == headers::VERSION
        || *name == headers::EXTENSIONS
        || *name == headers::X_EXTENSIONS
        || *name == REPORT
        || tells_way(name)
}

/// Whether it tells of the way that a request took: a client's own word of it does not pass (see `Up::forwarded`).
pub(super) fn tells_way(name: &HeaderName) -> bool {
    *name == header::FORWARDED
        || *name == X_FOR
        || *name == X_PROTO
        || *name == X_HOST
        || *name == X_PREFIX
}

/// What goes up to the agent.
pub(super) struct Up<'a> {
    /// The version it speaks.
    pub(super) version: Version,
    /// The content type of a body.
    pub(super) content: &'static str,
    /// Whether events are wanted.
    pub(super) events: bool,
    /// Whose fields about earlier proxies are believed.
    pub(super) trusted: &'a [IpNet],
    /// Who sent the request.
    pub(super) peer: &'a Peer,
    /// The address that was written last.
    pub(super) last: &'a Last,
    /// The host by the request's target, which HTTP/2 has in place of `Host`.
    pub(super) authority: Option<&'a Authority>,
}

/// The address of whoever called last, as a field's value: the next call is often from there as well.
#[derive(Default)]
pub(super) struct Last(Mutex<Option<(IpAddr, HeaderValue)>>);

impl Last {
    fn value(&self, ip: IpAddr) -> Option<HeaderValue> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, value)) = &*last
            && *known == ip
        {
            return Some(value.clone());
        }
        let value = HeaderValue::try_from(ip.to_string()).ok()?;
        *last = Some((ip, value.clone()));
        Some(value)
    }
}

impl Up<'_> {
    /// The fields for the agent, made from those of the client.
    pub(super) fn fields(&self, mut fields: HeaderMap, asked: Version) -> HeaderMap {
        headers::strip_named(&mut fields);
        let extensions = headers::take_extensions(&mut fields, asked);
        let told = self.forwarded(&fields);
        drop_fields(&mut fields, is_ours);
        for (name, value) in told {
            fields.insert(name, value);
        }
        if let Some(extensions) = extensions {
            let name = match self.version {
                Version::V03 => headers::X_EXTENSIONS,
                Version::V10 => headers::EXTENSIONS,
            };
            fields.insert(name, extensions);
        }
        let accept = if self.events {
            "text/event-stream"
        } else {
            "application/json"
        };
        fields.insert(header::ACCEPT, HeaderValue::from_static(accept));
        fields.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content));
        if self.version == Version::V10 {
            fields.insert(headers::VERSION, HeaderValue::from_static("1.0"));
        }
        fields
    }

    /// What the agent is told of whom the call comes from.
    fn forwarded(&self, theirs: &HeaderMap) -> SmallVec<[(HeaderName, HeaderValue); 5]> {
        let mut told = SmallVec::new();
        let trusted = is_trusted(self.trusted, self.peer.addr.ip());
        let believed = |name| theirs.get(name).filter(|_| trusted).cloned();
        let address = if trusted {
            self.chain(theirs)
        } else {
            self.last.value(self.peer.addr.ip())
        };
        told.extend(address.map(|address| (X_FOR, address)));
        let scheme = if self.peer.tls { "https" } else { "http" };
        let scheme = believed(X_PROTO).unwrap_or(HeaderValue::from_static(scheme));
        told.push((X_PROTO, scheme));
        let target = || self.authority.and_then(|a| a.as_str().try_into().ok());
        let host = believed(X_HOST)
            .or_else(target)
            .or_else(|| theirs.get(header::HOST).cloned());
        told.extend(host.map(|host| (X_HOST, host)));
        for name in [X_PREFIX, header::FORWARDED] {
            told.extend(believed(name.clone()).map(|value| (name, value)));
        }
        told
    }

    /// The addresses that earlier proxies named, and the last proxy's own.
    fn chain(&self, theirs: &HeaderMap) -> Option<HeaderValue> {
        let mut chain = String::with_capacity(48);
        for value in theirs.get_all(X_FOR) {
            chain.push_str(value.to_str().unwrap_or("unknown"));
            chain.push_str(", ");
        }
        let _infallible = write!(chain, "{}", self.peer.addr.ip());
        HeaderValue::try_from(chain).ok()
    }
}

/// In place: a new map would cost two allocations and hash every name again.
fn drop_fields(fields: &mut HeaderMap, gone: impl Fn(&HeaderName) -> bool) {
    let gone: SmallVec<[HeaderName; 8]> = fields.keys().filter(|n| gone(n)).cloned().collect();
    for name in gone {
        fields.remove(name);
    }
}

/// Whether a peer's word about earlier proxies counts. An IPv4 address may come mapped into IPv6.
pub(super) fn is_trusted(trusted: &[IpNet], ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    trusted.iter().any(|net| net.contains(&ip))
}

/// The agent's fields for the client, but for those about its own connection and body.
pub(super) fn down(mut fields: HeaderMap, version: Version) -> HeaderMap {
    headers::strip_named(&mut fields);
    let extensions = headers::take_extensions(&mut fields, version);
    drop_fields(&mut fields, |name| {
        stays_up(name) || headers::is_hop_by_hop(name)
    });
    if let Some(extensions) = extensions {
        headers::put_extensions(&mut fields, extensions, version);
    }
    fields
}

/// Fields of an answer that do not go down: about a body that is written anew, the agent itself, and what a
/// browser may read, which is ours to say.
fn stays_up(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONTENT_LENGTH
            | header::CONTENT_TYPE
            | header::CONTENT_ENCODING
            | header::ETAG
            | header::LAST_MODIFIED
            | header::ACCEPT_RANGES
            | header::CONTENT_LOCATION
            | header::LOCATION
            | header::SERVER
            | header::ALT_SVC
            | header::ACCESS_CONTROL_ALLOW_ORIGIN
            | header::ACCESS_CONTROL_ALLOW_CREDENTIALS
            | header::ACCESS_CONTROL_EXPOSE_HEADERS
    ) || *name == headers::VERSION
}

/// The address under which a client reached us, if it is one: `scheme://host[:port]`. Earlier proxies are
/// asked only where they are trusted.
pub(super) fn own_address(
    theirs: &HeaderMap,
    uri_host: Option<&Authority>,
    peer: &Peer,
    trusted: &[IpNet],
) -> Option<String> {
    let believed = is_trusted(trusted, peer.addr.ip());
    let text = |name: HeaderName| {
        let value = believed
            .then(|| theirs.get(name)?.to_str().ok())
            .flatten()?;
        let last = value.rsplit(',').next()?.trim();
        (!last.is_empty()).then(|| last.to_owned())
    };
    let host = text(X_HOST)
        .or_else(|| uri_host.map(ToString::to_string))
        .or_else(|| Some(theirs.get(header::HOST)?.to_str().ok()?.to_owned()))?;
    let authority: Authority = host.parse().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if authority.as_str().contains('@') || !authority.as_str().chars().all(plain) {
        return None;
    }
    let scheme = match text(X_PROTO).as_deref() {
        Some(s) if s.eq_ignore_ascii_case("https") => "https",
        Some(s) if s.eq_ignore_ascii_case("http") => "http",
        _ if peer.tls => "https",
        _ => "http",
    };
    Some(format!("{scheme}://{authority}"))
}
