//! a2a-gateway lets A2A clients of any version and binding talk to one agent.
pub mod a2a;
pub mod admin;
pub mod agent;
pub mod budget;
pub mod card;
pub mod cli;
pub mod config;
pub mod demo;
pub mod gateway;
pub mod json;
pub mod log;
pub mod reply;
pub mod run;
pub mod server;
pub mod sse;
pub mod translate;
