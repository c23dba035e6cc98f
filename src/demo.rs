//! The built-in agent: a small A2A v1.0 agent, JSON-RPC and REST on one port, to try the gateway against.
//!
//! It obeys the first word of a message (`demo/word.rs` has the table) and knows every operation. It is strict on purpose: what is
//! not v1.0 is refused, so an old client that gets an answer has been translated. Nothing here uses the rest of the
//! crate, and nothing is kept when it ends.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::desk::Desk;

mod call;
mod card;
mod curls;
mod desk;
mod object;
mod refusal;
mod rest;
mod rpc;
mod store;
mod wire;
mod word;

#[cfg(test)]
mod tests;

pub use self::curls::curls;

/// Clients served at the same time; one more waits in the listener's queue.
const CONNECTIONS: usize = 256;
/// How long a client may take over a request head, or stay silent between two requests.
const HEAD_LIMIT: Duration = Duration::from_mins(1);
/// The largest request head.
const HEAD_BYTES: usize = 64 * 1024;
/// A pause after a failed accept: too many open files, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The agent with its port open, not yet serving.
#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    addr: SocketAddr,
}

impl Agent {
    /// Takes a free port on the loopback interface.
    pub async fn bind() -> io::Result<Agent> {
        Self::bind_to((std::net::Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Takes this address, for an agent in a container of its own.
    pub async fn bind_to(address: SocketAddr) -> io::Result<Agent> {
        let listener = TcpListener::bind(address).await?;
        let addr = listener.local_addr()?;
        Ok(Agent { listener, addr })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `stop`, then cuts what is still open; returns when all of it has ended.
    pub async fn run(self, stop: CancellationToken) {
        let desk = Arc::new(Desk::new(self.addr, stop.child_token()));
        let seats = Arc::new(Semaphore::new(CONNECTIONS));
        let connections = TaskTracker::new();
        let accept = async {
            loop {
                let seat = Arc::clone(&seats).acquire_owned().await;
                let Ok((stream, _)) = self.listener.accept().await else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let serving = stop
                    .clone()
                    .run_until_cancelled_owned(serve(stream, Arc::clone(&desk)));
                connections.spawn(async move {
                    let _seat = seat;
                    serving.await
                });
            }
        };
        let _: Option<Infallible> = stop.run_until_cancelled(accept).await;
        connections.close();
        connections.wait().await;
        desk.closed().await;
    }
}

/// One connection. Its failure is the client's to notice; the agent has nobody to tell.
async fn serve(stream: TcpStream, desk: Arc<Desk>) {
    // Small events should not wait for each other; a socket that refuses the option still works.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(wire::respond(&desk, request).await) }
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
