//! A finished task out of the replay of its events, as the answer to its message would have shown it: some agents
//! answer `GetTask` without what the task has brought, and tell that only to who subscribes.
use std::{collections::HashMap, mem::replace};

use bytes::Bytes;

use super::{
    super::{
        Dialect, Fault, Kind, Op,
        shape::{Notes, Options, State, state_of},
    },
    bad, lifted, open_event,
};
use crate::json::{Form, Limits, Node, Obj, write_string};

/// The state of a task that has an answer.
const COMPLETED: &str = "TASK_STATE_COMPLETED";
/// What a message, an artifact or a part costs beside its text: many empty ones are not for nothing.
const ITEM: usize = 128;

/// Whether there is room for so many bytes more.
pub type Room<'r> = dyn FnMut(usize) -> bool + 'r;

/// A task that has ended well, as canonical text and without its answer.
#[derive(Debug)]
pub struct Bare {
    /// Its id.
    pub id: Box<str>,
    text: Bytes,
}

/// The task in an agent's answer to `GetTask`, if it is completed and shows neither artifacts nor history.
pub fn bare(from: Dialect, body: &Bytes, options: &Options) -> Result<Option<Bare>, Fault> {
    let task = lifted(from, Op::Get, body, options)?;
    let state = task.inside("status").and_then(|s| s.string("state"));
    let shows = |key| task.list(key).is_some_and(|l| !l.is_empty());
    if state.as_deref() != Some(COMPLETED) || shows("artifacts") || shows("history") {
        return Ok(None);
    }
    let Some(id) = task.string("id").filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(Bare {
        id: (&*id).into(),
        text: written(&task).into(),
    }))
}

impl Bare {
    /// What it holds, in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }
}

/// What a replay told, folded: JSON text of v1.0.
#[derive(Debug, Default)]
pub struct Folded {
    artifacts: Option<String>,
    history: Option<String>,
    /// The message of the last status.
    message: Option<String>,
}

impl Folded {
    /// What it holds, in bytes.
    pub fn size(&self) -> usize {
        let all = [&self.artifacts, &self.history, &self.message];
        all.into_iter().flatten().map(String::len).sum()
    }

    /// The task with what was folded, as a v1.0 REST agent would answer.
    pub fn fill(&self, task: &Bare) -> Result<Bytes, Fault> {
        let text = std::str::from_utf8(&task.text).map_err(|e| Fault::answer(e.to_string()))?;
        let mut t = Obj::open(text, &Form::FLAT, Limits::CHECKED).map_err(|e| bad(&e))?;
        for (key, list) in [("artifacts", &self.artifacts), ("history", &self.history)] {
            t.take(key); // an empty list
            if let Some(list) = list {
                t.put(key, Node::Made(list.clone()));
            }
        }
        if let Some(message) = &self.message {
            t.within("status", |s| {
                if !s.has("message") {
                    s.put("message", Node::Made(message.clone()));
                }
                Ok(())
            })
            .map_err(|e| bad(&e))?;
        }
        Ok(written(&t).into())
    }
}

/// Takes a task's events, gives what they come to.
#[derive(Debug)]
pub struct Replay {
    task: Box<str>,
    history: Vec<Said>,
    artifacts: Vec<Artifact>,
    /// Where among them each is, by its id.
    places: HashMap<String, usize>,
    message: Option<String>,
    completed: bool,
    size: usize,
}

/// A message of the history.
#[derive(Debug)]
enum Said {
    /// As it came.
    Whole(String),
    /// A text, which more of the same may follow.
    Text {
        /// The message's own, as JSON.
        id: Option<String>,
        /// The message with an empty id and no parts in it, and its part with no text in it: what must be alike in
        /// what follows.
        around: [String; 2],
        text: String,
    },
}

#[derive(Debug)]
struct Artifact {
    /// All of it, with no parts in it.
    around: String,
    parts: Vec<String>,
}

impl Replay {
    /// Nothing told yet of this task.
    pub fn new(task: &str) -> Self {
        Self {
            task: task.into(),
            history: vec![],
            artifacts: vec![],
            places: HashMap::new(),
            message: None,
            completed: false,
            size: 0,
        }
    }

    /// What it holds, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// One event. True if it says that the task is completed, after which nothing follows. `room` is asked before
    /// anything is kept.
    pub fn event(
        &mut self,
        from: Dialect,
        data: &[u8],
        options: &Options,
        room: &mut Room<'_>,
    ) -> Result<bool, Fault> {
        let text = super::text_of(data)?;
        let mut e = open_event(from, Op::Subscribe, text, options)?;
        let mut notes = Notes::new(options);
        let lift = from.shape.lift_event(&mut e, &mut notes);
        lift.map_err(|e| bad(&e))?;
        if let Some(task) = take(&mut e, "task")? {
            return self.begin(task, room);
        }
        if let Some(mut update) = take(&mut e, "artifactUpdate")? {
            self.is_of(&update, "taskId")?;
            let append = update.raw("append") == Some("true");
            let artifact = take(&mut update, "artifact")?;
            let artifact =
                artifact.ok_or_else(|| Fault::answer("an artifact update without one"))?;
            return self.make(artifact, append, room).map(|()| false);
        }
        if let Some(update) = take(&mut e, "statusUpdate")? {
            self.is_of(&update, "taskId")?;
            return self.status(update, room);
        }
        Err(Fault::answer("a bare message in the replay of a task"))
    }

    /// All of it.
    pub fn done(self) -> Result<Folded, Fault> {
        if !self.completed {
            return Err(Fault::answer("the replay ended before the task did"));
        }
        let history = self.history.into_iter().map(Said::written);
        let artifacts = self.artifacts.into_iter().map(Artifact::written);
        Ok(Folded {
            artifacts: list(artifacts)?,
            history: list(history)?,
            message: self.message,
        })
    }

    /// So many bytes more are kept.
    fn keep(&mut self, more: usize, room: &mut Room<'_>) -> Result<(), Fault> {
        if !room(more) {
            let fault = Fault::new(Kind::Overloaded, "no memory is left for the replay");
            return Err(fault.because("limits.buffered"));
        }
        self.size += more;
        Ok(())
    }

    /// All of the task, as it was then.
    fn begin(&mut self, mut task: Obj<'_>, room: &mut Room<'_>) -> Result<bool, Fault> {
        self.is_of(&task, "id")?;
        self.size -= self
            .history
            .drain(..)
            .map(|said| said.size())
            .sum::<usize>();
        let history = task.take_list("history").map_err(|e| bad(&e))?;
        for mut message in history.into_iter().flatten() {
            self.say(&mut message, room)?;
        }
        let artifacts = task.take_list("artifacts").map_err(|e| bad(&e))?;
        for artifact in artifacts.into_iter().flatten() {
            self.make(artifact, false, room)?;
        }
        self.status(task, room)
    }

    /// What an agent tells of another task is not shown as this one's.
    fn is_of(&self, o: &Obj<'_>, key: &'static str) -> Result<(), Fault> {
        if o.string(key).is_some_and(|id| *id == *self.task) {
            return Ok(());
        }
        Err(Fault::answer("the replay tells of another task"))
    }

    /// The status of a task or an update. A message on the way is part of the history; the last one stays in the status.
    fn status(&mut self, mut of: Obj<'_>, room: &mut Room<'_>) -> Result<bool, Fault> {
        let Some(mut status) = take(&mut of, "status")? else {
            return Ok(false);
        };
        let message = take(&mut status, "message")?;
        let state = status.string("state").unwrap_or_default();
        if state == COMPLETED {
            self.completed = true;
            let message = message.map(|m| written_text(&m));
            self.keep(message.as_ref().map_or(0, String::len), room)?;
            self.message = message;
            return Ok(true);
        }
        if state_of(&state) == State::Terminal {
            return Err(Fault::answer(
                "the task is completed, and its replay says otherwise",
            ));
        }
        if let Some(mut message) = message {
            self.say(&mut message, room)?;
        }
        Ok(false)
    }

    /// A message, or more of the one before: chunks of one text become one message, as the answer to a send has it. That
    /// has no files in its history either: they are among the attachments of the artifact.
    fn say(&mut self, message: &mut Obj<'_>, room: &mut Room<'_>) -> Result<(), Fault> {
        let parts = message.list("parts").unwrap_or_default();
        if !parts.is_empty() && parts.iter().all(|p| p.has("url") || p.has("raw")) {
            return Ok(());
        }
        let said = Said::read(message);
        match (self.history.last(), &said) {
            (Some(Said::Text { around: before, .. }), Said::Text { around, text, .. })
                if before == around =>
            {
                self.keep(text.len(), room)?;
                if let Some(Said::Text { text: so_far, .. }) = self.history.last_mut() {
                    so_far.push_str(text);
                }
            }
            _ => {
                self.keep(said.size(), room)?;
                self.history.push(said);
            }
        }
        Ok(())
    }

    fn make(
        &mut self,
        mut artifact: Obj<'_>,
        append: bool,
        room: &mut Room<'_>,
    ) -> Result<(), Fault> {
        let id = artifact
            .string("artifactId")
            .unwrap_or_default()
            .into_owned();
        let mut parts = vec![];
        let each = artifact.each("parts", |p| {
            parts.push(written_text(p));
            Ok(())
        });
        each.map_err(|e| bad(&e))?;
        let place = self.places.get(&id).copied();
        if append && let Some(place) = place {
            self.keep(size_of(&parts), room)?;
            self.artifacts[place].parts.append(&mut parts);
            return Ok(());
        }
        artifact.put("parts", Node::Text("[]"));
        let made = Artifact {
            around: written_text(&artifact),
            parts,
        };
        self.keep(made.size(), room)?;
        if let Some(place) = place {
            self.size -= replace(&mut self.artifacts[place], made).size();
            return Ok(());
        }
        self.keep(id.len() + ITEM, room)?;
        self.places.insert(id, self.artifacts.len());
        self.artifacts.push(made);
        Ok(())
    }
}

impl Said {
    fn read(message: &mut Obj<'_>) -> Self {
        let text = match message.list("parts") {
            Some([part]) if !["raw", "url", "data"].iter().any(|k| part.has(k)) => {
                part.string("text").map(std::borrow::Cow::into_owned)
            }
            _ => None,
        };
        let Some(text) = text else {
            return Self::Whole(written_text(message));
        };
        let mut part = String::new();
        let _one = message.each("parts", |p| {
            p.put("text", Node::Text("\"\""));
            part = written_text(p);
            Ok(())
        });
        message.put("parts", Node::Text("[]"));
        let id = message.get("messageId").map(|id| {
            let mut text = vec![];
            id.write(&mut text);
            string(text)
        });
        if id.is_some() {
            message.put("messageId", Node::Text("\"\"")); // in its place
        }
        Self::Text {
            id,
            around: [written_text(message), part],
            text,
        }
    }

    fn size(&self) -> usize {
        let text = match self {
            Self::Whole(text) => text.len(),
            Self::Text { id, around, text } => {
                let [message, part] = around;
                id.as_ref().map_or(0, String::len) + message.len() + part.len() + text.len()
            }
        };
        text + ITEM
    }

    fn written(self) -> Result<String, Fault> {
        match self {
            Self::Whole(text) => Ok(text),
            Self::Text { id, around, text } => {
                let [message, part] = around;
                let mut quoted = vec![];
                write_string(&text, &mut quoted);
                let part = with(&part, [("text", Some(string(quoted)))])?;
                with(
                    &message,
                    [("messageId", id), ("parts", Some(format!("[{part}]")))],
                )
            }
        }
    }
}

impl Artifact {
    fn size(&self) -> usize {
        self.around.len() + ITEM + size_of(&self.parts)
    }

    fn written(self) -> Result<String, Fault> {
        let parts = format!("[{}]", self.parts.join(","));
        with(&self.around, [("parts", Some(parts))])
    }
}

fn size_of(parts: &[String]) -> usize {
    parts.iter().map(|part| part.len() + ITEM).sum()
}

fn take<'a>(o: &mut Obj<'a>, key: &'static str) -> Result<Option<Obj<'a>>, Fault> {
    o.take_obj(key).map_err(|e| bad(&e))
}

/// An object of ours with other values in some of its places.
fn with<const N: usize>(
    text: &str,
    values: [(&'static str, Option<String>); N],
) -> Result<String, Fault> {
    let mut o = Obj::open(text, &Form::FLAT, Limits::CHECKED).map_err(|e| bad(&e))?;
    for (key, value) in values {
        if let Some(value) = value {
            o.put(key, Node::Made(value));
        }
    }
    Ok(written_text(&o))
}

/// One after the other: what is written is not kept a third time.
fn list(items: impl Iterator<Item = Result<String, Fault>>) -> Result<Option<String>, Fault> {
    let mut all = String::new();
    for item in items {
        all.push(if all.is_empty() { '[' } else { ',' });
        all.push_str(&item?);
    }
    if all.is_empty() {
        return Ok(None);
    }
    all.push(']');
    all.shrink_to_fit();
    Ok(Some(all))
}

fn written(o: &Obj<'_>) -> Vec<u8> {
    let mut out = vec![];
    o.write(&mut out);
    out
}

fn written_text(o: &Obj<'_>) -> String {
    string(written(o))
}

/// What was read as UTF-8 is written as such.
fn string(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
