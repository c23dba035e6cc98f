//! What the agent says when it refuses: one table of faults, written in the words of either binding.

use hyper::StatusCode;
use serde_json::{Value, json};

/// The ways a call fails here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Parse,
    InvalidRequest,
    TooLarge,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
}

/// How a fault looks on the wire: JSON-RPC code, HTTP status, the status' name, and the reason where the spec has one.
struct Wire(i32, StatusCode, &'static str, Option<&'static str>);

impl Fault {
    // v1.0.1 5.4; the statuses of 1.0.0 differ
    fn wire(self) -> Wire {
        const BAD: StatusCode = StatusCode::BAD_REQUEST;
        const ARGUMENT: &str = "INVALID_ARGUMENT";
        const PRECONDITION: &str = "FAILED_PRECONDITION";
        match self {
            Self::Parse => Wire(-32700, BAD, ARGUMENT, None),
            Self::InvalidRequest => Wire(-32600, BAD, ARGUMENT, Some("INVALID_REQUEST")),
            Self::TooLarge => Wire(
                -32600,
                StatusCode::PAYLOAD_TOO_LARGE,
                ARGUMENT,
                Some("INVALID_REQUEST"),
            ),
            Self::MethodNotFound => Wire(
                -32601,
                StatusCode::NOT_FOUND,
                "NOT_FOUND",
                Some("METHOD_NOT_FOUND"),
            ),
            Self::InvalidParams => Wire(-32602, BAD, ARGUMENT, Some("INVALID_PARAMS")),
            Self::Internal => Wire(
                -32603,
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL",
                Some("INTERNAL_ERROR"),
            ),
            Self::TaskNotFound => Wire(
                -32001,
                StatusCode::NOT_FOUND,
                "NOT_FOUND",
                Some("TASK_NOT_FOUND"),
            ),
            Self::TaskNotCancelable => Wire(-32002, BAD, PRECONDITION, Some("TASK_NOT_CANCELABLE")),
            Self::UnsupportedOperation => {
                Wire(-32004, BAD, PRECONDITION, Some("UNSUPPORTED_OPERATION"))
            }
            Self::ContentTypeNotSupported => {
                Wire(-32005, BAD, ARGUMENT, Some("CONTENT_TYPE_NOT_SUPPORTED"))
            }
            Self::VersionNotSupported => {
                Wire(-32009, BAD, PRECONDITION, Some("VERSION_NOT_SUPPORTED"))
            }
        }
    }

    /// This fault with a sentence for the caller.
    pub(super) fn because(self, message: impl Into<String>) -> Refusal {
        Refusal {
            fault: self,
            message: message.into(),
        }
    }
}

/// A fault and what to tell the caller.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    fault: Fault,
    message: String,
}

impl Refusal {
    /// No task has this id.
    pub(super) fn unknown_task(id: &str) -> Refusal {
        Fault::TaskNotFound.because(format!("there is no task {id:?}"))
    }

    /// The HTTP status of the REST binding.
    pub(super) fn status(&self) -> StatusCode {
        self.fault.wire().1
    }

    /// The `error` of a JSON-RPC answer.
    pub(super) fn rpc(&self) -> Value {
        let Wire(code, ..) = self.fault.wire();
        let mut error = json!({ "code": code, "message": self.message });
        if let Some(detail) = self.detail() {
            error["data"] = json!([detail]);
        }
        error
    }

    /// The `error` of a REST answer.
    pub(super) fn rest(&self) -> Value {
        let Wire(_, status, name, _) = self.fault.wire();
        let mut error = json!({ "code": status.as_u16(), "status": name, "message": self.message });
        if let Some(detail) = self.detail() {
            error["details"] = json!([detail]);
        }
        error
    }

    fn detail(&self) -> Option<Value> {
        let Wire(.., reason) = self.fault.wire();
        let reason = reason?;
        Some(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "a2a-protocol.org",
            "metadata": {},
        }))
    }
}
