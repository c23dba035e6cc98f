//! A task: what it has told so far, who waits for more, and the agent's work on it. Its events are kept, so that a
//! subscription can replay them from the beginning.
//!
//! `SUBMITTED -> WORKING -> COMPLETED | FAILED | CANCELED`
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    script::{End, Script, Step},
    tell::FINAL,
};

pub struct Task {
    pub id: String,
    pub context: String,
    /// Whose it is: the workspace and the agent.
    pub of: (String, String),
    /// The user's, with context and task in it.
    message: Value,
    told: Mutex<Told>,
    /// How many events there are.
    count: watch::Sender<usize>,
    released: watch::Sender<bool>,
}

struct Told {
    state: &'static str,
    since: jiff::Timestamp,
    error: Option<Value>,
    events: Vec<Value>,
    history: Vec<Value>,
    artifact: Option<Value>,
}

impl Task {
    pub fn new(of: (String, String), context: &str, mut message: Value) -> Arc<Self> {
        let id = format!("run-{}", Uuid::new_v4().simple());
        message["contextId"] = context.into();
        message["taskId"] = id.as_str().into();
        Arc::new(Self {
            id,
            context: context.to_owned(),
            of,
            message,
            told: Mutex::new(Told {
                state: "TASK_STATE_SUBMITTED",
                since: jiff::Timestamp::now(),
                error: None,
                events: vec![],
                history: vec![],
                artifact: None,
            }),
            count: watch::Sender::new(0),
            released: watch::Sender::new(false),
        })
    }

    pub fn state(&self) -> &'static str {
        self.told.lock().state
    }

    pub fn is_over(&self) -> bool {
        FINAL.contains(&self.state())
    }

    /// The task as a send answers it, with so many messages of its history.
    pub fn whole(&self, history: Option<usize>) -> Value {
        let told = self.told.lock();
        let mut out = json!({"id": self.id, "contextId": self.context, "status": told.status()});
        out["artifacts"] = told.artifact.iter().cloned().collect();
        let all = [&self.message].into_iter().chain(&told.history);
        let all: Vec<_> = all.cloned().collect();
        let last = all.len().saturating_sub(history.unwrap_or(usize::MAX));
        out["history"] = all[last..].into();
        for name in ["artifacts", "history"] {
            if out[name] == json!([])
                && let Some(members) = out.as_object_mut()
            {
                members.remove(name);
            }
        }
        out
    }

    /// The task as it was created, with so many messages of its history: it has one.
    pub fn created(&self, history: Option<usize>) -> Value {
        let mut out = json!({
            "id": self.id, "contextId": self.context,
            "status": {"state": "TASK_STATE_SUBMITTED"},
        });
        if history != Some(0) {
            out["history"] = json!([self.message]);
        }
        out
    }

    /// What a question about it is answered with: no answer, no history, no error.
    pub fn brief(&self, with_time: bool) -> Value {
        let told = self.told.lock();
        let mut status = json!({"state": told.state});
        if with_time {
            status["timestamp"] = format!("{:.3}", told.since).into();
        }
        json!({"id": self.id, "contextId": self.context, "status": status})
    }

    /// The events from the `at`th on, and whether they are the last.
    pub fn events(&self, at: usize) -> (Vec<Value>, bool) {
        let told = self.told.lock();
        let new = told.events.get(at..).unwrap_or_default().to_vec();
        (new, FINAL.contains(&told.state))
    }

    /// Tells how many events there are, whenever there is another.
    pub fn follow(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    pub async fn over(&self) {
        let mut count = self.follow();
        while !self.is_over() {
            if count.changed().await.is_err() {
                return;
            }
        }
    }

    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// False where it is over already.
    pub fn cancel(&self) -> bool {
        self.turn("TASK_STATE_CANCELED", None, |_| {})
    }

    /// The agent's work.
    pub async fn work(&self, script: Script) {
        let mut over = self.follow();
        let work = self.perform(script);
        let canceled = async { while !self.is_over() && over.changed().await.is_ok() {} };
        tokio::select! {
            () = work => {}
            () = canceled => {}
        }
    }

    async fn perform(&self, (steps, end): Script) {
        self.turn("TASK_STATE_WORKING", None, |_| {});
        for step in steps {
            match step {
                Step::Tell(number, ending, part) => self.tell(number, ending, &part),
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Hold => {
                    let mut released = self.released.subscribe();
                    let _it_lives = released.wait_for(|is| *is).await;
                }
            }
        }
        match end {
            End::Completed(parts) => {
                if !parts.is_empty() {
                    self.answer(&parts);
                }
                self.turn("TASK_STATE_COMPLETED", None, |_| {});
            }
            End::Failed(why) => {
                // An id of its own; not told.
                let message = self.message("error", &json!({"text": why}));
                self.turn("TASK_STATE_FAILED", Some(message), |_| {});
            }
        }
    }

    fn message(&self, number: impl std::fmt::Display, part: &Value) -> Value {
        json!({
            "messageId": format!("{}-{number}", self.id), "contextId": self.context, "taskId": self.id,
            "role": "ROLE_AGENT", "parts": [part],
        })
    }

    fn tell(&self, number: u32, ending: &str, part: &Value) {
        let message = self.message(format!("{number}{ending}"), part);
        let kept = message.clone();
        self.turn("TASK_STATE_WORKING", Some(message), |told| told.keep(kept));
    }

    fn answer(&self, parts: &[Value]) {
        let artifact = json!({
            "artifactId": format!("result-{}", self.id), "name": "result",
            "parts": parts, "metadata": {},
        });
        let event = json!({"artifactUpdate": {
            "taskId": self.id, "contextId": self.context, "artifact": artifact, "lastChunk": true,
        }});
        self.change(|told| {
            told.artifact = Some(artifact);
            told.events.push(event);
        });
    }

    fn turn(
        &self,
        state: &'static str,
        message: Option<Value>,
        more: impl FnOnce(&mut Told),
    ) -> bool {
        self.change(|told| {
            if state == "TASK_STATE_FAILED" {
                told.error.clone_from(&message);
            }
            let mut status = json!({"state": state});
            if let Some(message) = message {
                status["message"] = message;
            }
            (told.state, told.since) = (state, jiff::Timestamp::now());
            told.events.push(json!({"statusUpdate": {
                "taskId": self.id, "contextId": self.context, "status": status,
            }}));
            more(told);
        })
    }

    /// Changes a task that is not over.
    fn change(&self, change: impl FnOnce(&mut Told)) -> bool {
        let mut told = self.told.lock();
        if FINAL.contains(&told.state) {
            return false;
        }
        change(&mut told);
        let count = told.events.len();
        drop(told);
        self.count.send_replace(count);
        true
    }
}

impl Told {
    fn status(&self) -> Value {
        let mut status = json!({"state": self.state});
        if let Some(error) = &self.error {
            status["message"] = error.clone();
        }
        status
    }

    /// Keeps a message in the history. Text that follows text is merged, thinking with thinking (that these two are
    /// kept apart is not told); files are not among what the page has in the history.
    fn keep(&mut self, message: Value) {
        let part = &message["parts"][0];
        if part.get("url").is_some() {
            return;
        }
        let last = self.history.last_mut().map(|m| &mut m["parts"][0]);
        match (last, part["text"].as_str()) {
            (Some(last), Some(more))
                if last["text"].is_string() && last.get("metadata") == part.get("metadata") =>
            {
                let all = format!("{}{more}", last["text"].as_str().unwrap_or_default());
                last["text"] = all.into();
            }
            _ => self.history.push(message),
        }
    }
}
