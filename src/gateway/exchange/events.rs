//! Events that are asked for without a client who wants them.
use http::{HeaderMap, HeaderValue, header};

use super::{Exchange, is_events};
use crate::{a2a::Fault, agent};

impl Exchange {
    /// Sends the call for our own sake, and gives the events of its answer.
    pub(in crate::gateway) async fn ask_events(&mut self) -> Result<agent::Body, Fault> {
        let events = HeaderValue::from_static("text/event-stream");
        self.fields.insert(header::ACCEPT, events);
        let (head, body) = self.ask().await?.into_parts();
        if !head.status.is_success() {
            return Err(self.failed(head, body).await);
        }
        if !is_events(&head.headers) {
            return Err(Fault::answer("one document where events were asked for"));
        }
        is_plain(&head.headers)?;
        Ok(body)
    }
}

/// Whether a stream can be read as it comes.
pub(super) fn is_plain(fields: &HeaderMap) -> Result<(), Fault> {
    match fields.get(header::CONTENT_ENCODING) {
        Some(coding) if coding.as_bytes() != b"identity" => Err(Fault::answer(
            "the event stream is compressed, though identity was asked for",
        )),
        Some(_) | None => Ok(()),
    }
}
