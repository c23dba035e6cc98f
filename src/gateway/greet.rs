//! Who asks.
use super::Peer;
use crate::policy::caller::Caller;

/// The one at this address.
pub(super) fn caller(peer: &Peer) -> Caller {
    Caller {
        name: format!("peer:{}", peer.addr.ip().to_canonical()).into(),
        ..Caller::default()
    }
}
