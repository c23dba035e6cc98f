//! Where the agent's names lead. Addresses of one family are taken for so many machines; where a name has addresses of
//! both, each of the one has a partner in the other, to fall back to (RFC 8305 in its simplest form).

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use smallvec::SmallVec;

/// What a name leads to, when that is known.
pub type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// What is asked for the addresses of a name. Literal addresses are not asked about.
pub trait Resolver: Send + Sync {
    /// The addresses of `host`, each with `port`; the preferred family first.
    fn resolve(&self, host: &str, port: u16) -> Answer;
}

/// Who looks up names.
#[derive(Clone, Default)]
pub enum Lookup {
    /// The system, as it is set up to.
    #[default]
    System,
    /// Somebody else.
    By(Arc<dyn Resolver>),
}

impl Lookup {
    pub(super) fn resolve(&self, host: &str, port: u16) -> Answer {
        match self {
            Self::System => {
                let host = host.to_owned();
                Box::pin(async move {
                    let found = tokio::net::lookup_host((host, port)).await?;
                    Ok(found.collect())
                })
            }
            Self::By(resolver) => resolver.resolve(host, port),
        }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::By(_) => "By(..)",
        })
    }
}

impl PartialEq for Lookup {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::System, Self::System) => true,
            (Self::By(one), Self::By(other)) => Arc::ptr_eq(one, other),
            (Self::System, Self::By(_)) | (Self::By(_), Self::System) => false,
        }
    }
}

/// One of the places where the agent is said to be: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name or address, the latter without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Place {
    /// Itself, where it is an address.
    pub(super) fn literal(&self) -> Option<SocketAddr> {
        let ip = self.host.parse().ok()?;
        Some(SocketAddr::new(ip, self.port))
    }
}

/// How one machine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    /// By this name, looked up whenever there is something to connect.
    Name(Place),
    /// At these addresses, one after the other.
    Known(SmallVec<[SocketAddr; 2]>),
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(place) => write!(f, "{}:{}", place.host, place.port),
            Self::Known(all) => match all.first() {
                Some(first) => first.fmt(f),
                None => f.write_str("nowhere"),
            },
        }
    }
}

/// The machines behind the addresses of one name, in an order that is the same for the same addresses.
pub(super) fn machines(found: Vec<SocketAddr>) -> Vec<Ways> {
    let Some(preferred) = found.first().map(SocketAddr::is_ipv4) else {
        return Vec::new();
    };
    let (mut ours, mut others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|address| address.is_ipv4() == preferred);
    for all in [&mut ours, &mut others] {
        all.sort_unstable();
        all.dedup();
    }
    let mut partners = others.into_iter();
    let one = |address| {
        let both = std::iter::once(address).chain(partners.next());
        Ways::Known(both.collect())
    };
    ours.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_the_preferred_family_is_a_machine() {
        let all = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect();
        let told = |found| {
            let ways = machines(found).into_iter().map(|ways| match ways {
                Ways::Known(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>(),
                Ways::Name(_) => panic!("a name"),
            });
            ways.collect::<Vec<_>>()
        };
        assert!(told(vec![]).is_empty());
        let three = all(&["10.0.0.3:9", "10.0.0.1:9", "10.0.0.2:9", "10.0.0.1:9"]);
        assert_eq!(
            told(three),
            [["10.0.0.1:9"], ["10.0.0.2:9"], ["10.0.0.3:9"]]
        );
        let local = all(&["[::1]:9", "127.0.0.1:9"]);
        assert_eq!(told(local), [["[::1]:9", "127.0.0.1:9"]]);
        let mixed = all(&["10.0.0.2:9", "10.0.0.1:9", "[fd00::7]:9"]);
        assert_eq!(
            told(mixed),
            [vec!["10.0.0.1:9", "[fd00::7]:9"], vec!["10.0.0.2:9"]]
        );
    }
}
