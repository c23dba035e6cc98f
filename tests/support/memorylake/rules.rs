//! What the three pages say differently, each a switch. A rule that a page does not have is off there: what it does
//! not forbid is not refused. How answers look is not on the older page at all; there they look as on the others.
use std::time::Duration;

/// A version of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// The current English one.
    #[default]
    En,
    /// The current Chinese one.
    Cn,
    /// The one before.
    Older,
}

impl Page {
    pub const ALL: [Self; 3] = [Self::En, Self::Cn, Self::Older];

    /// The workspace and the agent of its examples.
    pub fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::En | Self::Cn => (
                "ws-8001856949ad4f6a5b6226f415ffa877",
                "agent-f8bf71ab17ed8eccad8c0e8ae708273f",
            ),
            Self::Older => ("ws_abc123", "agt_r8k2m1n3"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Cn => "cn",
            Self::Older => "older",
        }
    }
}

#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a rule that a page has or has not"
)]
pub struct Rules {
    pub page: Page,
    /// The permission for all of the API.
    pub permission: &'static str,
    /// What v1.0 calls the switch of waiting. The older page says `blocking` for both versions.
    pub v10_returns_immediately: bool,
    /// A message without `metadata.memorylake` is refused.
    pub needs_extension: bool,
    /// `actorId` has to be of the workspace and active, and the caller has to have one.
    pub checks_actors: bool,
    /// `readWriteProjectId` has to be of the workspace, and is fixed by the first message of a conversation.
    pub fixes_project: bool,
    /// Files need a project, named by their own message.
    pub files_need_project: bool,
    /// A conversation takes one message at a time.
    pub one_at_a_time: bool,
    /// A conversation is of the agent that it began with.
    pub one_agent: bool,
    /// `overrides.capabilitiesOverride` is read, and has to be an object.
    pub overrides_capabilities: bool,
    /// `dataset` is among the capabilities.
    pub has_dataset: bool,
    /// A model that nobody knows fails the task.
    pub knows_models: bool,
    /// `configuration.pushNotificationConfig` is heeded.
    pub calls_back: bool,
    /// Where a task that does not exist is told by the agent (a JSON-RPC error), not before it. The page leaves this
    /// open.
    pub agent_misses_task: bool,
    /// `historyLength` holds for the first event of a stream as well. One sentence of the page says that the history is
    /// left out of "the response" of v0.3 REST, another that a stream begins with the message in `history`.
    pub streams_cut_history: bool,
    /// How long a stream is silent before a comment is sent. Not told.
    pub keep_alive: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self::of(Page::default())
    }
}

impl Rules {
    pub fn of(page: Page) -> Self {
        let current = page != Page::Older;
        Self {
            page,
            permission: if current {
                "workspace_agent:a2a"
            } else {
                "workspace:a2a"
            },
            v10_returns_immediately: current,
            needs_extension: current,
            checks_actors: current,
            fixes_project: current,
            files_need_project: current,
            one_at_a_time: current,
            one_agent: current,
            overrides_capabilities: current,
            has_dataset: page == Page::Cn,
            knows_models: current,
            calls_back: !current,
            agent_misses_task: true,
            streams_cut_history: true,
            keep_alive: Duration::from_secs(15),
        }
    }
}
