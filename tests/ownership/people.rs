//! Who calls, and a gateway that knows them.
use std::sync::Arc;

use a2a_gateway::{
    config::{Config, OwnedBy},
    gateway::Greeter,
    policy::caller::Caller,
};

use crate::words::Request;

use crate::support::{
    agent::Agent,
    client::Client,
    gateway::Gateway,
    stage::{ANN, BOB, Who},
    words::J10,
};

/// Of Ann's tenant.
pub(crate) const CID: Who = Who {
    speak: J10,
    token: "cid",
};
/// Of no tenant, but called like Ann's.
pub(crate) const BLUE: Who = Who {
    speak: J10,
    token: "blue",
};

/// Knows people by their tokens, or by a field that says nothing to others; Ann and Cid are of one tenant.
pub(crate) fn greeter() -> Greeter {
    Arc::new(|fields| {
        let value = |name| fields.get(name)?.to_str().ok();
        let token = value("authorization").and_then(|text| text.strip_prefix("Bearer "));
        let name = token.or_else(|| value("x-who"))?;
        let tenant = match name {
            "ann" | "cid" => Some("blue"),
            "bob" => Some("red"),
            _ => None,
        };
        Some(Caller {
            name: format!("key:{name}").into(),
            tenant: tenant.map(Into::into),
            verified: true,
            ..Caller::default()
        })
    })
}

/// What is made belongs to tenants.
pub(crate) fn by_tenant(config: &mut Config) {
    config.ownership.by = OwnedBy::Tenant;
}

/// A gateway before this agent.
pub(crate) fn gateway(
    agent: &Agent,
    rest: bool,
    yaml: &str,
    change: impl FnOnce(&mut Config),
) -> Gateway {
    let binding = if rest { "rest" } else { "jsonrpc" };
    let addr = agent.addr;
    let yaml =
        format!("workers: 1\nbackend: {{url: 'http://{addr}', binding: {binding}}}\n{yaml}\n");
    Gateway::knowing(&yaml, Some(greeter()), change)
}

/// Somebody asks something.
pub(crate) fn asks(gateway: &Gateway, who: Who, request: &Request) -> Client {
    asks_by(gateway, who, &who.fields(), request)
}

/// The same, who is known by these fields.
pub(crate) fn asks_by(gateway: &Gateway, who: Who, fields: &str, (line, body): &Request) -> Client {
    let mut client = gateway.client();
    let json = "content-type: application/json\r\n";
    let version = if who.speak.is_old() {
        ""
    } else {
        "a2a-version: 1.0\r\n"
    };
    client.send(line, &format!("{json}{version}{fields}"), body);
    client
}

/// The two who attack each other, each of whom owns something.
pub(crate) const BOTH: [(Who, Who); 2] = [(ANN, BOB), (BOB, ANN)];
