//! The public card at its well-known path: rewritten, so that it leads to the gateway, and cacheable (v1.0 8.2, 8.6).
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header, request::Parts};

use super::{
    Asked, Inner, Peer, forward, routes,
    routes::Matched,
    telling::{self, log_losses},
};
use crate::{
    a2a::{
        Dialect, Fault, Op, Version,
        answer::{self, Public},
        reply::ReplyTo,
        shape::{View, card::Interface},
    },
    card,
    reply::Reply,
};

impl Inner {
    /// What the answer to a call says of us: cards only.
    pub(super) fn public_for(
        &self,
        op: Op,
        head: &Parts,
        matched: &Matched<'_>,
        peer: &Peer,
    ) -> Option<Box<Public>> {
        let card = op == Op::ExtendedCard;
        card.then(|| self.public(head, matched, peer))
            .flatten()
            .map(Box::new)
    }

    /// What a card says of us. Without a public URL our address is what the client used.
    pub(super) fn public(
        &self,
        head: &Parts,
        matched: &Matched<'_>,
        peer: &Peer,
    ) -> Option<Public> {
        let base = match &self.public_url {
            Some(url) => url.clone(),
            None => forward::own_address(
                &head.headers,
                head.uri.authority(),
                peer,
                &self.http.trusted_proxies,
            )?,
        };
        let base = format!("{base}{}", matched.public);
        let mut interfaces = vec![];
        for (on, version) in [(self.accepts.v10, "1.0"), (self.accepts.v03, "0.3")] {
            if on && self.accepts.rpc {
                interfaces.push(Interface {
                    url: format!("{base}{}", self.rpc_path),
                    binding: "JSONRPC",
                    version,
                });
            }
            if on && self.accepts.rest {
                interfaces.push(Interface {
                    url: base.clone(),
                    binding: "HTTP+JSON",
                    version,
                });
            }
        }
        Some(Public {
            interfaces,
            push: self.push && self.backend.push_notifications,
            security: self.auth.ways().security(),
        })
    }

    /// The public card (v1.0 8.2, 8.6).
    pub(super) async fn card(
        &self,
        head: &Parts,
        asked: &Asked<'_>,
        peer: &Peer,
    ) -> Response<Reply> {
        let mut to = ReplyTo::new(match asked.said {
            Some(Version::V03) => Dialect::R03P,
            Some(Version::V10) | None => Dialect::R10,
        });
        to.face = asked.matched.route.face;
        let view = match (asked.said, self.accepts.v03, self.accepts.v10) {
            (_, true, false) => View::V03,
            (_, false, _) | (Some(Version::V10), ..) => View::V10,
            (Some(Version::V03) | None, ..) => View::Superset,
        };
        let rendered = self.render(head, asked, peer, view).await;
        let (text, max_age) = match rendered {
            Ok(rendered) => rendered,
            Err(fault) => {
                asked.record.refused(&to, &fault);
                return telling::refuse(&to, &fault);
            }
        };
        let mut response = Response::new(Reply::Empty);
        let fields = response.headers_mut();
        fields.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        fields.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
        let caching = match &self.public_url {
            Some(_) => format!("public, max-age={}", max_age.as_secs()),
            None => "no-store".to_owned(), // it names the host that this client used
        };
        if let Ok(caching) = HeaderValue::try_from(caching) {
            fields.insert(header::CACHE_CONTROL, caching);
        }
        let etag = etag_of(&text);
        let known = head.headers.get(header::IF_NONE_MATCH);
        let unchanged = known.is_some_and(|k| same_etag(k, &etag));
        fields.insert(header::ETAG, etag);
        if unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = Reply::whole(text);
        }
        response
    }

    async fn render(
        &self,
        head: &Parts,
        asked: &Asked<'_>,
        peer: &Peer,
        view: View,
    ) -> Result<(Vec<u8>, Duration), Fault> {
        let matched = &asked.matched;
        let public = self.public(head, matched, peer);
        let public = public.ok_or_else(|| Fault::params("the request's Host is not an address"))?;
        let mut paths = vec![routes::target(&matched.base, &self.backend.card_path)?];
        if !matches!(&*matched.base, "" | "/") {
            paths.push(routes::target("", &self.backend.card_path)?); // by the rule of well-known paths
        }
        let place = card::Place {
            agent: matched.route.agent.clone(),
            key: format!("{}{}", matched.route.origin, matched.base),
            paths,
        };
        let card = self.cards.get(&place, &self.follow).await?;
        let text = std::str::from_utf8(&card.text).map_err(|e| Fault::answer(e.to_string()))?;
        let (text, lost) = answer::card(text, Some(&public), view, &self.options)?;
        log_losses(&lost, "card");
        Ok((text, card.max_age))
    }
}

/// A strong tag of what is served, which differs from what the agent sent.
fn etag_of(text: &[u8]) -> HeaderValue {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    let tag = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"card\""))
}

fn same_etag(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(known), Ok(etag)) = (known.to_str(), etag.to_str()) else {
        return false;
    };
    known
        .split(',')
        .map(|k| k.trim().trim_start_matches("W/"))
        .any(|k| k == "*" || k == etag)
}
