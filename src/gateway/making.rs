//! Making a gateway out of settings.
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Weak, atomic::AtomicBool},
};

use tokio_util::sync::CancellationToken;

mod kept;

use kept::{Counted, Kept};

use super::{
    Gateway, Inner, Routes,
    credentials::{Credentials, Own},
    greet::{Auth, Ways},
    hydrate::Hydrated,
    suited,
    tls::Tls,
    under_way::UnderWay,
};
use crate::{
    a2a::{
        Dialect,
        detect::Accepts,
        shape::{FileBytes, Options},
    },
    agent::{self, Agent, BadSettings, Lookup, Origin, Room, Status},
    audit::{Audit, BadAudit},
    budget::Budget,
    card::Cards,
    config::{self, BytesEncoding, Config, PushMode, RestDialect, RestPaths},
    follow::Follow,
    json::Limits,
    policy::{
        callers::Callers,
        conversation::Conversations,
        limits::{Limits as Rules, Peers},
        owner::Owners,
        retry::{self, Retries},
    },
    reply::Speech,
    state::{
        Store,
        memory::{self, Memory},
        owner,
        redis::{self, Address, Redis},
        slot::Times,
    },
    telemetry::Telemetry,
    tls::{Client, Expiry},
    watch::Watch,
};

/// Why no gateway can be made of these settings.
#[derive(Debug, thiserror::Error)]
pub enum BadSetup {
    /// The way to an agent.
    #[error(transparent)]
    Agent(#[from] BadSettings),
    /// Who is let in, or what the agent is shown.
    #[error("auth: {0}")]
    Auth(String),
    /// The state store.
    #[error("state.store: {0}")]
    State(String),
    /// The record of calls.
    #[error(transparent)]
    Audit(#[from] BadAudit),
    /// The file of counts and owners.
    #[error(transparent)]
    Persist(std::io::Error),
}

/// What all workers share, made once for each reading of the settings.
#[derive(Clone)]
pub struct Setup {
    config: Arc<Config>,
    options: Arc<Options>,
    cards: Cards,
    budget: Budget,
    conversations: Conversations,
    retries: Retries,
    owners: Owners,
    audit: Audit,
    counted: Counted,
    rules: Rules,
    peers: Peers,
    ways: Arc<Ways>,
    own: Arc<Own>,
    callers: Callers,
    hydrated: Hydrated,
    telemetry: Option<Telemetry>,
    ignored: Arc<suited::Seldom>,
    tls: Tls,
    lookup: Lookup,
    watch: Watch,
    /// The connections' room, by origin.
    rooms: HashMap<String, (agent::Settings, Room)>,
    life: Arc<Life>,
}

/// What lives as long as anything goes by these settings: a call that began with them, or the gateway itself.
#[derive(Debug, Default)]
pub struct Life(());

impl Setup {
    /// Checks what can be checked without connecting.
    pub fn new(config: Config) -> Result<Self, BadSetup> {
        Self::looking_up(config, &Lookup::System)
    }

    /// The same with names of agents looked up by somebody else.
    pub fn looking_up(config: Config, lookup: &Lookup) -> Result<Self, BadSetup> {
        Self::make(config, lookup, None)
    }

    /// The same for settings that come after these. What these remember goes on, and what they hold is shared: nothing
    /// that runs is touched, and nothing changes for it before [`Setup::settle_in`].
    pub fn after(&self, config: Config) -> Result<Self, BadSetup> {
        Self::make(config, &self.lookup, Some(self))
    }

    fn make(config: Config, lookup: &Lookup, before: Option<&Self>) -> Result<Self, BadSetup> {
        let options = Arc::new(options(&config));
        let conversations = match before {
            Some(before) => before.conversations.by(config.conversation.clone()),
            None => conversations(&config)?,
        };
        let retries = match before {
            Some(before) => before
                .retries
                .by(retry_settings(&config), conversations.clone()),
            None => Retries::new(retry_settings(&config), conversations.clone()),
        };
        let owners = Owners::new(config.ownership.clone(), conversations.clone());
        let mut files = vec![];
        let ways = {
            let before = before.map(|before| &*before.ways);
            Ways::new(&config, &conversations, before, &mut files)? // it reads the file that rules hold on to
        };
        let own =
            match before.filter(|b| b.config.backend.credentials == config.backend.credentials) {
                Some(before) => before.own.clone(),
                None => Own::new(&config, &mut files)?.into(),
            };
        let tls = match before.filter(|before| Tls::same(&before.config, &config)) {
            Some(before) => before.tls.clone(),
            None => Tls::new(&config, &mut files)?,
        };
        let rooms = rooms(&config, &tls, lookup, before)?;
        let counted = Counted::new(&config, &conversations, before)?;
        let rules = counted.rules(&config);
        let watch = before.map(|before| before.watch.clone());
        let watch = watch.unwrap_or_default();
        watch
            .add(files)
            .map_err(|e| BadSetup::Auth(e.to_string()))?;
        let kept = Kept {
            config: &config,
            options: &options,
            before,
        };
        Ok(Self {
            cards: kept.cards(),
            budget: kept.budget(),
            peers: kept.peers(),
            callers: kept.callers(),
            hydrated: kept.hydrated(),
            ignored: before.map_or_else(Arc::default, |before| before.ignored.clone()),
            audit: match before {
                Some(before) => before.audit.by(&config.audit),
                None => Audit::start(&config.audit, &config.telemetry)?, // last: nothing is begun that fails otherwise
            },
            config: Arc::new(config),
            options,
            conversations,
            retries,
            owners,
            counted,
            rules,
            ways: ways.into(),
            own,
            telemetry: before.and_then(|before| before.telemetry.clone()),
            tls,
            lookup: lookup.clone(),
            watch,
            rooms,
            life: Arc::default(),
        })
    }

    /// Its gateways, and those of all settings after these, tell what they do.
    #[must_use]
    pub fn telling(mut self, telemetry: &Telemetry) -> Self {
        self.telemetry = Some(telemetry.clone());
        self
    }

    /// These settings are in force: what is shared with those before goes by them from now on.
    pub fn settle_in(&self) {
        let config = &*self.config;
        self.budget.set(config.limits.buffered);
        self.conversations.settle_in();
        if let Store::Memory(memory) = self.conversations.store() {
            memory.set(memory_settings(config));
        }
        let limits = &config.limits;
        self.counted
            .counters
            .set(limits.max_keys, limits.max_minted);
        self.audit.settle_in(&config.audit);
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What lives as long as anything goes by these settings.
    pub fn life(&self) -> Weak<Life> {
        Arc::downgrade(&self.life)
    }

    /// How many files are looked at.
    pub fn watched(&self) -> usize {
        self.watch.count()
    }

    /// All conversations, for who looks after them.
    pub fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    /// The record of calls, for who ends it.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The rules of limits, for who looks at them.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Who calls how.
    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// How the agents' addresses are.
    pub fn backends(&self) -> Backends {
        let rooms = self.rooms.values().map(|(_, room)| room.clone());
        Backends(rooms.collect())
    }

    /// When the certificate ends that agents are shown, if there is one.
    pub fn certificate_of_agents(&self) -> Option<Arc<[Expiry]>> {
        self.tls.of_agents.as_ref().map(Client::ends)
    }

    /// What bodies may hold, and hold now.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A gateway for one worker. `follow` runs what outlives its request; `stop` ends streams; with `leaving` set, calls
    /// are refused.
    pub fn gateway(
        &self,
        follow: Follow,
        stop: CancellationToken,
        leaving: Arc<AtomicBool>,
    ) -> Result<Gateway, BadSetup> {
        self.gateway_with(follow, stop, leaving, None)
    }

    /// One for the worker of `before`, in its place. Agents that are reached as before keep their connections.
    pub fn gateway_after(&self, before: &Gateway) -> Result<Gateway, BadSetup> {
        let of = &*before.0;
        let (follow, stop) = (of.follow.clone(), of.stop.clone());
        self.gateway_with(follow, stop, of.leaving.clone(), Some(of))
    }

    fn gateway_with(
        &self,
        follow: Follow,
        stop: CancellationToken,
        leaving: Arc<AtomicBool>,
        before: Option<&Inner>,
    ) -> Result<Gateway, BadSetup> {
        let config = &*self.config;
        let mut made: HashMap<String, Arc<Agent>> = HashMap::new();
        let known = |settings: &_, room: &_| {
            let mut all = before.into_iter().flat_map(|of| of.routes.agents());
            all.find(|agent| agent.is(settings, room)).cloned()
        };
        let telemetry = self.telemetry.as_ref();
        let series = |route: &str| telemetry.and_then(|t| t.series(route));
        let routes = Routes::new(config, series, |origin| {
            if let Some(agent) = made.get(origin) {
                return Ok::<_, BadSetup>(agent.clone());
            }
            let agent = if let Some((settings, room)) = self.rooms.get(origin) {
                match known(settings, room) {
                    Some(agent) => agent,
                    None => Arc::new(Agent::new(settings, room.clone())?),
                }
            } else {
                let settings = agent_settings(config, &self.tls, origin)?;
                Arc::new(Agent::new(&settings, Room::new(&settings))?)
            };
            made.insert(origin.to_owned(), agent.clone());
            Ok(agent)
        })?;
        let dialect = dialect(&config.backend);
        let fetches = self.ways.fetches(config, &self.tls)?;
        let auth = Auth::new(self.ways.clone(), fetches, follow.clone());
        let credentials = Credentials::new(self.own.clone(), config, &self.tls, follow.clone())?;
        Ok(Gateway(Arc::new(Inner {
            routes,
            dialect,
            accepts: accepts(config),
            proto_only: Accepts {
                kind: false,
                snake: false,
                ..accepts(config)
            },
            face: super::routes::of_settings(&config.face, config),
            options: self.options.clone(),
            speech: Arc::new(Speech {
                from: dialect,
                options: self.options.clone(),
                final_grace: config.stream.final_grace,
                keep_alive: config.stream.keep_alive,
                idle: config.limits.stream_idle,
                event: config.limits.event,
            }),
            limits: config.limits.clone(),
            http: config.http.clone(),
            backend: config.backend.clone(),
            ignored: self.ignored.clone(),
            task_first: config.compat.synthesize_task_first,
            push: config.push.mode == PushMode::Passthrough,
            rest_content_type: config.compat.rest_content_type.as_str(),
            public_url: config
                .public_url
                .as_ref()
                .map(|u| u.to_string().trim_end_matches('/').to_owned()),
            rpc_path: config.card.jsonrpc_path.clone(),
            cards: self.cards.clone(),
            last_peer: super::forward::Last::default(),
            budget: self.budget.clone(),
            audit: self.audit.clone(),
            ears: telemetry.and_then(Telemetry::ears),
            conversations: self.conversations.clone(),
            retries: self.retries.clone(),
            owners: self.owners.clone(),
            rules: self.rules.clone(),
            peers: self.peers.clone(),
            auth,
            callers: self.callers.clone(),
            credentials,
            hydrated: self.hydrated.clone(),
            follow,
            stop,
            leaving,
            chores: before.map_or_else(Arc::default, |of| of.chores.clone()),
            under_way: UnderWay::default(),
            _life: self.life.clone(),
        })))
    }
}

/// The addresses of all agents.
#[derive(Clone)]
pub struct Backends(Arc<[Room]>);

impl Backends {
    /// How they are at this moment: one for each agent.
    pub fn status(&self) -> Vec<Status> {
        self.0.iter().map(Room::status).collect()
    }
}

fn conversations(config: &Config) -> Result<Conversations, BadSetup> {
    let c = &config.conversation;
    let s = &config.state;
    if !s.is_memory() {
        let address = Address::parse(&s.store.0).map_err(|e| BadSetup::State(e.to_string()))?;
        let settings = redis::Settings {
            prefix: s.prefix.clone(),
            local: s.on_error == config::OnError::Local,
            times: Times {
                lease: Some(s.lease),
                settle: c.settle,
                max_hold: c.max_hold,
            },
            timeout: s.timeout,
            settle_timeout: s.settle_timeout,
            slots: c.max_held,
            tasks: c.max_tasks,
            bindings: c.max_bindings,
            binding_ttl: c.binding_ttl,
            messages: config.retry.max_messages,
            message_ttl: config.retry.window,
            owners: kept(config),
        };
        let redis = Redis::start(address, settings).map_err(|e| BadSetup::State(e.to_string()))?;
        return Ok(Conversations::new(c.clone(), Store::Redis(redis.into())));
    }
    let memory = Memory::new(memory_settings(config));
    Ok(Conversations::new(c.clone(), Store::Memory(memory.into())))
}

fn memory_settings(config: &Config) -> memory::Settings {
    let c = &config.conversation;
    memory::Settings {
        times: Times {
            lease: None,
            settle: c.settle,
            max_hold: c.max_hold,
        },
        slots: c.max_held,
        tasks: c.max_tasks,
        bindings: c.max_bindings,
        binding_ttl: c.binding_ttl,
        messages: config.retry.max_messages,
        message_ttl: config.retry.window,
        owners: kept(config),
    }
}

fn kept(config: &Config) -> owner::Settings {
    owner::Settings {
        most: config.ownership.max_entries,
        share: config.ownership.share(),
        ttl: config.ownership.ttl,
    }
}

fn retry_settings(config: &Config) -> retry::Settings {
    retry::Settings {
        on: config.retry.message_id == config::ByMessageId::On,
        window: config.retry.window,
        longest: config.limits.send * 2, // the answer's head may take that long, and its body again
        conflict: config.conversation.busy_status == config::BusyStatus::Conflict,
    }
}

/// The room of each agent, as it was where nothing changed.
fn rooms(
    config: &Config,
    tls: &Tls,
    lookup: &Lookup,
    before: Option<&Setup>,
) -> Result<HashMap<String, (agent::Settings, Room)>, BadSetup> {
    let mut rooms = HashMap::new();
    let routes = config.routes.iter().map(|r| &r.backend);
    let mut origins: Vec<String> = routes
        .map(|t| format!("{}://{}", t.scheme, t.authority))
        .collect();
    if let Some(url) = &config.backend.url {
        origins.push(format!("{}://{}", url.scheme(), url.authority()));
    }
    for origin in origins {
        if let Entry::Vacant(place) = rooms.entry(origin) {
            let settings = agent::Settings {
                lookup: lookup.clone(),
                ..agent_settings(config, tls, place.key())?
            };
            let known = before.and_then(|before| before.rooms.get(place.key()));
            let room = if let Some((_, room)) = known.filter(|(was, _)| *was == settings) {
                room.clone()
            } else {
                let room = Room::new(&settings);
                Agent::new(&settings, room.clone())?; // roots and names are read now, not on the first call
                room
            };
            place.insert((settings, room));
        }
    }
    Ok(rooms)
}

fn agent_settings(config: &Config, tls: &Tls, origin: &str) -> Result<agent::Settings, BadSetup> {
    let backend = &config.backend;
    let own = backend.url.as_ref();
    let is_own = own.is_some_and(|url| origin == format!("{}://{}", url.scheme(), url.authority()));
    let listed = if is_own { &backend.addresses[..] } else { &[] };
    let place = |one: &config::HostPort| agent::Place {
        host: one.host.clone(),
        port: one.port,
    };
    let (origin, _) = Origin::parse(origin)?;
    Ok(agent::Settings {
        addresses: listed.iter().map(place).collect(),
        resolve: backend.resolve,
        affinity: backend.affinity == config::Affinity::Context,
        breaker: agent::Breaking {
            failures: backend.breaker.failures,
            percent: backend.breaker.percent,
            open: backend.breaker.open,
            longest: backend.breaker.longest,
        },
        retries: agent::Repeats {
            percent: backend.repeats.percent,
            floor: backend.repeats.floor,
        },
        check: check(&backend.health),
        http2: backend.http2,
        max_connections: backend.max_connections,
        wait: backend.wait,
        connect: config.limits.connect,
        idle: backend.idle,
        tls: tls.of_agents.clone(),
        server_name: backend.server_name.clone(),
        socket: backend.socket.clone().filter(|_| is_own),
        ..agent::Settings::new(origin)
    })
}

fn check(health: &config::Health) -> Option<agent::Check> {
    Some(agent::Check {
        path: health.path.as_ref()?.parse().ok()?, // looked at with the settings
        interval: health.interval,
        timeout: health.timeout,
        healthy: health.healthy,
        unhealthy: health.unhealthy,
        success: health.success,
    })
}

fn dialect(backend: &config::Backend) -> Dialect {
    match (backend.binding, backend.version) {
        (config::Binding::Jsonrpc, config::Version::V10) => Dialect::J10,
        (config::Binding::Rest, config::Version::V10) => Dialect::R10,
        (config::Binding::Jsonrpc, config::Version::V03) => Dialect::J03,
        (config::Binding::Rest, config::Version::V03) => Dialect::R03P,
    }
}

fn options(config: &Config) -> Options {
    let compat = &config.compat;
    Options {
        file_bytes: match compat.r03p_file_bytes {
            BytesEncoding::Auto => FileBytes::Auto,
            BytesEncoding::Single => FileBytes::Single,
            BytesEncoding::Double => FileBytes::Double,
        },
        strict_030: compat.r03p_strict_030,
        preserve_lossy: compat.preserve_lossy,
        generate_message_id: compat.generate_message_id,
        v03_rest_blocking: compat.v03_rest_default_blocking,
        v10_accept_blocking: compat.v10_accept_blocking,
        slash_paths: config.backend.rest_paths == RestPaths::Slash,
        limits: Limits {
            depth: config.limits.depth,
            members: config.limits.members,
        },
    }
}

fn accepts(config: &Config) -> Accepts {
    let d = &config.dialects;
    let rest = |dialect| d.v03_rest_dialects.contains(&dialect);
    Accepts {
        v03: d.v03,
        v10: d.v10,
        rpc: d.jsonrpc,
        rest: d.rest,
        proto: rest(RestDialect::Proto),
        kind: rest(RestDialect::Kind),
        snake: rest(RestDialect::Snake),
        v03_list: d.v03_list_tasks,
        versions: d.versions.clone(),
        rpc_path: config.card.jsonrpc_path.clone(),
        agent_json: d.agent_json,
    }
}
