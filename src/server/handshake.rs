//! Agreeing with a client on how to encrypt, before there is HTTP. It takes no longer than a request head may, which the
//! sweep sees to; and of those under way at once there is a bound, beyond which the oldest goes: who is honest is quick.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{Error, Result};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::state::{State, lock};
use super::wire::Wire;
use super::{Counts, Peer};
use crate::tls::{self, H2};

/// Handshakes under way at once, over all workers.
const AT_ONCE: usize = 1024;
/// How often one that failed is logged.
const SAY_AGAIN: Duration = Duration::from_secs(1);
/// What is read of a request that was not encrypted, so that its sender reads the answer.
const REST: usize = 8 * 1024;
/// The answer to one.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 40\r\n\
    connection: close\r\n\r\nthis port speaks TLS: begin with https:\n";

/// The handshakes of a worker.
#[derive(Debug)]
pub(super) struct Handshakes {
    most: usize,
    /// The oldest first.
    under_way: Mutex<VecDeque<Arc<State>>>,
    said: Mutex<Option<Instant>>,
}

impl Handshakes {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            most: (AT_ONCE / workers.max(1)).max(1),
            under_way: Mutex::default(),
            said: Mutex::default(),
        })
    }

    fn begin(self: &Arc<Self>, state: &Arc<State>) -> UnderWay {
        state.shakes();
        let mut all = lock(&self.under_way);
        if all.len() >= self.most
            && let Some(oldest) = all.pop_front()
        {
            oldest.cut();
        }
        all.push_back(Arc::clone(state));
        UnderWay {
            all: Arc::clone(self),
            state: Arc::clone(state),
        }
    }

    /// Logs, but not everything that somebody may think of.
    fn say(&self, peer: &Peer, error: &Error) {
        let mut said = lock(&self.said);
        if said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            *said = Some(Instant::now());
            tracing::info!(peer = %peer.addr, %error, "a client did not come to terms with us on TLS");
        }
    }
}

/// One handshake.
struct UnderWay {
    all: Arc<Handshakes>,
    state: Arc<State>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut all = lock(&self.all.under_way);
        if let Some(at) = all.iter().position(|s| Arc::ptr_eq(s, &self.state)) {
            all.remove(at);
        }
    }
}

/// What was agreed on: the encrypted connection, and whether it speaks HTTP/2. None if it came to nothing.
pub(super) async fn shake(
    io: TcpStream,
    peer: &mut Peer,
    tls: &tls::Server,
    state: &Arc<State>,
    all: &Arc<Handshakes>,
    counts: &Counts,
) -> Option<(Wire, bool)> {
    let _under_way = all.begin(state);
    let agreed = {
        let mut agreed = pin!(agree(io, peer, tls));
        poll_fn(|cx| {
            state.listen(cx.waker());
            if state.is_cut() {
                return Poll::Ready(None);
            }
            match agreed.as_mut().poll(cx) {
                Poll::Pending if state.is_leaving() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
                Poll::Ready(agreed) => Poll::Ready(Some(agreed)),
            }
        })
        .await
    };
    match agreed {
        Some(Ok(agreed)) => {
            state.has_shaken();
            counts.shaken();
            Some(agreed)
        }
        Some(Err(error)) => {
            counts.not_shaken();
            all.say(peer, &error);
            None
        }
        None => {
            counts.not_shaken();
            None
        }
    }
}

async fn agree(mut io: TcpStream, peer: &mut Peer, tls: &tls::Server) -> Result<(Wire, bool)> {
    let mut first = [0];
    io.peek(&mut first).await?;
    // A TLS record begins with 22, a method with a letter.
    if first[0].is_ascii_uppercase() {
        let mut rest = vec![0; REST];
        let _some = io.read(&mut rest).await?;
        io.write_all(PLAIN).await?;
        io.shutdown().await?;
        return Err(Error::other(
            "it does not encrypt; tell it to begin with https:",
        ));
    }
    let io = tls.acceptor().accept(io).await?;
    let connection = io.get_ref().1;
    let http2 = connection.alpn_protocol() == Some(H2);
    peer.tls = true;
    peer.certificate = tls.shown(connection);
    Ok((Wire::Tls(Box::new(io)), http2))
}
