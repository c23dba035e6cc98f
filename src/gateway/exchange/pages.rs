//! Lists of webhooks for v0.3, which has no pages: those of the agent are joined.
use bytes::Bytes;
use http::Method;

use super::Exchange;
use crate::a2a::{Binding, Fault, answer::Document, request, rpc};

/// So many pages are joined; a longer list is cut, and the log says so.
const PAGES: usize = 10;

impl Exchange {
    /// v0.3 lists have no pages: all are joined, up to a bound.
    pub(super) async fn all_pages(&mut self, first: &Bytes) -> Result<Document, Fault> {
        let mut bare = self.to.clone();
        bare.dialect.binding = Binding::Rest;
        let mut page = self.translate(&bare, first)?;
        let mut items = inner(page.body.take());
        for _ in 1..PAGES {
            let Some(token) = page.next.take() else { break };
            self.call.params = request::next_page(&self.call, &token, &self.gateway.options)?;
            let (head, body) = self.send(&Method::GET).await?.into_parts();
            if !head.status.is_success() {
                return Err(self.failed(head, body).await); // half a list would look like a whole one
            }
            let text = self.collect(&head, body).await?;
            self.lost.append(&mut page.lost);
            page = self.translate(&bare, &text)?;
            let more = inner(page.body.take());
            if !items.is_empty() && !more.is_empty() {
                items.push(b',');
            }
            items.extend_from_slice(&more);
        }
        if page.next.is_some() {
            tracing::warn!(
                pages = PAGES,
                "a list of push configs was cut: it has more pages"
            );
        }
        let mut out = Vec::with_capacity(items.len() + 64);
        let rpc = self.to.dialect.binding == Binding::Rpc;
        if rpc {
            rpc::write_head(&self.to.id, "result", &mut out);
        }
        out.push(b'[');
        out.extend_from_slice(&items);
        out.push(b']');
        if rpc {
            out.push(b'}');
        }
        page.body = Some(out.into());
        Ok(page)
    }
}

/// What is between the brackets of a JSON list.
fn inner(list: Option<Bytes>) -> Vec<u8> {
    let list = list.unwrap_or_default();
    match list.as_ref() {
        [b'[', items @ .., b']'] => items.to_vec(),
        _ => vec![],
    }
}
