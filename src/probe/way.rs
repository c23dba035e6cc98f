//! The four ways to speak, and what is asked in each.
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::a2a::{
    Binding, Dialect, Op, Version,
    detect::Accepts,
    reply::ReplyTo,
    request::{self, Reading},
    shape::Options,
};

/// A version over a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) version: Version,
    pub(super) binding: Binding,
}

/// All of them.
pub(super) const WAYS: [Way; 4] = [
    Way::new(Version::V03, Binding::Rpc),
    Way::new(Version::V03, Binding::Rest),
    Way::new(Version::V10, Binding::Rpc),
    Way::new(Version::V10, Binding::Rest),
];

impl Way {
    pub(super) const fn new(version: Version, binding: Binding) -> Self {
        Self { version, binding }
    }

    pub(super) const fn name(self) -> &'static str {
        match (self.version, self.binding) {
            (Version::V03, Binding::Rpc) => "v0.3 JSON-RPC",
            (Version::V03, Binding::Rest) => "v0.3 REST",
            (Version::V10, Binding::Rpc) => "v1.0 JSON-RPC",
            (Version::V10, Binding::Rest) => "v1.0 REST",
        }
    }

    /// As most write it.
    pub(super) const fn dialect(self) -> Dialect {
        match (self.version, self.binding) {
            (Version::V03, Binding::Rpc) => Dialect::J03,
            (Version::V03, Binding::Rest) => Dialect::R03P,
            (Version::V10, Binding::Rpc) => Dialect::J10,
            (Version::V10, Binding::Rest) => Dialect::R10,
        }
    }
}

/// How the answer to a message comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Send,
    Stream,
}

impl Delivery {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
        }
    }

    const fn op(self) -> Op {
        match self {
            Self::Send => Op::Send,
            Self::Stream => Op::Stream,
        }
    }
}

/// A question, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) dialect: Dialect,
    pub(super) op: Op,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    /// The id of a JSON-RPC request.
    pub(super) id: String,
    /// The method of a JSON-RPC request.
    pub(super) rpc: Option<String>,
}

impl Asked {
    /// For a person.
    pub(super) fn shown(&self) -> String {
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        match &self.rpc {
            Some(method) => format!("{} {path} {method}", self.method),
            None => format!("{} {path}", self.method),
        }
    }

    pub(super) fn is_rpc(&self) -> bool {
        self.dialect.binding == Binding::Rpc
    }
}

/// A message.
pub(super) fn send(
    way: Way,
    dialect: Dialect,
    base: &str,
    delivery: Delivery,
    text: &str,
) -> Result<Asked, String> {
    let params = json!({
        "message": {"messageId": ours(), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": false},
    });
    written(way, dialect, base, delivery.op(), &params)
}

/// A task that nobody has.
pub(super) fn unknown_task(way: Way, base: &str) -> Result<Asked, String> {
    written(way, way.dialect(), base, Op::Get, &json!({"id": ours()}))
}

/// A method or a path that no version has.
pub(super) fn unknown_method(way: Way, base: &str) -> Result<Asked, String> {
    let mut asked = unknown_task(way, base)?;
    match (way.binding, way.version) {
        (Binding::Rpc, version) => {
            let method = match version {
                Version::V03 => "probe/unknown",
                Version::V10 => "ProbeUnknown",
            };
            asked.rpc = Some(method.to_owned());
            asked.body = Some(envelope(&asked.id, method, &json!({})));
        }
        (Binding::Rest, Version::V03) => asked.path = format!("{base}/v1/probe-unknown"),
        (Binding::Rest, Version::V10) => asked.path = format!("{base}/probe-unknown"),
    }
    Ok(asked)
}

fn ours() -> String {
    format!("probe-{}", uuid::Uuid::new_v4())
}

/// A request in v1.0, written in the dialect as the gateway would write it.
fn written(
    way: Way,
    dialect: Dialect,
    base: &str,
    op: Op,
    params: &Value,
) -> Result<Asked, String> {
    let (options, accepts) = (Options::default(), Accepts::default());
    let id = ours();
    let body = envelope(&id, op.row().v10.rpc, params);
    let mut to = ReplyTo::new(Dialect::J10);
    let read = request::read_rpc(&body, &Reading::new(None, &accepts, &options), &mut to);
    let call = read.map_err(|fault| fault.to_string())?.call;
    let out = request::write(&call, dialect, &Method::POST, &options, &mut vec![]);
    let out = out.map_err(|fault| fault.to_string())?;
    let names = match way.version {
        Version::V03 => &op.row().v03,
        Version::V10 => &op.row().v10,
    };
    let is_rpc = dialect.binding == Binding::Rpc;
    let body = match out.body {
        Some(body) if is_rpc => Some(with_id(&body, &id)?),
        body => body,
    };
    Ok(Asked {
        dialect,
        op,
        method: out.method,
        path: format!("{base}{}", out.path),
        body,
        id,
        rpc: is_rpc.then(|| names.rpc.to_owned()),
    })
}

fn envelope(id: &str, method: &str, params: &Value) -> Bytes {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    request.to_string().into()
}

/// An id that nobody repeats by chance.
fn with_id(body: &[u8], id: &str) -> Result<Bytes, String> {
    let mut request: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    request["id"] = json!(id);
    Ok(request.to_string().into())
}
