//! Every way a call fails, ours or the agent's, and one table that says how each is told (`Kind::wire`):
//! JSON-RPC code, reason, HTTP statuses, whose fault it is, and whether work may have begun.
use std::borrow::Cow;

use http::{HeaderName, HeaderValue, StatusCode};

use super::face::Product;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The caller asked for something that cannot be.
    Caller,
    /// The gateway.
    Gateway,
    /// The agent, or the way to it.
    Agent,
}

/// What went wrong, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// v1.0 3.3.2 `TaskNotFoundError`.
    TaskNotFound,
    /// The task is past cancelling.
    TaskNotCancelable,
    /// No webhooks here.
    PushNotSupported,
    /// The agent does not do this.
    UnsupportedOperation,
    /// A media type that the agent does not take, or a request that is no JSON by its header.
    ContentTypeNotSupported,
    /// The agent's answer is not A2A.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedCardNotConfigured,
    /// The caller must ask for an extension first; v1.0 only.
    ExtensionRequired,
    /// A version that is not served; v1.0 only.
    VersionNotSupported,
    /// The body is not JSON.
    Parse,
    /// JSON, but no request.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// No such path.
    NoRoute,
    /// The path exists, with another verb.
    WrongVerb,
    /// A request that says something impossible.
    InvalidParams,
    /// Anything unforeseen.
    Internal,
    /// Past a limit of size.
    TooLarge,
    /// The body did not come in time.
    SlowBody,
    /// Another message of this conversation is in flight.
    ConversationBusy {
        /// REST says 409 instead of 400.
        conflict: bool,
    },
    /// The context belongs to another agent.
    ContextBound,
    /// The id of an earlier message, on one that says something else, or whose answer is not kept.
    DuplicateMessage,
    /// An earlier attempt at this message was sent, and what became of it is not known.
    OutcomeUnknown,
    /// The caller is not known.
    Unauthenticated,
    /// The caller may not.
    AccessDenied,
    /// Too many requests.
    RateLimited,
    /// Nothing left to spend.
    QuotaExceeded,
    /// The gateway or the agent has no room now.
    Overloaded,
    /// No connection to the agent.
    BackendUnreachable,
    /// No answer from the agent in time.
    BackendTimeout,
    /// The agent's answer broke off.
    BackendBroken,
    /// An error of the agent that is none of the above: its code and status are kept.
    Foreign {
        /// JSON-RPC code.
        code: i32,
        /// HTTP status.
        status: u16,
    },
}

/// How a kind is told. `reason` is `ErrorInfo.reason`; `grpc` is `google.rpc.Status.status`.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// JSON-RPC code.
    pub rpc: i32,
    /// `ErrorInfo.reason`.
    pub reason: &'static str,
    /// The name of the gRPC status, in a v1.0 REST error body.
    pub grpc: &'static str,
    /// HTTP status on v1.0 REST (1.0.1).
    pub status: u16,
    /// HTTP status on v0.3 REST.
    pub status03: u16,
    /// HTTP status around a JSON-RPC error.
    pub around: u16,
    /// Class name of the v0.3 SDKs, without the `Error` at the end.
    pub class: &'static str,
    /// Whose fault it is.
    pub blame: Blame,
    /// Whether the agent may have begun work.
    pub may_have_started: bool,
}

impl Kind {
    /// The table (errors are those of v1.0 5.4, v0.3 8; the gateway's own codes lie outside the A2A range).
    /// `OUTCOME_UNKNOWN` is told as a broken answer is, which is what made it; its gRPC status is not
    /// `UNAVAILABLE`, since that invites to send the message under another id.
    #[rustfmt::skip]
    pub const fn wire(self) -> Wire {
        use Blame::{Agent, Caller, Gateway};
        const fn w(rpc: i32, reason: &'static str, grpc: &'static str, status: (u16, u16, u16), class: &'static str, blame: Blame, may_have_started: bool) -> Wire {
            Wire { rpc, reason, grpc, status: status.0, status03: status.1, around: status.2, class, blame, may_have_started }
        }
        match self {
            //                                    code    reason                           gRPC status           v1.0 v0.3 JSON-RPC  v0.3 class                     whose   started
            Self::TaskNotFound              => w(-32001, "TASK_NOT_FOUND",                "NOT_FOUND",           (404, 404, 200), "TaskNotFound",                  Caller, false),
            Self::TaskNotCancelable         => w(-32002, "TASK_NOT_CANCELABLE",           "FAILED_PRECONDITION", (400, 409, 200), "TaskNotCancelable",             Caller, false),
            Self::PushNotSupported          => w(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "FAILED_PRECONDITION", (400, 501, 200), "PushNotificationNotSupported", Caller, false),
            Self::UnsupportedOperation      => w(-32004, "UNSUPPORTED_OPERATION",         "FAILED_PRECONDITION", (400, 501, 200), "UnsupportedOperation",          Caller, false),
            Self::ContentTypeNotSupported   => w(-32005, "CONTENT_TYPE_NOT_SUPPORTED",    "INVALID_ARGUMENT",    (400, 415, 200), "ContentTypeNotSupported",       Caller, false),
            Self::InvalidAgentResponse      => w(-32006, "INVALID_AGENT_RESPONSE",        "INTERNAL",            (500, 502, 200), "InvalidAgentResponse",          Agent,  true),
            Self::ExtendedCardNotConfigured => w(-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "FAILED_PRECONDITION", (400, 404, 200), "AuthenticatedExtendedCardNotConfigured", Caller, false),
            Self::ExtensionRequired         => w(-32008, "EXTENSION_SUPPORT_REQUIRED",    "FAILED_PRECONDITION", (400, 400, 200), "ExtensionSupportRequired",      Caller, false),
            Self::VersionNotSupported       => w(-32009, "VERSION_NOT_SUPPORTED",         "FAILED_PRECONDITION", (400, 400, 200), "VersionNotSupported",           Caller, false),
            Self::Parse                     => w(-32700, "PARSE_ERROR",                   "INVALID_ARGUMENT",    (400, 400, 200), "JSONParse",                     Caller, false),
            Self::InvalidRequest            => w(-32600, "INVALID_REQUEST",               "INVALID_ARGUMENT",    (400, 400, 200), "InvalidRequest",                Caller, false),
            Self::MethodNotFound            => w(-32601, "METHOD_NOT_FOUND",              "NOT_FOUND",           (404, 404, 200), "MethodNotFound",                Caller, false),
            Self::NoRoute                   => w(-32601, "METHOD_NOT_FOUND",              "NOT_FOUND",           (404, 404, 404), "MethodNotFound",                Caller, false),
            Self::WrongVerb                 => w(-32601, "METHOD_NOT_FOUND",              "UNIMPLEMENTED",       (405, 405, 405), "MethodNotFound",                Caller, false),
            Self::InvalidParams             => w(-32602, "INVALID_PARAMS",                "INVALID_ARGUMENT",    (400, 400, 200), "InvalidParams",                 Caller, false),
            Self::Internal                  => w(-32603, "INTERNAL_ERROR",                "INTERNAL",            (500, 500, 200), "Internal",                      Gateway, true),
            Self::TooLarge                  => w(-32600, "PAYLOAD_TOO_LARGE",             "INVALID_ARGUMENT",    (413, 413, 200), "InvalidRequest",                Caller, false),
            Self::SlowBody                  => w(-32600, "REQUEST_TIMEOUT",               "DEADLINE_EXCEEDED",   (408, 408, 408), "InvalidRequest",                Caller, false),
            Self::ConversationBusy { conflict: false } => w(-32602, "CONVERSATION_BUSY",  "INVALID_ARGUMENT",    (400, 400, 200), "InvalidParams",                 Caller, false),
            Self::ConversationBusy { conflict: true }  => w(-32602, "CONVERSATION_BUSY",  "ABORTED",             (409, 409, 200), "InvalidParams",                 Caller, false),
            Self::ContextBound              => w(-32602, "CONTEXT_BOUND",                 "INVALID_ARGUMENT",    (400, 400, 200), "InvalidParams",                 Caller, false),
            Self::DuplicateMessage          => w(-32602, "DUPLICATE_MESSAGE",             "INVALID_ARGUMENT",    (400, 400, 200), "InvalidParams",                 Caller, false),
            Self::OutcomeUnknown            => w(-32603, "OUTCOME_UNKNOWN",               "UNKNOWN",             (502, 502, 200), "Internal",                      Agent,  true),
            Self::Unauthenticated           => w(-32000, "UNAUTHENTICATED",               "UNAUTHENTICATED",     (401, 401, 401), "Unauthenticated",               Caller, false),
            Self::AccessDenied              => w(-32000, "ACCESS_DENIED",                 "PERMISSION_DENIED",   (403, 403, 403), "AccessDenied",                  Caller, false),
            Self::RateLimited               => w(-32000, "RATE_LIMITED",                  "RESOURCE_EXHAUSTED",  (429, 429, 429), "RateLimited",                   Caller, false),
            Self::QuotaExceeded             => w(-32000, "QUOTA_EXCEEDED",                "RESOURCE_EXHAUSTED",  (402, 402, 402), "QuotaExceeded",                 Caller, false),
            Self::Overloaded                => w(-32603, "OVERLOADED",                    "UNAVAILABLE",         (503, 503, 503), "Internal",                      Gateway, false),
            Self::BackendUnreachable        => w(-32603, "BACKEND_UNREACHABLE",           "UNAVAILABLE",         (502, 502, 200), "Internal",                      Agent,  false),
            Self::BackendTimeout            => w(-32603, "BACKEND_TIMEOUT",               "DEADLINE_EXCEEDED",   (504, 504, 200), "Internal",                      Agent,  true),
            Self::BackendBroken             => w(-32603, "BACKEND_BROKEN",                "UNAVAILABLE",         (502, 502, 200), "Internal",                      Agent,  true),
            Self::Foreign { code, status }  => w(code,    "AGENT_ERROR",                  grpc_of(status),       (status, status, around(status)), "Internal",     Agent,  started(status)),
        }
    }

    /// The kinds that an agent's `reason`, code or a v0.3 class may name.
    pub const NAMED: [Self; 19] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::Unauthenticated,
        Self::AccessDenied,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::Overloaded,
    ];

    /// The kind that an `ErrorInfo.reason` names.
    pub fn of_reason(reason: &str) -> Option<Self> {
        match reason {
            "INTERNAL" => Some(Self::Internal),
            "UNAUTHORIZED" => Some(Self::Unauthenticated),
            _ => Self::NAMED.into_iter().find(|k| k.wire().reason == reason),
        }
    }

    /// The kind that a JSON-RPC code names; -32000 and such are the server's own.
    pub fn of_code(code: i32) -> Option<Self> {
        let known = code != -32000;
        Self::NAMED
            .into_iter()
            .find(|k| known && k.wire().rpc == code)
    }

    /// The kind that a v0.3 class name such as `TaskNotFoundError` or `io.a2a.spec.TaskNotFoundError` names.
    pub fn of_class(class: &str) -> Option<Self> {
        let name = class.rsplit('.').next()?.strip_suffix("Error")?;
        Self::NAMED.into_iter().find(|k| k.wire().class == name)
    }
}

/// The gRPC status name for an HTTP status.
const fn grpc_of(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

/// Whether an agent that answers so may have begun work.
const fn started(status: u16) -> bool {
    !matches!(status, 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429)
}

/// Statuses that a JSON-RPC client must see as such, around the error object.
const fn around(status: u16) -> u16 {
    match status {
        401 | 402 | 403 | 429 | 503 => status,
        _ => 200,
    }
}

/// One failed call. The caller gets `message` and `more.details`; `more.cause` is for the log.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What went wrong.
    pub kind: Kind,
    /// For the caller, and perhaps for a person.
    pub message: Cow<'static, str>,
    /// When to come again, in seconds.
    pub retry_after: Option<u32>,
    /// Whose fault it is: by its kind, but an agent may have what else only the gateway has.
    pub blame: Blame,
    /// Set where an operation is there but refuses this task: v0.3 REST says 400 then, not 501.
    pub of_task: bool,
    /// Refused before the agent ran, though agents refuse so, too.
    pub early: bool,
    /// What few faults have.
    pub more: Box<More>,
}

/// What few faults have.
#[derive(Clone, Debug, Default)]
pub struct More {
    /// For the log only.
    pub cause: Option<String>,
    /// The agent's own details, as the text of a JSON array of objects with `@type` (v1.0 9.5, 11.6).
    pub details: Option<String>,
    /// Members for `ErrorInfo.metadata`.
    pub metadata: Vec<(&'static str, String)>,
    /// `WWW-Authenticate` values of a 401 or 403.
    pub challenges: Vec<HeaderValue>,
    /// Further fields of its answer.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// JSON text of a 401 or 403 of the agent, which passes as it was received (errors 3).
    pub received: Option<String>,
    /// The body in which the agent's product told it, where it has one of its own.
    pub product: Option<Product>,
}

impl Fault {
    /// A fault with words for the caller.
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            blame: kind.wire().blame,
            of_task: false,
            early: false,
            more: Box::default(),
        }
    }

    /// Something impossible in the request.
    pub fn params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::InvalidParams, message)
    }

    /// A task that is not there, or that is not to be known of.
    pub fn no_task() -> Self {
        Self::new(Kind::TaskNotFound, "there is no such task")
    }

    /// An answer of the agent that is not A2A.
    pub fn answer(cause: impl Into<String>) -> Self {
        Self::new(
            Kind::InvalidAgentResponse,
            "the agent's answer is not valid A2A",
        )
        .because(cause)
    }

    /// Told by an agent: what would be ours is its own.
    #[must_use]
    pub fn of_agent(mut self) -> Self {
        if self.blame == Blame::Gateway {
            self.blame = Blame::Agent;
        }
        self
    }

    /// Whether the agent may have begun work on what failed so. Where somebody `answered`, 502, 503, 408 and 402 may
    /// come from a proxy that lost the agent's answer.
    pub const fn may_have_started(&self, answered: bool) -> bool {
        let lost = matches!(
            self.kind,
            Kind::BackendUnreachable | Kind::Overloaded | Kind::SlowBody | Kind::QuotaExceeded
        );
        self.kind.wire().may_have_started || answered && lost
    }

    /// Refused before the agent ran.
    #[must_use]
    pub const fn early(mut self) -> Self {
        self.early = true;
        self
    }

    /// Adds words for the log.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.more.cause = Some(cause.into());
        self
    }

    /// Adds a member to `ErrorInfo.metadata`.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.more.metadata.push((key, value.into()));
        self
    }

    /// The HTTP status on v1.0 REST.
    pub fn status(&self) -> StatusCode {
        code(self.kind.wire().status)
    }

    /// The HTTP status on v0.3 REST.
    pub fn status03(&self) -> StatusCode {
        if self.of_task && self.kind == Kind::UnsupportedOperation {
            return StatusCode::BAD_REQUEST; // 501 says that the operation is not there at all
        }
        code(self.kind.wire().status03)
    }

    /// The HTTP status around a JSON-RPC error object.
    pub fn around(&self) -> StatusCode {
        code(self.kind.wire().around)
    }
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.wire().reason, self.message)?;
        match &self.more.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_kind_is_found_by_its_reason_and_class() {
        for kind in Kind::NAMED {
            let wire = kind.wire();
            assert_eq!(Kind::of_reason(wire.reason), Some(kind));
            if let Some(found) = Kind::of_code(wire.rpc) {
                assert_eq!(found.wire().rpc, wire.rpc);
            }
        }
        assert_eq!(
            Kind::of_class("io.a2a.spec.TaskNotFoundError"),
            Some(Kind::TaskNotFound)
        );
        assert_eq!(Kind::of_code(-32602), Some(Kind::InvalidParams));
        assert_eq!(Kind::of_code(-32000), None);
        assert_eq!(Kind::of_code(-32050), None);
    }
}
