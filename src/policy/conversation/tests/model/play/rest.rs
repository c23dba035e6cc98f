//! The end of a play: all comes to rest, and the conversation comes free.
use std::task::{Context, Poll, Waker};

use tokio::time::{Duration, Instant, advance};

use super::{CONTEXT, LEASE, Play, Reply, Stage, key, plain};
use crate::{
    config::OnBusy,
    policy::conversation::{
        Wanted,
        tests::model::{Kept, agent::At},
    },
    state::slot::Asker,
};

impl Play {
    /// Liveness: all comes to rest, and its caller gets the slot in time.
    pub(super) async fn comes_free(&mut self) -> Result<(), String> {
        for i in 0..self.messages.len() {
            self.messages[i].admitting = None;
            let job = &mut self.agent.jobs[i];
            if job.at != At::Home {
                job.at = At::Ended;
            }
            if self.messages[i].permit.is_none() {
                continue;
            }
            if self.messages[i].stage == Stage::Out && self.dice.one_in(2) {
                self.messages[i].reply = Some(Reply::Ended);
                self.hears(i).await;
            }
            self.over(i);
        }
        self.looks.clear();
        self.asked.borrow_mut().clear();
        let strangers = self.dice.one_in(8);
        if strangers {
            advance(self.settings.max_hold + LEASE).await;
        }
        let (settle, hold) = (self.settings.settle, self.settings.unknown_hold);
        let mut longest = if self.script.lists { settle } else { hold };
        if self.script.kept == Kept::Shared {
            longest += LEASE;
        }
        if self.script.on_busy == OnBusy::Wait {
            longest += 4 * self.settings.wait; // two holders may need each caller in turn
        }
        longest += Duration::from_secs(3);
        let until = Instant::now() + if strangers { Duration::ZERO } else { longest };
        self.note(|| format!("all is at rest; {longest:?} are left"));
        loop {
            for asker in self.script.callers {
                if self.gets(asker).await {
                    return self.is_free().await;
                }
            }
            if Instant::now() > until {
                let found = self.gateways[0].store().look(key()).await;
                return Err(format!("nobody is admitted: {found:?}"));
            }
        }
    }

    /// Whether this caller is admitted, the agent answering at once.
    async fn gets(&mut self, as_whom: Asker) -> bool {
        let wanted = Wanted {
            context: Some(CONTEXT.into()),
            ..plain(as_whom)
        };
        let mut admitting = self.admit(0, 0, wanted);
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(admitted) = admitting.as_mut().poll(&mut cx) {
                return admitted.is_ok(); // the permit is dropped, unsent
            }
            let asked = std::mem::take(&mut *self.asked.borrow_mut());
            if asked.is_empty() {
                advance(Duration::from_millis(50)).await;
            }
            for asked in asked {
                let says = self.agent.says(as_whom, &asked.question, &mut self.dice);
                self.note(|| format!("  {:?}: {says:?}", asked.question));
                let _gone = asked.answer.send(says);
            }
        }
    }

    /// Nothing is left of it, either.
    async fn is_free(&self) -> Result<(), String> {
        match self.gateways[0].store().look(key()).await {
            None => Ok(()),
            Some(held) => Err(format!("an unsent message left its slot: {held:?}")),
        }
    }
}
