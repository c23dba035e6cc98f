//! The settings, read twice: first as the file says them (`raw`, with the line of every key), then as
//! they are meant: checked, typed, with no choice left open. All mistakes are told at once, each
//! with its key and line, never with an excerpt: a file may hold secrets.
//!
//! A section that needs no second reading is one struct, shared by both (`sections`).

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

mod audit;
mod auth;
mod backend;
mod bounds;
mod conversations;
mod face;
mod fixed;
mod limits;
mod mean;
mod metadata;
mod ownership;
mod preset;
mod raw;
mod route;
mod sections;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;
mod tree;
mod units;
mod url;

pub use self::audit::{Audit, Capture, Keep, OnFull};
pub use self::auth::{
    Algorithm, ApiKeys, Certificates, Credentials, Jwt, Key, Oauth2, Pattern, Realm, SecretHeader,
    Way, keys, realms, trust_domain, variable,
};
pub use self::backend::{Affinity, Breaker, Health, HostPort, Repeats};
pub use self::bounds::Limits;
pub use self::conversations::{
    BusyStatus, ByMessageId, Conversation, OnBusy, OnError, Retry, State, StoreUrl,
};
pub use self::face::{Face, Like};
pub use self::limits::{AtOnce, Concurrency, Match, Of, Part, Per, PerPeer, Quota, Rate, Rule};
pub(crate) use self::metadata::required;
pub use self::metadata::{MetadataRule, MetadataSource, MetadataValue};
pub use self::ownership::{NewContexts, OfUnknown, OwnedBy, Ownership};
pub use self::preset::Preset;
pub use self::route::{Route, Segment, Target, Template};
pub use self::sections::{
    Binding, BytesEncoding, Card, Compat, ContentType, Dialects, Drain, Level, LogFormat, Push,
    PushMode, RestDialect, RestPaths, Stream, Verb, Version,
};
pub use self::telemetry::{Logs, Metrics, Otlp, Share, Telemetry, Traces};
pub use self::tls::{Asks, ClientCertificates, Listen, MinVersion, Tls};
pub use self::url::BaseUrl;

/// A settings file is a few kilobytes; beyond this it is some other file.
const MAX_FILE: usize = 1024 * 1024;

/// All settings, as they are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// How they do so by TLS, if they do.
    pub tls: Option<Tls>,
    /// The address clients know us by; without one it follows from each request.
    pub public_url: Option<BaseUrl>,
    /// Where probes and metrics are served, if anywhere.
    pub admin: Option<Listen>,
    /// The file that holds the token of the admin address, if there is one.
    pub admin_token_file: Option<PathBuf>,
    /// Threads that serve, at least one.
    pub workers: usize,
    /// What is logged.
    pub log: Level,
    /// How the log is written.
    pub log_format: LogFormat,
    /// Who is let in: the ways, in this order.
    pub auth: Vec<Way>,
    /// The agent behind the gateway.
    pub backend: Backend,
    /// Further agents, each below a path of its own.
    pub routes: Vec<Route>,
    /// What is written into the metadata of messages to the agent without a route.
    pub metadata: Vec<MetadataRule>,
    /// What clients see.
    pub face: Face,
    /// What clients may speak.
    pub dialects: Dialects,
    /// Choices where the versions or their implementations disagree.
    pub compat: Compat,
    /// How event streams are kept.
    pub stream: Stream,
    /// One message in flight per conversation.
    pub conversation: Conversation,
    /// Messages that are sent again.
    pub retry: Retry,
    /// Where state is kept that outlives a call.
    pub state: State,
    /// Whose tasks, contexts and webhooks are.
    pub ownership: Ownership,
    /// Push notifications.
    pub push: Push,
    /// The agent card.
    pub card: Card,
    /// Browsers and proxies in front.
    pub http: Http,
    /// Bounds on what one caller may use.
    pub limits: Limits,
    /// One record for each call.
    pub audit: Audit,
    /// Whether the log has a line for each call.
    pub access_log: bool,
    /// Metrics, traces and logs.
    pub telemetry: Telemetry,
    /// How the gateway stops.
    pub drain: Drain,
}

/// The agent behind the gateway and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one habit of an agent, switched by itself"
)]
pub struct Backend {
    /// Its address; absent only where there are routes, or in a file read by [`check`].
    pub url: Option<BaseUrl>,
    /// The socket in the file system by which it is reached, whatever the address says.
    pub socket: Option<PathBuf>,
    /// Where it is, if that is not what its address names.
    pub addresses: Vec<HostPort>,
    /// How often names are looked up again.
    pub resolve: Duration,
    /// What stays with one of several addresses.
    pub affinity: Affinity,
    /// When an address is left alone.
    pub breaker: Breaker,
    /// How much may be sent again.
    pub repeats: Repeats,
    /// Asking addresses how they are.
    pub health: Health,
    /// The binding it speaks.
    pub binding: Binding,
    /// The version it speaks.
    pub version: Version,
    /// Whether cleartext connections speak HTTP/2 from the start.
    pub http2: bool,
    /// Most connections to each address at once.
    pub max_connections: usize,
    /// How long a call waits for a free connection.
    pub wait: Duration,
    /// How long an unused connection is kept.
    pub idle: Duration,
    /// The verb by which a REST agent is subscribed to.
    pub subscribe_verb: Verb,
    /// The content type of REST requests to it.
    pub rest_content_type: ContentType,
    /// How its REST paths name what is done to a task.
    pub rest_paths: RestPaths,
    /// Whether every configuration has `acceptedOutputModes`.
    pub always_output_modes: bool,
    /// Whether it ignores the configuration of a message.
    pub ignores_configuration: bool,
    /// Certificates to trust beside the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// Whether the system's count at all.
    pub system_roots: bool,
    /// The certificate that the gateway shows, as PEM.
    pub client_cert_file: Option<PathBuf>,
    /// Its key.
    pub client_key_file: Option<PathBuf>,
    /// The name that its certificate has to have, where that is not the host's.
    pub server_name: Option<String>,
    /// Where its card is, below its host.
    pub card_path: String,
    /// Whether a stream is read to its end after its client left.
    pub follow_streams: bool,
    /// What is written into the metadata of every message, after the rules of its route.
    pub metadata: Vec<MetadataRule>,
    /// Whether every send says whether it waits.
    pub explicit_wait: bool,
    /// Whether it can call webhooks.
    pub push_notifications: bool,
    /// Whether finished tasks that it shows without their answer are filled in.
    pub hydrate_tasks: bool,
    /// What it is shown in place of the caller's own credentials.
    pub credentials: Option<Credentials>,
}

/// Browsers and proxies in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// What pages of other sites may do.
    pub cors: Cors,
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// What pages of other sites may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// The sites; an empty list switches CORS off.
    pub origins: Origins,
    /// How long a browser may remember the answer.
    pub max_age: Duration,
}

/// The sites whose pages may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All of them.
    Any,
    /// These, each as a browser writes it in `Origin`.
    These(Vec<String>),
}

/// What the command line and the environment say; each goes before the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `backend.url`
    pub backend: Option<String>,
    /// `listen`
    pub listen: Option<Listen>,
    /// `public_url`
    pub public_url: Option<String>,
    /// `backend.binding`
    pub binding: Option<Binding>,
    /// `backend.version`
    pub version: Option<Version>,
    /// `admin`
    pub admin: Option<Listen>,
    /// `workers`
    pub workers: Option<usize>,
    /// `log`
    pub log: Option<Level>,
}

impl Config {
    /// The settings of `file`, or the defaults without one, below what was said on the command line.
    pub fn load(file: Option<&Path>, overrides: Overrides) -> Result<Self, Mistakes> {
        let text = file.map_or(Ok(String::new()), read)?;
        Self::parse(&text, overrides)
    }

    /// The same for a text that is already in memory.
    pub fn parse(text: &str, overrides: Overrides) -> Result<Self, Mistakes> {
        mean::mean(text, overrides, Agent::Required)
    }

    /// The settings of `file`, whose agent may come from elsewhere.
    pub fn load_without_agent(file: &Path, overrides: Overrides) -> Result<Self, Mistakes> {
        mean::mean(&read(file)?, overrides, Agent::MayComeLater)
    }

    /// What is no mistake, but may surprise.
    pub fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let all = [ownership::warning(self), auth::warning(self)];
        all.into_iter().flatten()
    }

    /// Whether there is nobody to send a call to.
    fn lacks_agent(&self) -> bool {
        self.backend.url.is_none() && self.routes.is_empty()
    }
}

/// Whether settings must name an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agent {
    Required,
    MayComeLater,
}

/// Checks a settings file by itself and says what to tell the user.
///
/// The address of the agent often comes from the environment, so a file without it is right.
pub fn check(file: &Path) -> Result<String, Mistakes> {
    let config = mean::mean(&read(file)?, Overrides::default(), Agent::MayComeLater)?;
    let name = file.display();
    if config.lacks_agent() {
        return Ok(format!("{name}: no mistakes; {}", mean::NO_AGENT));
    }
    let warnings = config.warnings().map(|says| format!("\nwarning: {says}"));
    let warnings: String = warnings.collect();
    Ok(format!("{name}: no mistakes{warnings}"))
}

/// The JSON Schema of the settings file.
pub fn schema() -> String {
    let schema = schemars::schema_for!(raw::Raw);
    format!("{:#}", schema.as_value())
}

/// A time as settings write it, such as `30s`.
pub fn time(text: &str) -> Result<Duration, String> {
    units::Time::parse(text).map_err(str::to_owned)
}

fn read(file: &Path) -> Result<String, Mistakes> {
    let fail = |why: &dyn fmt::Display| {
        let says = format!("cannot read {}: {why}", file.display());
        Mistakes::from(Mistake::new("", says))
    };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| fail(&error))?;
    // One more than allowed tells "too long" from "just fits", also for pipes and growing files.
    let mut bounded = opened.take(MAX_FILE as u64 + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|error| fail(&error))?;
    if bytes.len() > MAX_FILE {
        return Err(fail(&"it is longer than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| fail(&"it is not UTF-8 text"))
}

/// One thing that is wrong in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The path of the key, such as `limits.body`; empty for the file as a whole.
    pub key: String,
    /// The line in the file, if the value came from there.
    pub line: Option<u64>,
    /// What is wrong and what would be right; never the value.
    pub says: String,
}

impl Mistake {
    fn new(key: impl Into<String>, says: impl Into<String>) -> Self {
        let (key, says) = (key.into(), says.into());
        let line = None;
        Self { key, line, says }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.says)
    }
}

/// All that is wrong in the settings, in the order of the file; one line each when printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// The mistakes, one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
