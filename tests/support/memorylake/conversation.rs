//! Conversations: each is of the agent, and bound to the project, of its first message, and takes one message at a
//! time.
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    call::Call, extension::Extension, refusal::Refusal, rules::Rules, task::Task, world::Holder,
};

#[derive(Default)]
pub struct Conversations(HashMap<(String, String), Conversation>);

struct Conversation {
    agent: String,
    project: Option<String>,
    actors: BTreeSet<String>,
    /// The task of its newest message.
    task: Arc<Task>,
}

impl Conversations {
    /// Whether a message may be sent, and the project that it is worked on in.
    pub fn admit(
        &self,
        call: &Call,
        context: &str,
        extension: &Extension,
        rules: &Rules,
        who: &Holder,
    ) -> Result<Option<String>, Refusal> {
        let key = (call.workspace.clone(), context.to_owned());
        let Some(known) = self.0.get(&key) else {
            extension.may_act(who)?;
            extension.may_write(who)?;
            return Ok(extension.project.clone());
        };
        if rules.one_agent && known.agent != call.agent {
            return Err(Refusal::invalid("the conversation is of another agent"));
        }
        if rules.one_at_a_time && !known.task.is_over() {
            return Err(Refusal::invalid(
                "another message of the conversation is being processed",
            ));
        }
        let other = extension.project.as_ref();
        if rules.fixes_project && other.is_some_and(|p| Some(p) != known.project.as_ref()) {
            return Err(Refusal::invalid(
                "the conversation is bound to its first project",
            ));
        }
        if extension
            .actor
            .as_ref()
            .is_some_and(|a| !known.actors.contains(a))
        {
            extension.may_act(who)?;
        }
        Ok(extension.project.clone().or_else(|| known.project.clone()))
    }

    /// A message was let in, and this is its task.
    pub fn goes_on(&mut self, call: &Call, context: &str, extension: &Extension, task: &Arc<Task>) {
        let key = (call.workspace.clone(), context.to_owned());
        let known = self.0.entry(key).or_insert_with(|| Conversation {
            agent: call.agent.clone(),
            project: extension.project.clone(),
            actors: BTreeSet::new(),
            task: Arc::clone(task),
        });
        known.actors.extend(extension.actor.clone());
        known.task = Arc::clone(task);
    }
}
