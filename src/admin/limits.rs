//! How full the limits are, for operators: by rule and key, never a credential.
use std::fmt::Write as _;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Page, Route, token::guarded};
use crate::policy::limits::{Limits, Usage};

/// So many counts are shown.
const SHOWN: usize = 1_000;

/// `GET /v1/limits`: `{"limits": [{"rule", "key", "used", "limit", "resetsInSeconds"?}], "uncounted"}`, at most 1,000 of
/// them, and how often something was used or given back that the shared store was never told. It needs the admin token
/// unless it is `open` to whoever reaches the address. A key whose name is not remembered is its digest, and then its
/// rule is not known; with a shared store, the counts that this gateway used are shown.
pub fn limits(of: Limits, token: Option<&str>, open: bool) -> Route {
    guarded(Method::GET, "/v1/limits", token, open, move |_| {
        let of = of.clone();
        async move {
            match of.usage(SHOWN).await {
                Ok(usage) => page(&usage, of.lost()),
                Err(trouble) => {
                    Page::plain(StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n"))
                }
            }
        }
    })
}

fn page(usage: &[Usage], uncounted: u64) -> Page {
    let all: Vec<Value> = usage.iter().map(one).collect();
    let mut text = json!({ "limits": all, "uncounted": uncounted }).to_string();
    let _infallible = writeln!(text);
    Page {
        status: StatusCode::OK,
        content_type: "application/json",
        text,
    }
}

fn one(usage: &Usage) -> Value {
    let mut said = json!({ "key": usage.key, "used": usage.used });
    if let (Some(rule), Some(limit)) = (&usage.rule, usage.limit) {
        said["rule"] = json!(rule);
        said["limit"] = json!(limit);
    }
    if let Some(resets) = usage.resets {
        said["resetsInSeconds"] = json!(resets);
    }
    said
}
