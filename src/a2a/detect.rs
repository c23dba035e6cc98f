//! What a request is for, from its head alone: a path names a REST operation, a card, or the JSON-RPC endpoint.
//! What the body adds (method, v0.3 REST shape) is in `request`.
use http::Method;

use super::{
    Dialect, Version,
    fault::{Fault, Kind},
    op::Op,
    rest,
};

/// Which dialects are taken.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting with a name"
)]
pub struct Accepts {
    /// v0.3.
    pub v03: bool,
    /// v1.0.
    pub v10: bool,
    /// JSON-RPC.
    pub rpc: bool,
    /// REST.
    pub rest: bool,
    /// v0.3 REST in `ProtoJSON` (R03P).
    pub proto: bool,
    /// v0.3 REST with `kind` (R03K).
    pub kind: bool,
    /// v0.3 REST in `snake_case` without `/v1` (R03S).
    pub snake: bool,
    /// The list of tasks for v0.3, which only a2a-go has.
    pub v03_list: bool,
    /// Further minors of version 1 that are taken as 1.0.
    pub versions: Vec<String>,
    /// The path below the base at which JSON-RPC is taken besides the base itself; empty for none.
    pub rpc_path: String,
    /// The card at the pre-v0.3 path as well.
    pub agent_json: bool,
}

impl Default for Accepts {
    fn default() -> Self {
        Self {
            v03: true,
            v10: true,
            rpc: true,
            rest: true,
            proto: true,
            kind: true,
            snake: false,
            v03_list: false,
            versions: vec![],
            rpc_path: String::new(),
            agent_json: false,
        }
    }
}

impl Accepts {
    /// Refuses a version that is switched off.
    pub fn version(&self, version: Version) -> Result<(), Fault> {
        let on = match version {
            Version::V03 => self.v03,
            Version::V10 => self.v10,
        };
        if on {
            return Ok(());
        }
        Err(Fault::new(
            Kind::VersionNotSupported,
            format!("A2A version {} is switched off here", version.name()),
        ))
    }
}

/// What a path is for.
#[derive(Debug)]
pub enum Target {
    /// The JSON-RPC endpoint.
    Rpc,
    /// A REST operation.
    Rest(rest::Found),
    /// The public card.
    Card,
}

/// Where a card is found below an agent's base.
pub const CARD: &str = "/.well-known/agent-card.json";
/// Where it was before v0.3.
pub const OLD_CARD: &str = "/.well-known/agent.json";

/// What the path below the agent's base is for.
pub fn target(method: &Method, path: &str, accepts: &Accepts) -> Result<Target, Fault> {
    let rpc_path = !accepts.rpc_path.is_empty() && path == accepts.rpc_path;
    if matches!(path, "" | "/") || rpc_path {
        if !accepts.rpc {
            return Err(Fault::new(Kind::NoRoute, "JSON-RPC is switched off here"));
        }
        if method == Method::POST {
            return Ok(Target::Rpc);
        }
        return Err(wrong_verb("JSON-RPC takes POST only"));
    }
    if path == CARD || (accepts.agent_json && path == OLD_CARD) {
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(Target::Card);
        }
        return Err(wrong_verb("a card takes GET and HEAD only"));
    }
    let found = rest::find(method, path)?;
    if !accepts.rest {
        return Err(Fault::new(Kind::NoRoute, "REST is switched off here"));
    }
    let list = found.version == Version::V03 && found.op == Op::List;
    if list && !accepts.v03_list {
        return Err(Fault::new(Kind::NoRoute, "v0.3 has no list of tasks"));
    }
    Ok(Target::Rest(found))
}

fn wrong_verb(message: &'static str) -> Fault {
    Fault::new(Kind::WrongVerb, message)
}

/// The dialect in which a request is answered that names no operation: by its path and what it says it is.
pub fn likely(path: &str, said: Option<Version>) -> Dialect {
    if path.starts_with("/v1/") {
        return Dialect::R03P;
    }
    let rpc = matches!(path, "" | "/");
    match (rpc, said) {
        (true, Some(Version::V10)) => Dialect::J10,
        (true, _) => Dialect::J03,
        (false, Some(Version::V03)) => Dialect::R03P,
        (false, _) => Dialect::R10,
    }
}
