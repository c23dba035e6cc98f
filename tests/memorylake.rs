//! The gateway in front of the double of MemoryLake, by its preset and with both faces: what the pages show, asked
//! through it, and what plain clients see.
//!
//! With the face on, a client of the product sees what it would see of the double itself (`face.rs` asks both, and
//! compares): the same JSON once ids that are made for each call are numbered and times are left out. The order of
//! members and blanks between them are not compared. With the plain face, answers are what A2A says they should be.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "memorylake/ask.rs"]
mod ask;
#[path = "support/memorylake.rs"]
mod memorylake;
#[path = "memorylake/page.rs"]
mod page;
#[path = "support/parts.rs"]
mod support;

#[path = "memorylake/gateway/errors.rs"]
mod errors;
#[path = "memorylake/gateway/examples.rs"]
mod examples;
#[path = "memorylake/gateway/face.rs"]
mod face;
#[path = "memorylake/gateway/plain.rs"]
mod plain;

use ask::Asks;
use memorylake::{API, Lake, Tongue};
use support::gateway::Gateway;

/// How the gateway speaks to the double.
const BINDINGS: [&str; 2] = ["rest", "jsonrpc"];

/// A gateway before this double: the product's face at the product's paths, the plain one below `/agents`.
fn before(lake: &Lake, binding: &str) -> Gateway {
    before_with(
        lake,
        binding,
        "{like: memorylake, v03_flat_errors: true}",
        "",
    )
}

fn before_with(lake: &Lake, binding: &str, face: &str, more: &str) -> Gateway {
    let path = format!("{API}/workspaces/{{workspaceId}}/agents/{{agentId}}/a2a");
    let addr = lake.addr;
    Gateway::of(&format!(
        "workers: 1
backend: {{preset: memorylake, binding: {binding}}}
routes:
  - {{path: '/agents/{{workspaceId}}/{{agentId}}', backend: 'http://{addr}{path}', agent_parameter: agentId}}
  - {{path: '{path}', backend: 'http://{addr}{path}', agent_parameter: agentId, face: {face}}}
{more}
"
    ))
}

/// A plain client of the gateway.
fn by(gateway: &Gateway, lake: &Lake, tongue: Tongue) -> Asks {
    let (workspace, agent) = lake.page.example();
    Asks {
        to: gateway.addr,
        base: format!("/agents/{workspace}/{agent}"),
        tongue,
    }
}

/// A client of the product, whose address the gateway has taken.
fn of_product(gateway: &Gateway, lake: &Lake, tongue: Tongue) -> Asks {
    Asks {
        to: gateway.addr,
        base: lake.base(),
        tongue,
    }
}
