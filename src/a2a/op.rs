//! The operations of the protocol, one row each (v1.0 5.3, v0.3 3.5.6). Router, encoders, labels and tests
//! read this table.
use http::Method;

use Op::{
    Cancel, CreatePush, DeletePush, ExtendedCard, Get, GetPush, List, ListPush, Send, Stream,
    Subscribe,
};

/// An operation of the protocol. The public card is none: it has no method name and no dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Send a message and get a task or a message.
    Send,
    /// Send a message and get events.
    Stream,
    /// The task as it is.
    Get,
    /// Tasks by filter, in pages; v1.0 only.
    List,
    /// Ask for a task to end.
    Cancel,
    /// The events of a running task.
    Subscribe,
    /// Register a webhook.
    CreatePush,
    /// One webhook.
    GetPush,
    /// The webhooks of a task.
    ListPush,
    /// Forget a webhook.
    DeletePush,
    /// The card for callers who are known.
    ExtendedCard,
}

/// A REST route: the verbs that are taken, the first of them sent; the path below the interface URL.
#[derive(Debug)]
pub struct Rest {
    /// The verbs, the preferred one first.
    pub verbs: &'static [Method],
    /// The path with `{id}` for the task and `{config}` for a push config.
    pub path: &'static str,
}

/// How one version names an operation.
#[derive(Debug)]
pub struct Names {
    /// The JSON-RPC method.
    pub rpc: &'static str,
    /// The REST route.
    pub rest: Rest,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Whether the answer is a stream of events.
    pub streams: bool,
    /// v0.3 names.
    pub v03: Names,
    /// v1.0 names.
    pub v10: Names,
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const DELETE: &[Method] = &[Method::DELETE];
/// The two specifications disagree with their own prose (A2A issue 1574), and so do clients.
const POST_OR_GET: &[Method] = &[Method::POST, Method::GET];

const fn names(rpc: &'static str, verbs: &'static [Method], path: &'static str) -> Names {
    Names {
        rpc,
        rest: Rest { verbs, path },
    }
}

const fn row(op: Op, streams: bool, v03: Names, v10: Names) -> Row {
    Row {
        op,
        streams,
        v03,
        v10,
    }
}

/// All operations.
#[rustfmt::skip]
pub static OPS: [Row; 11] = [
    row(Send, false,
        names("message/send", POST, "/v1/message:send"),
        names("SendMessage", POST, "/message:send")),
    row(Stream, true,
        names("message/stream", POST, "/v1/message:stream"),
        names("SendStreamingMessage", POST, "/message:stream")),
    row(Get, false,
        names("tasks/get", GET, "/v1/tasks/{id}"),
        names("GetTask", GET, "/tasks/{id}")),
    row(List, false,
        names("tasks/list", GET, "/v1/tasks"), // of a2a-go only, and by option (decision 45)
        names("ListTasks", GET, "/tasks")),
    row(Cancel, false,
        names("tasks/cancel", POST, "/v1/tasks/{id}:cancel"),
        names("CancelTask", POST, "/tasks/{id}:cancel")),
    row(Subscribe, true,
        names("tasks/resubscribe", POST_OR_GET, "/v1/tasks/{id}:subscribe"),
        names("SubscribeToTask", POST_OR_GET, "/tasks/{id}:subscribe")),
    row(CreatePush, false,
        names("tasks/pushNotificationConfig/set", POST, "/v1/tasks/{id}/pushNotificationConfigs"),
        names("CreateTaskPushNotificationConfig", POST, "/tasks/{id}/pushNotificationConfigs")),
    row(GetPush, false,
        names("tasks/pushNotificationConfig/get", GET, "/v1/tasks/{id}/pushNotificationConfigs/{config}"),
        names("GetTaskPushNotificationConfig", GET, "/tasks/{id}/pushNotificationConfigs/{config}")),
    row(ListPush, false,
        names("tasks/pushNotificationConfig/list", GET, "/v1/tasks/{id}/pushNotificationConfigs"),
        names("ListTaskPushNotificationConfigs", GET, "/tasks/{id}/pushNotificationConfigs")),
    row(DeletePush, false,
        names("tasks/pushNotificationConfig/delete", DELETE, "/v1/tasks/{id}/pushNotificationConfigs/{config}"),
        names("DeleteTaskPushNotificationConfig", DELETE, "/tasks/{id}/pushNotificationConfigs/{config}")),
    row(ExtendedCard, false,
        names("agent/getAuthenticatedExtendedCard", GET, "/v1/card"),
        names("GetExtendedAgentCard", GET, "/extendedAgentCard")),
];

impl Op {
    /// Its row.
    ///
    /// # Panics
    /// Never: every operation has a row, which a test checks.
    pub fn row(self) -> &'static Row {
        OPS.iter()
            .find(|r| r.op == self)
            .expect("every operation has a row")
    }

    /// Whether the answer is a stream of events.
    pub const fn streams(self) -> bool {
        matches!(self, Stream | Subscribe)
    }

    /// Whether it carries a message to the agent.
    pub const fn sends(self) -> bool {
        matches!(self, Send | Stream)
    }

    /// Whether doing it twice is the same as doing it once, as for everything that only reads.
    pub const fn may_repeat(self) -> bool {
        match self {
            Get | List | Subscribe | GetPush | ListPush | ExtendedCard => true,
            Send | Stream | Cancel | CreatePush | DeletePush => false,
        }
    }

    /// Whether it is one of the four push config operations.
    pub const fn is_push(self) -> bool {
        matches!(self, CreatePush | GetPush | ListPush | DeletePush)
    }

    /// Its name in v1.0 spelling: for logs and labels, whatever the caller speaks.
    pub fn name(self) -> &'static str {
        self.row().v10.rpc
    }

    /// The operation of this name in v1.0 or v0.3 spelling.
    pub fn named(name: &str) -> Option<Self> {
        let is = |r: &&Row| r.v10.rpc == name || r.v03.rpc == name;
        OPS.iter().find(is).map(|r| r.op)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operation_has_one_row_and_every_name_is_used_once() {
        let mut names = HashSet::new();
        for row in &OPS {
            assert_eq!(row.op.row().op, row.op);
            assert_eq!(row.streams, row.op.streams());
            for n in [&row.v03, &row.v10] {
                assert!(names.insert(n.rpc.to_owned()), "{}", n.rpc);
                for verb in n.rest.verbs {
                    let route = format!("{verb} {}", n.rest.path);
                    assert!(names.insert(route.clone()), "{route}");
                }
            }
        }
    }
}
