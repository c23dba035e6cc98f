//! The replay of a task that has ended, read to its end for what it tells. Bounded in bytes here, in time by who asks.
use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http_body::Body as _;

use crate::{
    a2a::{
        Dialect, Fault, Kind, Op,
        answer::{Folded, Replay, read_fault},
        shape::Options,
    },
    agent::Body,
    budget::Hold,
    sse,
};

/// How a replay is read.
pub struct Reading<'r> {
    /// How the agent speaks.
    pub from: Dialect,
    /// What operators chose.
    pub options: &'r Options,
    /// The longest event.
    pub event: usize,
    /// The longest replay.
    pub limit: usize,
}

impl Reading<'_> {
    /// What the replay of this task comes to.
    pub async fn read(&self, task: &str, mut body: Body, hold: &mut Hold) -> Result<Folded, Fault> {
        let mut replay = Replay::new(task);
        let mut reader = sse::Reader::new(self.event);
        let mut bytes = 0;
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            let frame = match frame {
                None => break,
                Some(Err(e)) => {
                    let fault = Fault::new(Kind::BackendBroken, "the replay broke off");
                    return Err(fault.because(e.to_string()));
                }
                Some(Ok(frame)) => frame,
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            bytes += data.len();
            if bytes > self.limit {
                return Err(Fault::answer("the replay is longer than limits.replay"));
            }
            if !hold.resize(reader.held() + data.len() + replay.size()) {
                return Err(no_room());
            }
            reader.push(data);
            let long = |_| Fault::answer("an event is longer than limits.event");
            while let Some(event) = reader.event().map_err(long)? {
                if self.tell(&mut replay, &event, hold)? {
                    // Its end has mostly come as well: then the connection serves again.
                    let end =
                        |cx: &mut Context<'_>| Poll::Ready(Pin::new(&mut body).poll_frame(cx));
                    let _nothing_follows = std::future::poll_fn(end).await;
                    return done(replay, hold);
                }
            }
        }
        if let Some(event) = reader.rest() {
            self.tell(&mut replay, &event, hold)?;
        }
        done(replay, hold)
    }

    fn tell(
        &self,
        replay: &mut Replay,
        event: &sse::Event<'_>,
        hold: &mut Hold,
    ) -> Result<bool, Fault> {
        let Some(data) = event.data.filter(|_| !event.other) else {
            return Ok(false);
        };
        if event.error {
            let text = String::from_utf8_lossy(data);
            return Err(read_fault(500, &text, Op::Subscribe));
        }
        replay.event(self.from, data, self.options, &mut |more| hold.grow(more))
    }
}

/// All of it is written anew, beside what was kept.
fn done(replay: Replay, hold: &mut Hold) -> Result<Folded, Fault> {
    if !hold.grow(replay.size()) {
        return Err(no_room());
    }
    replay.done()
}

fn no_room() -> Fault {
    Fault::new(Kind::Overloaded, "no memory is left for the replay").because("limits.buffered")
}
