//! CORS, by setting: what pages of other sites may do (Fetch standard, 3.2).
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::{
    config::{Cors, Origins},
    reply::Reply,
};

/// The origin to name in an answer, if pages from there may call.
pub(super) fn allowed(cors: &Cors, theirs: &HeaderMap) -> Option<HeaderValue> {
    let origin = theirs.get(header::ORIGIN)?;
    match &cors.origins {
        Origins::Any => Some(HeaderValue::from_static("*")),
        Origins::These(list) => {
            let known = list.iter().any(|o| o.as_bytes() == origin.as_bytes());
            known.then(|| origin.clone())
        }
    }
}

/// Marks an answer as readable for that origin; and as different for others, so that no cache mixes them up.
pub(super) fn mark(cors: &Cors, fields: &mut HeaderMap, origin: Option<HeaderValue>) {
    if matches!(&cors.origins, Origins::These(list) if !list.is_empty()) {
        fields.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    let Some(origin) = origin else { return };
    fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    fields.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "A2A-Version, A2A-Extensions, X-A2A-Extensions, Retry-After, WWW-Authenticate, A2A-Gateway-Losses",
        ),
    );
}

/// Answers `OPTIONS`: a preflight where it is one, else what may be called.
pub(super) fn options(cors: &Cors, theirs: &HeaderMap) -> Response<Reply> {
    let mut response = Response::new(Reply::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let fields = response.headers_mut();
    fields.insert(
        header::ALLOW,
        HeaderValue::from_static("GET, HEAD, POST, DELETE, OPTIONS"),
    );
    let preflight = theirs.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !preflight || allowed(cors, theirs).is_none() {
        return response;
    }
    let methods = [Method::GET, Method::POST, Method::DELETE];
    let methods = methods.map(|m| m.to_string()).join(", ");
    if let Ok(methods) = HeaderValue::try_from(methods) {
        fields.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
    if let Some(wanted) = theirs.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        fields.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    fields.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from(cors.max_age.as_secs()),
    );
    response
}
