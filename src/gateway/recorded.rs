//! What a call's record is told as the call begins; the rest of it is told where it happens.
use http::{Method, Response, request::Parts};

use super::{Inner, Peer, greet, telling};
use crate::{
    a2a::{Fault, Kind, detect, reply::ReplyTo},
    audit::{Full, Record, Waiting},
    reply::Reply,
};

impl Inner {
    /// A record for a request, if it is a call: a browser's question of what it may ask is none.
    pub(super) fn begin(&self, head: &Parts, peer: &Peer) -> Result<Waiting, Full> {
        if head.method == Method::OPTIONS {
            return Ok(Waiting::default());
        }
        let waiting = self.audit.begin(peer.addr)?;
        if waiting.record().is_on() {
            waiting.record().caller(&greet::caller(peer));
        }
        Ok(waiting)
    }

    /// A call that cannot be recorded is not served.
    pub(super) fn no_place(&self, head: &Parts, Full: Full) -> Response<Reply> {
        let path = head.uri.path();
        let mut to = ReplyTo::new(detect::likely(path, None));
        to.face = self.face;
        let _only_how_it_asks = self.look(head, path, &Record::default(), &mut to);
        let mut fault = Fault::new(
            Kind::Overloaded,
            "the gateway cannot record more calls now; try again later",
        );
        fault.retry_after = Some(1);
        telling::refuse(&to, &fault.because("audit.queue is full"))
    }
}
