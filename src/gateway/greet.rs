//! Who asks, before anything is read. Without an identity of its own a caller is where it comes from.
use super::Peer;
use crate::policy::caller::Caller;

/// The caller behind a connection.
pub(super) fn caller(peer: &Peer) -> Caller {
    Caller {
        name: format!("peer:{}", peer.addr.ip()).into(),
        ..Caller::default()
    }
}
