//! What a canonical request says, read once, for policies and for the way back. Never the client's spelling.
use std::borrow::Cow;

use super::{fault::Fault, op::Op};
use crate::json::{Node, Obj};

/// The few things of a request that are looked at after it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The conversation.
    pub context: Option<String>,
    /// The task.
    pub task: Option<String>,
    /// The message's id.
    pub message: Option<String>,
    /// The push config.
    pub config: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// How many messages of history are wanted; `None` is all that the agent has.
    pub history: Option<u64>,
    /// The send does not wait for the task's end.
    pub at_once: bool,
    /// A webhook comes with the message.
    pub webhook: bool,
    /// The message refers to tasks beside its own.
    pub refers: bool,
}

impl Facts {
    /// Reads them from a canonical request. An id that cannot be read is refused, since an agent that does read
    /// it would see what no policy saw.
    pub(super) fn read(op: Op, r: &Obj<'_>) -> Result<Self, Fault> {
        let mut facts = Self {
            tenant: text(r, "tenant")?,
            ..Self::default()
        };
        match op {
            Op::Send | Op::Stream => {
                if let Some(m) = r.inside("message") {
                    facts.context = text(m, "contextId")?;
                    facts.task = text(m, "taskId")?;
                    facts.message = text(m, "messageId")?;
                    facts.refers = m.has("referenceTaskIds");
                }
                if let Some(c) = r.inside("configuration") {
                    facts.history = number(c, "historyLength");
                    facts.at_once = c.raw("returnImmediately") == Some("true");
                    facts.webhook = c.has("taskPushNotificationConfig");
                }
            }
            Op::Get | Op::Cancel | Op::Subscribe => {
                facts.task = text(r, "id")?;
                facts.history = number(r, "historyLength");
            }
            Op::List => {
                facts.context = text(r, "contextId")?;
                facts.history = number(r, "historyLength");
            }
            Op::CreatePush | Op::GetPush | Op::ListPush | Op::DeletePush => {
                facts.task = text(r, "taskId")?;
                facts.config = text(r, "id")?;
            }
            Op::ExtendedCard => {}
        }
        Ok(facts)
    }
}

fn text(o: &Obj<'_>, key: &str) -> Result<Option<String>, Fault> {
    let Some(node) = o.get(key) else {
        return Ok(None);
    };
    let text = node.said();
    let text = text.ok_or_else(|| Fault::params(format!("`{key}` is not a string of Unicode")))?;
    Ok(Some(text).filter(|t| !t.is_empty()).map(Cow::into_owned))
}

fn number(o: &Obj<'_>, key: &str) -> Option<u64> {
    match o.get(key)? {
        Node::Text(number) => number.parse().ok(),
        Node::Made(number) => number.parse().ok(),
        Node::Word(_) | Node::Obj(_) | Node::List(_) => None,
    }
}
