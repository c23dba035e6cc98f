//! The sections that mean what they say: words, numbers, times and sizes. The comments here are also
//! the descriptions in the JSON Schema; `config/gateway.yaml` says the same with room to breathe.

use std::time::Duration;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Time;

/// The binding an agent speaks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// All operations at one address, in an envelope.
    #[default]
    Jsonrpc,
    /// One path for each operation.
    Rest,
}

/// The version an agent speaks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ValueEnum,
)]
pub enum Version {
    /// A2A 1.0.
    #[default]
    #[serde(rename = "1.0")]
    #[value(name = "1.0")]
    V10,
    /// A2A 0.3.
    #[serde(rename = "0.3")]
    #[value(name = "0.3")]
    V03,
}

/// What is logged: this and all that is worse.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What needs a person.
    Error,
    /// What may need one.
    Warn,
    /// Each call, and what the gateway does.
    #[default]
    Info,
    /// Decisions.
    Debug,
    /// Everything.
    Trace,
    /// Nothing.
    Off,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One object a line, for machines.
    Json,
}

/// The verb by which a REST agent is subscribed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verb {
    /// As the text of the specification says.
    #[default]
    Post,
    /// As its proto file says.
    Get,
}

/// How an agent's REST paths name what is done to a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RestPaths {
    /// `/tasks/{id}:cancel`, as the specification says.
    #[default]
    Colon,
    /// `/tasks/{id}/cancel`, where a router cannot split a segment.
    Slash,
}

/// The content type of REST bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ContentType {
    /// Understood by every SDK.
    #[default]
    #[serde(rename = "application/json")]
    Json,
    /// Preferred by the specification of v1.0.
    #[serde(rename = "application/a2a+json")]
    A2aJson,
}

impl ContentType {
    /// As it is written in a head.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::A2aJson => "application/a2a+json",
        }
    }
}

/// A way to write v0.3 over REST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RestDialect {
    /// `ProtoJSON`, as most do.
    Proto,
    /// With `kind`, as in JSON-RPC.
    Kind,
    /// `ProtoJSON` with `snake_case` names.
    Snake,
}

/// How often the bytes of a file are encoded in v0.3 REST; implementations disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BytesEncoding {
    /// Told by what is inside; answered as asked, and to a request without bytes as its SDK reads it (by User-Agent).
    #[default]
    Auto,
    /// Once, as the JavaScript SDK does.
    Single,
    /// Twice, as the Python and Java SDKs do.
    Double,
}

/// What becomes of push notification settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PushMode {
    /// They reach the agent, which calls the client itself, in its own dialect.
    #[default]
    Passthrough,
    /// They are refused.
    Off,
}

/// What clients may speak.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is offered by itself, in any combination"
)]
pub struct Dialects {
    /// Clients may speak v0.3.
    pub v03: bool,
    /// Clients may speak v1.0.
    pub v10: bool,
    /// Clients may use JSON-RPC.
    pub jsonrpc: bool,
    /// Clients may use REST.
    pub rest: bool,
    /// The ways to write v0.3 over REST that are understood.
    pub v03_rest_dialects: Vec<RestDialect>,
    /// Further minor versions that are taken as 1.0, such as "1.1".
    #[schemars(inner(regex(pattern = r"^1\.[1-9][0-9]*$")))]
    pub versions: Vec<String>,
    /// Offer the listing of tasks to v0.3 clients too.
    pub v03_list_tasks: bool,
    /// Serve the card at its old place, `/.well-known/agent.json`, too.
    pub agent_json: bool,
}

impl Default for Dialects {
    fn default() -> Self {
        Self {
            v03: true,
            v10: true,
            jsonrpc: true,
            rest: true,
            v03_rest_dialects: vec![RestDialect::Proto, RestDialect::Kind],
            versions: Vec::new(),
            v03_list_tasks: false,
            agent_json: false,
        }
    }
}

/// Choices where the versions or their implementations disagree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one quirk, switched by itself"
)]
pub struct Compat {
    /// How often the bytes of a file are encoded in v0.3 REST.
    pub r03p_file_bytes: BytesEncoding,
    /// Leave out of v0.3 REST what the 0.3.0 proto file does not have: part metadata and file names.
    pub r03p_strict_030: bool,
    /// Keep what a version has no place for in metadata, to restore it on the way back.
    pub preserve_lossy: bool,
    /// Give a message without an id one before it goes to the agent.
    pub generate_message_id: bool,
    /// A v0.3 REST send that does not say so waits for the end, as one by JSON-RPC does.
    pub v03_rest_default_blocking: bool,
    /// Understand the old word `blocking` from v1.0 clients.
    pub v10_accept_blocking: bool,
    /// The content type of successful REST answers to v1.0 clients.
    pub rest_content_type: ContentType,
    /// Begin a subscription with the task where the agent does not.
    pub synthesize_task_first: bool,
}

impl Default for Compat {
    fn default() -> Self {
        Self {
            r03p_file_bytes: BytesEncoding::Auto,
            r03p_strict_030: false,
            preserve_lossy: true,
            generate_message_id: true,
            v03_rest_default_blocking: false,
            v10_accept_blocking: false,
            rest_content_type: ContentType::Json,
            synthesize_task_first: false,
        }
    }
}

/// How event streams are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// How long an interrupted status may wait to learn whether it is final; 0 calls none final.
    #[serde(with = "Time")]
    pub final_grace: Duration,
    /// How often a silent stream gets a comment, so that nobody on the way closes it; 0 is never.
    #[serde(with = "Time")]
    pub keep_alive: Duration,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            final_grace: Duration::from_millis(250),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// Push notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// What becomes of their settings.
    pub mode: PushMode,
}

/// The agent card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// How long a fetched card is fresh when the agent says nothing.
    #[serde(with = "Time")]
    pub max_age: Duration,
    /// How long the last good card is served when the agent is away.
    #[serde(with = "Time")]
    pub stale: Duration,
    /// The path below the public address that the card gives for JSON-RPC, also accepted there.
    #[schemars(regex(pattern = r"^(/[^/?#%{}]+)*$"))]
    pub jsonrpc_path: String,
}

impl Default for Card {
    fn default() -> Self {
        Self {
            max_age: Duration::from_mins(1),
            stale: Duration::from_hours(1),
            jsonrpc_path: String::new(),
        }
    }
}

/// How the gateway stops.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drain {
    /// How long calls are still taken after the word to stop came, while readiness says already that none are wanted.
    #[serde(with = "Time")]
    pub delay: Duration,
    /// How long calls and streams may end by themselves afterwards.
    #[serde(with = "Time")]
    pub grace: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            grace: Duration::from_secs(30),
        }
    }
}
