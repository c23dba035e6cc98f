//! What a conversation's slot costs: taken, named by a reply, settled. Run by `benches/instructions`, which counts
//! instructions; the argument is how often.
use std::sync::Arc;

use a2a_gateway::{
    a2a::{answer::Seen, shape::State},
    config::Conversation,
    policy::conversation::{Conversations, Evidence, Wanted},
    state::{
        Store,
        memory::{Memory, Settings},
        slot::{Asker, Times},
    },
};

const MOST: usize = 3000;

fn main() {
    let times: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let settings = Conversation::default();
    let memory = Memory::new(Settings {
        times: Times {
            lease: None,
            settle: settings.settle,
            max_hold: settings.max_hold,
        },
        slots: settings.max_held,
        tasks: settings.max_tasks,
        bindings: settings.max_bindings,
        binding_ttl: settings.binding_ttl,
        messages: 1000,
        message_ttl: settings.max_hold,
        owners: a2a_gateway::state::owner::Settings::default(),
    });
    let all = Conversations::new(settings, Store::Memory(memory.into()));
    let scope: Arc<str> = "http://127.0.0.1:9999".into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    // Made before, and always as many, so that they are in no difference of two runs.
    let wanted = |n: usize| Wanted {
        scope: scope.clone(),
        context: Some(format!("0c7a3e52-6f0c-4a0e-9d53-{n:012x}")),
        task: None,
        asker: Asker::anonymous(1),
        agent: None,
        bytes: 0,
    };
    let seen = |n: usize| {
        let mut seen = Seen {
            state: Some(State::Terminal),
            task: true,
            ..Seen::default()
        };
        seen.named.task = Some(format!("3b1f1f6e-88e8-4c6e-a9ff-{n:012x}").into());
        seen
    };
    let calls: Vec<(Wanted, Seen)> = (0..MOST).map(|n| (wanted(n), seen(n))).collect();
    runtime.block_on(async {
        for (wanted, seen) in calls.into_iter().take(times) {
            let asked = |_| async { Evidence::Nothing };
            let mut permit = all.admit(wanted, asked).await.expect("a free slot");
            permit.goes_out().expect("a lease");
            permit.seen(&seen).done().await;
        }
    });
}
