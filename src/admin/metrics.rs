//! Metrics, as Prometheus reads them.
use http::StatusCode;

use super::{Page, Route};
use crate::telemetry::Telemetry;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`: open, as probes are; nothing in it is anybody's secret. 404 where `telemetry.metrics.prometheus` is off.
pub fn metrics(of: Telemetry) -> Route {
    Route::new("/metrics", move || match of.scrape() {
        None => Page::plain(
            StatusCode::NOT_FOUND,
            "metrics are not shown: telemetry.metrics.prometheus is off\n",
        ),
        Some(Err(why)) => Page::plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
        Some(Ok(text)) => Page {
            status: StatusCode::OK,
            content_type: TEXT,
            text,
        },
    })
}
