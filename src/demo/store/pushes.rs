//! The push configs of a task: kept and shown, never used. The agent delivers nothing.

use super::{Held, Store};
use crate::demo::{
    object::{PushConfig, text_of},
    refusal::{Fault, Refusal},
};

/// Push configs of one task.
const PUSHES: usize = 100;

impl Store {
    /// Keeps a push config, in the place of one with the same id.
    pub(in crate::demo) fn push_create(&self, push: PushConfig) -> Result<String, Refusal> {
        Ok(text_of(
            self.table().held(&push.task_id.clone())?.put_push(push)?,
        ))
    }

    /// One push config.
    pub(in crate::demo) fn push_show(&self, task: &str, id: &str) -> Result<String, Refusal> {
        let mut table = self.table();
        let push = table.held(task)?.pushes.iter().find(|push| push.id == id);
        push.map(text_of).ok_or_else(|| {
            Fault::TaskNotFound.because(format!("task {task} has no push config {id:?}"))
        })
    }

    /// A page of a task's push configs; the token is the place where it begins.
    pub(in crate::demo) fn push_list(
        &self,
        task: &str,
        size: Option<usize>,
        token: Option<&str>,
    ) -> Result<String, Refusal> {
        let from: usize = match token.filter(|token| !token.is_empty()) {
            Some(token) => token
                .parse()
                .map_err(|_| Fault::InvalidParams.because("pageToken is not one of ours"))?,
            None => 0,
        };
        let mut table = self.table();
        let pushes = &table.held(task)?.pushes;
        let size = size.filter(|size| *size > 0).unwrap_or(PUSHES);
        let page: Vec<_> = pushes.iter().skip(from).take(size).collect();
        let to = from.saturating_add(page.len());
        let next = if to < pushes.len() {
            to.to_string()
        } else {
            String::new()
        };
        Ok(format!(
            r#"{{"configs":{},"nextPageToken":"{next}"}}"#,
            text_of(&page)
        ))
    }

    /// Forgets a push config; one that is not there is forgotten already.
    pub(in crate::demo) fn push_delete(&self, task: &str, id: &str) -> Result<String, Refusal> {
        self.table().held(task)?.pushes.retain(|push| push.id != id);
        Ok("{}".to_owned())
    }
}

impl Held {
    /// Keeps a config under its id, or the task's when it has none.
    pub(super) fn put_push(&mut self, mut push: PushConfig) -> Result<&PushConfig, Refusal> {
        push.task_id.clone_from(&self.task.id);
        if push.id.is_empty() {
            push.id.clone_from(&self.task.id);
        }
        self.pushes.retain(|old| old.id != push.id);
        if self.pushes.len() >= PUSHES {
            return Err(
                Fault::InvalidParams.because(format!("a task has at most {PUSHES} push configs"))
            );
        }
        self.pushes.push(push);
        Ok(self.pushes.last().expect("it was put there a line ago"))
    }
}
