//! A stand-in for MemoryLake's agents: a server that does what the product's page "A2A Integration" says, in any of
//! the three versions of that page (the current English and Chinese ones, and an older one).
//!
//! It is written from these pages alone, not from the gateway's code, and refuses what the page says is refused. It is
//! not the product: there is no model, no memory and no document behind it, its agent follows a script that the text
//! of the message chooses (`script.rs`), and what no page tells is a choice of ours. Such a choice is marked
//! "not told" where it is made. Rules that only one page has are switches in [`Rules`].
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses its own part of this, and nothing is outside of a test"
)]
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use serde_json::Value;
use tokio::sync::oneshot;

#[path = "memorylake/call.rs"]
mod call;
#[path = "memorylake/callback.rs"]
mod callback;
#[path = "memorylake/capability.rs"]
mod capability;
#[path = "memorylake/conversation.rs"]
mod conversation;
#[path = "memorylake/extension.rs"]
mod extension;
#[path = "memorylake/operation.rs"]
mod operation;
#[path = "memorylake/read.rs"]
mod read;
#[path = "memorylake/refusal.rs"]
mod refusal;
#[path = "memorylake/rules.rs"]
mod rules;
#[path = "memorylake/script.rs"]
mod script;
#[path = "memorylake/task.rs"]
mod task;
#[path = "memorylake/tell.rs"]
mod tell;
#[path = "memorylake/wire.rs"]
mod wire;
#[path = "memorylake/world.rs"]
mod world;

#[allow(unused_imports, reason = "the program needs none of them")]
pub use call::{Op, Tongue};
pub use extension::Heard;
pub use rules::{Page, Rules};
pub use world::{Seen, World};

/// Where the API begins at the product's host.
pub const API: &str = "/openapi/memorylake/api/v3";

/// A running double; it ends when this is dropped.
pub struct Lake {
    pub addr: SocketAddr,
    pub page: Page,
    world: Arc<World>,
    stop: Option<oneshot::Sender<()>>,
}

impl Lake {
    /// One that does what this page says.
    pub fn of(page: Page) -> Self {
        Self::with(Rules::of(page))
    }

    pub fn with(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::listen(listener, rules)
    }

    pub fn listen(listener: TcpListener, rules: Rules) -> Self {
        let addr = listener.local_addr().expect("it is bound");
        let page = rules.page;
        let world = Arc::new(World::new(rules, addr));
        let (stop, stopped) = oneshot::channel();
        let serves = Arc::clone(&world);
        thread::spawn(move || wire::run(listener, serves, stopped));
        Self {
            addr,
            page,
            world,
            stop: Some(stop),
        }
    }

    /// The path of the agent that the page's examples ask.
    pub fn base(&self) -> String {
        let (workspace, agent) = self.page.example();
        format!("{API}/workspaces/{workspace}/agents/{agent}/a2a")
    }

    /// The path of another agent of the same workspace.
    pub fn other(&self) -> String {
        let (workspace, _) = self.page.example();
        format!("{API}/workspaces/{workspace}/agents/{}/a2a", world::OTHER)
    }

    /// All requests so far, in the order of their coming.
    pub fn seen(&self) -> Vec<Seen> {
        self.world.seen()
    }

    /// What the agent was given with each message that was let in.
    pub fn heard(&self) -> Vec<Heard> {
        self.world.heard()
    }

    /// Lets a task that holds go on.
    pub fn release(&self, task: &str) {
        self.world.release(task);
    }

    /// The state of a task, as v1.0 writes it.
    pub fn state(&self, task: &str) -> String {
        let task = self.world.task(task).expect("there is such a task");
        task.state().to_owned()
    }

    /// Takes a permission on something from the holder of a key. On the whole workspace where `on` is empty.
    pub fn deny(&self, key: &str, permission: &str, on: &str) {
        self.world.deny(key, permission, on);
    }

    /// What the callbacks told, where the page has some.
    pub fn callbacks(&self) -> Vec<Value> {
        self.world.callbacks()
    }
}

impl Drop for Lake {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _it_has_ended = stop.send(());
        }
    }
}
