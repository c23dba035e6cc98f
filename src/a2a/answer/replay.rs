//! A finished task out of the replay of its events, as the answer to its message would have shown it: some agents
//! answer `GetTask` without what the task has brought, and tell that only to who subscribes.
use std::mem::replace;

use bytes::Bytes;

use super::{
    super::{
        Dialect, Fault, Op,
        shape::{Notes, Options, State, state_of},
    },
    bad, lifted, open_event,
};
use crate::json::{Form, Limits, Node, Obj, write_string};

/// The state of a task that has an answer.
const COMPLETED: &str = "TASK_STATE_COMPLETED";

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
    message: Option<String>,
    completed: bool,
}

/// A message of the history.
#[derive(Debug)]
enum Said {
    /// As it came.
    Whole(String),
    /// A text, which more of the same may follow.
    Text {
        /// The message with no parts in it, and its part with no text in it.
        around: [String; 2],
        /// The same without the message's id: what must be alike in what follows.
        alike: [String; 2],
        text: String,
    },
}

#[derive(Debug)]
struct Artifact {
    id: String,
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
            message: None,
            completed: false,
        }
    }

    /// One event. True if it says that the task is completed, after which nothing follows.
    pub fn event(&mut self, from: Dialect, data: &[u8], options: &Options) -> Result<bool, Fault> {
        let text = super::text_of(data)?;
        let mut e = open_event(from, Op::Subscribe, text, options)?;
        let mut notes = Notes::new(options);
        let lift = from.shape.lift_event(&mut e, &mut notes);
        lift.map_err(|e| bad(&e))?;
        if let Some(mut task) = take(&mut e, "task")? {
            self.is_of(&task, "id")?;
            self.history.clear();
            for mut message in task
                .take_list("history")
                .map_err(|e| bad(&e))?
                .into_iter()
                .flatten()
            {
                self.say(&mut message);
            }
            for artifact in task
                .take_list("artifacts")
                .map_err(|e| bad(&e))?
                .into_iter()
                .flatten()
            {
                self.make(artifact, false)?;
            }
            return self.status(task);
        }
        if let Some(mut update) = take(&mut e, "artifactUpdate")? {
            self.is_of(&update, "taskId")?;
            let append = update.raw("append") == Some("true");
            let artifact = take(&mut update, "artifact")?;
            let artifact =
                artifact.ok_or_else(|| Fault::answer("an artifact update without one"))?;
            return self.make(artifact, append).map(|()| false);
        }
        if let Some(update) = take(&mut e, "statusUpdate")? {
            self.is_of(&update, "taskId")?;
            return self.status(update);
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

    /// What an agent tells of another task is not shown as this one's.
    fn is_of(&self, o: &Obj<'_>, key: &'static str) -> Result<(), Fault> {
        if o.string(key).is_some_and(|id| *id == *self.task) {
            return Ok(());
        }
        Err(Fault::answer("the replay tells of another task"))
    }

    /// The status of a task or an update. A message on the way is part of the history; the last one stays in the status.
    fn status(&mut self, mut of: Obj<'_>) -> Result<bool, Fault> {
        let Some(mut status) = take(&mut of, "status")? else {
            return Ok(false);
        };
        let message = take(&mut status, "message")?;
        let state = status.string("state").unwrap_or_default();
        if state == COMPLETED {
            self.completed = true;
            self.message = message.map(|m| written_text(&m));
            return Ok(true);
        }
        if state_of(&state) == State::Terminal {
            return Err(Fault::answer(
                "the task is completed, and its replay says otherwise",
            ));
        }
        if let Some(mut message) = message {
            self.say(&mut message);
        }
        Ok(false)
    }

    /// A message, or more of the one before: chunks of one text become one message, as the answer to a send has it. That
    /// has no files in its history either: they are among the attachments of the artifact.
    fn say(&mut self, message: &mut Obj<'_>) {
        let parts = message.list("parts").unwrap_or_default();
        if !parts.is_empty() && parts.iter().all(|p| p.has("url") || p.has("raw")) {
            return;
        }
        let said = Said::read(message);
        if let Said::Text { alike, text, .. } = &said
            && let Some(Said::Text {
                alike: before,
                text: so_far,
                ..
            }) = self.history.last_mut()
            && before == alike
        {
            so_far.push_str(text);
            return;
        }
        self.history.push(said);
    }

    fn make(&mut self, mut artifact: Obj<'_>, append: bool) -> Result<(), Fault> {
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
        let known = self.artifacts.iter_mut().find(|a| a.id == id);
        match known {
            Some(known) if append => known.parts.append(&mut parts),
            known => {
                artifact.put("parts", Node::Text("[]"));
                let made = Artifact {
                    id,
                    around: written_text(&artifact),
                    parts,
                };
                match known {
                    Some(known) => drop(replace(known, made)),
                    None => self.artifacts.push(made),
                }
            }
        }
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
        let around = [written_text(message), part.clone()];
        message.take("messageId");
        Self::Text {
            around,
            alike: [written_text(message), part],
            text,
        }
    }

    fn written(self) -> Result<String, Fault> {
        match self {
            Self::Whole(text) => Ok(text),
            Self::Text { around, text, .. } => {
                let [message, part] = around;
                let mut quoted = vec![];
                write_string(&text, &mut quoted);
                let part = with(&part, "text", string(quoted))?;
                with(&message, "parts", format!("[{part}]"))
            }
        }
    }
}

impl Artifact {
    fn written(self) -> Result<String, Fault> {
        with(&self.around, "parts", format!("[{}]", self.parts.join(",")))
    }
}

fn take<'a>(o: &mut Obj<'a>, key: &'static str) -> Result<Option<Obj<'a>>, Fault> {
    o.take_obj(key).map_err(|e| bad(&e))
}

/// An object of ours with another value in one of its places.
fn with(text: &str, key: &'static str, value: String) -> Result<String, Fault> {
    let mut o = Obj::open(text, &Form::FLAT, Limits::CHECKED).map_err(|e| bad(&e))?;
    o.put(key, Node::Made(value));
    Ok(written_text(&o))
}

fn list(items: impl Iterator<Item = Result<String, Fault>>) -> Result<Option<String>, Fault> {
    let items: Vec<String> = items.collect::<Result<_, _>>()?;
    Ok((!items.is_empty()).then(|| format!("[{}]", items.join(","))))
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
