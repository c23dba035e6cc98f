//! Against a real redis-server.
pub(crate) mod by_hand;
mod cluster;
mod counts;
mod differential;
mod outage;
mod owners;
mod places;
mod proxy;
pub(super) mod replica;
mod retries;
pub(crate) mod server;
mod slots;
