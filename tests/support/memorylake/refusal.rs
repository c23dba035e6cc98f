//! What is refused, and how each transport says it: before the agent runs, a status and the product's own body on
//! both; by the agent, the same on REST and an error object with status 200 on JSON-RPC.
use http::StatusCode;
use serde_json::{Value, json};

use super::call::Tongue;

#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub error_code: &'static str,
    pub message: String,
    /// The code of JSON-RPC, where the agent says it.
    by_agent: Option<i32>,
}

impl Refusal {
    fn new(status: StatusCode, error_code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            error_code,
            message: message.into(),
            by_agent: None,
        }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message)
    }

    pub fn no_actor() -> Self {
        let message = "the user has no actor in this workspace";
        Self::new(StatusCode::BAD_REQUEST, "STATE_NOT_READY", message)
    }

    pub fn inactive(actor: &str) -> Self {
        let message = format!("actor {actor} is inactive");
        Self::new(StatusCode::BAD_REQUEST, "ACTOR_INACTIVE", message)
    }

    pub fn quota() -> Self {
        let message = "the quota is used up";
        Self::new(StatusCode::PAYMENT_REQUIRED, "QUOTA_EXCEEDED", message)
    }

    pub fn denied(permission: &str) -> Self {
        let message = format!("permission {permission} is missing");
        Self::new(StatusCode::FORBIDDEN, "ACCESS_DENIED", message)
    }

    pub fn missing(what: impl Into<String>) -> Self {
        let message = format!("{} does not exist", what.into());
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    /// A key that nobody has. Not told: neither the status nor the code.
    pub fn stranger() -> Self {
        let message = "the key is missing or unknown";
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message)
    }

    /// Said by the agent, with this code where v1.0 is spoken over JSON-RPC.
    #[must_use]
    pub fn of_agent(mut self, code: i32) -> Self {
        self.by_agent = Some(code);
        self
    }

    /// The status and the body, for a call with this id.
    pub fn tell(&self, tongue: Tongue, id: &Value) -> (StatusCode, Value) {
        match (tongue, self.by_agent) {
            (Tongue::J10, Some(code)) => (StatusCode::OK, self.rpc(code, id)),
            (Tongue::J03, Some(_)) => (StatusCode::OK, self.rpc(-32603, id)),
            (Tongue::R10 | Tongue::R03, _) | (_, None) => (self.status, self.body()),
        }
    }

    fn rpc(&self, code: i32, id: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": self.message}})
    }

    pub fn body(&self) -> Value {
        json!({"success": false, "message": self.message, "error_code": self.error_code})
    }
}
