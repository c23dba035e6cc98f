//! The end of a play: all comes to rest, and the conversation comes free.
use std::task::{Context, Poll, Waker};

use tokio::time::{Duration, Instant, advance};

use super::{CONTEXT, LEASE, Play, Reply, Stage, key, outage::SHUT, plain};
use crate::{
    config::OnBusy,
    policy::conversation::{
        Wanted,
        tests::model::{Kept, agent::At},
    },
    state::{
        redis::tests::by_hand::Line,
        slot::{Asker, Entry, Millis},
    },
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
        self.looking.clear();
        self.asked.borrow_mut().clear();
        self.loses_one_more().await;
        self.mends().await;
        let strangers = self.dice.one_in(8);
        if strangers {
            advance(self.settings.max_hold + LEASE).await;
            self.stores.rest().await;
        }
        let (settle, hold) = (self.settings.settle, self.settings.unknown_hold);
        let mut longest = if self.script.lists { settle } else { hold };
        // Where no gateway died, a store's own task says what ended, however late.
        let died = self.deaths < self.script.deaths;
        if self.script.kept == Kept::Shared || self.script.kept == Kept::Redis && died {
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
                let found = self.found().await;
                return Err(format!("nobody is admitted: {found:?}"));
            }
        }
    }

    /// Somebody asks for the slot, and whether it got it is lost.
    async fn loses_one_more(&mut self) {
        if self.stores.far().is_none() || self.dice.one_in(2) {
            return;
        }
        let (r, line) = (self.dice.below(2), self.dice.of(&SHUT));
        self.note(|| format!("one more is lost: {r}, {line:?}"));
        let wanted = Wanted {
            context: Some(CONTEXT.into()),
            ..plain(self.script.callers[0])
        };
        let mut admitting = self.admit(r, 0, wanted);
        let _asked = admitting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Some(far) = self.stores.far() {
            far.ways[r].becomes(line);
        }
        self.stores.rest().await;
    }

    /// The store is there, and has all that gateways know: they try again every second, and one that has lost its
    /// data admits nobody for five.
    async fn mends(&mut self) {
        let Some(far) = self.stores.far() else {
            return;
        };
        for way in &far.ways {
            way.becomes(Line::Open);
        }
        for _ in 0..8 {
            self.stores.rest().await;
            advance(Duration::from_secs(1)).await;
        }
        self.stores.rest().await;
        self.settling.clear();
    }

    /// Whether this caller is admitted, the agent answering at once.
    async fn gets(&mut self, as_whom: Asker) -> bool {
        let wanted = Wanted {
            context: Some(CONTEXT.into()),
            ..plain(as_whom)
        };
        let (far, mut gateway) = (self.stores.far().is_some(), 0);
        if far {
            gateway = self.dice.below(2);
        }
        let mut admitting = self.admit(gateway, 0, wanted);
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(admitted) = admitting.as_mut().poll(&mut cx) {
                if far && let Err(fault) = &admitted {
                    self.note(|| format!("  refused: {fault}"));
                    advance(Duration::from_millis(250)).await; // it may be for want of the store, at once
                }
                return admitted.is_ok(); // the permit is dropped, unsent
            }
            self.stores.rest().await;
            let asked = std::mem::take(&mut *self.asked.borrow_mut());
            if asked.is_empty() {
                let short = if far { 250 } else { 50 };
                advance(Duration::from_millis(short)).await;
            }
            for asked in asked {
                let says = self.agent.says(as_whom, &asked.question, &mut self.dice);
                self.note(|| format!("  {:?}: {says:?}", asked.question));
                let _gone = asked.answer.send(says);
            }
        }
    }

    /// Nothing is left of it, either.
    async fn is_free(&mut self) -> Result<(), String> {
        self.stores.rest().await;
        match self.found().await {
            None => Ok(()),
            Some(held) => Err(format!("an unsent message left its slot: {held:?}")),
        }
    }

    /// Who holds it.
    async fn found(&mut self) -> Option<(Entry, Millis)> {
        let mut looks = Box::pin(self.gateways[0].store().look(key()));
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(found) = looks.as_mut().poll(&mut cx) {
                return found;
            }
            self.stores.rest().await;
        }
    }
}
