//! The agent's cards, public and extended.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// What anybody may know.
pub(super) fn public(addr: SocketAddr) -> Value {
    let url = format!("http://{addr}");
    json!({
        "name": "Demo agent",
        "description": "A small A2A v1.0 agent that obeys the first word of a message",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
        ],
        "capabilities": { "streaming": true, "pushNotifications": true, "extendedAgentCard": true },
        "defaultInputModes": ["text/plain", "application/json", "application/octet-stream"],
        "defaultOutputModes": ["text/plain", "application/json", "application/octet-stream"],
        "skills": [{
            "id": "echo",
            "name": "Echo",
            "description": "Says what it was told; other words do other things",
            "tags": ["demo"],
            "examples": ["hello", "stream 5", "slow 2", "file", "data", "fail", "reject", "input", "message hi"],
        }],
    })
}

/// The same with a skill that the public card does not show.
pub(super) fn extended(addr: SocketAddr) -> Value {
    let mut card = public(addr);
    card["name"] = json!("Demo agent (extended)");
    if let Some(skills) = card["skills"].as_array_mut() {
        skills.push(json!({
            "id": "secret",
            "name": "Secret",
            "description": "Only in the extended card",
            "tags": ["demo"],
        }));
    }
    card
}
