//! The drain, begun and watched from outside: by `a2a-gateway drain`, mostly, before the process is stopped.
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use http::{Method, StatusCode};
use serde_json::json;

use super::{Page, Route, token::guarded};
use crate::server::Handle;

/// How a drain goes.
#[derive(Clone)]
pub struct Drains {
    server: Handle,
    asked: Arc<AtomicBool>,
    /// Whether all could end by itself, once it is over.
    over: Arc<OnceLock<bool>>,
}

impl Drains {
    /// Of this server.
    pub fn of(server: Handle) -> Self {
        Self {
            server,
            asked: Arc::default(),
            over: Arc::default(),
        }
    }

    /// Whether somebody asked for one here.
    pub fn was_asked_for(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// All has ended, and what it left behind is where it belongs.
    pub fn is_over(&self, clean: bool) {
        let _once = self.over.set(clean);
    }

    fn page(&self, status: StatusCode) -> Page {
        let state = match self.over.get() {
            Some(_) => "drained",
            None if self.server.is_refusing() => "draining",
            None if self.server.is_draining() => "leaving",
            None => "serving",
        };
        let mut said = json!({
            "state": state,
            "connections": self.server.counts().connections(),
            "atMostSeconds": self.server.longest_drain().as_secs_f64().ceil(),
        });
        if let Some(clean) = self.over.get() {
            said["clean"] = json!(clean);
        }
        Page {
            status,
            content_type: "application/json",
            text: format!("{said}\n"),
        }
    }
}

/// `GET /v1/drain`: `{"state": "serving" | "leaving" | "draining" | "drained", "connections", "atMostSeconds",
/// "clean"?}`. It needs the admin token unless it is `open` to whoever reaches the address.
pub fn drains(of: Drains, token: Option<&str>, open: bool) -> Route {
    guarded(Method::GET, "/v1/drain", token, open, move |_| {
        std::future::ready(of.page(StatusCode::OK))
    })
}

/// `POST /v1/drain` begins one, as SIGTERM does, and answers 202 with the same; but when it is over the process stays,
/// so that whoever stops it finds it there. It always needs the admin token.
pub fn drain(of: Drains, token: Option<&str>) -> Route {
    guarded(Method::POST, "/v1/drain", token, false, move |_| {
        if !of.server.is_draining() {
            tracing::info!("leaving, since POST /v1/drain asks for it");
        }
        of.asked.store(true, Relaxed);
        of.server.drain();
        std::future::ready(of.page(StatusCode::ACCEPTED))
    })
}
