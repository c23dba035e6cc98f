//! A gateway before MemoryLake, over real sockets: what its agent gets by the preset, finished tasks that are filled in,
//! and the product's own face.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "support/parts.rs"]
mod support;

#[path = "memorylake/ask.rs"]
mod ask;
#[path = "support/memorylake.rs"]
mod memorylake;
#[path = "memorylake/page.rs"]
mod page;

#[path = "faces/clients.rs"]
mod clients;
#[path = "faces/double.rs"]
mod double;
#[path = "faces/file.rs"]
mod file;
#[path = "faces/hydrate.rs"]
mod hydrate;
#[path = "faces/lake.rs"]
mod lake;
#[path = "faces/preset.rs"]
mod preset;
