//! Commands on their way: each is one future with a deadline, and lands with what was said.
use std::{collections::VecDeque, sync::Arc, time::Duration};

use redis::{
    Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind, Value,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
};

use super::{
    super::Key,
    Settings,
    address::Link,
    keys::Keys,
    owners::Scripts,
    script::{Counts, Found, Messages, Op, Reply, Saying, Slots},
};

/// How many keys a server looks at for one step of a list.
const STEP: usize = 1000;

/// Why nothing was said.
#[derive(Debug)]
pub(super) enum Fail {
    /// Not in time. It may have been done.
    Late,
    /// The connection is of no more use. It may have been done.
    Broken(RedisError),
    /// The store does not do that.
    Refused(RedisError),
}

/// All that commands need.
pub(super) struct Wire {
    pub(super) keys: Keys,
    pub(super) slots: Slots,
    messages: Messages,
    pub(super) counts: Counts,
    bind: Script,
    pub(super) owned: Scripts,
    within: Duration,
}

impl Wire {
    pub(super) fn new(keys: Keys, settings: &Settings) -> Arc<Self> {
        let times = settings.times;
        Arc::new(Self {
            keys,
            messages: Messages::new(&times, settings.message_ttl),
            counts: Counts::new(times.lease),
            slots: Slots::new(times),
            bind: Script::new(
                "local bound = redis.call('GET', KEYS[1])
                if bound and bound ~= ARGV[1] then return bound end
                redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
                return false",
            ),
            owned: Scripts::default(),
            within: settings.timeout,
        })
    }

    /// An operation on a conversation.
    pub(super) async fn slot(
        self: Arc<Self>,
        mut link: Link,
        key: Key,
        op: Op,
        shift: u64,
    ) -> Result<Reply, Fail> {
        let epoch = self.keys.epoch(self.keys.tag(key));
        let name = self.keys.slot(key);
        let call = self.slots.call(&name, &epoch, &op, shift);
        self.timed(call.invoke_async(&mut link)).await
    }

    /// Something said of a message.
    pub(super) async fn message(
        self: Arc<Self>,
        mut link: Link,
        key: Key,
        saying: Saying,
        shift: u64,
    ) -> Result<Found, Fail> {
        let epoch = self.keys.epoch(self.keys.tag(key));
        let name = self.keys.message(key);
        let call = self.messages.call(&name, &epoch, &saying, shift);
        self.timed(call.invoke_async(&mut link)).await
    }

    /// The epoch of a tag, which begins if there is none.
    pub(super) async fn epoch(
        self: Arc<Self>,
        mut link: Link,
        tag: u8,
        shift: u64,
    ) -> Result<Reply, Fail> {
        let (name, epoch) = (self.keys.nobody(tag), self.keys.epoch(tag));
        let call = self.slots.call(&name, &epoch, &Op::Look, shift);
        self.timed(call.invoke_async(&mut link)).await
    }

    pub(super) async fn learn(
        self: Arc<Self>,
        mut link: Link,
        task: Key,
        context: Box<str>,
        ttl: u64,
    ) -> Result<(), Fail> {
        let mut set = Cmd::new();
        set.arg("SET")
            .arg(self.keys.task(task))
            .arg(&*context)
            .arg("PX")
            .arg(ttl);
        self.timed(set.exec_async(&mut link)).await
    }

    pub(super) async fn context_of(
        self: Arc<Self>,
        mut link: Link,
        task: Key,
    ) -> Result<Option<String>, Fail> {
        let mut get = Cmd::new();
        get.arg("GET").arg(self.keys.task(task));
        self.timed(get.query_async(&mut link)).await
    }

    /// To which other agent it is bound.
    pub(super) async fn bind(
        self: Arc<Self>,
        link: Link,
        context: Key,
        agent: Box<str>,
        ttl: u64,
    ) -> Result<Option<String>, Fail> {
        let name = self.keys.binding(context);
        self.set_once(link, &name, &agent, ttl).await
    }

    /// Sets what is not set yet, for that long from now on; the other value that it has.
    pub(super) async fn set_once(
        &self,
        mut link: Link,
        name: &str,
        value: &str,
        ttl: u64,
    ) -> Result<Option<String>, Fail> {
        let mut call = self.bind.key(name);
        call.arg(value).arg(ttl);
        self.timed(call.invoke_async(&mut link)).await
    }

    /// Some conversations.
    pub(super) async fn list(
        self: Arc<Self>,
        link: Link,
        limit: usize,
        shift: u64,
    ) -> Result<Vec<(Key, Reply)>, Fail> {
        let names = self.timed(self.names(link.clone(), limit)).await?;
        let mut all = vec![];
        for key in names.iter().filter_map(|name| Keys::of_slot(name)) {
            let reply = Arc::clone(&self)
                .slot(link.clone(), key, Op::Look, shift)
                .await?;
            if !reply.entry.is_free() {
                all.push((key, reply));
            }
        }
        Ok(all)
    }

    async fn names(&self, mut link: Link, limit: usize) -> RedisResult<Vec<String>> {
        let pattern = self.keys.slots();
        let scan = |cursor: &str| {
            let mut scan = Cmd::new();
            scan.arg("SCAN").arg(cursor).arg("MATCH").arg(&pattern);
            scan.arg("COUNT").arg(STEP).take()
        };
        let mut names = vec![];
        let mut left = VecDeque::from([(None, "0".to_owned())]);
        if let Link::Cluster(cluster) = &mut link {
            // Each of its servers has some.
            let to = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            let first = cluster.route_command(scan("0"), to).await?;
            left.clear();
            let Value::Map(servers) = first else {
                return Err((ErrorKind::UnexpectedReturnType, "not a map of servers").into());
            };
            for (server, said) in servers {
                let server = String::from_redis_value(server)?;
                let (cursor, some): (String, Vec<String>) = FromRedisValue::from_redis_value(said)?;
                names.extend(some);
                left.push_back((Some(server), cursor));
            }
            left.retain(|(_, cursor)| cursor != "0");
        }
        while let Some((server, cursor)) = left.pop_front()
            && names.len() < limit
        {
            let said = match (&mut link, &server) {
                (Link::Cluster(cluster), Some(server)) => {
                    let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
                    let to = SingleNodeRoutingInfo::ByAddress {
                        host: host.to_owned(),
                        port: port.parse().unwrap_or_default(),
                    };
                    let to = RoutingInfo::SingleNode(to);
                    cluster.route_command(scan(&cursor), to).await?
                }
                (link, _) => scan(&cursor).query_async(link).await?,
            };
            let (cursor, some): (String, Vec<String>) = FromRedisValue::from_redis_value(said)?;
            names.extend(some);
            if cursor != "0" {
                left.push_back((server, cursor));
            }
        }
        names.truncate(limit);
        Ok(names)
    }

    pub(super) async fn timed<T>(
        &self,
        said: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, Fail> {
        match tokio::time::timeout(self.within, said).await {
            Ok(said) => said.map_err(Fail::of),
            Err(_) => Err(Fail::Late),
        }
    }
}

impl Fail {
    fn of(error: RedisError) -> Self {
        let gone = matches!(
            error.kind(),
            ErrorKind::Io
                | ErrorKind::AuthenticationFailed
                | ErrorKind::ClusterConnectionNotFound
                // It is starting, or not the master any more: another connection may reach one that is.
                | ErrorKind::Server(
                    ServerErrorKind::BusyLoading
                        | ServerErrorKind::ReadOnly
                        | ServerErrorKind::MasterDown
                        | ServerErrorKind::ClusterDown
                )
        );
        if gone || error.is_unrecoverable_error() || error.is_connection_dropped() {
            Self::Broken(error)
        } else {
            Self::Refused(error)
        }
    }
}
