//! Work that outlives the request which began it: who may begin some is handed a [`Follow`] by the server, which
//! bounds it and waits for it at its end.
use std::{pin::Pin, sync::Arc};

/// Runs work to its end. False if there is no room for it.
pub type Follow = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) -> bool + Send + Sync>;
