//! What a client and the log are told besides the answer itself: faults, framing, losses.
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::forward;
use crate::{
    a2a::{
        Fault, Op, Version,
        fault::Blame,
        headers,
        reply::{Framing, ReplyTo, Told},
        rest,
        shape::Loss,
    },
    reply::Reply,
};

/// A fault in the client's words, and a line in the log for those that are not the client's own.
pub(super) fn refuse(to: &ReplyTo, fault: &Fault) -> Response<Reply> {
    log_fault(to, fault);
    quietly(to, fault)
}

/// The same without a line in the log, where somebody else counts them.
pub(super) fn quietly(to: &ReplyTo, fault: &Fault) -> Response<Reply> {
    let fault = &*to.heard(fault);
    let Told {
        status,
        framing,
        body,
    } = to.fault(fault);
    let mut response = Response::new(Reply::whole(body));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    put_framing(fields, framing, "application/json");
    put_version(fields, to.dialect.shape.version());
    if let Some(seconds) = fault.retry_after {
        fields.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    for (name, value) in &fault.more.fields {
        fields.insert(name, value.clone());
    }
    for challenge in &fault.more.challenges {
        fields.append(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        fields.insert(
            header::ALLOW,
            HeaderValue::from_static("GET, HEAD, POST, DELETE, OPTIONS"),
        );
    }
    response
}

pub(super) fn put_framing(fields: &mut HeaderMap, framing: Framing, json: &'static str) {
    match framing {
        Framing::Json => {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(json));
        }
        Framing::Events => {
            fields.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/event-stream"),
            );
            fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            fields.insert(
                HeaderName::from_static("x-accel-buffering"),
                HeaderValue::from_static("no"),
            );
        }
    }
}

pub(super) fn put_version(fields: &mut HeaderMap, version: Version) {
    fields.insert(headers::VERSION, HeaderValue::from_static(version.name()));
}

pub(super) fn wants_report(fields: &HeaderMap) -> bool {
    fields
        .get(forward::REPORT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"losses"))
}

/// Losses as one header value: percent-encoded paths, at most 2 KiB.
pub(super) fn losses_value(lost: &[Loss]) -> Option<HeaderValue> {
    const LONGEST: usize = 2048;
    let mut text = String::new();
    for loss in lost {
        let path = rest::segment(&loss.path()).to_string();
        if text.len() + path.len() + 1 > LONGEST {
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&path);
    }
    HeaderValue::try_from(text).ok().filter(|v| !v.is_empty())
}

pub(super) fn log_losses(lost: &[Loss], of: &str) {
    for loss in lost {
        tracing::debug!(
            path = loss.label(),
            why = loss.why,
            of,
            "lost in translation"
        );
    }
}

fn log_fault(to: &ReplyTo, fault: &Fault) {
    let op = to.op.map_or("unknown", Op::name);
    let (dialect, reason) = (to.dialect.name(), fault.kind.wire().reason);
    match fault.blame {
        Blame::Caller => tracing::debug!(op, dialect, reason, %fault, "refused"),
        Blame::Agent => {
            tracing::warn!(op, dialect, reason, %fault, "the agent failed a call; look at its log for this time");
        }
        Blame::Gateway => {
            tracing::warn!(op, dialect, reason, %fault, "the gateway could not serve a call; see limits and backend settings");
        }
    }
}
