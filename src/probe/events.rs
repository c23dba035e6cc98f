//! Whether a stream is as it should be: how it is framed, what its events are, and how it ends.
use http::response::Parts;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    answer,
    link::{self, LONGEST, Link, Trouble},
    report::{Draft, Wrong},
    way::Asked,
};
use crate::{
    a2a::{
        Version,
        answer::{Seen, event},
        shape::{Options, Shape, State},
    },
    agent::Body,
    sse,
};

const EVENT_TYPE: &str = "200 with content type text/event-stream (v1.0 9.4.2, 11.7; v0.3 3.3)";
const FRAMES: &str = "events with one data field each, JSON, and a blank line after each (v1.0 9.4.2, 11.7; v0.3 3.3)";
const KINDS: &str =
    "a task, a message, a status update or an artifact update in each event (v1.0 3.1.2, v0.3 7.2)";
const FIRST: &str = "a task or a message as the first event (v1.0 3.1.2)";
const END: &str =
    "a stream that ends when its task has ended or waits for somebody (v1.0 3.1.2, v0.3 7.2)";
const FINAL: &str = "a boolean `final` in every status update, true in the last (v0.3 7.2.2)";
/// More events are no answer to one short message.
const MOST: usize = 10_000;

/// Asks, and looks.
pub(super) async fn judge(mut draft: Draft, link: &Link, asked: &Asked) -> Draft {
    let deadline = link.deadline();
    let (head, body) = match link.open(asked, deadline).await {
        Ok(opened) => opened,
        Err(trouble) => return failed(draft, trouble),
    };
    draft.came = link::shown(&head);
    if head.status != 200 || link::media_type(&head) != "text/event-stream" {
        return match link::whole(head, body, deadline).await {
            Err(trouble) => failed(draft, trouble),
            Ok(whole) => draft.judged(no_stream(asked, &whole.head, &whole.body)),
        };
    }
    let mut seen = Stream::new(asked);
    let result = seen.read(body, deadline).await;
    let last = seen.last.as_ref().map(answer::told).unwrap_or_default();
    draft.came = match seen.count {
        0 => format!("{}, no events", draft.came),
        1 => format!("{}, 1 event, {last}", draft.came),
        n => format!("{}, {n} events, at last {last}", draft.came),
    };
    draft.judged(result)
}

fn failed(mut draft: Draft, trouble: Trouble) -> Draft {
    let says = trouble.says();
    draft.came.clone_from(&says);
    draft.wrong(Wrong::new(says, EVENT_TYPE))
}

fn no_stream(asked: &Asked, head: &Parts, body: &[u8]) -> Result<(), Wrong> {
    answer::refused(asked, head, body)?;
    let kind = link::media_type(head);
    let kind = if kind.is_empty() { "none" } else { &kind };
    let what = format!("the content type is {kind}");
    Err(Wrong::new(what, EVENT_TYPE))
}

/// A stream as far as it was read.
struct Stream<'a> {
    asked: &'a Asked,
    count: usize,
    /// The last event that told a state or was a message.
    last: Option<Seen>,
    /// The last status update said that nothing follows it.
    final_said: Option<bool>,
}

impl<'a> Stream<'a> {
    fn new(asked: &'a Asked) -> Self {
        Self {
            asked,
            count: 0,
            last: None,
            final_said: None,
        }
    }

    async fn read(&mut self, mut body: Body, deadline: Instant) -> Result<(), Wrong> {
        let mut reader = sse::Reader::new(LONGEST);
        let mut size = 0;
        loop {
            let Ok(frame) = timeout_at(deadline, body.frame()).await else {
                return Err(Wrong::new("the stream did not end in time", END));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|e| Wrong::new(e.to_string(), END))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            size += data.len();
            if size > LONGEST {
                return Err(Wrong::new("the stream is too large", END));
            }
            reader.push(&data);
            loop {
                let next = reader.event();
                let next = next.map_err(|_| Wrong::new("an event is too large", FRAMES))?;
                let Some(next) = next else { break };
                if let Some(data) = next.data.filter(|_| !next.other) {
                    self.take(data)?;
                }
            }
        }
        if reader.rest().is_some() {
            let what = "the last event has no blank line after it";
            return Err(Wrong::new(what, FRAMES));
        }
        self.ended()
    }

    fn take(&mut self, data: &[u8]) -> Result<(), Wrong> {
        self.count += 1;
        if self.count > MOST {
            return Err(Wrong::new(format!("more than {MOST} events"), END));
        }
        let ended = |seen: &Seen| seen.message || seen.state == Some(State::Terminal);
        if self.last.as_ref().is_some_and(ended) {
            return Err(Wrong::new("an event came after the last state", END));
        }
        let raw = self.unwrapped(data)?;
        let mut out = vec![];
        let seen = event(
            &mut answer::canonical(self.asked),
            self.asked.dialect,
            data,
            false,
            &Options::default(),
            &mut vec![],
            &mut out,
        )
        .map_err(|fault| Wrong::new(format!("event {}: {fault}", self.count), KINDS))?;
        let v10 = self.asked.dialect.shape.version() == Version::V10;
        if self.count == 1 && v10 && !seen.task && !seen.message {
            return Err(Wrong::new("the first event is an update", FIRST));
        }
        if seen.task || seen.message {
            whole(&out)?;
        }
        if seen.update {
            self.final_said = self.said_final(&raw)?;
        }
        if seen.message || seen.state.is_some() {
            self.last = Some(seen);
        }
        Ok(())
    }

    /// An event out of its binding.
    fn unwrapped(&self, data: &[u8]) -> Result<Value, Wrong> {
        let value: Value = serde_json::from_slice(data).map_err(|e| {
            let what = format!("the data of event {} is not JSON: {e}", self.count);
            Wrong::new(what, FRAMES)
        })?;
        if !self.asked.is_rpc() {
            return Ok(value);
        }
        let mut envelope = answer::envelope(self.asked, data)?;
        Ok(envelope["result"].take())
    }

    /// What a status update of v0.3 says of whether it is the last; `None` where it need not say that it is not.
    fn said_final(&self, update: &Value) -> Result<Option<bool>, Wrong> {
        match self.asked.dialect.shape {
            Shape::V03Kind | Shape::V03Snake => match update.get("final") {
                Some(Value::Bool(said)) => Ok(Some(*said)),
                Some(_) | None => Err(Wrong::new("a status update has no `final`", FINAL)),
            },
            Shape::V03Proto => Ok(update["statusUpdate"]["final"].as_bool()),
            Shape::V10 => Ok(None),
        }
    }

    fn ended(&self) -> Result<(), Wrong> {
        let Some(last) = &self.last else {
            let what = if self.count == 0 {
                "the stream has no events"
            } else {
                "no event tells a state"
            };
            return Err(Wrong::new(what, KINDS));
        };
        if !last.message && last.state == Some(State::Running) {
            return Err(Wrong::new("the stream ended while the task runs", END));
        }
        let v03 = self.asked.dialect.shape.version() == Version::V03;
        if v03 && last.update && last.state == Some(State::Terminal) {
            // R03P leaves out what is false.
            if self.final_said != Some(true) {
                let what = "the last status update does not say `final`";
                return Err(Wrong::new(what, FINAL));
            }
        }
        Ok(())
    }
}

/// What a task or a message in an event cannot be without.
fn whole(framed: &[u8]) -> Result<(), Wrong> {
    let text = framed.strip_prefix(b"data: ").unwrap_or(framed);
    let value: Value = serde_json::from_slice(text.trim_ascii())
        .map_err(|e| Wrong::new(format!("an event cannot be read: {e}"), KINDS))?;
    answer::members(&value)
}
