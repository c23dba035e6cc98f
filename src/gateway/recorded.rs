//! What a call finds at the door, before anything of it is read: the guard of its peer, and a place for its record. The
//! rest of the record is told where it happens.
use std::sync::atomic::Ordering::Relaxed;

use http::{Method, Response, request::Parts};

use super::{Inner, Peer, cors, forward, telling};
use crate::{
    a2a::{Fault, Kind, detect, reply::ReplyTo},
    audit::{Full, Waiting},
    reply::Reply,
};

impl Inner {
    /// A record for a request, and its answer if it goes no further. A browser's question of what it may ask is no call.
    pub(super) fn door(
        &self,
        head: &Parts,
        peer: &Peer,
    ) -> (Waiting, Option<Box<Response<Reply>>>) {
        if head.method == Method::OPTIONS {
            let answer = cors::options(&self.http.cors, &head.headers);
            return (Waiting::default(), Some(Box::new(answer)));
        }
        // First the guard: whom it stops must not keep others from a place by what they ask for afterwards.
        let admitted = self.peers.admit(peer.addr.ip());
        let (waiting, full) = self.begin(head, peer);
        let fault = match (admitted, full) {
            (Ok(()), None) if self.leaving.load(Relaxed) => leaving(),
            (Ok(()), None) => return (waiting, None),
            (Ok(()), Some(full)) => no_place(full),
            (Err(fault), _) => {
                waiting.record().rule("limits.per_peer");
                fault
            }
        };
        let path = head.uri.path();
        let mut to = ReplyTo::new(detect::likely(path, None));
        to.face = self.face;
        let _only_how_it_asks = self.look(head, path, waiting.record(), &mut to);
        waiting.record().refused(&to, &fault);
        let answer = match full {
            None if self.leaving.load(Relaxed) => telling::quietly(&to, &fault), // everybody is told, and it is no fault
            Some(_) => telling::quietly(&to, &fault), // the log of calls tells how many
            None => telling::refuse(&to, &fault),
        };
        (waiting, Some(Box::new(answer)))
    }

    fn begin(&self, head: &Parts, peer: &Peer) -> (Waiting, Option<Full>) {
        let hearing = self.ears.as_ref().and_then(|ears| {
            let begun = ears.begin(head, peer.tls);
            ears.listen_to(&begun).then(|| (ears.clone(), begun))
        });
        if hearing.is_none() && !self.audit.is_on() {
            return (Waiting::default(), None);
        }
        let ip = peer.addr.ip();
        // Behind a proxy are many, and none of them is known yet.
        let alone = !forward::is_trusted(&self.http.trusted_proxies, ip);
        self.audit.open(peer.addr, alone.then_some(ip), hearing)
    }
}

/// Nothing of it has begun, so that it may be sent again at once, to whoever serves then.
fn leaving() -> Fault {
    let words = "the gateway is stopping; send this again, to another";
    let mut fault = Fault::new(Kind::Overloaded, words).because("a drain has begun");
    fault.retry_after = Some(1);
    fault
}

/// A call that cannot be recorded is not served.
fn no_place(full: Full) -> Fault {
    let (kind, words, cause) = match full {
        Full::Queue => (
            Kind::Overloaded,
            "the gateway cannot record more calls now; try again later",
            "audit.queue is full",
        ),
        Full::Share => (
            Kind::RateLimited,
            "too many calls from this address are under way",
            "its share of audit.queue is taken",
        ),
    };
    let mut fault = Fault::new(kind, words);
    fault.retry_after = Some(1);
    fault.because(cause)
}
