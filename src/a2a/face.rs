//! What clients see where a product's own face differs from the plain protocol: a client written for that product reads
//! the product's error bodies and expects its defaults. Each difference is one setting.
use super::fault::{Fault, Kind};

/// The habits of a face. None of them is the plain protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting with a name"
)]
pub struct Face {
    /// Errors over REST, and refusals before the agent over JSON-RPC, are `{success, message, error_code}` with a status.
    pub product_errors: bool,
    /// Errors of v0.3 JSON-RPC calls all have the code of `Internal`.
    pub v03_flat_errors: bool,
    /// A v0.3 REST message that does not say how much history it wants wants none.
    pub v03_rest_no_history: bool,
    /// A task that is got by v0.3 REST has no timestamp.
    pub v03_rest_no_timestamp: bool,
    /// Whatever task is not there is told in the same words: an agent's own would tell which ids are another caller's.
    pub one_not_found: bool,
}

impl Face {
    /// What clients of `MemoryLake` are used to, but for `v03_flat_errors`: better codes harm nobody.
    pub const MEMORYLAKE: Self = Self {
        product_errors: true,
        v03_flat_errors: false,
        v03_rest_no_history: true,
        v03_rest_no_timestamp: true,
        one_not_found: false,
    };
    /// The plain protocol.
    pub const A2A: Self = Self {
        product_errors: false,
        v03_flat_errors: false,
        v03_rest_no_history: false,
        v03_rest_no_timestamp: false,
        one_not_found: false,
    };
}

/// An error body of the product, as its agent sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The HTTP status that it came with.
    pub status: u16,
    /// The body.
    pub text: String,
    /// Whether it was told before the agent ran, as far as can be seen: over JSON-RPC it surely was.
    pub before_agent: bool,
}

/// The product's body for a fault.
pub(super) fn body(fault: &Fault) -> String {
    serde_json::json!({
        "success": false,
        "message": fault.message,
        "error_code": error_code(fault.kind),
    })
    .to_string()
}

/// Whether the product tells this before its agent runs, and so by status and body on JSON-RPC as well. What the
/// protocol has a code for, the agent tells.
pub(super) const fn is_before_agent(fault: &Fault) -> bool {
    fault.early || !told_by_agents(fault.kind)
}

const fn told_by_agents(kind: Kind) -> bool {
    match kind {
        Kind::TaskNotFound
        | Kind::TaskNotCancelable
        | Kind::PushNotSupported
        | Kind::UnsupportedOperation
        | Kind::ContentTypeNotSupported
        | Kind::InvalidAgentResponse
        | Kind::ExtendedCardNotConfigured
        | Kind::ExtensionRequired
        | Kind::VersionNotSupported
        | Kind::Parse
        | Kind::InvalidRequest
        | Kind::MethodNotFound
        | Kind::InvalidParams
        | Kind::Internal
        | Kind::Foreign { .. } => true,
        Kind::NoRoute
        | Kind::WrongVerb
        | Kind::TooLarge
        | Kind::SlowBody
        | Kind::ConversationBusy { .. }
        | Kind::ContextBound
        | Kind::DuplicateMessage
        | Kind::OutcomeUnknown
        | Kind::Unauthenticated
        | Kind::AccessDenied
        | Kind::RateLimited
        | Kind::QuotaExceeded
        | Kind::Overloaded
        | Kind::BackendUnreachable
        | Kind::BackendTimeout
        | Kind::BackendBroken => false,
    }
}

/// The product's documented codes where one of them fits, else the reason by which we call it.
const fn error_code(kind: Kind) -> &'static str {
    match kind {
        Kind::Parse
        | Kind::InvalidRequest
        | Kind::InvalidParams
        | Kind::ContentTypeNotSupported
        | Kind::ExtensionRequired
        | Kind::VersionNotSupported
        | Kind::ConversationBusy { .. }
        | Kind::ContextBound
        | Kind::DuplicateMessage => "INVALID_ARGUMENT",
        Kind::TaskNotFound | Kind::MethodNotFound | Kind::NoRoute => "NOT_FOUND",
        Kind::TaskNotCancelable
        | Kind::PushNotSupported
        | Kind::UnsupportedOperation
        | Kind::InvalidAgentResponse
        | Kind::ExtendedCardNotConfigured
        | Kind::WrongVerb
        | Kind::Internal
        | Kind::TooLarge
        | Kind::SlowBody
        | Kind::OutcomeUnknown
        | Kind::Unauthenticated
        | Kind::AccessDenied
        | Kind::RateLimited
        | Kind::QuotaExceeded
        | Kind::Overloaded
        | Kind::BackendUnreachable
        | Kind::BackendTimeout
        | Kind::BackendBroken
        | Kind::Foreign { .. } => kind.wire().reason,
    }
}
