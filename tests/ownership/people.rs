//! Who calls, and a gateway that knows them.
use crate::{
    support::{
        agent::Agent,
        client::Client,
        gateway::Gateway,
        keys::{credentials, file, item, keys_way},
        stage::{ANN, BOB, Who},
        words::J10,
    },
    words::Request,
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

/// What is made belongs to tenants.
pub(crate) const BY_TENANT: &str = "ownership: {by: tenant}\n";

/// All who have keys, each with a key of that name. Ann and Cid are of one tenant.
fn everybody() -> String {
    [
        ("ann", "tenant: blue"),
        ("cid", "tenant: blue"),
        ("bob", "tenant: red"),
        ("blue", ""),
    ]
    .map(|(name, more)| item(name, name, more))
    .concat()
}

/// A gateway before this agent, to which it shows a credential of its own.
pub(crate) fn gateway(agent: &Agent, rest: bool, yaml: &str) -> Gateway {
    by_ways(agent, rest, "", "", yaml)
}

/// One that fills in finished tasks.
pub(crate) fn hydrating(agent: &Agent, rest: bool, yaml: &str) -> Gateway {
    by_ways(agent, rest, "hydrate_tasks: true, ", "", yaml)
}

/// One that lets in who shows nothing.
pub(crate) fn open(agent: &Agent, yaml: &str) -> Gateway {
    by_ways(agent, false, "", ", anyone", yaml)
}

fn by_ways(agent: &Agent, rest: bool, backend: &str, more: &str, yaml: &str) -> Gateway {
    let binding = if rest { "rest" } else { "jsonrpc" };
    let (keys, own) = (file(&everybody()), file("Bearer gateway"));
    let backend = format!("binding: {binding}, {backend}{}", credentials(&own));
    let yaml = format!("auth: [{}{more}]\n{yaml}\n", keys_way(&keys));
    Gateway::with(agent.addr, &backend, &yaml).keeping([keys, own])
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
