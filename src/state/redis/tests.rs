//! Against a real redis-server.
mod differential;
mod outage;
mod places;
mod proxy;
mod replica;
mod retries;
mod server;
mod slots;
