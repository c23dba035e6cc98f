//! How full the queue of the record of calls is, and how many calls found no place in it.
use http::{Method, StatusCode};
use serde_json::json;

use super::{Page, Route, token::guarded};
use crate::audit::{Audit, Usage};

/// `GET /v1/audit`: `{"places", "taken", "missed": {"withoutPlace", "beyondShare"}, "untoldCheckpoints"}`; 404 where
/// nothing is recorded. It needs the admin token unless it is `open` to whoever reaches the address.
pub fn audit(of: Audit, token: Option<&str>, open: bool) -> Route {
    guarded(Method::GET, "/v1/audit", token, open, move |_| {
        std::future::ready(page(of.usage()))
    })
}

fn page(usage: Option<Usage>) -> Page {
    let Some(usage) = usage else {
        return Page::plain(StatusCode::NOT_FOUND, "calls are not recorded\n");
    };
    let missed = json!({"withoutPlace": usage.without_place, "beyondShare": usage.beyond_share});
    let said = json!({
        "places": usage.places,
        "taken": usage.taken,
        "missed": missed,
        "untoldCheckpoints": usage.untold_checkpoints,
    });
    Page {
        status: StatusCode::OK,
        content_type: "application/json",
        text: format!("{said}\n"),
    }
}
