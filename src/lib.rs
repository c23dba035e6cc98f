//! a2a-gateway lets A2A clients of any version and binding talk to one agent.
pub mod a2a;
pub mod cli;
pub mod config;
pub mod json;
pub mod translate;
