//! Where the store is, and a connection to it.
#[cfg(test)]
use std::sync::Arc;
use std::{fmt, time::Duration};

use percent_encoding::percent_decode_str;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    Pipeline, RedisError, RedisFuture, RedisResult, TlsMode, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClientBuilder, SentinelServerType},
};

#[cfg(test)]
use super::tests::by_hand::Way;

/// The address of a store, read once. Shown without user and password.
#[derive(Clone)]
pub struct Address {
    kind: Kind,
    shown: String,
}

#[derive(Clone)]
enum Kind {
    /// One server.
    One(Box<ConnectionInfo>),
    /// Sentinels, who know which server is the master now.
    Sentinel(Box<Sentinels>),
    /// Some servers of a cluster.
    Cluster(Vec<String>),
    /// One server, over a way that a test breaks.
    #[cfg(test)]
    Over(Box<ConnectionInfo>, Arc<Way>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sentinels {
    hosts: Vec<(String, u16)>,
    tls: bool,
    master: String,
    db: i64,
    user: Option<String>,
    password: Option<String>,
    sentinel_password: Option<String>,
}

/// What is wrong with an address. Never says what stands in it, which may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No scheme that is known.
    #[error(
        "a store is `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://` or `redis+cluster://`, \
         and the last two have `rediss+…` for TLS"
    )]
    Scheme,
    /// Hosts, port or database cannot be read.
    #[error(
        "a store is `scheme://user:password@host:port`, with further `,host:port` for sentinels and a cluster"
    )]
    Form,
    /// Sentinels are asked for a master by its name.
    #[error("sentinels need a master's name: `redis+sentinel://host:26379,host:26379/name`")]
    Master,
}

impl Address {
    /// Reads `redis://`, `rediss://`, `redis+unix://`, and with several hosts `redis+sentinel://…/master/db` (the
    /// sentinels' own password is `?sentinel_password=`) and `redis+cluster://`; `rediss+…` is TLS.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
        let (userinfo, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let shown = rest.split_once('?').map_or(rest, |(before, _)| before);
        let shown = format!("{scheme}://{shown}");
        let tls = scheme.starts_with("rediss");
        let kind = match scheme {
            "redis" | "rediss" | "redis+unix" => {
                let one = url.into_connection_info();
                Kind::One(Box::new(one.map_err(|_| AddressError::Form)?))
            }
            "redis+sentinel" | "rediss+sentinel" => {
                Kind::Sentinel(Box::new(Sentinels::parse(tls, userinfo, rest)?))
            }
            "redis+cluster" | "rediss+cluster" => cluster(tls, userinfo, rest)?,
            _ => return Err(AddressError::Scheme),
        };
        Ok(Self { kind, shown })
    }

    /// Whether keys spread over several servers.
    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster(_))
    }

    /// The same one server, over that way.
    #[cfg(test)]
    pub(super) fn over(self, way: Arc<Way>) -> Self {
        let Kind::One(info) = self.kind else {
            panic!("not one server");
        };
        let kind = Kind::Over(info, way);
        Self { kind, ..self }
    }

    /// A new connection, within that time: the clients' own deadlines have not always held.
    pub(super) async fn connect(&self, within: Duration) -> RedisResult<Link> {
        let late = || RedisError::from((ErrorKind::Io, "no connection in time"));
        let connected = tokio::time::timeout(within, self.link(within)).await;
        connected.map_err(|_| late())?
    }

    async fn link(&self, within: Duration) -> RedisResult<Link> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(None); // each command has a deadline of ours
        let client = match &self.kind {
            Kind::One(info) => redis::Client::open((**info).clone())?,
            Kind::Sentinel(s) => s.client()?.async_get_client().await?,
            Kind::Cluster(nodes) => {
                let client = ClusterClient::builder(nodes.iter().map(String::as_str))
                    .connection_timeout(within)
                    .response_timeout(within)
                    .retries(3)
                    .build()?;
                return Ok(Link::Cluster(client.get_async_connection().await?));
            }
            #[cfg(test)]
            Kind::Over(info, way) => {
                let (client, cuts) = (redis::Client::open((**info).clone())?, way.cuts());
                let link = client.get_multiplexed_async_connection_with_config(&config);
                let link = way.pass(cuts, link).await?;
                return Ok(Link::Over(link, Arc::clone(way), cuts));
            }
        };
        let link = client.get_multiplexed_async_connection_with_config(&config);
        Ok(Link::One(link.await?))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Sentinels {
    fn parse(tls: bool, userinfo: &str, rest: &str) -> Result<Self, AddressError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parts = rest.splitn(3, '/');
        let hosts = parts.next().unwrap_or_default();
        let hosts: Option<Vec<_>> = hosts.split(',').map(|h| host_of(h, 26379)).collect();
        let master = parts.next().filter(|m| !m.is_empty());
        let db = parts.next().filter(|db| !db.is_empty()).unwrap_or("0");
        let (user, password) = user_of(userinfo);
        let sentinel_password = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("sentinel_password="));
        Ok(Self {
            hosts: hosts.ok_or(AddressError::Form)?,
            tls,
            master: decoded(master.ok_or(AddressError::Master)?),
            db: db.parse().map_err(|_| AddressError::Form)?,
            user,
            password,
            sentinel_password: sentinel_password.map(decoded),
        })
    }

    fn client(&self) -> RedisResult<redis::sentinel::SentinelClient> {
        let hosts = self.hosts.iter().map(|(host, port)| {
            if self.tls {
                ConnectionAddr::TcpTls {
                    host: host.clone(),
                    port: *port,
                    insecure: false,
                    tls_params: None,
                }
            } else {
                ConnectionAddr::Tcp(host.clone(), *port)
            }
        });
        let master = SentinelServerType::Master;
        let mut client = SentinelClientBuilder::new(hosts, &self.master, master)?
            .set_client_to_redis_db(self.db);
        if self.tls {
            client = client
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(user) = &self.user {
            client = client.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.password {
            client = client.set_client_to_redis_password(password);
        }
        if let Some(password) = &self.sentinel_password {
            client = client.set_client_to_sentinel_password(password);
        }
        client.build()
    }
}

/// A cluster's servers, as addresses of one each: all with the same user.
fn cluster(tls: bool, userinfo: &str, rest: &str) -> Result<Kind, AddressError> {
    let hosts = rest.split(['/', '?']).next().unwrap_or_default();
    let scheme = if tls { "rediss" } else { "redis" };
    let at = if userinfo.is_empty() { "" } else { "@" };
    let node = |host: &str| {
        let (name, port) = host_of(host, 6379)?;
        let url = format!("{scheme}://{userinfo}{at}{name}:{port}");
        url.as_str().into_connection_info().ok()?;
        Some(url)
    };
    let nodes: Option<Vec<_>> = hosts.split(',').map(node).collect();
    nodes.map(Kind::Cluster).ok_or(AddressError::Form)
}

fn host_of(text: &str, port: u16) -> Option<(String, u16)> {
    // A colon inside brackets is of an IPv6 address.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, said)) if !said.ends_with(']') => (host, said.parse().ok()?),
        _ => (text, port),
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn user_of(userinfo: &str) -> (Option<String>, Option<String>) {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let some = |text: &str| (!text.is_empty()).then(|| decoded(text));
    (some(user), some(password))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// A connection, shared by all commands that are on their way.
#[derive(Clone)]
pub(super) enum Link {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
    /// Of a test, until the way was cut that often.
    #[cfg(test)]
    Over(MultiplexedConnection, Arc<Way>, u64),
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(one) => one.req_packed_command(cmd),
            Self::Cluster(cluster) => cluster.req_packed_command(cmd),
            #[cfg(test)]
            Self::Over(one, way, cuts) => Box::pin(way.pass(*cuts, one.req_packed_command(cmd))),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(one) => one.req_packed_commands(pipeline, offset, count),
            Self::Cluster(cluster) => cluster.req_packed_commands(pipeline, offset, count),
            #[cfg(test)]
            Self::Over(one, way, cuts) => {
                Box::pin(way.pass(*cuts, one.req_packed_commands(pipeline, offset, count)))
            }
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(one) => one.get_db(),
            Self::Cluster(cluster) => cluster.get_db(),
            #[cfg(test)]
            Self::Over(one, ..) => one.get_db(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_a_password() {
        for (url, shown) in [
            ("redis://h", "redis://h"),
            ("redis://u:p%40ss@h:1/2", "redis://h:1/2"),
            ("rediss://:secret@h:6380", "rediss://h:6380"),
            (
                "redis+unix:///run/redis.sock",
                "redis+unix:///run/redis.sock",
            ),
            (
                "redis+cluster://u:p@a:1,b,[::1]:3",
                "redis+cluster://a:1,b,[::1]:3",
            ),
            (
                "rediss+sentinel://p@a/main?sentinel_password=x",
                "rediss+sentinel://a/main",
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
        }
    }

    #[test]
    fn sentinels_know_a_master_by_name() {
        let url = "rediss+sentinel://me:p%40ss@a:1,b/main/3?sentinel_password=s%2F";
        let Kind::Sentinel(said) = Address::parse(url).unwrap().kind else {
            panic!("not sentinels");
        };
        let meant = Sentinels {
            hosts: vec![("a".into(), 1), ("b".into(), 26379)],
            tls: true,
            master: "main".into(),
            db: 3,
            user: Some("me".into()),
            password: Some("p@ss".into()),
            sentinel_password: Some("s/".into()),
        };
        assert_eq!(*said, meant);
        assert!(said.client().is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_an_error_without_the_text() {
        for (url, error) in [
            ("memory", AddressError::Scheme),
            ("http://h", AddressError::Scheme),
            ("redis://h:port", AddressError::Form),
            ("redis+cluster://a,,b", AddressError::Form),
            ("redis+sentinel://a,b", AddressError::Master),
            ("redis+sentinel://a/main/x", AddressError::Form),
        ] {
            assert_eq!(Address::parse(url).map(|_| ()), Err(error), "{url}");
        }
    }
}
