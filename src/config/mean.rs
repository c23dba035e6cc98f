//! The second reading: from what the file and the command line say to what they mean. Every rule that
//! concerns more than the form of one value is here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::audit;
use super::auth;
use super::backend as addresses;
use super::bounds;
use super::conversations;
use super::face::Face;
use super::limits as rules;
use super::metadata;
use super::ownership::{self, Needs};
use super::raw::{self, Raw};
use super::route::{Route, Target, Template};
use super::sections::{Card, Dialects};
use super::telemetry;
use super::tls::{self, Listen, UNIX};
use super::tree::Tree;
use super::url::is_plain;
use super::{Agent, Backend, BaseUrl, Config, Cors, Http, Mistakes, Origins, Overrides};

/// What to do about a missing agent.
pub(super) const NO_AGENT: &str = "no agent is named: set backend.url (or routes) in the file, \
     A2A_GATEWAY_BACKEND in the environment, or --backend";

/// More threads than any machine we know has cores.
const MAX_WORKERS: usize = 1024;

/// Reads `text` below `overrides`.
pub(super) fn mean(text: &str, overrides: Overrides, agent: Agent) -> Result<Config, Mistakes> {
    let mut tree = Tree::parse(text)?;
    let mut raw: Raw = tree.read();
    if let Some(preset) = raw.backend.preset {
        preset.spell_out(&mut raw.backend, &tree);
    }
    lay_over(&mut raw, overrides, &mut tree);
    let config = meant(raw, agent, &mut tree);
    tree.finish(config)
}

/// The settings themselves, good for nothing if `tree` holds a mistake afterwards.
fn meant(raw: Raw, agent: Agent, tree: &mut Tree) -> Config {
    let face = Face::from(raw.face);
    let config = Config {
        listen: address("listen", &raw.listen, tree).unwrap_or_else(nowhere),
        tls: raw.tls,
        public_url: url("public_url", raw.public_url.as_deref(), tree),
        admin: raw.admin.and_then(|text| address("admin", &text, tree)),
        admin_token_file: raw.admin_token_file,
        workers: workers(raw.workers, tree),
        log: raw.log,
        log_format: raw.log_format,
        auth: raw.auth,
        backend: backend(raw.backend, tree),
        routes: routes(&raw.routes, &face, tree),
        metadata: metadata::rules("metadata", &raw.metadata, &BTreeSet::new(), tree),
        face,
        dialects: raw.dialects,
        compat: raw.compat,
        stream: raw.stream,
        conversation: raw.conversation,
        retry: raw.retry,
        state: raw.state.into(),
        ownership: raw.ownership,
        push: raw.push,
        card: raw.card,
        http: http(raw.http, tree),
        limits: raw.limits,
        audit: raw.audit,
        access_log: raw.access_log,
        telemetry: raw.telemetry,
        drain: raw.drain,
    };
    together(&config, tree);
    let lacks_agent = config.lacks_agent() && !tree.blames("routes");
    if agent == Agent::Required && lacks_agent {
        tree.missing("backend", "url", NO_AGENT);
    }
    config
}

/// The same rules for settings that are of no one file.
pub(super) fn together_alone(config: &Config) -> Result<(), Mistakes> {
    let mut tree = Tree::parse("")?;
    together(config, &mut tree);
    tree.finish(())
}

/// What one part says of another.
fn together(config: &Config, tree: &mut Tree) {
    dialects(&config.dialects, tree);
    auth::check(config, tree);
    tls::check(config, tree);
    conversations::check(config, tree);
    let needs = Needs {
        auth: config.auth.iter().any(auth::Way::verifies),
        credentials: config.backend.credentials.is_some(),
    };
    ownership::check(&config.ownership, needs, tree);
    card(&config.card, tree);
    bounds::check(&config.limits, tree);
    audit::check(&config.audit, tree);
    telemetry::check(&config.telemetry, config.audit.otlp, tree);
    rules::check(config, tree);
    let any = |at: &Listen| matches!(at, Listen::Tcp(address) if address.port() == 0);
    let admin = config.admin.as_ref();
    if admin.is_some_and(|admin| !any(admin) && *admin == config.listen) {
        tree.wrong("admin", "must differ from listen");
    }
    if !config.routes.is_empty()
        && config.backend.url.is_none()
        && !config.backend.addresses.is_empty()
    {
        let says = "they are those of backend.url, which is not set; routes have names";
        tree.wrong("backend.addresses", says);
    }
}

/// What was said on the command line or in the environment goes before the file.
fn lay_over(raw: &mut Raw, over: Overrides, tree: &mut Tree) {
    fn set<T>(key: &str, place: &mut T, said: Option<T>, tree: &mut Tree) {
        if let Some(said) = said {
            *place = said;
            tree.overrule(key);
        }
    }
    let listen = over.listen.map(|address| address.to_string());
    set("listen", &mut raw.listen, listen, tree);
    let admin = over.admin.map(|address| Some(address.to_string()));
    set("admin", &mut raw.admin, admin, tree);
    set(
        "public_url",
        &mut raw.public_url,
        over.public_url.map(Some),
        tree,
    );
    set("workers", &mut raw.workers, over.workers, tree);
    set("log", &mut raw.log, over.log, tree);
    let backend = &mut raw.backend;
    set(
        "backend.url",
        &mut backend.url,
        over.backend.map(Some),
        tree,
    );
    set("backend.binding", &mut backend.binding, over.binding, tree);
    set("backend.version", &mut backend.version, over.version, tree);
}

fn address(key: &str, text: &str, tree: &mut Tree) -> Option<Listen> {
    match text.parse() {
        Ok(listen) => Some(listen),
        Err(says) => {
            tree.wrong(key, says);
            None
        }
    }
}

/// Stands in where there was a mistake; nobody gets to see it.
fn nowhere() -> Listen {
    SocketAddr::from(([127, 0, 0, 1], 0)).into()
}

fn url(key: &str, text: Option<&str>, tree: &mut Tree) -> Option<BaseUrl> {
    match BaseUrl::parse(text?) {
        Ok(url) => Some(url),
        Err(says) => {
            tree.wrong(key, says);
            None
        }
    }
}

/// The address of the agent, and the socket that stands in its place.
fn agent(text: Option<&str>, tree: &mut Tree) -> (Option<BaseUrl>, Option<PathBuf>) {
    const KEY: &str = "backend.url";
    match text.and_then(|text| text.strip_prefix(UNIX)) {
        None => (url(KEY, text, tree), None),
        Some(path) => match tls::socket(path) {
            Ok(path) => (tls::behind_socket(), Some(path)),
            Err(says) => {
                tree.wrong(KEY, says);
                (None, None)
            }
        },
    }
}

fn workers(said: usize, tree: &mut Tree) -> usize {
    if said > MAX_WORKERS {
        tree.wrong("workers", format!("expected at most {MAX_WORKERS}"));
    }
    match said {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        said => said,
    }
}

fn backend(raw: raw::Backend, tree: &mut Tree) -> Backend {
    if raw.max_connections == 0 {
        tree.wrong("backend.max_connections", "expected at least 1");
    }
    let card_path = raw.card_path.as_str();
    if !card_path.starts_with('/') || !is_path(card_path) {
        let says = "expected a path such as /.well-known/agent-card.json";
        tree.wrong("backend.card_path", says);
    }
    if raw
        .ca_file
        .as_ref()
        .is_some_and(|file| file.as_os_str().is_empty())
    {
        tree.wrong("backend.ca_file", "expected the name of a file");
    }
    let metadata = metadata::of_agent(&raw.default_metadata, &raw.require_metadata, tree);
    addresses::check(&raw, tree);
    let (url, socket) = agent(raw.url.as_deref(), tree);
    Backend {
        url,
        socket,
        addresses: addresses::addresses(&raw, tree),
        resolve: raw.resolve,
        affinity: raw.affinity,
        breaker: raw.breaker,
        repeats: raw.repeats,
        health: raw.health,
        binding: raw.binding,
        version: raw.version,
        http2: raw.http2,
        max_connections: raw.max_connections,
        wait: raw.wait,
        idle: raw.idle,
        subscribe_verb: raw.subscribe_verb,
        rest_content_type: raw.rest_content_type,
        rest_paths: raw.rest_paths,
        always_output_modes: raw.always_output_modes,
        ignores_configuration: raw.ignores_configuration,
        ca_file: raw.ca_file,
        system_roots: raw.system_roots,
        client_cert_file: raw.client_cert_file,
        client_key_file: raw.client_key_file,
        server_name: raw.server_name,
        card_path: raw.card_path,
        follow_streams: raw.follow_streams,
        metadata,
        explicit_wait: raw.explicit_wait,
        push_notifications: raw.push_notifications,
        hydrate_tasks: raw.hydrate_tasks,
        credentials: raw.credentials,
    }
}

fn routes(raw: &[raw::Route], face: &Face, tree: &mut Tree) -> Vec<Route> {
    let mut shapes = BTreeMap::new();
    let mut routes = Vec::new();
    for (index, route) in raw.iter().enumerate() {
        let key = format!("routes[{index}]");
        let path = part(
            &key,
            "path",
            route.path.as_deref(),
            Template::of_route,
            tree,
        );
        let backend = part(
            &key,
            "backend",
            route.backend.as_deref(),
            Target::parse,
            tree,
        );
        if let Some(path) = &path
            && let Some(first) = shapes.insert(path.shape(), index)
        {
            let says = format!("matches the same paths as routes[{first}]");
            tree.wrong(format!("{key}.path"), says);
        }
        let (Some(path), Some(backend)) = (path, backend) else {
            continue;
        };
        if path.names() != backend.path.names() {
            let says = "the path and the backend must have the same parameters";
            tree.wrong(format!("{key}.backend"), says);
        }
        let agent_parameter = route.agent_parameter.clone();
        if let Some(name) = &agent_parameter
            && !path.names().contains(name.as_str())
        {
            let says = "expected a parameter of the path, without its braces";
            tree.wrong(format!("{key}.agent_parameter"), says);
        }
        let rules = format!("{key}.metadata");
        let metadata = metadata::rules(&rules, &route.metadata, &path.names(), tree);
        routes.push(Route {
            path,
            backend,
            agent_parameter,
            metadata,
            face: route.face.clone().map_or_else(|| face.clone(), Face::from),
        });
    }
    routes
}

fn part<T>(
    route: &str,
    key: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
    tree: &mut Tree,
) -> Option<T> {
    let Some(text) = text else {
        tree.missing(route, key, "every route has a path and a backend");
        return None;
    };
    match parse(text) {
        Ok(part) => Some(part),
        Err(says) => {
            tree.wrong(format!("{route}.{key}"), says);
            None
        }
    }
}

fn http(raw: raw::Http, tree: &mut Tree) -> Http {
    let mut trusted_proxies = Vec::new();
    for (index, text) in raw.trusted_proxies.iter().enumerate() {
        let single = text.parse::<IpAddr>().map(IpNet::from);
        if let Ok(network) = text.parse::<IpNet>().or(single) {
            trusted_proxies.push(network);
        } else {
            let key = format!("http.trusted_proxies[{index}]");
            tree.wrong(key, "expected a network such as 10.0.0.0/8");
        }
    }
    let cors = Cors {
        origins: origins(raw.cors.origins, tree),
        max_age: raw.cors.max_age,
    };
    Http {
        cors,
        trusted_proxies,
    }
}

fn origins(raw: raw::Origins, tree: &mut Tree) -> Origins {
    const KEY: &str = "http.cors.origins";
    let list = match raw {
        raw::Origins::One(word) if word == "*" => return Origins::Any,
        raw::Origins::One(_) => {
            tree.wrong(KEY, "expected \"*\" or a list");
            return Origins::Any;
        }
        raw::Origins::List(list) => list,
    };
    if list.iter().any(|word| word == "*") {
        if list.len() > 1 {
            tree.wrong(KEY, "\"*\" stands alone");
        }
        return Origins::Any;
    }
    for (index, text) in list.iter().enumerate() {
        // A browser writes them in lower case and without a path; others would never match.
        let exact = |url: BaseUrl| url.path().is_empty() && *text == text.to_lowercase();
        if !BaseUrl::parse(text).is_ok_and(exact) {
            let says = "expected an origin such as https://app.example, without a path";
            tree.wrong(format!("{KEY}[{index}]"), says);
        }
    }
    Origins::These(list)
}

fn dialects(said: &Dialects, tree: &mut Tree) {
    if !said.v03 && !said.v10 {
        tree.wrong("dialects.v10", "v03 or v10 must be on");
    }
    if !said.jsonrpc && !said.rest {
        tree.wrong("dialects.rest", "jsonrpc or rest must be on");
    }
    let shapes = &said.v03_rest_dialects;
    let twice = |(at, shape)| shapes[..at].contains(shape);
    if shapes.iter().enumerate().any(twice) {
        tree.wrong("dialects.v03_rest_dialects", "one stands in it twice");
    }
    if shapes.is_empty() && said.v03 && said.rest {
        let says = "expected one of proto, kind, snake, while v03 and rest are on";
        tree.wrong("dialects.v03_rest_dialects", says);
    }
    for (index, version) in said.versions.iter().enumerate() {
        let minor = version.strip_prefix("1.").unwrap_or_default();
        let digits = minor.bytes().all(|byte| byte.is_ascii_digit());
        if minor.is_empty() || !digits || minor.starts_with('0') {
            let key = format!("dialects.versions[{index}]");
            tree.wrong(key, "expected a minor version of 1, such as \"1.1\"");
        }
    }
}

pub(super) fn above_zero(
    section: &str,
    sizes: &[(&str, usize)],
    times: &[(&str, Duration)],
    tree: &mut Tree,
) {
    let no_size = sizes.iter().filter(|(_, size)| *size == 0);
    let no_time = times.iter().filter(|(_, time)| *time == Duration::ZERO);
    let names = no_size
        .map(|(name, _)| name)
        .chain(no_time.map(|(name, _)| name));
    for name in names {
        tree.wrong(format!("{section}.{name}"), "expected more than 0");
    }
}

fn card(said: &Card, tree: &mut Tree) {
    let path = said.jsonrpc_path.as_str();
    if !path.is_empty() && (!path.starts_with('/') || path.ends_with('/') || !is_path(path)) {
        tree.wrong("card.jsonrpc_path", "expected a path such as /rpc, or \"\"");
    }
}

/// Whether `text` is made of whole, plain segments.
fn is_path(text: &str) -> bool {
    let segment = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    text.split('/').skip(1).all(segment)
}
