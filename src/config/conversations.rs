//! The sections about what outlives a call: conversations, retries, and where their state is kept. As in `sections`,
//! the comments are also the descriptions in the JSON Schema.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::mean::above_zero;
use super::tree::Tree;
use super::units::{Size, Time};
use crate::state::redis::Address;

/// What a message finds whose conversation is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnBusy {
    /// A refusal.
    #[default]
    Reject,
    /// A place in the queue.
    Wait,
    /// Nothing: messages go to the agent as they come.
    Off,
}

/// The status of a refusal by REST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BusyStatus {
    /// `INVALID_ARGUMENT`, as the agents themselves say it.
    #[default]
    #[serde(rename = "400")]
    BadRequest,
    /// Conflict.
    #[serde(rename = "409")]
    Conflict,
}

/// One message in flight per conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conversation {
    /// What a message finds whose conversation is busy: a refusal, a place in the queue, or nothing.
    pub on_busy: OnBusy,
    /// The status of that refusal by REST.
    pub busy_status: BusyStatus,
    /// How long a message waits for the one before it, before it is refused or the agent is asked.
    #[serde(with = "Time")]
    pub busy_grace: Duration,
    /// How long a message may wait in the queue.
    #[serde(with = "Time")]
    pub wait: Duration,
    /// The most messages that wait.
    #[schemars(range(min = 1))]
    pub max_waiting: usize,
    /// The most that their bodies may hold together.
    #[serde(with = "Size")]
    pub max_waiting_bytes: usize,
    /// How long after a message went out its agent may not show it yet.
    #[serde(with = "Time")]
    pub settle: Duration,
    /// How long a conversation is held after a lost answer, where the agent cannot list its tasks.
    #[serde(with = "Time")]
    pub unknown_hold: Duration,
    /// The longest that a conversation is held without news of its task.
    #[serde(with = "Time")]
    pub max_hold: Duration,
    /// Name the context in a message that names only its task.
    pub fill_context: bool,
    /// The most conversations that are held at once; beyond, messages are refused.
    #[schemars(range(min = 1))]
    pub max_held: usize,
    /// The most tasks whose context is remembered.
    #[schemars(range(min = 1))]
    pub max_tasks: usize,
    /// How long a context stays with the agent that it was first used with, from its last use.
    #[serde(with = "Time")]
    pub binding_ttl: Duration,
    /// The most contexts that are bound to an agent; beyond, the oldest goes. In a shared store it is `binding_ttl`
    /// that bounds them, and the store's own `maxmemory`; there this is the most that a gateway binds while it is away.
    #[schemars(range(min = 1))]
    pub max_bindings: usize,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            on_busy: OnBusy::default(),
            busy_status: BusyStatus::default(),
            busy_grace: Duration::from_millis(250),
            wait: Duration::from_secs(30),
            max_waiting: 1024,
            max_waiting_bytes: 64 * 1024 * 1024,
            settle: Duration::from_secs(5),
            unknown_hold: Duration::from_mins(1),
            max_hold: Duration::from_hours(1),
            fill_context: true,
            max_held: 100_000,
            max_tasks: 100_000,
            binding_ttl: Duration::from_hours(30 * 24),
            max_bindings: 100_000,
        }
    }
}

/// Whether a repeated message is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ByMessageId {
    /// It is a new one.
    #[default]
    Off,
    /// It is the same, and the agent sees it once.
    On,
}

/// Messages that are sent again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Whether a message with the id of an earlier one of its caller is that one, sent again. Then the agent sees it
    /// once, and the caller gets its answer or its task; what may have begun is never sent twice. Callers without a
    /// credential are told apart by their address.
    pub message_id: ByMessageId,
    /// How long a message is remembered, from the last news of it; one that runs, as long as it does.
    #[serde(with = "Time")]
    pub window: Duration,
    /// The most messages that are remembered; beyond, the oldest goes. In a shared store it is `window` that bounds
    /// them; there this is how many of its own a gateway remembers, in case the store is away or loses its data.
    #[schemars(range(min = 1))]
    pub max_messages: usize,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            message_id: ByMessageId::default(),
            window: Duration::from_mins(10),
            max_messages: 100_000,
        }
    }
}

/// What happens while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// Each gateway goes on by itself, and what it took is merged afterwards.
    #[default]
    Local,
    /// Messages are refused.
    Refuse,
}

/// Where a store is. It may hold a password, and is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct StoreUrl(pub String);

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.split("://").next().unwrap_or_default();
        write!(f, "{scheme}")
    }
}

/// Where state is kept that outlives a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct State {
    /// `memory`, or the address of a Redis or Valkey that all replicas share: `redis://`, `rediss://` (TLS), and
    /// `redis+sentinel://` or `redis+cluster://` with several hosts.
    pub store: StoreUrl,
    /// What happens while it is away: `local` or `refuse`.
    pub on_error: OnError,
    /// What all keys in it begin with.
    pub prefix: String,
    /// How long a gateway that says nothing keeps its conversations, and counts as waiting for what it sent.
    #[serde(with = "Time")]
    pub lease: Duration,
    /// How long one command may take.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// How long an answer waits for its conversation to be free in the store.
    #[serde(with = "Time")]
    pub settle_timeout: Duration,
    /// With the memory store, the file in which the counts of limits and the owners of tasks and contexts survive a
    /// restart; a crash loses the last second. It belongs to one gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persist: Option<PathBuf>,
}

impl State {
    /// Whether nothing is shared.
    pub fn is_memory(&self) -> bool {
        self.store.0 == "memory"
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            store: StoreUrl("memory".to_owned()),
            on_error: OnError::default(),
            prefix: "a2a".to_owned(),
            lease: Duration::from_secs(30),
            timeout: Duration::from_secs(1),
            settle_timeout: Duration::from_millis(100),
            persist: None,
        }
    }
}

/// What each section says by itself, and what one says of another.
pub(super) fn check(config: &Config, tree: &mut Tree) {
    let (c, r, s) = (&config.conversation, &config.retry, &config.state);
    let sizes = [
        ("max_waiting", c.max_waiting),
        ("max_waiting_bytes", c.max_waiting_bytes),
        ("max_held", c.max_held),
        ("max_tasks", c.max_tasks),
        ("max_bindings", c.max_bindings),
    ];
    let times = [
        ("wait", c.wait),
        ("max_hold", c.max_hold),
        ("binding_ttl", c.binding_ttl),
    ];
    above_zero("conversation", &sizes, &times, tree);
    let sizes = [("max_messages", r.max_messages)];
    above_zero("retry", &sizes, &[("window", r.window)], tree);
    let times = [
        ("lease", s.lease),
        ("timeout", s.timeout),
        ("settle_timeout", s.settle_timeout),
    ];
    above_zero("state", &[], &times, tree);
    if s.prefix.is_empty() || s.prefix.contains(['{', '}']) {
        tree.wrong("state.prefix", "expected a name without braces");
    }
    if s.persist.as_ref().is_some_and(|p| p.as_os_str().is_empty()) {
        tree.wrong("state.persist", "expected the name of a file");
    }
    if !s.is_memory() {
        if s.persist.is_some() {
            tree.wrong(
                "state.persist",
                "is for the memory store; a shared one keeps counts and owners itself",
            );
        }
        shared(config, tree);
    }
}

fn shared(config: &Config, tree: &mut Tree) {
    let (c, s) = (&config.conversation, &config.state);
    if let Err(error) = Address::parse(&s.store.0) {
        let long = tree.has("state.store");
        let key = if long { "state.store" } else { "state" };
        tree.wrong(key, format!("expected memory, or: {error}"));
    }
    if s.lease <= c.settle {
        // Else no message would ever go out: it does so only while its lease has that long left.
        tree.wrong("state.lease", "expected more than conversation.settle");
    }
}
