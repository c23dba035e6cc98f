//! How the client asked, and so how it is answered. Nothing else writes what a client sees of a fault
//! (errors 2, streams 2).
use std::borrow::Cow;

use http::StatusCode;
use serde_json::json;

use super::{
    Binding, Dialect,
    face::{self, Face},
    fault::{Fault, Kind, Wire},
    op::Op,
    rpc,
    shape::Version,
};

/// Remembers how the client asked. Made from the head of a request, sharpened by its body.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    /// How the client speaks.
    pub dialect: Dialect,
    /// Its JSON-RPC id.
    pub id: rpc::Id,
    /// What it asked for, once known.
    pub op: Option<Op>,
    /// How it writes `fileWithBytes`, once seen.
    pub twice: Option<bool>,
    /// How much history it wants.
    pub history: Option<u64>,
    /// The context that it named, or that the first event named.
    pub context: Option<String>,
    /// What it is used to.
    pub face: Face,
    /// Whether answers are looked at for the ids of task and context.
    pub learn: bool,
}

/// The ways in which an answer's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One JSON document.
    Json,
    /// Server-sent events.
    Events,
}

/// A fault, told.
#[derive(Debug)]
pub struct Told {
    /// The HTTP status.
    pub status: StatusCode,
    /// How the body is framed.
    pub framing: Framing,
    /// The body.
    pub body: Vec<u8>,
}

impl ReplyTo {
    /// For a client of whom only the head is known.
    pub const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            id: rpc::Id::NULL,
            op: None,
            twice: None,
            history: None,
            context: None,
            face: Face::A2A,
            learn: false,
        }
    }

    /// Whether the client waits for events.
    pub fn streams(&self) -> bool {
        self.op.is_some_and(Op::streams)
    }

    /// As much of a fault as this client may hear.
    pub fn heard<'f>(&self, fault: &'f Fault) -> Cow<'f, Fault> {
        if self.face.one_not_found && fault.kind == Kind::TaskNotFound {
            return Cow::Owned(Fault::no_task());
        }
        Cow::Borrowed(fault)
    }

    /// A fault before anything was answered.
    pub fn fault(&self, fault: &Fault) -> Told {
        let fault = &*self.heard(fault);
        if self.face.product_errors
            && let Some(told) = self.product(fault)
        {
            return told;
        }
        if let Some(received) = &fault.more.received {
            return Told {
                status: fault.around(),
                framing: Framing::Json,
                body: received.clone().into_bytes(),
            };
        }
        let mut body = Vec::with_capacity(256);
        match self.dialect.binding {
            Binding::Rpc if self.must_be_event(fault) => {
                self.frame(fault, &mut body);
                Told {
                    status: StatusCode::OK,
                    framing: Framing::Events,
                    body,
                }
            }
            Binding::Rpc => {
                self.object(fault, &mut body);
                Told {
                    status: around(fault),
                    framing: Framing::Json,
                    body,
                }
            }
            Binding::Rest => {
                self.object(fault, &mut body);
                Told {
                    status: self.status(fault),
                    framing: Framing::Json,
                    body,
                }
            }
        }
    }

    /// As the product tells it: the agent's own words, and ours in its form.
    fn product(&self, fault: &Fault) -> Option<Told> {
        let rpc = self.dialect.binding == Binding::Rpc;
        let (status, body) = match &fault.more.product {
            Some(product) if rpc && !product.before_agent => return None,
            Some(product) => {
                let status = StatusCode::from_u16(product.status);
                (status.unwrap_or(fault.status()), product.text.clone())
            }
            None if fault.more.received.is_some() => return None,
            None if rpc && !face::is_before_agent(fault) => return None,
            None => (fault.status(), face::body(fault)),
        };
        Some(Told {
            status,
            framing: Framing::Json,
            body: body.into_bytes(),
        })
    }

    /// v0.3 clients cannot read a JSON reply to a streaming call (decision 21), but for what is decided before
    /// the method is known, and for statuses that must be seen as such.
    fn must_be_event(&self, fault: &Fault) -> bool {
        let early = matches!(
            fault.kind,
            Kind::Parse | Kind::InvalidRequest | Kind::MethodNotFound | Kind::TooLarge
        );
        let plain = around(fault) != StatusCode::OK;
        self.streams() && self.dialect.shape.version() == Version::V03 && !early && !plain
    }

    fn status(&self, fault: &Fault) -> StatusCode {
        match self.dialect.shape.version() {
            Version::V03 => fault.status03(),
            Version::V10 => fault.status(),
        }
    }

    /// Appends the frame that ends a stream which broke. Only REST labels it: on JSON-RPC the envelope says it.
    pub fn frame(&self, fault: &Fault, out: &mut Vec<u8>) {
        let fault = &*self.heard(fault);
        if self.dialect.binding == Binding::Rest {
            out.extend_from_slice(b"event: error\n");
        }
        out.extend_from_slice(b"data: ");
        let start = out.len();
        self.object(fault, out);
        one_line(&mut out[start..]); // the agent's own details may have been written on many
        out.extend_from_slice(b"\n\n");
    }

    fn object(&self, fault: &Fault, out: &mut Vec<u8>) {
        let mut wire = fault.kind.wire();
        let rpc = self.dialect.binding == Binding::Rpc;
        let old = self.dialect.shape.version() == Version::V03;
        let flat = self.face.v03_flat_errors && self.op.is_some() && old;
        if rpc && (told_by_product(fault) || flat) {
            wire.rpc = Kind::Internal.wire().rpc;
        }
        if self.face.product_errors && !rpc {
            let body = match &fault.more.product {
                Some(product) => product.text.clone(),
                None => face::body(fault),
            };
            out.extend_from_slice(body.as_bytes());
            return;
        }
        match (self.dialect.binding, self.dialect.shape.version()) {
            (Binding::Rpc, version) => {
                rpc::write_head(&self.id, "error", out);
                let error = match version {
                    Version::V03 => {
                        json!({"code": wire.rpc, "message": fault.message, "data": data(fault, &wire)})
                            .to_string()
                    }
                    Version::V10 => {
                        let message = serde_json::Value::from(&*fault.message);
                        let details = details(fault, &wire);
                        format!(r#"{{"code":{},"message":{message},"data":{details}}}"#, wire.rpc)
                    }
                };
                out.extend_from_slice(error.as_bytes());
                out.push(b'}');
            }
            (Binding::Rest, Version::V10) => {
                let message = serde_json::Value::from(&*fault.message);
                let text = format!(
                    r#"{{"error":{{"code":{},"status":"{}","message":{message},"details":{}}}}}"#,
                    self.status(fault).as_u16(),
                    wire.grpc,
                    details(fault, &wire),
                );
                out.extend_from_slice(text.as_bytes());
            }
            (Binding::Rest, Version::V03) => {
                // One body for four readers (decision 12): JS reads `code`, Python 1 `type`, Java `error`.
                let class = format!("{}Error", wire.class);
                let body = json!({
                    "code": wire.rpc,
                    "type": class,
                    "error": format!("io.a2a.spec.{class}"),
                    "message": fault.message,
                    "data": data(fault, &wire),
                });
                out.extend_from_slice(body.to_string().as_bytes());
            }
        }
    }
}

/// Whether an agent's product told what the protocol has no code for (errors 6): a server's own code and an HTTP status
/// around the envelope are for what the gateway itself refuses.
fn told_by_product(fault: &Fault) -> bool {
    fault.more.product.is_some() && matches!(fault.kind, Kind::QuotaExceeded | Kind::AccessDenied)
}

/// The status around a JSON-RPC error.
fn around(fault: &Fault) -> StatusCode {
    if told_by_product(fault) {
        return StatusCode::OK;
    }
    fault.around()
}

/// JSON has line ends only between its tokens, where a space does as well.
pub(super) fn one_line(text: &mut [u8]) {
    for byte in text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// `data` of v0.3 is free-form: the reason and what goes with it.
fn data(fault: &Fault, wire: &Wire) -> serde_json::Value {
    let mut data = serde_json::Map::new();
    data.insert("reason".into(), wire.reason.into());
    for (key, value) in &fault.more.metadata {
        data.insert((*key).into(), value.as_str().into());
    }
    data.into()
}

/// Details of v1.0: always an `ErrorInfo` (decision 40), that of the agent if it sent one.
fn details(fault: &Fault, wire: &Wire) -> String {
    let theirs = fault.more.details.as_deref().unwrap_or("[]");
    if theirs.contains("google.rpc.ErrorInfo") {
        return theirs.to_owned();
    }
    let metadata: serde_json::Map<_, _> = fault
        .more
        .metadata
        .iter()
        .map(|(k, v)| ((*k).to_owned(), v.as_str().into()))
        .collect();
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": wire.reason,
        "domain": domain(fault.kind),
        "metadata": metadata,
    });
    let rest = theirs.trim();
    let rest = rest.strip_prefix('[').unwrap_or(rest).trim_start();
    if rest.starts_with(']') {
        format!("[{info}]")
    } else {
        format!("[{info},{rest}")
    }
}

/// Who defines the reason.
const fn domain(kind: Kind) -> &'static str {
    match kind {
        Kind::SlowBody
        | Kind::TooLarge
        | Kind::ConversationBusy { .. }
        | Kind::ContextBound
        | Kind::DuplicateMessage
        | Kind::OutcomeUnknown
        | Kind::Unauthenticated
        | Kind::AccessDenied
        | Kind::RateLimited
        | Kind::QuotaExceeded
        | Kind::Overloaded
        | Kind::BackendUnreachable
        | Kind::BackendTimeout
        | Kind::BackendBroken
        | Kind::Foreign { .. } => "a2a-gateway",
        Kind::TaskNotFound
        | Kind::TaskNotCancelable
        | Kind::PushNotSupported
        | Kind::UnsupportedOperation
        | Kind::ContentTypeNotSupported
        | Kind::InvalidAgentResponse
        | Kind::ExtendedCardNotConfigured
        | Kind::ExtensionRequired
        | Kind::VersionNotSupported
        | Kind::Parse
        | Kind::InvalidRequest
        | Kind::MethodNotFound
        | Kind::NoRoute
        | Kind::WrongVerb
        | Kind::InvalidParams
        | Kind::Internal => "a2a-protocol.org",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(dialect: Dialect, op: Op, kind: Kind) -> (u16, String) {
        let mut to = ReplyTo::new(dialect);
        to.op = Some(op);
        let told = to.fault(&Fault::new(kind, "why").with("taskId", "t"));
        (told.status.as_u16(), String::from_utf8(told.body).unwrap())
    }

    #[test]
    fn each_dialect_tells_a_fault_in_its_own_way() {
        let info = r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{"taskId":"t"},"reason":"TASK_NOT_FOUND"}]"#;
        let not_found = |d| told(d, Op::Get, Kind::TaskNotFound);
        assert_eq!(
            not_found(Dialect::J10),
            (
                200,
                format!(
                    r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32001,"message":"why","data":{info}}}}}"#
                )
            )
        );
        assert_eq!(
            not_found(Dialect::R10),
            (
                404,
                format!(
                    r#"{{"error":{{"code":404,"status":"NOT_FOUND","message":"why","details":{info}}}}}"#
                )
            )
        );
        assert_eq!(
            not_found(Dialect::J03),
            (200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"data":{"reason":"TASK_NOT_FOUND","taskId":"t"},"message":"why"}}"#.to_owned())
        );
        assert_eq!(
            not_found(Dialect::R03P),
            (404, r#"{"code":-32001,"data":{"reason":"TASK_NOT_FOUND","taskId":"t"},"error":"io.a2a.spec.TaskNotFoundError","message":"why","type":"TaskNotFoundError"}"#.to_owned())
        );
    }

    #[test]
    fn a_v03_stream_is_refused_by_one_frame_and_a_status_that_must_be_seen_by_status() {
        let (status, body) = told(Dialect::J03, Op::Stream, Kind::InvalidParams);
        assert_eq!(status, 200);
        assert!(
            body.starts_with("data: {\"jsonrpc\"") && body.ends_with("\n\n"),
            "{body}"
        );
        assert!(
            told(Dialect::J03, Op::Stream, Kind::Parse)
                .1
                .starts_with('{')
        );
        let (status, body) = told(Dialect::J03, Op::Stream, Kind::RateLimited);
        assert_eq!(status, 429);
        assert!(body.starts_with('{'));
        assert!(
            told(Dialect::J10, Op::Stream, Kind::InvalidParams)
                .1
                .starts_with('{')
        );
        assert_eq!(
            told(Dialect::R03P, Op::Subscribe, Kind::UnsupportedOperation).0,
            501
        );
    }

    /// The rows that no agent can cause; the vectors have the others.
    #[test]
    fn the_gateway_s_own_faults_have_their_rows() {
        for (kind, code, reason, rpc, rest, old) in [
            (Kind::NoRoute, -32601, "METHOD_NOT_FOUND", 404, 404, 404),
            (Kind::WrongVerb, -32601, "METHOD_NOT_FOUND", 405, 405, 405),
            (Kind::TooLarge, -32600, "PAYLOAD_TOO_LARGE", 200, 413, 413),
            (Kind::SlowBody, -32600, "REQUEST_TIMEOUT", 408, 408, 408),
            (
                Kind::BackendUnreachable,
                -32603,
                "BACKEND_UNREACHABLE",
                200,
                502,
                502,
            ),
            (
                Kind::BackendTimeout,
                -32603,
                "BACKEND_TIMEOUT",
                200,
                504,
                504,
            ),
            (Kind::BackendBroken, -32603, "BACKEND_BROKEN", 200, 502, 502),
            (
                Kind::OutcomeUnknown,
                -32603,
                "OUTCOME_UNKNOWN",
                200,
                502,
                502,
            ),
            (
                Kind::DuplicateMessage,
                -32602,
                "DUPLICATE_MESSAGE",
                200,
                400,
                400,
            ),
        ] {
            for (dialect, wanted) in [
                (Dialect::J03, rpc),
                (Dialect::J10, rpc),
                (Dialect::R10, rest),
                (Dialect::R03P, old),
                (Dialect::R03K, old),
                (Dialect::R03S, old),
            ] {
                let (status, body) = told(dialect, Op::Get, kind);
                assert_eq!(status, wanted, "{kind:?} {}", dialect.name());
                assert!(body.contains(reason), "{body}");
                let coded = body.contains(&format!("\"code\":{code},"));
                let rest = format!("\"code\":{rest},");
                assert!(
                    coded || dialect == Dialect::R10 && body.contains(&rest),
                    "{body}"
                );
            }
        }
    }

    /// No word of the agent for a task that is not there tells it from another caller's.
    #[test]
    fn what_is_not_there_is_told_in_one_way_where_that_is_wanted() {
        let mut theirs = Fault::new(Kind::TaskNotFound, "I have deleted it").of_agent();
        theirs.of_task = true;
        theirs.retry_after = Some(1);
        theirs.more.details = Some(r#"[{"@type":"x/google.rpc.ErrorInfo"}]"#.into());
        theirs.more.metadata = vec![("taskId", "t".into())];
        theirs.more.received = Some("{}".into());
        theirs.more.product = Some(face::Product {
            status: 404,
            text: r#"{"success":false,"message":"deleted","error_code":"NOT_FOUND"}"#.into(),
            before_agent: true,
        });
        for like in [Face::A2A, Face::MEMORYLAKE] {
            for op in [Op::Get, Op::Subscribe, Op::Stream, Op::DeletePush] {
                for dialect in [
                    Dialect::J03,
                    Dialect::J10,
                    Dialect::R10,
                    Dialect::R03P,
                    Dialect::R03K,
                ] {
                    let mut to = ReplyTo::new(dialect);
                    to.op = Some(op);
                    to.face = like;
                    let told = |to: &ReplyTo, fault: &Fault| {
                        let told = to.fault(fault);
                        let mut frame = vec![];
                        to.frame(fault, &mut frame);
                        (told.status, told.framing, told.body, frame)
                    };
                    let ours = told(&to, &Fault::no_task());
                    assert_ne!(told(&to, &theirs), ours);
                    to.face.one_not_found = true;
                    assert_eq!(told(&to, &theirs), ours, "{} {op:?}", dialect.name());
                    assert_eq!(told(&to, &Fault::no_task()), ours);
                    assert!(to.heard(&theirs).retry_after.is_none());
                    let other = Fault::params("no");
                    assert_eq!(to.heard(&other).message, "no");
                }
            }
        }
    }

    #[test]
    fn the_agent_s_own_details_are_kept() {
        let to = ReplyTo::new(Dialect::R10);
        let mut fault = Fault::params("no");
        fault.more.details = Some(r#"[{"@type":"x/google.rpc.BadRequest"}]"#.into());
        let body = String::from_utf8(to.fault(&fault).body).unwrap();
        assert!(
            body.contains(r#""reason":"INVALID_PARAMS"},{"@type":"x/google.rpc.BadRequest"}]"#),
            "{body}"
        );
    }
}
