//! The conversations that are held, for operators: who holds them since when, never what was said.
use std::fmt::Write as _;

use http::{Method, StatusCode};
use serde_json::json;

use super::{Page, Route, token::guarded};
use crate::{
    policy::conversation::Conversations,
    state::{
        Key, Shown, Trouble,
        slot::{Holder, Millis},
    },
};

/// So many conversations are shown.
const SHOWN: usize = 1_000;
const PATH: &str = "/v1/conversations";
const BELOW: &str = "/v1/conversations/";
const RELEASE: &str = ":release";

/// `GET /v1/conversations`: `{"conversations": [{"key", "holders": [{"state", "ageSeconds", "task"?, "caller"}]}]}`,
/// at most 1,000 of them. `caller` is a digest. It needs the admin token unless it is `open` to whoever reaches the
/// address: the ids of tasks are nobody else's business.
pub fn conversations(of: Conversations, token: Option<&str>, open: bool) -> Route {
    guarded(Method::GET, PATH, token, open, move |_| {
        let of = of.clone();
        async move {
            match of.store().list(SHOWN).await {
                Ok(all) => page(&all),
                Err(trouble) => away(trouble),
            }
        }
    })
}

/// `POST /v1/conversations/{key}:release` with `Authorization: Bearer TOKEN` frees one: 204, or 404 if nobody holds
/// it. Without `admin_token_file` nobody may.
pub fn release(of: Conversations, token: Option<&str>) -> Route {
    let route = guarded(Method::POST, BELOW, token, false, move |asked| {
        let of = of.clone();
        async move {
            let key = asked
                .rest
                .strip_suffix(RELEASE)
                .filter(|key| key.len() == 32);
            let Some(key) = key.and_then(|key| key.parse::<Key>().ok()) else {
                return Page::plain(
                    StatusCode::NOT_FOUND,
                    "use /v1/conversations/{key}:release\n",
                );
            };
            match of.release(key).await {
                Ok(true) => Page::plain(StatusCode::NO_CONTENT, ""),
                Ok(false) => Page::plain(StatusCode::NOT_FOUND, "nobody holds it\n"),
                Err(trouble) => away(trouble),
            }
        }
    });
    route.and_below()
}

fn page(all: &[Shown]) -> Page {
    let shown: Vec<_> = all.iter().map(one).collect();
    let mut text = json!({ "conversations": shown }).to_string();
    let _infallible = writeln!(text);
    Page {
        status: StatusCode::OK,
        content_type: "application/json",
        text,
    }
}

fn one(shown: &Shown) -> serde_json::Value {
    let holder = |h: &Holder| {
        let mut said = json!({
            "state": h.phase.name(),
            "ageSeconds": age(h, shown.now),
            "caller": format!("{:016x}", h.asker.0),
        });
        if let Some(task) = &h.task {
            said["task"] = json!(task);
        }
        said
    };
    let holders: Vec<_> = shown.entry.holders.iter().map(holder).collect();
    json!({ "key": shown.key.to_string(), "holders": holders })
}

const fn age(of: &Holder, now: Millis) -> u64 {
    now.saturating_sub(of.taken) / 1000
}

fn away(trouble: Trouble) -> Page {
    Page::plain(StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n"))
}
