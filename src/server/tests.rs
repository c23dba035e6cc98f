//! The server over real sockets, with raw clients and a paused clock: when nothing is left to do but wait, time jumps
//! to the next sweep.

mod deadlines;
mod drain;
mod http;
mod support;
