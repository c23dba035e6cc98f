//! What the commands do: `serve` and `demo` wire the parts together and wait; `translate` is one document.
use std::{
    io::{self, Write as _},
    net::SocketAddr,
    thread,
    time::Duration,
};

mod counted;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::{self, Drains, Table},
    agent::{Lookup, Status},
    audit::Audit,
    budget::Budget,
    config::{self, BaseUrl, Config},
    demo,
    front::Front,
    gateway::Setup,
    log,
    policy::{conversation::Conversations, limits::Limits},
    reload::{self, Reloads, Source},
    server::{self, Ended, Running, Signals},
    telemetry::Telemetry,
    tls,
    watch::Watch,
};

/// How long the last records may take to be written, with all else that is kept.
const LAST_RECORDS: Duration = Duration::from_secs(5);
/// How long it all may take, the last telemetry too, which tells of the rest.
const LAST: Duration = Duration::from_secs(6);
/// How long a gateway that was drained from its admin address waits to be stopped: whoever wanted that may have gone.
const FORGOTTEN: Duration = Duration::from_mins(10);
/// A token that nobody guesses is no shorter.
const SHORTEST_TOKEN: usize = 16;

/// A gateway that runs, and its admin address.
pub struct Served {
    /// The server of calls.
    pub running: Running,
    /// The server of probes, if one was asked for.
    pub admin: Option<Running>,
    /// What bodies in memory hold.
    pub budget: Budget,
    /// The conversations.
    pub conversations: Conversations,
    /// The record of calls.
    pub audit: Audit,
    /// The limits, as they were at the start.
    pub rules: Limits,
    /// All workers' gateways.
    pub front: Front,
    /// Who reads the settings again.
    pub reloads: Reloads,
    /// How its drain goes.
    pub drains: Drains,
    /// What the gateway tells of itself.
    pub telemetry: Telemetry,
    /// TLS with clients, if they speak it.
    tls: Option<tls::Server>,
    /// Looks at the files of TLS.
    _watch: Watch,
}

/// Starts a gateway with these settings, which are not read again.
pub fn start(config: Config) -> io::Result<Served> {
    start_from(config, Source::default())
}

/// Starts a gateway with these settings, and reads them again from where they came.
pub fn start_from(config: Config, source: Source) -> io::Result<Served> {
    start_looking_up(config, source, &Lookup::System)
}

/// The same with names of agents looked up by somebody else.
pub fn start_looking_up(config: Config, source: Source, lookup: &Lookup) -> io::Result<Served> {
    for says in config.warnings() {
        tracing::warn!("{says}");
    }
    let token = admin_token(&config)?;
    let tls = config.tls.as_ref().map(served_by).transpose()?;
    let watch = Watch::start(tls.iter().map(tls::Server::files).collect())?;
    let telemetry = Telemetry::start(&config).map_err(io::Error::other)?;
    let setup = Setup::looking_up(config.clone(), lookup).map_err(io::Error::other)?;
    let setup = setup.telling(&telemetry);
    let budget = setup.budget().clone();
    let conversations = setup.conversations().clone();
    let audit = setup.audit().clone();
    let rules = setup.rules().clone();
    let front = Front::new(setup);
    let workers = front.clone();
    let settings = server_settings(&config, tls.clone());
    let running = server::start(settings, move |worker| workers.worker(&worker))?;
    let drains = Drains::of(running.handle());
    let waiting = reload::Waiting::new();
    let desk = Desk {
        front: front.clone(),
        server: running.handle(),
        drains: drains.clone(),
        asks: waiting.asks().clone(),
        status: waiting.status().clone(),
        telemetry: telemetry.clone(),
    };
    let table = Table::new(desk.routes(&config, token.as_deref()));
    let admin = admin::start(config.admin.as_ref().map(listen), table.clone())?;
    let reloads = waiting.start(source, config, Box::new(move |new| desk.take(new, &table)))?;
    let served = Served {
        running,
        admin,
        budget,
        conversations,
        audit,
        rules,
        front,
        reloads,
        drains,
        telemetry,
        tls,
        _watch: watch,
    };
    counted::read_by(&served.telemetry, &served);
    Ok(served)
}

/// TLS with clients, as settings have it.
fn served_by(said: &config::Tls) -> io::Result<tls::Server> {
    let clients = &said.client_certificates;
    let asked = clients
        .ca_file
        .clone()
        .filter(|_| clients.mode != config::Asks::Off);
    let settings = tls::Settings {
        own: tls::Pair {
            cert_file: said.cert_file.clone(),
            key_file: said.key_file.clone(),
        },
        only_13: said.min_version == config::MinVersion::V13,
        clients: asked.map(|ca_file| tls::ClientCertificates {
            required: clients.mode == config::Asks::Required,
            ca_file,
            crl_files: clients.crl_files.clone(),
        }),
    };
    tls::Server::read(&settings).map_err(io::Error::other)
}

fn listen(at: &config::Listen) -> server::Listen {
    match at {
        config::Listen::Tcp(address) => server::Listen::Tcp(*address),
        config::Listen::Unix(path) => server::Listen::Unix(path.clone()),
    }
}

/// What operators look at and change.
struct Desk {
    front: Front,
    server: server::Handle,
    drains: Drains,
    asks: reload::Asks,
    status: reload::Status,
    telemetry: Telemetry,
}

impl Desk {
    fn routes(&self, config: &Config, token: Option<&str>) -> Vec<admin::Route> {
        let setup = self.front.setup();
        let open = config.admin.as_ref().is_some_and(config::Listen::is_local);
        let draining = self.server.clone();
        let (of_agents, needs_agent) = (setup.backends(), config.backend.health.readiness);
        let ready = move || {
            if draining.is_draining() {
                return Err("draining".to_owned());
            }
            let down = |status: &Status| status.is_down();
            if needs_agent && of_agents.status().iter().any(down) {
                return Err("the agent is down at all its addresses".to_owned());
            }
            Ok(())
        };
        let status = self.status.clone();
        let earlier = self.front.clone();
        let of_agents = setup.backends();
        let details: Vec<admin::Detail> = vec![
            Box::new(move || status.line()),
            Box::new(move || {
                format!(
                    "settings from before that calls still go by: {}",
                    earlier.earlier()
                )
            }),
            Box::new(move || {
                let all = of_agents.status();
                let addresses = all.iter().flat_map(|status| &status.addresses);
                let lines: Vec<String> = addresses.map(ToString::to_string).collect();
                lines.join("\n")
            }),
        ];
        let conversations = setup.conversations();
        vec![
            admin::Route::live(),
            admin::Route::ready(ready, details),
            admin::conversations(conversations.clone(), token, open),
            admin::callers(setup.callers().clone(), token, open),
            admin::audit(setup.audit().clone(), token, open),
            admin::release(conversations.clone(), token),
            admin::limits(setup.rules().clone(), token, open),
            admin::reload(self.asks.clone(), token),
            admin::drains(self.drains.clone(), token, open),
            admin::drain(self.drains.clone(), token),
            admin::metrics(self.telemetry.clone()),
        ]
    }

    /// New settings: all that can fail comes first.
    fn take(&self, config: &Config, table: &Table) -> Result<(), String> {
        let token = admin_token(config).map_err(|e| e.to_string())?;
        self.front
            .exchange(config.clone())
            .map_err(|e| e.to_string())?;
        self.server.tune(&server_settings(config, None)); // it keeps its TLS
        log::set(config.log, config.log_format);
        table.set(self.routes(config, token.as_deref()));
        Ok(())
    }
}

fn admin_token(config: &Config) -> io::Result<Option<String>> {
    let Some(file) = &config.admin_token_file else {
        return Ok(None);
    };
    let wrong = |why: &str| {
        let says = format!("admin_token_file: {} {why}", file.display());
        io::Error::other(says)
    };
    let text = std::fs::read_to_string(file).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    let token = text.trim();
    if token.len() < SHORTEST_TOKEN {
        return Err(wrong("holds fewer than 16 characters"));
    }
    Ok(Some(token.to_owned()))
}

fn server_settings(config: &Config, tls: Option<tls::Server>) -> server::Settings {
    let limits = &config.limits;
    let clients = config.tls.as_ref().map(|tls| &tls.client_certificates);
    let clients = clients.filter(|clients| clients.mode != config::Asks::Off);
    server::Settings {
        listen: listen(&config.listen),
        tls,
        max_age: clients.map(|clients| clients.max_connection_age),
        workers: config.workers,
        max_connections: limits.connections,
        silence: limits.silence,
        header: limits.header_time,
        write_stall: limits.write_stall,
        max_head: limits.head,
        max_headers: limits.headers,
        max_followers: limits.followers,
        drain_delay: config.drain.delay,
        drain_grace: config.drain.grace,
        ..server::Settings::default()
    }
}

/// Serves until a signal says otherwise. True if everything that ran could end by itself.
pub fn serve(config: Config, source: Source) -> io::Result<bool> {
    let mut signals = Signals::new()?.and_hang_up()?;
    let agent = config.backend.place();
    let tls = config.tls.is_some();
    let Served {
        running,
        admin,
        conversations,
        front,
        reloads,
        drains,
        telemetry,
        _watch,
        ..
    } = start_from(config, source)?;
    tracing::info!(
        listen = %running.place(),
        tls,
        admin = admin.as_ref().map(|admin| tracing::field::display(admin.place())),
        backend = agent.as_deref().unwrap_or("by routes"),
        "a2a-gateway serves"
    );
    let ended = signals.until_ended(&running, || reloads.asks().ask_only());
    let outcome = running.wait();
    if !outcome.clean() {
        // While there is somebody to send it to.
        tracing::warn!(
            connections = outcome.connections,
            followers = outcome.followers,
            "calls were cut when the gateway stopped; raise drain.grace if they need longer"
        );
    }
    drop(reloads); // from here on nothing changes
    close(&conversations, &front.setup(), &telemetry)?;
    drains.is_over(outcome.clean());
    if ended == Ended::ByItself && drains.was_asked_for() && outcome.workers == 0 {
        tracing::info!("drained, and waiting to be stopped");
        if !signals.end_comes(FORGOTTEN) {
            tracing::warn!("nobody stopped the gateway after its drain; it ends by itself");
        }
    }
    if let Some(admin) = admin {
        admin.drain();
        admin.wait();
    }
    Ok(outcome.clean())
}

/// Lets everything that is kept get to where it belongs, side by side: together they take no longer than one of them.
fn close(conversations: &Conversations, setup: &Setup, telemetry: &Telemetry) -> io::Result<()> {
    let until = Instant::now() + LAST;
    thread::scope(|scope| {
        let words = scope.spawn(|| last_words(conversations));
        scope.spawn(|| setup.rules().close_within(LAST_RECORDS));
        if !setup.audit().close(LAST_RECORDS) {
            tracing::error!("the audit log was not written to its end");
        }
        words.join().unwrap_or(Ok(()))
    })?;
    if !telemetry.close(until.saturating_duration_since(Instant::now())) {
        tracing::warn!("telemetry was not sent to its end");
    }
    Ok(())
}

/// Tells the state store what it is still to be told of conversations that ended.
fn last_words(of: &Conversations) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(of.store().close(LAST_RECORDS));
    Ok(())
}

/// The gateway with the built-in agent behind it, and the commands to try.
pub fn demo(at: SocketAddr) -> io::Result<bool> {
    let stop = CancellationToken::new();
    let (agent, address) = demo_agent(None, stop.clone())?;
    let mut config = Config::parse(
        "backend: {url: 'http://127.0.0.1:1'}",
        crate::config::Overrides::default(),
    )
    .map_err(io::Error::other)?;
    config.backend.url = BaseUrl::parse(&format!("http://{address}")).ok();
    config.listen = at.into();
    let served = start(config)?;
    let base = format!("http://{}", served.running.local_addr);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "a2a-gateway demo: {base} in front of a small v1.0 agent. Ctrl-C ends it.\n"
    )?;
    writeln!(out, "{}", demo::curls(&base))?;
    out.flush()?;
    drop(out);
    let outcome = server::run_until_signal(served.running)?;
    stop.cancel();
    let _panicked = agent.join();
    Ok(outcome.clean())
}

/// The built-in agent without a gateway, until a signal ends it. True if it ended well.
pub fn demo_agent_alone(listen: SocketAddr) -> io::Result<bool> {
    let stop = CancellationToken::new();
    let (agent, address) = demo_agent(Some(listen), stop.clone())?;
    writeln!(
        io::stdout(),
        "a2a-gateway demo: an agent at http://{address}"
    )?;
    server::wait_for_signal()?;
    stop.cancel();
    Ok(agent.join().is_ok())
}

fn demo_agent(
    listen: Option<SocketAddr>,
    stop: CancellationToken,
) -> io::Result<(thread::JoinHandle<()>, SocketAddr)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let agent = runtime.block_on(async {
        match listen {
            Some(address) => demo::Agent::bind_to(address).await,
            None => demo::Agent::bind().await,
        }
    })?;
    let address = agent.addr();
    let thread = thread::Builder::new()
        .name("demo-agent".to_owned())
        .spawn(move || runtime.block_on(agent.run(stop)))?;
    Ok((thread, address))
}
