//! Who calls how, for operators: whom to talk to before a version is switched off.
use std::fmt::Write as _;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Page, Route, token::guarded};
use crate::policy::callers::{Callers, Use};

/// So many callers are shown.
const SHOWN: usize = 1_000;

/// `GET /v1/callers`: `{"callers": [{"caller", "tenant"?, "last", "uses": [{"version", "binding", "operation", "last"}],
/// "deprecated": [{"member", "last"}]}]}`, who called last first, at most 1,000 of them. Unless it is `open` to all who
/// reach it, it needs `Authorization: Bearer TOKEN`.
pub fn callers(of: Callers, token: Option<&str>, open: bool) -> Route {
    guarded(Method::GET, "/v1/callers", token, open, move |_| {
        std::future::ready(page(&of))
    })
}

fn page(of: &Callers) -> Page {
    let all = of.list(SHOWN);
    let all: Vec<Value> = all.iter().map(|(name, of)| one(name, of)).collect();
    let mut text = json!({ "callers": all }).to_string();
    let _infallible = writeln!(text);
    Page {
        status: StatusCode::OK,
        content_type: "application/json",
        text,
    }
}

fn one(name: &str, of: &Use) -> Value {
    let uses = of.used().map(|(version, binding, operation, last)| {
        json!({"version": version, "binding": binding, "operation": operation, "last": time(last)})
    });
    let old = of.old();
    let old = old.map(|(member, last)| json!({"member": member, "last": time(last)}));
    let mut said = json!({
        "caller": name,
        "last": time(of.last()),
        "uses": uses.collect::<Vec<_>>(),
        "deprecated": old.collect::<Vec<_>>(),
    });
    if let Some(tenant) = &of.tenant {
        said["tenant"] = json!(**tenant);
    }
    said
}

fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(seconds.into()).map_or_else(|_| String::new(), |t| t.to_string())
}
