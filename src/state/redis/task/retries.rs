//! Messages that may be sent again: by this process's own table, by the store, or alone.
use super::{
    super::{
        super::{
            Key,
            retry::{Begun, Record},
        },
        flight::Fail,
        script::{Found, Saying, Told},
    },
    Landing, No, Task, To, WINDOW,
};

impl Task {
    /// A message is about to be sent, unless it was before.
    pub(super) fn begin(&mut self, key: Key, new: Record, to: To<Begun>) {
        // Who sends it again may have left a note first of how it ended.
        self.read();
        if to.is_closed() {
            return; // who asked has given up
        }
        if self.link.is_none() && !self.settings.local {
            let _ = to.send(Err(No::Away));
        } else if let Some(old) = self.sent.get(key) {
            let _ = to.send(Ok(old.met_by(&new)));
        } else if self.link.is_none() {
            self.begins(key, new, to);
        } else {
            let shift = self.shared.shift();
            let saying = Saying::Begin(new.clone(), self.sent.forgotten(key));
            self.fly(|wire, link| async move {
                let said = wire.message(link, key, saying, shift).await;
                Landing::Begun(key, new, to, said)
            });
        }
    }

    pub(super) fn begun(
        &mut self,
        key: Key,
        new: Record,
        to: To<Begun>,
        said: Result<Found, Fail>,
    ) {
        let no = match said {
            Ok(found) => match (found.told, found.record) {
                (Told::Yes, _) => return self.begins(key, new, to),
                (Told::No, Some(old)) => {
                    let _ = to.send(Ok(old.met_by(&new)));
                    return;
                }
                (Told::No, None) => No::Away, // it says no without a record
                (Told::Quiet, _) => No::Quiet,
            },
            Err(_) if self.link.is_none() && self.settings.local => {
                return self.begins(key, new, to);
            }
            Err(_) => {
                // The store may have it, and nobody sends it.
                let token = new.token;
                self.sent.add(key, new);
                self.sent.forget(key, token);
                No::Away
            }
        };
        let _ = to.send(Err(no));
    }

    fn begins(&mut self, key: Key, new: Record, to: To<Begun>) {
        let token = new.token;
        self.sent.add(key, new);
        if to.send(Ok(Begun::New)).is_err() {
            self.sent.forget(key, token); // who asked is gone, and sends nothing
        }
    }

    pub(super) fn tell_of_messages(&mut self) {
        while self.link.is_some() && self.flying.len() < WINDOW {
            let Some((key, saying)) = self.sent.next() else {
                return;
            };
            let shift = self.shared.shift();
            self.fly(|wire, link| async move {
                let said = wire.message(link, key, saying.clone(), shift).await;
                Landing::Said(key, saying, said)
            });
        }
    }

    pub(super) fn said_of(&mut self, key: Key, saying: &Saying, said: Option<&Found>) {
        if self.sent.told(key, saying, said.map(|s| s.told)) {
            tracing::warn!(message = %key, "a message was sent here and by another gateway: the state store was away, \
                or this gateway said nothing for longer than retry.window");
        }
    }
}
