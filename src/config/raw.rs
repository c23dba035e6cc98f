//! The settings as the file says them: the first reading, and the source of the JSON Schema. Addresses
//! and templates are still text here. What the file leaves out has its default from here on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::audit::Audit;
use super::auth::{Credentials, Way};
use super::backend::{Affinity, Breaker, Health, Repeats};
use super::bounds::Limits;
use super::conversations::{Conversation, Retry, State, StoreUrl};
use super::face;
use super::metadata::RuleSaid;
use super::ownership::Ownership;
use super::preset::Preset;
use super::sections::{
    Binding, Card, Compat, ContentType, Dialects, Drain, Level, LogFormat, Push, RestPaths, Stream,
    Verb, Version,
};
use super::telemetry::Telemetry;
use super::tls::Tls;
use super::units::Time;

/// The settings of a2a-gateway.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "a2a-gateway settings")]
pub(super) struct Raw {
    /// Where clients connect: an address and a port, or `unix:` and the path of a socket.
    pub(super) listen: String,
    /// How clients connect by TLS; without it they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls: Option<Tls>,
    /// The address clients know the gateway by; without it, it follows from each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) public_url: Option<String>,
    /// Where probes and metrics are served: an address and a port of their own, or `unix:` and the path of a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) admin: Option<String>,
    /// The file with the token that changes anything there; without it nothing can be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) admin_token_file: Option<PathBuf>,
    /// Threads that serve; 0 is one for each core.
    #[schemars(range(min = 0, max = 1024))]
    pub(super) workers: usize,
    /// What is logged: this and all that is worse.
    pub(super) log: Level,
    /// How the log is written.
    pub(super) log_format: LogFormat,
    /// Who is let in: the ways, in this order.
    pub(super) auth: Vec<Way>,
    /// The agent behind the gateway.
    pub(super) backend: Backend,
    /// Further agents, each below a path of its own.
    pub(super) routes: Vec<Route>,
    /// What is written into the metadata of messages to the agent at `backend.url`; routes have rules of their own.
    pub(super) metadata: Vec<RuleSaid>,
    /// What clients see: the plain protocol, or the habits of a product; a bare name is its `like`.
    pub(super) face: face::Said,
    /// What clients may speak.
    pub(super) dialects: Dialects,
    /// Choices where the versions or their implementations disagree.
    pub(super) compat: Compat,
    /// How event streams are kept.
    pub(super) stream: Stream,
    /// One message in flight per conversation.
    pub(super) conversation: Conversation,
    /// Messages that are sent again.
    pub(super) retry: Retry,
    /// Where state is kept that outlives a call; a bare address is its `store`.
    pub(super) state: StateSaid,
    /// Whose tasks, contexts and webhooks are.
    pub(super) ownership: Ownership,
    /// Push notifications.
    pub(super) push: Push,
    /// The agent card.
    pub(super) card: Card,
    /// Browsers and proxies in front.
    pub(super) http: Http,
    /// Bounds on what one caller may use.
    pub(super) limits: Limits,
    /// One record for each call.
    pub(super) audit: Audit,
    /// One line in the log for each call.
    pub(super) access_log: bool,
    /// Metrics, traces and logs, as OpenTelemetry has them.
    pub(super) telemetry: Telemetry,
    /// How the gateway stops.
    pub(super) drain: Drain,
}

/// The agent behind the gateway.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one habit of an agent, switched by itself"
)]
pub(super) struct Backend {
    /// The product it is made with: stands for those of the settings below that this product needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preset: Option<Preset>,
    /// Its address, or `unix:` and the path of a socket; required unless there are routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// Where it is, if that is not what its address names: each is a machine of the one agent.
    pub(super) addresses: Vec<String>,
    /// How often names are looked up again.
    #[serde(with = "Time")]
    pub(super) resolve: Duration,
    /// What stays with one of several addresses: conversations, or nothing.
    pub(super) affinity: Affinity,
    /// When an address is left alone.
    pub(super) breaker: Breaker,
    /// How much may be sent again, of what cannot have begun.
    pub(super) repeats: Repeats,
    /// Asking addresses how they are.
    pub(super) health: Health,
    /// The binding it speaks.
    pub(super) binding: Binding,
    /// The version it speaks.
    pub(super) version: Version,
    /// Speak HTTP/2 from the start.
    pub(super) http2: bool,
    /// The most connections to each of its addresses at once.
    #[schemars(range(min = 1))]
    pub(super) max_connections: usize,
    /// How long a call waits for a free connection.
    #[serde(with = "Time")]
    pub(super) wait: Duration,
    /// How long an unused connection is kept.
    #[serde(with = "Time")]
    pub(super) idle: Duration,
    /// The verb by which a REST agent is subscribed to.
    pub(super) subscribe_verb: Verb,
    /// The content type of REST requests to it.
    pub(super) rest_content_type: ContentType,
    /// How its REST paths name what is done to a task.
    pub(super) rest_paths: RestPaths,
    /// Send `acceptedOutputModes` in every configuration, for an agent that refuses one without.
    pub(super) always_output_modes: bool,
    /// It does not heed the configuration of a message: what is lost by that is told in the log, once in a while.
    pub(super) ignores_configuration: bool,
    /// Certificates to trust beside the system's, as PEM; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ca_file: Option<PathBuf>,
    /// Trust those that the system trusts.
    pub(super) system_roots: bool,
    /// The certificate that the gateway shows an agent that asks for one, as PEM; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_cert_file: Option<PathBuf>,
    /// Its private key, as PEM; read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_key_file: Option<PathBuf>,
    /// The name that the agent's certificate has to have, and that it is asked for, where it is not that of its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_name: Option<String>,
    /// Where its card is, below its host.
    pub(super) card_path: String,
    /// Read a stream to its end after its client left, for an agent that stops when nobody listens.
    pub(super) follow_streams: bool,
    /// Members of the metadata of every message that have these values where neither the caller nor a rule gives them.
    pub(super) default_metadata: BTreeMap<String, Value>,
    /// Members of the metadata without which a message is refused.
    pub(super) require_metadata: Vec<String>,
    /// Say in every send whether it waits, also where that is what v1.0 takes for granted.
    pub(super) explicit_wait: bool,
    /// It can call webhooks. Where it cannot, they are taken out of messages, and calls about them are answered here.
    pub(super) push_notifications: bool,
    /// Fill in finished tasks that it shows without their answer, by a replay of their events.
    pub(super) hydrate_tasks: bool,
    /// What it is shown in place of the callers' own credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) credentials: Option<Credentials>,
}

/// Calls below a path go to an agent of their own.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
// Read as if they were not, so that both can be told missing at once.
#[schemars(extend("required" = ["path", "backend"]))]
pub(super) struct Route {
    /// Where clients find the agent, such as `/agents/{id}`; a parameter is a whole segment.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// Its address, with the same parameters in its path.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backend: Option<String>,
    /// The parameter that names the agent: a context stays with the agent that it was first used with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_parameter: Option<String>,
    /// What is written into the metadata of messages to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) metadata: Vec<RuleSaid>,
    /// What its clients see, where that is not what all see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) face: Option<face::Said>,
}

/// The address alone, or all of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected memory, redis://HOST or an object such as {store: memory}"
)]
#[schemars(inline)]
pub(super) enum StateSaid {
    /// The address.
    Store(StoreUrl),
    /// All of it.
    Full(State),
}

impl From<StateSaid> for State {
    fn from(said: StateSaid) -> Self {
        match said {
            StateSaid::Store(store) => Self {
                store,
                ..Self::default()
            },
            StateSaid::Full(state) => state,
        }
    }
}

/// Browsers and proxies in front.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Http {
    /// What pages of other sites may do.
    pub(super) cors: Cors,
    /// Networks whose `Forwarded` and `X-Forwarded-*` fields are believed.
    pub(super) trusted_proxies: Vec<String>,
}

/// What pages of other sites may do.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Cors {
    /// The sites whose pages may call: a list, or "*" for all; none switches CORS off.
    pub(super) origins: Origins,
    /// How long a browser may remember the answer.
    #[serde(with = "Time")]
    pub(super) max_age: Duration,
}

/// One word or a list of them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected \"*\" or a list such as [https://app.example]"
)]
#[schemars(inline)]
pub(super) enum Origins {
    /// "*".
    One(#[schemars(extend("const" = "*"))] String),
    /// Each as a browser writes it.
    List(Vec<String>),
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            tls: None,
            public_url: None,
            admin: None,
            admin_token_file: None,
            workers: 0,
            log: Level::default(),
            log_format: LogFormat::default(),
            auth: vec![Way::Passthrough],
            backend: Backend::default(),
            routes: Vec::new(),
            metadata: Vec::new(),
            face: face::Said::Full(face::Full::default()),
            dialects: Dialects::default(),
            compat: Compat::default(),
            stream: Stream::default(),
            conversation: Conversation::default(),
            retry: Retry::default(),
            state: StateSaid::Full(State::default()),
            ownership: Ownership::default(),
            push: Push::default(),
            card: Card::default(),
            http: Http::default(),
            limits: Limits::default(),
            audit: Audit::default(),
            access_log: false,
            telemetry: Telemetry::default(),
            drain: Drain::default(),
        }
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            preset: None,
            url: None,
            addresses: Vec::new(),
            resolve: Duration::from_secs(30),
            affinity: Affinity::default(),
            breaker: Breaker::default(),
            repeats: Repeats::default(),
            health: Health::default(),
            binding: Binding::default(),
            version: Version::default(),
            http2: false,
            max_connections: 10000,
            wait: Duration::from_secs(5),
            idle: Duration::from_mins(1),
            subscribe_verb: Verb::default(),
            rest_content_type: ContentType::default(),
            rest_paths: RestPaths::default(),
            always_output_modes: false,
            ignores_configuration: false,
            ca_file: None,
            system_roots: true,
            client_cert_file: None,
            client_key_file: None,
            server_name: None,
            card_path: "/.well-known/agent-card.json".to_owned(),
            follow_streams: false,
            default_metadata: BTreeMap::new(),
            require_metadata: Vec::new(),
            explicit_wait: false,
            push_notifications: true,
            hydrate_tasks: false,
            credentials: None,
        }
    }
}

impl Default for Cors {
    fn default() -> Self {
        Self {
            origins: Origins::List(Vec::new()),
            max_age: Duration::from_mins(10),
        }
    }
}
