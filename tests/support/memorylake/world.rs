//! Who and what there is: keys and what their holders may, agents, actors, projects, tasks and conversations; and what
//! was asked. The names are those of the pages' examples.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::SocketAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    call::{Op, Tongue},
    capability::Capabilities,
    conversation::Conversations,
    extension::Heard,
    refusal::Refusal,
    rules::{Page, Rules},
    task::Task,
};

/// A second agent of the workspaces. It searches the web by its own configuration.
pub const OTHER: &str = "agent-00000000000000000000000000000002";

pub const ACTOR_PERMISSIONS: [&str; 2] =
    ["workspace_actor:fact_add", "workspace_actor:fact_search"];
pub const WRITE_PERMISSIONS: [&str; 4] = [
    "project:mem_add",
    "project:doc_add",
    "project:mem_search",
    "project:doc_search",
];
pub const READ_PERMISSIONS: [&str; 2] = ["project:mem_search", "project:doc_search"];

/// Actors bound to the workspaces, and whether they are active.
const ACTORS: [(&str, bool); 4] = [
    ("actor-33d6b73298fb43482a765643ff92444b", true),
    ("actor-00000000000000000000000000000001", true),
    ("actor-0000000000000000000000000000dead", false),
    ("act_user_jane", true),
];
/// The actor of the user that most keys are of.
pub const OWN_ACTOR: &str = "actor-00000000000000000000000000000001";
/// Projects, and the workspaces they are of.
const PROJECTS: [(&str, &str); 7] = [
    (
        "ws-8001856949ad4f6a5b6226f415ffa877",
        "proj-b93e8d95a8705bcc4ec42a65ba4cc7f8",
    ),
    (
        "ws-8001856949ad4f6a5b6226f415ffa877",
        "proj-cd2e83f761eec93c75977f51667889cd",
    ),
    (
        "ws-8001856949ad4f6a5b6226f415ffa877",
        "proj-c62be3c8aa01d134ac32975afe24d034",
    ),
    ("ws_abc123", "proj_def456"),
    ("ws_abc123", "proj_shared_kb"),
    ("ws_abc123", "proj_meetings"),
    (
        "ws-00000000000000000000000000000002",
        "proj-00000000000000000000000000000000",
    ),
];
const MODELS: [&str; 2] = ["gpt-4o", "claude-sonnet-4-20250514"];
/// What is kept of requests, at most.
const MOST_KEPT: usize = 10_000;

/// Whose key it is that a request brings.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The user's own actor.
    pub actor: Option<String>,
    has_quota: bool,
    /// Permissions that are missing, and on what.
    denied: BTreeSet<(String, String)>,
}

impl Holder {
    /// Has all these permissions on this.
    pub fn needs(&self, permissions: &[&str], on: &str) -> Result<(), Refusal> {
        let missing = |p: &&&str| self.denied.contains(&((**p).to_owned(), on.to_owned()));
        match permissions.iter().find(missing) {
            Some(permission) => Err(Refusal::denied(permission)),
            None => Ok(()),
        }
    }

    pub fn has_quota(&self) -> Result<(), Refusal> {
        if self.has_quota {
            Ok(())
        } else {
            Err(Refusal::quota())
        }
    }
}

/// A request, and how it was answered.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub fields: Vec<(String, String)>,
    pub body: String,
    /// What it was understood as.
    pub call: Option<(Tongue, Op)>,
    /// The status of the answer, once there is one.
    pub status: Option<u16>,
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub struct World {
    pub rules: Rules,
    pub addr: SocketAddr,
    pub conversations: Mutex<Conversations>,
    holders: Mutex<HashMap<String, Holder>>,
    tasks: Mutex<HashMap<String, Arc<Task>>>,
    seen: Mutex<Vec<Seen>>,
    heard: Mutex<Vec<Heard>>,
    callbacks: Mutex<Vec<Value>>,
}

impl World {
    pub fn new(rules: Rules, addr: SocketAddr) -> Self {
        let holder = |actor: Option<&str>, has_quota| Holder {
            actor: actor.map(str::to_owned),
            has_quota,
            denied: BTreeSet::new(),
        };
        let holders = [
            ("sk_xxxxxx", holder(Some(OWN_ACTOR), true)),
            ("sk_no_actor", holder(None, true)),
            ("sk_no_quota", holder(Some(OWN_ACTOR), false)),
        ];
        let named = holders.map(|(key, holder)| (key.to_owned(), holder));
        Self {
            rules,
            addr,
            conversations: Mutex::default(),
            holders: Mutex::new(named.into()),
            tasks: Mutex::default(),
            seen: Mutex::default(),
            heard: Mutex::default(),
            callbacks: Mutex::default(),
        }
    }

    pub fn holder(&self, authorization: Option<&str>) -> Result<Holder, Refusal> {
        let key = authorization.and_then(|a| a.strip_prefix("Bearer "));
        let holders = self.holders.lock();
        let found = key.and_then(|key| holders.get(key)).cloned();
        found.ok_or_else(Refusal::stranger)
    }

    pub fn deny(&self, key: &str, permission: &str, on: &str) {
        let mut holders = self.holders.lock();
        let holder = holders.get_mut(key).expect("the key is known");
        holder.denied.insert((permission.to_owned(), on.to_owned()));
    }

    /// Whether there is such an agent. Any version's examples may be asked of any page's double.
    pub fn has_agent(workspace: &str, agent: &str) -> bool {
        let examples = Page::ALL.map(Page::example);
        let of = |(w, a): &(&str, &str)| *w == workspace && (*a == agent || agent == OTHER);
        examples.iter().any(of)
    }

    pub fn own_capabilities(agent: &str) -> Capabilities {
        let sets = json!({"open_datasets": ["research/academic"]});
        match agent {
            OTHER => BTreeMap::from([("web_search".to_owned(), sets)]),
            _ => BTreeMap::new(),
        }
    }

    /// `None` where it is not bound to the workspace.
    pub fn actor_is_active(actor: &str) -> Option<bool> {
        let found = ACTORS.iter().find(|(name, _)| *name == actor);
        found.map(|(_, active)| *active)
    }

    pub fn has_project(workspace: &str, project: &str) -> bool {
        PROJECTS.contains(&(workspace, project))
    }

    pub fn has_model(&self, model: &str) -> bool {
        !self.rules.knows_models || MODELS.contains(&model)
    }

    pub fn add(&self, task: &Arc<Task>) {
        let mut tasks = self.tasks.lock();
        tasks.insert(task.id.clone(), Arc::clone(task));
    }

    pub fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.tasks.lock().get(id).cloned()
    }

    pub fn release(&self, task: &str) {
        let task = self.task(task).expect("there is such a task");
        task.release();
    }

    /// Keeps a request; gives its place.
    pub fn see(&self, seen: Seen) -> usize {
        let mut all = self.seen.lock();
        if all.len() < MOST_KEPT {
            all.push(seen);
        }
        all.len() - 1
    }

    pub fn answered(&self, place: usize, status: u16) {
        if let Some(seen) = self.seen.lock().get_mut(place) {
            seen.status = Some(status);
        }
    }

    pub fn hear(&self, heard: Heard) {
        let mut all = self.heard.lock();
        if all.len() < MOST_KEPT {
            all.push(heard);
        }
    }

    pub fn called_back(&self, told: Value) {
        self.callbacks.lock().push(told);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().clone()
    }

    pub fn callbacks(&self) -> Vec<Value> {
        self.callbacks.lock().clone()
    }
}
