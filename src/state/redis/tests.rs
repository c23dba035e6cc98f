//! Against a real redis-server.
mod differential;
mod server;
