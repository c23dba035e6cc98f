//! The settings are read again because somebody asks for it.
use http::{Method, StatusCode};
use serde_json::json;

use super::{Page, Route, token::guarded};
use crate::reload::{Answer, Asks};

/// `POST /v1/reload` reads the settings file again. It always needs the admin token.
///
/// 200 `{"result": "taken" | "unchanged", "changed": [section], "needsRestart": [setting]}`: what is named last stays as
/// it was until the gateway is started anew, everything else is in force. 422 `{"result": "refused", "mistakes":
/// [text]}`: nothing changed. 409 where there is no file to read again. 503 where it takes long: what comes of it is in the
/// log then.
pub fn reload(asks: Asks, token: Option<&str>) -> Route {
    guarded(Method::POST, "/v1/reload", token, false, move |_| {
        let asks = asks.clone();
        async move { page(asks.ask().await) }
    })
}

fn page(answer: Answer) -> Page {
    let (status, said) = match answer {
        Answer::Taken { changed, restart } => {
            let result = if changed.is_empty() {
                "unchanged"
            } else {
                "taken"
            };
            let said = json!({"result": result, "changed": changed, "needsRestart": restart});
            (StatusCode::OK, said)
        }
        Answer::Refused(mistakes) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({"result": "refused", "mistakes": mistakes}),
        ),
        Answer::NoFile => (
            StatusCode::CONFLICT,
            json!({"result": "refused", "mistakes": ["the gateway was started without a settings file"]}),
        ),
        Answer::Busy => {
            let text = "settings are being read already, or the gateway ends\n";
            return Page::plain(StatusCode::SERVICE_UNAVAILABLE, text);
        }
        Answer::Late => {
            let text = "the settings are being read still: what comes of it is in the log\n";
            return Page::plain(StatusCode::SERVICE_UNAVAILABLE, text);
        }
    };
    Page {
        status,
        content_type: "application/json",
        text: format!("{said}\n"),
    }
}
