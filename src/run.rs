//! What the commands do: `serve` and `demo` wire the parts together and wait; `translate` is one document.
use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use crate::{
    admin,
    audit::{Audit, Recorded},
    budget::Budget,
    config::{BaseUrl, Config},
    demo,
    gateway::{self, Gateway, Setup},
    policy::{conversation::Conversations, limits::Limits},
    reply::Reply,
    server::{self, Running, Worker},
};

/// How long the state store may take to hear what ended, when the gateway ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the last records may take to be written.
const LAST_RECORDS: Duration = Duration::from_secs(5);
/// A token that nobody guesses is no shorter.
const SHORTEST_TOKEN: usize = 16;

impl server::Service for Gateway {
    type Body = Recorded<Reply>;

    fn call(
        &self,
        request: Request<Incoming>,
        peer: server::Peer,
    ) -> impl Future<Output = Response<Recorded<Reply>>> + Send + 'static + use<> {
        let peer = gateway::Peer {
            addr: peer.addr,
            tls: peer.tls,
        };
        self.clone().answer(request, peer)
    }

    fn tick(&self) {
        Gateway::tick(self);
    }
}

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
    /// The limits.
    pub rules: Limits,
}

/// Starts a gateway with these settings.
pub fn start(config: Config) -> io::Result<Served> {
    for says in config.warnings() {
        tracing::warn!("{says}");
    }
    let settings = server_settings(&config);
    let admin_address = config.admin;
    let token = config.admin_token_file.as_deref().map(admin_token);
    let token = token.transpose()?;
    let token = token.as_deref();
    let setup = Setup::new(config).map_err(io::Error::other)?;
    let budget = setup.budget().clone();
    let conversations = setup.conversations().clone();
    let audit = setup.audit().clone();
    let rules = setup.rules().clone();
    let callers = setup.callers().clone();
    let running = server::start(settings, move |worker| gateway_for(&setup, &worker))?;
    let draining = running.draining();
    let ready = move || {
        if draining.is_cancelled() {
            return Err("draining".to_owned());
        }
        Ok(())
    };
    let open = admin_address.is_some_and(|address| address.ip().is_loopback());
    let probes = vec![
        admin::Route::live(),
        admin::Route::ready(ready),
        admin::conversations(conversations.clone(), token, open),
        admin::callers(callers, token, open),
        admin::audit(audit.clone(), token, open),
        admin::release(conversations.clone(), token),
        admin::limits(rules.clone(), token, open),
    ];
    let admin = admin::start(admin_address, probes)?;
    Ok(Served {
        running,
        admin,
        budget,
        conversations,
        audit,
        rules,
    })
}

fn admin_token(file: &Path) -> io::Result<String> {
    let wrong = |why: &str| {
        let says = format!("admin_token_file: {} {why}", file.display());
        io::Error::other(says)
    };
    let text = std::fs::read_to_string(file).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    let token = text.trim();
    if token.len() < SHORTEST_TOKEN {
        return Err(wrong("holds fewer than 16 characters"));
    }
    Ok(token.to_owned())
}

fn gateway_for(setup: &Setup, worker: &Worker) -> Gateway {
    let followers = worker.followers.clone();
    let follow = Arc::new(move |work| followers.follow(work));
    // The same settings made one before, in `Setup::new`.
    setup
        .gateway(follow, worker.stop.clone())
        .expect("settings that were checked make a gateway")
}

fn server_settings(config: &Config) -> server::Settings {
    let limits = &config.limits;
    server::Settings {
        listen: config.listen,
        workers: config.workers,
        max_connections: limits.connections,
        silence: limits.silence,
        header: limits.header_time,
        write_stall: limits.write_stall,
        max_head: limits.head,
        max_headers: limits.headers,
        max_followers: limits.followers,
        drain_grace: config.drain.grace,
        ..server::Settings::default()
    }
}

/// Serves until a signal says otherwise. True if everything that ran could end by itself.
pub fn serve(config: Config) -> io::Result<bool> {
    let agent = config.backend.url.as_ref().map(ToString::to_string);
    let Served {
        running,
        admin,
        conversations,
        audit,
        rules,
        ..
    } = start(config)?;
    tracing::info!(
        listen = %running.local_addr,
        backend = agent.as_deref().unwrap_or("by routes"),
        "a2a-gateway serves"
    );
    let outcome = server::run_until_signal(running)?;
    if let Some(admin) = admin {
        admin.drain();
        admin.wait();
    }
    last_words(&conversations)?;
    if !audit.close(LAST_RECORDS) {
        tracing::error!("the audit log was not written to its end");
    }
    rules.close();
    if !outcome.clean() {
        tracing::warn!(
            connections = outcome.connections,
            followers = outcome.followers,
            "calls were cut when the gateway stopped; raise drain.grace if they need longer"
        );
    }
    Ok(outcome.clean())
}

/// Tells the state store what it is still to be told of conversations that ended.
fn last_words(of: &Conversations) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(of.store().close(LAST_WORDS));
    Ok(())
}

/// The gateway with the built-in agent behind it, and the commands to try.
pub fn demo(listen: SocketAddr) -> io::Result<bool> {
    let stop = CancellationToken::new();
    let (agent, address) = demo_agent(None, stop.clone())?;
    let mut config = Config::parse(
        "backend: {url: 'http://127.0.0.1:1'}",
        crate::config::Overrides::default(),
    )
    .map_err(io::Error::other)?;
    config.backend.url = BaseUrl::parse(&format!("http://{address}")).ok();
    config.listen = listen;
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
