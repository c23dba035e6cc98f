//! What workers ask, each as the store is: of itself, or for want of one alone.
use tokio::time::Instant;

use super::{
    super::{
        super::{Key, slot::millis},
        script::Op,
    },
    Answer, Command, Landing, No, Task, To,
};

impl Task {
    pub(super) fn serve(&mut self, command: Command) {
        let here = self.link.is_some();
        match command {
            Command::Slot(key, op, to) => self.ask(key, op, to),
            Command::Learn(task, context) => {
                self.contexts.put(task, context.clone());
                let ttl = millis(self.settings.times.max_hold);
                self.fly(|wire, link| async move {
                    Landing::Learned(wire.learn(link, task, context, ttl).await)
                });
            }
            Command::ContextOf(task, to) => {
                let known = self.contexts.get(&task).cloned();
                if known.is_some() || !here {
                    let _ = to.send(known);
                    return;
                }
                self.fly(|wire, link| async move {
                    Landing::ContextOf(task, to, wire.context_of(link, task).await)
                });
            }
            Command::Bind(context, agent, to) if here => self.bind(context, agent, Some(to)),
            Command::Bind(context, agent, to) => {
                let _ = to.send(self.bind_locally(context, agent));
            }
            Command::Begin(message, new, to) => self.begin(message, new, to),
            Command::Owned(ask) => self.ask_owned(ask),
            Command::Count(counting, to) => self.count(counting, to),
            Command::LookAt(counting, to) => self.look_at(counting, to),
            Command::List(limit, to) if here => {
                let shift = self.shared.shift();
                self.fly(|wire, link| async move {
                    Landing::Listed(to, wire.list(link, limit, shift).await)
                });
            }
            Command::List(limit, to) => {
                let _ = to.send(self.list_locally(limit));
            }
        }
    }

    fn ask(&mut self, key: Key, op: Op, to: To<Answer>) {
        if to.is_closed() {
            return; // who asked has given up
        }
        if matches!(op, Op::Take(..)) && self.table.is_full(self.link.is_some()) {
            let _ = to.send(Err(No::Full));
        } else if self.link.is_some() {
            let shift = self.shared.shift();
            let sent = Instant::now();
            self.fly(|wire, link| async move {
                let said = wire.slot(link, key, op.clone(), shift).await;
                Landing::Asked(key, op, sent, to, said)
            });
        } else {
            self.answer_away(key, &op, false, to);
        }
    }

    pub(super) fn bind(&mut self, context: Key, agent: Box<str>, to: Option<To<Option<Box<str>>>>) {
        let ttl = millis(self.settings.binding_ttl);
        self.fly(|wire, link| async move {
            let said = wire.bind(link, context, agent.clone(), ttl).await;
            Landing::Bound(context, agent, to, said)
        });
    }
}
