//! Who asks.
use std::sync::Arc;

use http::HeaderMap;

use super::Peer;
use crate::policy::caller::Caller;

/// Says who a request is from by its head, where somebody else has made sure of that.
pub type Greeter = Arc<dyn Fn(&HeaderMap) -> Option<Caller> + Send + Sync>;

/// Who it is by the address alone.
pub(super) fn caller(peer: &Peer) -> Caller {
    Caller {
        name: format!("peer:{}", peer.addr.ip().to_canonical()).into(),
        ..Caller::default()
    }
}
