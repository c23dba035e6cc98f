//! TLS on both sides, and Unix sockets, over real sockets with real certificates.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/program.rs"]
mod program;
#[path = "support/parts.rs"]
mod support;

#[path = "tls/backend.rs"]
mod backend;
#[path = "tls/callers.rs"]
mod callers;
#[path = "tls/client.rs"]
mod client;
#[path = "tls/clients.rs"]
mod clients;
#[path = "tls/house.rs"]
mod house;
#[path = "tls/listener.rs"]
mod listener;
#[path = "tls/pki.rs"]
mod pki;
#[path = "tls/reload.rs"]
mod reload;
#[path = "tls/rotation.rs"]
mod rotation;
#[path = "tls/unix.rs"]
mod unix;
