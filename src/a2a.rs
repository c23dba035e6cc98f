//! All that knows A2A. A **dialect** is a binding (REST or JSON-RPC: where method, id and error live) around a
//! shape (what a message or a task looks like). Canonical is v1.0 JSON text; *lift* leads to it, *lower* away.
//! Plain functions: no I/O, no clock, no log.
use bytes::Bytes;

pub mod answer;
pub mod detect;
pub mod digest;
pub mod face;
pub mod facts;
pub mod fault;
pub mod headers;
pub mod op;
pub mod reply;
pub mod request;
pub mod rest;
pub mod rpc;
pub mod shape;

pub use face::Face;
pub use facts::Facts;
pub use fault::{Fault, Kind};
pub use op::Op;
pub use shape::{Shape, Version};

/// Where method, id and error live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// HTTP+JSON: in verb, path and status.
    Rest,
    /// JSON-RPC 2.0: in an envelope.
    Rpc,
}

/// How a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The envelope.
    pub binding: Binding,
    /// What is in it.
    pub shape: Shape,
}

impl Dialect {
    /// v0.3 JSON-RPC.
    pub const J03: Self = Self::new(Binding::Rpc, Shape::V03Kind);
    /// v0.3 REST in `ProtoJSON`.
    pub const R03P: Self = Self::new(Binding::Rest, Shape::V03Proto);
    /// v0.3 REST with the JSON-RPC objects.
    pub const R03K: Self = Self::new(Binding::Rest, Shape::V03Kind);
    /// The same in `snake_case`, on paths without `/v1`.
    pub const R03S: Self = Self::new(Binding::Rest, Shape::V03Snake);
    /// v1.0 JSON-RPC.
    pub const J10: Self = Self::new(Binding::Rpc, Shape::V10);
    /// v1.0 REST.
    pub const R10: Self = Self::new(Binding::Rest, Shape::V10);

    const fn new(binding: Binding, shape: Shape) -> Self {
        Self { binding, shape }
    }

    /// Its short name, for logs and labels.
    pub const fn name(self) -> &'static str {
        match (self.binding, self.shape) {
            (Binding::Rpc, Shape::V03Kind | Shape::V03Snake | Shape::V03Proto) => "J03",
            (Binding::Rpc, Shape::V10) => "J10",
            (Binding::Rest, Shape::V03Proto) => "R03P",
            (Binding::Rest, Shape::V03Kind) => "R03K",
            (Binding::Rest, Shape::V03Snake) => "R03S",
            (Binding::Rest, Shape::V10) => "R10",
        }
    }
}

/// v1.0 JSON text of one document. Only modules below this one can make one.
#[derive(Clone, Debug)]
pub struct Canonical(Bytes);

impl Canonical {
    /// Its text.
    pub fn text(&self) -> &Bytes {
        &self.0
    }
}

/// A request, understood.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked for.
    pub op: Op,
    /// What policies may look at.
    pub facts: Facts,
    /// The request, in v1.0.
    pub params: Canonical,
}
