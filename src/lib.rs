//! a2a-gateway lets A2A clients of any version and binding talk to one agent.
//!
//! # The life of a call
//! [`server`] accepts a connection and hands each request to [`gateway`], which says what it is for from its head
//! ([`a2a::detect`]), reads the body within limits, lifts it to canonical v1.0 ([`a2a::request`]), writes it in the
//! agent's words and sends it ([`agent`]), once [`policy`] admits it. The answer is one document, translated at
//! once, or a stream, translated event by event inside the response body ([`reply`]) as the client reads. Whatever
//! fails becomes an answer in the client's dialect ([`a2a::reply`]).
//!
//! # Who may use whom
//! Imports go down only, and `tests/imports.rs` checks it: [`json`], [`sse`], [`budget`], [`follow`], [`kept`],
//! [`watch`] and [`state`] use nothing of ours (but `kept`, which is followed); [`tls`] uses `watch`, and [`agent`] and
//! [`server`] use `tls` and nothing else; [`a2a`] uses `json` and
//! `sse` and does no I/O; [`policy`] uses `a2a` and `state`; [`telemetry`] uses `a2a`, `agent`, `tls` and `watch`;
//! [`audit`] uses `a2a`, `json`, `policy` and `telemetry`; [`reply`] uses these, `sse` and `budget`; [`gateway`] and [`card`]
//! use all of them; [`front`] holds the gateways of all workers, [`reload`] brings new settings to them, and [`run`] puts
//! the parts together. [`probe`] is a client of its own, and [`translate`] and [`drain`] are commands, too.
pub mod a2a;
pub mod admin;
pub mod agent;
pub mod audit;
pub mod budget;
pub mod card;
pub mod cli;
pub mod config;
pub mod demo;
pub mod drain;
pub mod follow;
pub mod front;
pub mod gateway;
pub mod json;
pub mod kept;
pub mod log;
pub mod policy;
pub mod probe;
pub mod reload;
pub mod reply;
pub mod run;
pub mod server;
pub mod sse;
pub mod state;
pub mod telemetry;
pub mod tls;
pub mod translate;
pub mod watch;
