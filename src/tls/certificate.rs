//! A client's certificate: the names in it, and whether it is still good. It was good when the connection began; a
//! connection may outlive its time, or be there when it is revoked, so that it is asked again.
use std::{any::Any, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::time::Instant;

use super::Server;

/// How long its being good is believed, while nothing has changed: after its end it is missed by then.
const BELIEVED: Duration = Duration::from_secs(30);
/// The longest SPIFFE ID there is (SPIFFE-ID 2.3).
const LONGEST: usize = 2048;
const SPIFFE: &str = "spiffe://";

/// What a client has shown: made once for a connection.
#[derive(Debug)]
pub struct Certificate {
    spiffe: Option<Box<str>>,
    dns: Vec<Box<str>>,
    chain: Vec<CertificateDer<'static>>,
    by: Server,
    checked: Mutex<Checked>,
    memo: Mutex<Option<(u64, Memo)>>,
}

type Memo = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Checked {
    time: u64,
    at: Instant,
    good: bool,
}

impl Certificate {
    pub(super) fn of(chain: Vec<CertificateDer<'static>>, by: Server) -> Option<Self> {
        let (spiffe, dns) = names(chain.first()?);
        let time = by.now().time;
        Some(Self {
            spiffe,
            dns,
            chain,
            // The handshake may have been by what was there before.
            checked: Mutex::new(Checked {
                time: time.wrapping_sub(1),
                at: Instant::now(),
                good: true,
            }),
            by,
            memo: Mutex::new(None),
        })
    }

    /// The SPIFFE ID, if it is the one URI in it, and well-formed.
    pub fn spiffe(&self) -> Option<&str> {
        self.spiffe.as_deref()
    }

    /// The DNS names, in small letters; none that stands for many.
    pub fn dns(&self) -> impl Iterator<Item = &str> {
        self.dns.iter().map(|name| &**name)
    }

    /// All of these.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.spiffe().into_iter().chain(self.dns())
    }

    /// Whether it would still be let in.
    pub fn is_good(&self) -> bool {
        let now = self.by.now();
        let mut checked = self.checked.lock();
        if checked.time == now.time && checked.at.elapsed() < BELIEVED {
            return checked.good;
        }
        let (Some(verifier), Some((own, between))) = (&now.verifier, self.chain.split_first())
        else {
            return false;
        };
        let good = verifier.verify_client_cert(own, between, UnixTime::now());
        if let Err(why) = &good {
            let name = self.spiffe.as_deref().or_else(|| self.dns().next());
            tracing::info!(name, %why, "a client's certificate is no longer good");
        }
        *checked = Checked {
            time: now.time,
            at: Instant::now(),
            good: good.is_ok(),
        };
        checked.good
    }

    /// Waits until it is no longer good.
    pub async fn outlived(self: Arc<Self>) {
        let mut changes = self.by.changes();
        while self.is_good() {
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(BELIEVED) => {}
            }
        }
    }

    /// What somebody makes of it, kept for their next call; `who` tells apart those who do.
    pub fn memo<T: Send + Sync + 'static>(&self, who: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let mut memo = self.memo.lock();
        if let Some((by, kept)) = &*memo
            && *by == who
            && let Ok(kept) = kept.clone().downcast::<T>()
        {
            return kept;
        }
        let fresh = Arc::new(make());
        *memo = Some((who, fresh.clone()));
        fresh
    }
}

type Names = (Option<Box<str>>, Vec<Box<str>>);

/// The names in a certificate. Two URIs make none: X509-SVID 2 has exactly one, and nobody could say which is meant.
fn names(of: &CertificateDer<'_>) -> Names {
    let Ok(parsed) = webpki::EndEntityCert::try_from(of) else {
        return (None, vec![]);
    };
    let mut uris = parsed.valid_uri_names();
    let (first, second) = (uris.next(), uris.next());
    let of_spiffe = [first, second].into_iter().flatten().any(is_spiffe) || uris.any(is_spiffe);
    if of_spiffe {
        let spiffe = first.filter(|id| second.is_none() && is_id(id));
        // Whoever has a name of SPIFFE's is not known by another, also if that name is no good.
        return (spiffe.map(Into::into), vec![]);
    }
    let dns = parsed.valid_dns_names();
    let dns = dns.filter(|name| !name.contains('*'));
    let dns = dns.map(|name| name.trim_end_matches('.').to_ascii_lowercase().into());
    (None, dns.collect())
}

fn is_spiffe(uri: &str) -> bool {
    uri.get(..SPIFFE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SPIFFE))
}

/// Whether it is a SPIFFE ID with a path (SPIFFE-ID 2).
pub(super) fn is_id(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(SPIFFE).filter(|_| text.len() <= LONGEST) else {
        return false;
    };
    let Some((domain, path)) = rest.split_once('/') else {
        return false; // the domain alone is nobody in it
    };
    let of_domain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
    let of_path = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let segment = |s: &str| !matches!(s, "" | "." | "..") && s.bytes().all(of_path);
    !domain.is_empty() && domain.bytes().all(of_domain) && path.split('/').all(segment)
}
