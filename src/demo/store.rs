//! The tasks: a bounded table behind one lock. A change to a task and the event that tells of it are one step, so
//! whoever follows a task from a snapshot on sees every change once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    call::ListTasks,
    object::{Artifact, Message, Part, PushConfig, State, Status, Task, fresh_id, text_of},
    refusal::{Fault, Refusal},
};

mod pushes;

/// Tasks held; the oldest that rests goes when one more comes.
const TASKS: usize = 1_000;

/// The events of one run, oldest first. It is closed when the task comes to rest.
pub(super) type Log = watch::Receiver<Vec<Arc<str>>>;

#[derive(Debug, Default)]
pub(super) struct Store(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    tasks: HashMap<String, Held>,
    /// Counts changes: an order of tasks that two changes in one millisecond do not blur.
    clock: u64,
}

#[derive(Debug)]
struct Held {
    task: Task,
    changed: u64,
    /// While the agent works on it.
    run: Option<Run>,
    pushes: Vec<PushConfig>,
}

/// Dropping it tells the followers that no more comes.
#[derive(Debug, Default)]
struct Run {
    log: watch::Sender<Vec<Arc<str>>>,
    stop: CancellationToken,
}

/// A run that just began.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) followed: Followed,
    /// Cancelled when somebody else ends the task.
    pub(super) stop: CancellationToken,
}

/// A task as it was, and what comes after.
pub(super) struct Followed {
    /// The event with the task itself.
    pub(super) snapshot: Arc<str>,
    /// The events that came before the snapshot, to be skipped.
    pub(super) seen: usize,
    pub(super) log: Log,
}

/// One stream event, or the result of a send.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
    Task(super::object::Shown<'a>),
    Message(&'a Message),
    StatusUpdate {
        task_id: &'a str,
        context_id: &'a str,
        status: &'a Status,
    },
    ArtifactUpdate {
        task_id: &'a str,
        context_id: &'a str,
        artifact: &'a Artifact,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        append: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        last_chunk: bool,
    },
}

impl Store {
    /// Makes a task of a message, or goes on with the task that it names.
    pub(super) fn begin(
        &self,
        mut message: Message,
        push: Option<PushConfig>,
    ) -> Result<Begun, Refusal> {
        let mut table = self.table();
        let id = if let Some(id) = message.task_id.clone() {
            table.resumable(&id, message.context_id.as_deref())?;
            id
        } else {
            table.room()?;
            let context = message.context_id.clone().unwrap_or_else(fresh_id);
            table.insert(fresh_id(), context)
        };
        let now = table.tick();
        let held = table.held(&id)?;
        if let Some(push) = push {
            held.put_push(push)?;
        }
        held.changed = now;
        message.task_id = Some(id.clone());
        message.context_id = Some(held.task.context_id.clone());
        held.remember_status();
        held.task.history.push(message);
        held.task.status = Status {
            state: State::Submitted,
            message: None,
            timestamp: Timestamp::now(),
        };
        let run = held.run.insert(Run::default());
        let stop = run.stop.clone();
        let followed = held.followed().expect("the run was put there a line ago");
        Ok(Begun { id, followed, stop })
    }

    /// Moves a task to a state; false when the task takes no more changes.
    pub(super) fn turn(&self, id: &str, state: State, say: Option<&str>) -> bool {
        self.table().turn(id, state, say)
    }

    /// Adds an artifact, or a further piece of it; false when the task takes no more changes.
    pub(super) fn add(&self, id: &str, artifact: Artifact, append: bool, last_chunk: bool) -> bool {
        let mut table = self.table();
        let Some(held) = table.tasks.get_mut(id).filter(|held| held.run.is_some()) else {
            return false;
        };
        let context_id = held.task.context_id.as_str();
        let event = Event::ArtifactUpdate {
            task_id: id,
            context_id,
            artifact: &artifact,
            append,
            last_chunk,
        };
        held.tell(&text_of(&event));
        let artifacts = &mut held.task.artifacts;
        match artifacts.iter_mut().find(|old| old.id == artifact.id) {
            Some(old) if append => old.parts.extend(artifact.parts),
            Some(old) => *old = artifact,
            None => artifacts.push(artifact),
        }
        true
    }

    /// The task as JSON.
    pub(super) fn show(&self, id: &str, history: Option<usize>) -> Result<String, Refusal> {
        Ok(text_of(&self.table().held(id)?.task.shown(history, true)))
    }

    /// The result of a send: the task as it is now.
    pub(super) fn result(&self, id: &str, history: Option<usize>) -> Result<String, Refusal> {
        Ok(text_of(&Event::Task(
            self.table().held(id)?.task.shown(history, true),
        )))
    }

    /// Ends a task.
    pub(super) fn cancel(&self, id: &str) -> Result<String, Refusal> {
        let mut table = self.table();
        let held = table.held(id)?;
        if held.task.status.state.is_terminal() {
            return Err(Fault::TaskNotCancelable.because(format!("task {id} has ended")));
        }
        // A task that waits for its caller has no run; it gets one for its last change.
        held.run.get_or_insert_with(Run::default).stop.cancel();
        table.turn(id, State::Canceled, Some("canceled on request"));
        Ok(text_of(&table.held(id)?.task.shown(None, true)))
    }

    /// The task and all that happens to it from now on.
    pub(super) fn follow(&self, id: &str) -> Result<Followed, Refusal> {
        let mut table = self.table();
        let held = table.held(id)?;
        held.followed().ok_or_else(|| {
            Fault::UnsupportedOperation.because(format!("nothing more comes from task {id}"))
        })
    }

    /// One page of the tasks, those that changed last first.
    pub(super) fn list(&self, wanted: &ListTasks) -> Result<String, Refusal> {
        let (size, after) = (wanted.page()?, wanted.after()?);
        let table = self.table();
        let matches = |held: &&Held| {
            wanted
                .context_id
                .as_ref()
                .is_none_or(|context| *context == held.task.context_id)
                && wanted
                    .status
                    .is_none_or(|state| state == held.task.status.state)
                && after.is_none_or(|time| held.task.status.timestamp > time)
        };
        let mut found: Vec<&Held> = table.tasks.values().filter(matches).collect();
        found.sort_unstable_by_key(|held| std::cmp::Reverse(held.changed));
        let total = found.len();
        // A token is the count of the last task of its page: a task that changes meanwhile moves to the front, and
        // is not met twice.
        if let Some(token) = wanted
            .page_token
            .as_deref()
            .filter(|token| !token.is_empty())
        {
            let before: u64 = token
                .parse()
                .map_err(|_| Fault::InvalidParams.because("pageToken is not one of ours"))?;
            found.retain(|held| held.changed < before);
        }
        let next = found
            .get(size)
            .and_then(|_| found.get(size - 1))
            .map_or(String::new(), |last| last.changed.to_string());
        let artifacts = wanted.include_artifacts.unwrap_or(false);
        let tasks: Vec<_> = found
            .iter()
            .take(size)
            .map(|held| held.task.shown(wanted.history_length, artifacts))
            .collect();
        Ok(format!(
            r#"{{"tasks":{},"nextPageToken":"{next}","pageSize":{size},"totalSize":{total}}}"#,
            text_of(&tasks),
        ))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0
            .lock()
            .expect("nothing panics while it holds the table")
    }
}

impl Table {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn turn(&mut self, id: &str, state: State, say: Option<&str>) -> bool {
        let now = self.tick();
        let Some(held) = self.tasks.get_mut(id).filter(|held| held.run.is_some()) else {
            return false;
        };
        held.changed = now;
        held.remember_status();
        let context = held.task.context_id.clone();
        let message = say.map(|text| Message::of_agent(&context, Some(id), vec![Part::text(text)]));
        held.task.status = Status {
            state,
            message,
            timestamp: Timestamp::now(),
        };
        let event = Event::StatusUpdate {
            task_id: id,
            context_id: &context,
            status: &held.task.status,
        };
        held.tell(&text_of(&event));
        if state.is_at_rest() {
            held.run = None;
        }
        true
    }

    fn held(&mut self, id: &str) -> Result<&mut Held, Refusal> {
        self.tasks
            .get_mut(id)
            .ok_or_else(|| Refusal::unknown_task(id))
    }

    fn insert(&mut self, id: String, context_id: String) -> String {
        let status = Status {
            state: State::Submitted,
            message: None,
            timestamp: Timestamp::now(),
        };
        let task = Task {
            id: id.clone(),
            context_id,
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
        };
        self.tasks.insert(
            id.clone(),
            Held {
                task,
                changed: 0,
                run: None,
                pushes: Vec::new(),
            },
        );
        id
    }

    /// Only a task that waits for its caller takes another message.
    fn resumable(&mut self, id: &str, context: Option<&str>) -> Result<(), Refusal> {
        let task = &self.held(id)?.task;
        if context.is_some_and(|context| context != task.context_id) {
            return Err(Fault::InvalidParams.because(format!("task {id} is of another context")));
        }
        match (
            task.status.state.is_terminal(),
            task.status.state.is_at_rest(),
        ) {
            (true, _) => Err(Fault::UnsupportedOperation.because(format!("task {id} has ended"))),
            (false, true) => Ok(()),
            (false, false) => {
                Err(Fault::UnsupportedOperation.because(format!("task {id} is at work")))
            }
        }
    }

    /// Makes room for one more: the oldest that ended goes, else the oldest that waits for its caller.
    fn room(&mut self) -> Result<(), Refusal> {
        if self.tasks.len() < TASKS {
            return Ok(());
        }
        let resting = self.tasks.values().filter(|held| held.run.is_none());
        let oldest =
            resting.min_by_key(|held| (!held.task.status.state.is_terminal(), held.changed));
        let id = oldest.map(|held| held.task.id.clone());
        let id = id
            .ok_or_else(|| Fault::Internal.because(format!("{TASKS} tasks are at work already")))?;
        self.tasks.remove(&id);
        Ok(())
    }
}

impl Held {
    fn tell(&self, event: &str) {
        if let Some(run) = &self.run {
            run.log.send_modify(|log| log.push(event.into()));
        }
    }

    /// What the agent said stays readable when the next status replaces it.
    fn remember_status(&mut self) {
        self.task.history.extend(self.task.status.message.take());
    }

    fn followed(&self) -> Option<Followed> {
        let run = self.run.as_ref()?;
        let snapshot = text_of(&Event::Task(self.task.shown(None, true))).into();
        Some(Followed {
            snapshot,
            seen: run.log.borrow().len(),
            log: run.log.subscribe(),
        })
    }
}
