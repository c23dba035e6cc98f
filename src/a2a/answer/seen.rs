//! What an answer says of its task: for policies, for `final`, and for the gateway's own questions.
use std::borrow::Cow;

use bytes::Bytes;

use super::{
    super::{
        Dialect, Fault, Op,
        shape::{Notes, Options, State, state_and_word, state_of},
    },
    bad, result_of, text_of,
};
use crate::json::Obj;

/// What an answer says, for policies, logs and `final`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The state of the task that it tells of.
    pub state: Option<State>,
    /// That state's name, if the protocol has it.
    pub word: Option<&'static str>,
    /// It is a status update: the only kind of event that carries `final`.
    pub update: bool,
    /// It is a whole task.
    pub task: bool,
    /// It is a bare message, after which nothing follows.
    pub message: bool,
    /// The ids in it, where they are learned.
    pub named: Named,
}

/// The ids that an answer names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The task.
    pub task: Option<Box<str>>,
    /// The context.
    pub context: Option<Box<str>>,
}

pub(super) fn seen_in(op: Op, r: &Obj<'_>, learn: bool) -> Seen {
    let state = |o: Option<&Obj<'_>>| {
        let state = o?.inside("status")?.string("state")?;
        Some(state_and_word(&state))
    };
    let id = |o: &Obj<'_>, key| o.string(key).filter(|t| !t.is_empty()).map(Into::into);
    match op {
        Op::Send | Op::Stream | Op::Subscribe => {
            let task = r.inside("task");
            let mut named = Named::default();
            if learn {
                let part = ["statusUpdate", "artifactUpdate", "message"];
                let part = part.iter().find_map(|key| r.inside(key));
                if let Some(o) = task.or(part) {
                    named.task = id(o, if task.is_some() { "id" } else { "taskId" });
                    named.context = id(o, "contextId");
                }
            }
            let state = state(task).or_else(|| state(r.inside("statusUpdate")));
            Seen {
                state: state.map(|(state, _)| state),
                word: state.and_then(|(_, word)| word),
                update: r.has("statusUpdate"),
                task: task.is_some(),
                message: r.has("message"),
                named,
            }
        }
        Op::Get | Op::Cancel => {
            let state = state(Some(r));
            let mut named = Named::default();
            if learn {
                named.task = id(r, "id");
                named.context = id(r, "contextId");
            }
            Seen {
                state: state.map(|(state, _)| state),
                word: state.and_then(|(_, word)| word),
                named,
                ..Seen::default()
            }
        }
        Op::List
        | Op::CreatePush
        | Op::GetPush
        | Op::ListPush
        | Op::DeletePush
        | Op::ExtendedCard => Seen::default(),
    }
}

/// What an agent's answer to `GetTask` says, for our own sake.
pub fn task_seen(from: Dialect, body: &Bytes, options: &Options) -> Result<Seen, Fault> {
    let task = lifted(from, Op::Get, body, options)?;
    Ok(seen_in(Op::Get, &task, true))
}

/// A page of tasks, for our own sake: one that is not at rest, if there is any, and the next page.
pub fn running_task(
    from: Dialect,
    body: &Bytes,
    options: &Options,
) -> Result<(Option<Box<str>>, Option<String>), Fault> {
    let page = lifted(from, Op::List, body, options)?;
    let runs = |task: &&Obj<'_>| {
        let state = task.inside("status").and_then(|s| s.string("state"));
        state.is_none_or(|s| state_of(&s) == State::Running)
    };
    let tasks = page.list("tasks").unwrap_or_default();
    let running = tasks.iter().find(runs);
    let id = match running.map(|task| task.string("id")) {
        Some(None) => return Err(Fault::answer("a task without an id")),
        Some(Some(id)) => Some(id.into()),
        None => None,
    };
    let next = page.string("nextPageToken").map(Cow::into_owned);
    Ok((id, next.filter(|t| !t.is_empty())))
}

pub(super) fn lifted<'a>(
    from: Dialect,
    op: Op,
    body: &'a Bytes,
    options: &Options,
) -> Result<Obj<'a>, Fault> {
    let result = result_of(from, op, text_of(body)?, options)?;
    let mut notes = Notes::new(options);
    let lifted = from.shape.lift_result(op, result, &mut notes);
    lifted.map_err(|e| bad(&e))
}
