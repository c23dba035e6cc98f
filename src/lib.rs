//! a2a-gateway lets A2A clients of any version and binding talk to one agent.

pub mod admin;
pub mod server;
